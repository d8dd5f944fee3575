from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies.linear_networks.wide_linear.study import WideLinear

SMALL = WideLinear.tiny


@pytest.mark.slow
@pytest.mark.parametrize("draw", [0, 1])
def test_it_agrees_with_fields_drawn_at_random(draw):
    rng = np.random.default_rng(draw)
    fields = {
        "imbalance": float(rng.uniform(0.2, 3)),
        "initial_size": float(rng.uniform(0.05, 0.3)),
        "first_rate": float(rng.uniform(0.5, 2)),
        "second_rate": float(rng.uniform(0.5, 2)),
        "whitened": bool(draw % 2),
        "seed": int(rng.integers(1000)),
    }
    assert WideLinear(**SMALL | fields).run().verdict.outcome == "agree"


@pytest.mark.slow
def test_both_signs_of_the_imbalance_move_alike_and_keep_their_charge():
    study = WideLinear(**SMALL)
    observed = study.observe()
    one, other = observed["coefficients"]
    # Two runs of the solver, each within 1e-10 a step.
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-7)
    assert float(observed["conserved_drift"].max()) < 1e-8
    # Twice the step, twice the drift, up to the second order.
    drift = observed["step_drift"].to_numpy()
    np.testing.assert_allclose(drift[:, 1] / drift[:, 0], 2, rtol=0.01)


@pytest.mark.parametrize(("field", "value"), [("imbalance", 0.0), ("initial_size", -1.0), ("times", 1), ("seed", -1)])
def test_bad_fields_are_named_when_the_study_is_made(field, value):
    with pytest.raises(InputError) as caught:
        WideLinear(**SMALL | {field: value})
    assert caught.value.argument == field

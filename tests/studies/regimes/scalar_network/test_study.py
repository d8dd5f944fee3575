from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies import find_study

ScalarNetwork = find_study("scalar-network")


FACTORS = [0.01, 0.1, 1.0, 10.0, 1000.0]


def drawn(seed: int):
    draw = np.random.default_rng(seed)
    return ScalarNetwork(
        factors=[10 ** float(power) for power in np.sort(draw.uniform(-1, 1.5, 2))],
        neurons=ScalarNetwork.tiny["neurons"],
        target=float(draw.choice([-1, 1]) * draw.uniform(0.3, 3)),
        weight_scale=float(draw.uniform(0.1, 2)),
        input_power=float(draw.uniform(0.2, 3)),
        divisor=float(draw.choice([-1, 1]) * draw.uniform(0.5, 3)),
        samples=ScalarNetwork.tiny["samples"],
        times=ScalarNetwork.tiny["times"],
        seed=seed,
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0])
def test_theory_and_experiment_agree_at_random_fields(seed):
    tree = drawn(seed).run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence
    # By then everything has been learned; otherwise agreement would be cheap.
    assert float(tree.observed["relative_loss"][..., -1].max()) < 1e-4


@pytest.mark.slow
def test_the_four_dials_are_equivalent():
    predicted = ScalarNetwork(factors=FACTORS).predict()
    for name in ("relative_loss", "learned_fraction", "log_growth", "final_log_growth"):
        # Double precision, and the rounding of the scaled settings.
        np.testing.assert_allclose(predicted[name].std("dial"), 0, atol=1e-11)


@pytest.mark.slow
def test_larger_factors_are_richer():
    end = ScalarNetwork(factors=FACTORS).predict()["final_log_growth"][0].to_numpy()
    assert np.all(np.diff(end) > 0)
    # Lazy: the weights hardly move. Rich: γ₊ = S/C, a decade for a decade.
    assert abs(end[0]) < 1
    assert end[-1] - end[-2] == pytest.approx(np.log(100), rel=0.02)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("factors", bad) for bad in ([], [1.0, 1.0], [-1.0], [np.nan])),
        *(("target", bad) for bad in (0.0, np.nan)),
        ("divisor", 0.0),
        ("input_power", 0.0),
        ("times", 1),
        ("seed", -1),
        ("neurons", 0),
    ],
)
def test_a_field_out_of_range_is_refused_by_name_when_the_study_is_made(field, value):
    with pytest.raises(InputError) as refusal:
        ScalarNetwork(**ScalarNetwork.tiny | {field: value})
    assert refusal.value.argument == field

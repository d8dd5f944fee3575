from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies.scaling.four_parameter_parity.study import FourParameterParity


def drawn(seed: int) -> FourParameterParity:
    draw = np.random.default_rng(seed)
    return FourParameterParity(
        target_scale=float(draw.uniform(0.5, 8.0)),
        scales=[float(each) for each in np.sort(10 ** draw.uniform(-3, -1, 2))],
        neurons=[float(each) for each in draw.uniform(0.3, 2.0, 3)],
        bias=float(draw.uniform(-1, 1)),
        learning_rate=float(draw.uniform(0.2, 3.0)),
        times=200,
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_targets_and_starts_follow_the_equations(seed):
    tree = drawn(seed).run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence


@pytest.mark.slow
def test_the_neurons_are_learned_one_after_another_at_the_golden_times():
    observed = FourParameterParity(scales=[0.01, 0.02], times=200).observe()
    # Of the integrators that the test of the theory names.
    found = observed["half_saturation_time"].sel(scale=0.01)
    np.testing.assert_allclose(found, [3.04464336, 3.59750193, 4.74652074], rtol=1e-5)
    assert np.all(np.diff(observed["half_saturation_time"], axis=1) > 0)


@pytest.mark.slow
def test_a_bias_that_ends_as_the_source_has_it_is_refuted():
    study = drawn(1)
    predicted = study.predict().record
    predicted["final_parameters"].loc[{"weight": "c"}] *= -1
    assert study.compared(study.observe().record, predicted).verdict.outcome == "disagree"


@pytest.mark.slow
def test_theory_for_another_target_is_refuted():
    study = drawn(2)
    other = dataclasses.replace(study, target_scale=1.001 * study.target_scale)
    predicted = other.predict().record.assign_coords(time=study.predict()["time"])
    assert study.compared(study.observe().record, predicted).verdict.outcome == "disagree"


@pytest.mark.parametrize(
    ("fields", "argument"),
    [
        ({"target_scale": 0.0}, "target_scale"),
        ({"learning_rate": -1.0}, "learning_rate"),
        ({"neurons": [1.0, 1.0]}, "neurons"),
        ({"neurons": [1.0, 0.0, 1.0]}, "neurons"),
        ({"scales": []}, "scales"),
        ({"scales": [10.0]}, "scales"),
        ({"bias": float("nan")}, "bias"),
        ({"times": 3}, "times"),
    ],
)
def test_bad_fields_are_named(fields, argument):
    with pytest.raises(InputError) as caught:
        FourParameterParity(**fields).predict()
    assert caught.value.argument == argument

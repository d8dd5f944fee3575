from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies import find_study

LayerwiseModes = find_study("layerwise-modes")


def drawn(seed: int):
    draw = np.random.default_rng(seed)
    target = float(draw.choice([-1, 1]) * draw.uniform(0.3, 3))
    return LayerwiseModes(
        modes=2,
        exponent=float(draw.uniform(-0.5, 1)),
        target=target,
        initial_strength=abs(target) * 10 ** float(draw.uniform(-6, -0.5)),
        imbalance=2 * float(draw.normal()),
        samples=6,
        times=40,
        seed=seed,
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0])
def test_theory_and_experiment_agree_at_random_fields(seed):
    tree = drawn(seed).run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence
    # By then every mode has been learned; otherwise agreement would be cheap.
    assert float(tree.observed["loss"][-1]) < 1e-4 * float(tree.observed["loss"][0])


@pytest.mark.slow
def test_equal_layers_follow_the_logistic_curve():
    study = LayerwiseModes(target=2.0, initial_strength=1e-3)
    predicted = study.predict()
    time, powers = predicted["time"].to_numpy()[:, None], np.arange(1.0, 6.0) ** -1.6
    logistic = 2.0 / (1 + (2.0 / 1e-3 - 1) * np.exp(-2 * 2.0 * powers * time))
    # Both are evaluated in double precision, through different exponentials.
    np.testing.assert_allclose(predicted["mode_strength"], logistic, rtol=1e-9)
    np.testing.assert_allclose(predicted["loss"], np.sum(powers * (2.0 - logistic) ** 2, axis=1) / 2, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("imbalance", [0.0, 1.5])
def test_a_negative_target_is_learned_as_the_mirror_image(imbalance):
    positive = LayerwiseModes(target=1.5, imbalance=imbalance).predict()
    negative = LayerwiseModes(target=-1.5, imbalance=imbalance).predict()
    np.testing.assert_allclose(negative["mode_strength"], -positive["mode_strength"], rtol=1e-9)
    np.testing.assert_allclose(negative["loss"], positive["loss"], rtol=1e-9, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("imbalance", [-2.0, 0.0, 2.0])
def test_every_mode_starts_at_the_given_strength_and_ends_at_the_target(imbalance):
    strength = LayerwiseModes(imbalance=imbalance).predict()["mode_strength"]
    np.testing.assert_allclose(strength[0], 1e-4, rtol=1e-9)
    # The last time is eight time constants after the slowest mode's rise, e⁻⁸ = 3e-4.
    np.testing.assert_allclose(strength[-1], 1.0, atol=1e-3)


@pytest.mark.slow
def test_stronger_modes_are_learned_first():
    strength = LayerwiseModes().predict()["mode_strength"]
    half = (strength > 0.5).argmax("time").to_numpy()
    assert np.all(np.diff(half) > 0)
    assert np.all(np.diff(strength, axis=1) <= 1e-12)


def test_unequal_layers_learn_faster_than_equal_ones_of_the_same_strength():
    # The rate of a mode is a² + b², which is smallest for a = b.
    equal, unequal = (LayerwiseModes(imbalance=imbalance).predict()["mode_strength"] for imbalance in (0.0, 3.0))
    assert np.all(unequal[1:-1] > equal[1:-1] - 1e-12)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("initial_strength", bad) for bad in (1.0, 2.0, 0.0, -1e-4, np.nan)),
        *(("times", bad) for bad in (1, 0, -3)),
        *(("samples", bad) for bad in (1, 0)),
        *(("target", bad) for bad in (0.0, np.nan)),
        ("modes", 0),
        ("imbalance", np.nan),
    ],
)
def test_a_field_out_of_range_is_refused_by_name_when_the_study_is_made(field, value):
    with pytest.raises(InputError) as refusal:
        LayerwiseModes(**LayerwiseModes.tiny | {field: value})
    assert refusal.value.argument == field

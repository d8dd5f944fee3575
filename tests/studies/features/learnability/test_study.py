from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies import find_study

Learnability = find_study("learnability")


def drawn(seed: int, **fields):
    draw = np.random.default_rng(seed)
    # All tests have the same numbers of samples and modes, so that one program serves all.
    chosen = {
        "samples": sorted(draw.choice(np.arange(30, 100), size=2, replace=False).tolist()),
        "modes": 120,
        "exponent": float(draw.uniform(1.1, 2)),
        "target_exponent": float(draw.uniform(0.7, 1.5)),
        "ridge": float(10 ** draw.uniform(-1.5, 0.5)),
        "noise_variance": float(draw.uniform(0.05, 0.5)),
        "draws": 150,
        "seed": seed,
    }
    return Learnability(**chosen | fields)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_theory_and_training_agree_for_random_fields(seed):
    tree = drawn(seed).run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence


@pytest.mark.slow
def test_theory_and_training_agree_without_ridge_on_both_sides_of_the_number_of_modes():
    tree = Learnability(samples=[40, 200], modes=120, ridge=0.0, draws=150).run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence
    assert "training_loss" not in tree.observed
    np.testing.assert_array_equal(tree.predicted["learned_fraction"][1], 1.0)


@pytest.mark.slow
def test_the_median_for_sine_features_agrees_within_a_wider_tolerance():
    tree = Learnability(samples=[40, 90], modes=120, basis="sine", draws=100).run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence
    agreement = tree.quantities
    assert "plus the error of the theory" in agreement["loss"].reason
    assert 0.3 < agreement["loss"].tolerance < 0.5
    assert "median" in tree.predicted.attrs["description"][1]


@pytest.mark.slow
def test_strong_modes_are_learned_from_fewer_samples():
    pairs = [[40, 60], [90, 130], [180, 250]]
    learned = np.concatenate(
        [Learnability(modes=120, samples=pair).predict()["learned_fraction"].to_numpy() for pair in pairs]
    )
    assert np.all(np.diff(learned, axis=0) > 0)
    assert np.all(np.diff(learned, axis=1) < 0)


def test_a_wrong_spectrum_disagrees():
    study = Learnability(**Learnability.tiny)
    other = Learnability(**Learnability.tiny, exponent=1.4)
    tree = study.compared(study.observe().record, study.with_tolerances(other.predict().record))
    assert tree.verdict.outcome == "disagree"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("samples", bad) for bad in ([], [40, 30], [0, 10], [10, 10])),
        *(("ridge", bad) for bad in (-1.0, np.nan)),
        ("modes", 0),
        ("exponent", 0.0),
        ("target_exponent", np.nan),
        ("noise_variance", -0.1),
        ("draws", 0),
        ("seed", -1),
    ],
)
def test_a_field_out_of_range_is_rejected_by_name(field, value):
    with pytest.raises(InputError) as refusal:
        Learnability(**Learnability.tiny | {field: value})
    assert refusal.value.argument == field


def test_an_infinite_error_is_rejected():
    with pytest.raises(InputError, match="number of modes"):
        Learnability(samples=[50], modes=50, ridge=0.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "fields",
    [
        # Weak modes that a draw learns by chance, and errors of small ridges.
        {"samples": [108, 214], "modes": 215, "exponent": 3.25, "target_exponent": 0.16, "ridge": 0.0754, "draws": 100},
        {"samples": [87, 95], "modes": 10, "ridge": 0.0065, "noise_variance": 0.0, "draws": 20},
    ],
)
def test_sampling_error_is_no_disagreement(fields):
    tree = Learnability(**fields).run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence
    assert all(each.tolerance < 0.5 for each in tree.quantities.values())


@pytest.mark.parametrize("ridge", [0.0, 0.0534])
def test_a_small_ridge_is_rejected_for_sine_features(ridge):
    with pytest.raises(InputError) as refusal:
        Learnability(samples=[16, 94], modes=372, target_exponent=1.95, ridge=ridge, basis="sine")
    assert refusal.value.argument == "ridge"


def test_a_slowly_decaying_target_is_rejected_for_sine_features():
    fields = {"samples": [40], "modes": 120, "basis": "sine"}
    assert Learnability(**fields, target_exponent=0.7)
    with pytest.raises(InputError) as refusal:
        Learnability(**fields, target_exponent=0.6)
    assert refusal.value.argument == "target_exponent"


def test_a_vanishing_error_is_rejected():
    with pytest.raises(InputError) as refusal:
        Learnability(samples=[81], modes=39, ridge=0.0, noise_variance=0.0)
    assert refusal.value.argument == "noise_variance"

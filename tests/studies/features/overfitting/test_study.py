from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies import find_study
from dynascope.studies.features.sines import centres

Overfitting = find_study("overfitting")


def drawn(seed: int):
    draw = np.random.default_rng(seed)
    strong = int(draw.integers(1, 6))
    # All tests have the same numbers of samples and modes, so that one program serves all.
    return Overfitting(
        samples=40,
        modes=400,
        strong_modes=strong,
        benign_mode=int(draw.integers(1, strong + 1)),
        malignant_mode=strong + int(draw.integers(1, 10)),
        noise_variance=float(draw.uniform(0, 0.3)),
        tail="printed" if seed == 1 else "corrected",
        trained=2,
        draws=200,
        times=12,
        positions=20,
        seed=seed,
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_theory_and_training_agree_for_random_fields(seed):
    tree = drawn(seed).run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence
    # The noise has been fitted by then, except at nearly coincident samples; otherwise agreement would mean little.
    loss = tree.observed["loss"]
    assert float((loss[:, -1] / loss[:, 0]).max()) < 0.02


@pytest.mark.slow
@pytest.mark.parametrize(
    "fields",
    [
        {"samples": 2, "modes": 582, "strong_modes": 1, "malignant_mode": 5, "noise_variance": 0.0},
        {"samples": 8, "modes": 83, "strong_modes": 2, "malignant_mode": 5, "noise_variance": 1.0, "tail": "printed"},
        {"samples": 113, "modes": 152, "strong_modes": 7},
    ],
)
def test_theory_and_training_agree_for_few_samples_strong_noise_and_short_tails(fields):
    tree = Overfitting(**fields, trained=1, draws=150, times=12, positions=20).run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence
    # With nearly as many samples as modes, single draws scatter too much to be judged.
    assert ("learnability" in tree.quantities) is (fields["samples"] < fields["modes"] / 2)


@pytest.fixture(scope="module")
def predicted():
    return Overfitting(trained=1, times=60).predict().record


@pytest.mark.slow
def test_both_runs_fit_the_noise_and_only_the_benign_one_generalises(predicted):
    loss, test_loss = predicted["loss"].to_numpy(), predicted["test_loss"].to_numpy()
    assert np.all(loss[:, -1] < 1e-3 * loss[:, 0])
    assert test_loss[0, -1] < 0.1 * test_loss[0, 0]
    assert test_loss[1, -1] > 0.9 * test_loss[1, 0]
    np.testing.assert_allclose(predicted["learnability"], [0.990079826287, 0.04764391021], rtol=1e-9)


@pytest.mark.slow
def test_the_parts_sum_to_the_function_and_the_strong_part_holds_the_benign_target(predicted):
    whole, strong, tail = (predicted[name].to_numpy() for name in ("fitted", "strong_part", "tail_part"))
    np.testing.assert_allclose(whole, strong + tail, atol=1e-12)
    assert np.corrcoef(strong[0], np.sin(2 * np.pi * centres(Overfitting().positions)))[0, 1] > 0.98


@pytest.mark.slow
def test_only_the_corrected_tail_has_a_window_in_which_the_signal_alone_is_fitted(predicted):
    times = predicted["time"].to_numpy()
    window = np.argmin(np.abs(times - 10))
    learned, loss = (predicted[name].to_numpy()[0] for name in ("learned_fraction", "loss"))
    assert learned[window] == pytest.approx(learned[-1], abs=0.1)
    assert loss[window] > 0.5 * 0.09 / 2
    printed = Overfitting(trained=1, tail="printed", times=20).predict().record
    assert printed.attrs["theory_warnings"] != predicted.attrs["theory_warnings"] == []
    assert float(printed["learnability"][0]) == pytest.approx(0.506114516675, rel=1e-9)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("samples", bad) for bad in (5, 2000, 0)),
        ("benign_mode", 6),
        ("malignant_mode", 5),
        ("noise_variance", -0.1),
        *((name, 0) for name in ("trained", "draws", "positions", "strong_modes")),
        ("times", 1),
        ("seed", -1),
    ],
)
def test_a_field_out_of_range_is_rejected_by_name(field, value):
    with pytest.raises(InputError) as refusal:
        Overfitting(**{field: value})
    assert refusal.value.argument == field

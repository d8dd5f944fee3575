from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies import find_study

DeepSaddles = find_study("deep-saddles")

# Nothing is drawn at the start of these, so that only training takes time.
QUICK = DeepSaddles.tiny | {"depths": [2], "gammas": [1.5], "draws": 40}


def drawn(seed: int):
    draw = np.random.default_rng(seed)
    width, depth = DeepSaddles.tiny["width"], 2 + seed % 3
    # Layers of size ε = width^((1 − γ)/2); small ones take too long where there are many.
    sizes = {2: [1e-4, 1e-6], 3: [0.02, 0.004], 4: [0.05, 0.025]}[depth]
    first = float(draw.uniform(1, 3))
    return DeepSaddles(
        **QUICK
        | {
            "depth": depth,
            "width": width,
            "training_gammas": [1 - 2 * float(np.log(size) / np.log(width)) for size in sizes],
            "singular_values": [first, first * float(draw.uniform(0.2, 0.4))],
            "gammas": [float(draw.uniform(1.2, 2))],
            "seed": seed,
        }
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1])
def test_theory_and_experiment_agree_at_random_fields(seed):
    tree = drawn(seed).run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence
    # By then every mode has been learned; otherwise agreement would be cheap.
    assert float(tree.observed["loss"][-1]) < 1e-9 * float(tree.observed["loss"][0])
    assert float(tree.observed["random_loss"][:, -1].max()) < 1e-9


@pytest.mark.slow
def test_aligned_modes_wait_longer_with_depth_and_are_learned_strongest_first():
    halves = []
    for depth, gammas in ((2, [6.0, 8.0]), (3, [3.0, 4.0]), (4, [3.0, 4.0])):
        study = DeepSaddles(**QUICK | {"depth": depth, "training_gammas": gammas})
        strength = study.predict()["mode_strength"]
        learned = (strength > 0.5 * np.array(study.singular_values)).argmax("time")
        halves.append(strength["time"].to_numpy()[learned.to_numpy()])
    assert np.all(np.diff(halves, axis=1) > 0)
    assert np.all(np.diff(halves, axis=0) > 0)


@pytest.mark.slow
def test_the_kernel_turns_at_gamma_one_for_every_depth():
    predicted = DeepSaddles(**QUICK | {"depths": [2, 5], "gammas": [0.9, 1.0, 1.1]}).predict()
    assert np.sign(predicted["kernel_exponent"]).to_numpy().tolist() == 2 * [[1, 0, -1]]
    assert predicted["regime"].to_numpy().tolist() == 2 * [["lazy", "critical", "saddle-to-saddle"]]


@pytest.mark.slow
def test_what_does_not_run_over_time_is_recorded_once():
    study = DeepSaddles(**QUICK)
    predicted = study.predict().record
    observed = predicted.assign(plateau_rank=predicted["plateau_rank"] + 0.1)
    tree = study.compared(observed, predicted)
    assert tree.verdict.outcome == "disagree"
    assert tree.residual["plateau_rank_residual"].dims == ("level",)
    assert tree.residual["loss_residual"].dims == ("time",)
    assert tree.observed["plateau_rank"].dims == ("level",)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("training_gammas", bad) for bad in ([2.0], [1.0, 2.0], [3.0, 2.0], [2.0, np.inf])),
        *(("singular_values", bad) for bad in ([1.0], [1.0, 2.0], [1.0, 0.0], [1.0, 1.0])),
        *(("widths", bad) for bad in ([8, 16], [16, 8, 32])),
        *(("depths", bad) for bad in ([], [1])),
        ("depth", 1),
        ("width", 1),
        ("times", 10),
        ("seed", -1),
        ("draws", 0),
    ],
)
def test_a_field_out_of_range_is_refused_by_name_when_the_study_is_made(field, value):
    with pytest.raises(InputError) as refusal:
        DeepSaddles(**QUICK | {field: value})
    assert refusal.value.argument == field


@pytest.mark.parametrize(
    ("change", "argument", "remedy"),
    [
        (
            {"depth": 2, "training_gammas": [2.5, 3.5], "singular_values": [4.1, 4.0]},
            "singular_values",
            "choose singular values further apart",
        ),
        ({"singular_values": [4.0, 1.5], "training_gammas": [1.2, 1.5]}, "singular_values", "or larger"),
        ({"depth": 4, "training_gammas": [5.0, 8.0]}, "training_gammas", "choose a smaller last value"),
    ],
)
def test_starts_without_plateaus_or_with_endless_ones_are_refused(change, argument, remedy):
    with pytest.raises(InputError, match=remedy) as refusal:
        DeepSaddles(**QUICK | change).predict()
    assert refusal.value.argument == argument


def test_an_exponent_of_zero_alone_is_refused():
    with pytest.raises(InputError, match="a value other than 1"):
        DeepSaddles(gammas=[1.0])


@pytest.mark.slow
def test_escape_slopes_are_judged_by_what_the_jump_takes_from_starts_that_are_not_so_small():
    study = DeepSaddles(**QUICK | {"training_gammas": [2.5, 3.0], "width": 20, "singular_values": [4.0, 1.5]})
    tree = study.run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence
    found = tree.quantities["escape_slope"]
    # Aligned layers are off by 0.042 there.
    assert 0.04 < found.error < 0.05
    assert found.tolerance == pytest.approx(0.084, abs=1e-3)
    # From smaller ones the tolerance is that of the study.
    usual = DeepSaddles(**DeepSaddles.tiny)
    assert usual.predict().record.attrs["escape_slope_tolerance"] == 0.04

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies.scaling.emergence_time.experiment import Experiment
from dynascope.studies.scaling.emergence_time.study import EmergenceTime

TINY = dict(EmergenceTime.tiny)


@pytest.fixture(scope="module")
def drawn():
    """A study with random fields, the forecast and the networks that were trained."""
    draw = np.random.default_rng(5)
    study = EmergenceTime(
        **TINY
        | {
            "exponent": float(draw.uniform(0.3, 0.8)),
            "target_scale": float(draw.uniform(4.0, 6.0)),
            "learning_rate": float(draw.uniform(0.05, 0.08)),
            "width": int(draw.integers(150, 250)),
            "deviation": float(draw.uniform(0.008, 0.012)),
            "seed": 11,
        }
    )
    predicted = study.predict().record
    return study, predicted, study.observe().record


@pytest.mark.slow
def test_networks_of_random_fields_learn_every_skill_within_fifteen_percent_of_the_forecast(drawn):
    study, predicted, observed = drawn
    tree = study.compared(observed, predicted)
    assert tree.verdict.outcome == "agree", tree.verdict.sentence
    ratio = observed["half_strength_step"] / predicted["half_strength_step"]
    assert observed.sizes["seed"] >= 5
    assert float(np.abs(np.log(ratio)).max()) < np.log(1.15)
    told = tree.verdict.sentence
    mean, spread = (float(observed[name][1]) for name in ("half_strength_step", "half_strength_step_spread"))
    assert f"{mean:.0f} ± {spread:.0f}" in told
    assert f"{float(predicted['half_strength_step'][1]):.0f}" in told


@pytest.mark.slow
def test_the_tolerance_is_fifteen_percent_of_a_step(drawn):
    study, predicted, observed = drawn
    exact = predicted["half_strength_step"].to_numpy()
    nothing = 0 * predicted["half_strength_step"]
    certain = predicted.assign(half_strength_step_standard_error=nothing)
    for factor, verdict in ((1.14, "agree"), (1.16, "disagree"), (1 / 1.16, "disagree")):
        steps = exact * [1.0, factor]
        seen = observed.assign(half_strength_step=("skill", steps), log_half_strength_step=("skill", np.log(steps)))
        assert study.compared(seen.assign(half_strength_step_spread=nothing), certain).verdict.outcome == verdict


@pytest.mark.slow
def test_a_step_beyond_the_tolerance_by_less_than_networks_scatter_decides_nothing(drawn):
    study, predicted, observed = drawn
    late = predicted["half_strength_step"].to_numpy() * [1.0, 1.18]
    for spread, verdict in ((0.2, "undecided"), (0.001, "disagree")):
        seen = observed.assign(
            half_strength_step=("skill", late),
            half_strength_step_spread=("skill", spread * late),
            log_half_strength_step=("skill", np.log(late)),
        )
        certain = predicted.assign(half_strength_step_standard_error=0 * predicted["half_strength_step"])
        assert study.compared(seen, certain).verdict.outcome == verdict


@pytest.mark.slow
def test_a_run_that_ends_before_the_last_skill_is_due_is_refused(drawn):
    study, predicted, _ = drawn
    due = float(predicted["half_strength_step"][-1])
    early = dataclasses.replace(study, steps=int(due))
    early.experiment.single_skill = study.experiment.single_skill
    with pytest.raises(InputError) as refusal:
        early.predict()
    assert refusal.value.argument == "steps"


@pytest.mark.slow
def test_the_forecast_at_another_exponent_is_refuted(drawn):
    study, predicted, observed = drawn
    # An exponent that is larger by one half: by much more than the tolerance and what five networks leave open.
    later = predicted["half_strength_step"].to_numpy() * [1.0, 2**0.5]
    wrong = predicted.assign(half_strength_step=("skill", later), log_half_strength_step=("skill", np.log(later)))
    assert study.compared(observed, wrong).verdict.outcome == "disagree"


@pytest.mark.slow
def test_only_half_strength_steps_are_judged_and_curves_are_on_both_sides(drawn):
    study, predicted, observed = drawn
    tree = study.compared(observed, predicted)
    assert set(tree.quantities) == {"log_half_strength_step", "log_half_strength_step_maximum"}
    for side in ("observed", "predicted"):
        assert {"strength", "half_strength_step"} <= set(getattr(tree, side).data_vars)
    np.testing.assert_array_equal(observed["step"], predicted["step"])
    # Before the end of the law's window, R/S = ½, the curves are near in height too: 15 % of a step at the steepest
    # slope of the logistic, a quarter of ln c for each half-strength step.
    steepest = predicted.attrs["calibrated_offset"] / 4
    rising = predicted["strength"] < 0.5
    missed = abs(observed["strength"].mean("seed") - predicted["strength"]).where(rising)
    assert float(missed.max()) < 0.15 * steepest


@pytest.mark.slow
def test_networks_of_the_published_setting_are_compared_by_its_number_of_skills(drawn):
    study, predicted, observed = drawn
    published = dataclasses.replace(study, skills=1, paper=True)
    assert published.compared(observed, predicted).verdict.outcome == "agree"


@pytest.mark.slow
def test_the_calibrated_law_follows_the_single_skill_up_to_half_strength(drawn):
    _, predicted, _ = drawn
    mean = predicted["calibration_strength"].mean("seed")
    assert float(mean[-1]) > 0.6
    # The mean of five curves whose half-strength steps scatter by a few percent.
    assert float(np.interp(0.5, mean, predicted["time"])) == pytest.approx(
        float(np.interp(0.5, predicted["calibrated_strength"], predicted["time"])), rel=0.05
    )


@pytest.mark.slow
def test_fresh_samples_train_networks_of_more_bits_than_a_population_can_have():
    study = EmergenceTime(skills=1, bits=20, width=4, batch_size=16, steps=20, times=20, seeds=2)
    observed = study.observe()
    assert observed["strength"].dims == ("seed", "step", "skill")
    # From outputs of nearly zero the loss is ½ S².
    assert float(observed["loss"][0, 0]) == pytest.approx(study.target_scale**2 / 2, rel=1e-3)
    assert np.all(np.isinf(observed["half_strength_step"]))


def test_the_published_setting_is_that_of_the_source():
    published = EmergenceTime(paper=True, seed=3).setting
    assert published.experiment.task.input_dimension == 37
    assert (published.width, published.batch_size, published.steps, published.seeds) == (1000, 4000, 30_000, 10)
    assert (published.seed, published.paper) == (3, False)


@pytest.mark.slow
def test_too_short_a_calibration_is_refused_by_name():
    with pytest.raises(InputError) as refusal:
        EmergenceTime(**TINY | {"calibration_steps": 20, "calibration_seeds": 2, "width": 4, "times": 20}).predict()
    assert refusal.value.argument == "calibration_steps"


@pytest.mark.parametrize(("rise", "refused"), [(0.2, False), (0.3, True)])
def test_steps_at_which_the_loss_of_networks_with_one_skill_leaps_up_are_refused(monkeypatch, rise, refused):
    study = EmergenceTime(**TINY)
    strength = 1 / (1 + np.exp(4 - 0.1 * study.experiment.calibration_steps))
    loss = np.where(strength > 0.5, 0.0, 1.0)
    loss[3] += rise
    of_each = [np.tile(strength[:, None], (study.calibration_seeds, 1, 1)), np.tile(loss, (study.calibration_seeds, 1))]
    monkeypatch.setattr(Experiment, "train", lambda *_: of_each)
    if not refused:
        assert study.predict()["half_strength_step"][0] > 0
        return
    with pytest.raises(InputError, match="30% of its initial value") as refusal:
        study.predict()
    assert refusal.value.argument == "learning_rate"


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        ("width", {"width": 0}),
        ("deviation", {"deviation": -1.0}),
        ("learning_rate", {"learning_rate": 0.0}),
        ("bits", {"bits": 17}),
        ("bits", {"bits": 5}),
        ("exponent", {"exponent": 0.0}),
        ("batch_size", {"batch_size": -1}),
        ("calibration_steps", {"calibration_steps": 5}),
        ("times", {"times": 5}),
        ("calibration_seeds", {"calibration_seeds": 1}),
        ("seeds", {"seeds": 1}),
        ("seed", {"seed": -1}),
    ],
)
def test_a_field_out_of_range_is_refused_by_name_before_anything_is_trained(monkeypatch, argument, change):
    name = "dynascope.studies.scaling.emergence_experiment.descend"
    monkeypatch.setattr(name, lambda *_, **__: pytest.fail("it was trained"))
    with pytest.raises(InputError) as refusal:
        EmergenceTime(**TINY | change).run()
    assert refusal.value.argument == argument

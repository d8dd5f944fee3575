from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies.scaling.emergence_data.study import EmergenceData
from dynascope.studies.scaling.emergence_parameters.study import EmergenceParameters
from dynascope.theory.skills import data_emergence, parameter_emergence

AMOUNTS = [1, 2, 3, 4, 6, 8, 9, 12, 18, 24, 36, 72]

# An experiment for each resource, and the law by which one skill of the given need is learned.
CASES = [
    (
        EmergenceData(skills=2, samples=AMOUNTS, batch_size=8, features=8),
        lambda experiment, needed, skills, definition: data_emergence(
            experiment.amounts, experiment.task.frequencies if skills > 1 else [1.0], needed, definition=definition
        ),
    ),
    (
        EmergenceParameters(skills=2, neurons=AMOUNTS, features=8),
        lambda experiment, needed, skills, definition: parameter_emergence(
            experiment.amounts, skills, needed, definition=definition
        ),
    ),
]


@pytest.fixture(params=CASES, ids=lambda case: case[0].experiment.resource)
def experiment_and_law(request, monkeypatch):
    """Networks that learn one skill with 12 samples or neurons, exactly by the law."""
    study, law = request.param

    def alone(self):
        strength, loss = law(self, 12.0, 1, "correlation"), (1 - law(self, 12.0, 1, "loss_equivalent")) ** 2
        return self.amounts, np.repeat(strength, 2, axis=1), np.repeat(loss, 2, axis=1)

    monkeypatch.setattr(study.experiment_type, "alone", alone)
    return study.experiment_type(study), law


def test_one_skill_alone_forecasts_all_by_either_definition(experiment_and_law):
    experiment, law = experiment_and_law
    forecast = experiment.study.record(experiment.forecast())
    for name, definition in (("strength", "correlation"), ("loss_equivalent", "loss_equivalent")):
        assert forecast[name].dims == (experiment.resource, "skill")
        # Half of the strength is at an amount that is among those given, by either definition.
        assert experiment.needs[definition].needed == pytest.approx(12.0)
        np.testing.assert_allclose(forecast[name], law(experiment, experiment.needs[definition].needed, 2, definition))


def test_networks_that_follow_the_law_need_what_is_forecast(experiment_and_law):
    experiment, law = experiment_and_law
    strength = law(experiment, 6.0, 2, "correlation")
    losses = (1 - law(experiment, 6.0, 2, "loss_equivalent")) ** 2
    observed = experiment.study.record(
        experiment.measured(np.stack([strength - 0.01, strength + 0.01], axis=1), losses)
    )
    np.testing.assert_allclose(observed["strength"], strength)
    np.testing.assert_allclose(observed["strength_error"], 0.01)
    np.testing.assert_allclose(observed["loss_equivalent"], law(experiment, 6.0, 2, "loss_equivalent"), atol=1e-12)
    np.testing.assert_allclose(
        observed["loss"], experiment.study.target_scale**2 / 2 * losses @ experiment.task.frequencies
    )
    half, ratio = (observed[f"half_{experiment.resource}{end}"].to_numpy() for end in ("", "_ratio"))
    np.testing.assert_allclose(half / experiment.half_forecast, ratio)
    # Of half the need that was calibrated, up to what lies between amounts and, of samples, their chance.
    assert ratio == pytest.approx([0.5, 0.5], rel=0.15)


def test_a_half_that_is_passed_at_once_or_never_is_no_interpolation(experiment_and_law):
    experiment, _ = experiment_and_law
    steps = len(experiment.amounts)
    assert experiment.half(np.full(steps, 0.6)) == experiment.amounts[0]
    assert experiment.half(np.linspace(0.0, 0.4, steps)) == np.inf
    assert experiment.amounts[0] < experiment.half(np.linspace(0.0, 1.0, steps)) < experiment.amounts[-1]


def test_one_skill_that_is_not_learned_is_an_error_of_the_range(experiment_and_law, monkeypatch):
    experiment, _ = experiment_and_law
    nothing = np.zeros((len(experiment.amounts), 2))
    monkeypatch.setattr(type(experiment), "alone", lambda self: (self.amounts, nothing, 1 - nothing))
    with pytest.raises(InputError) as refusal:
        experiment.forecast()
    assert refusal.value.argument == experiment.resource
    assert refusal.value.value == experiment.amounts


def test_the_error_of_a_need_is_that_of_the_mean_where_it_passes_half(experiment_and_law, monkeypatch):
    experiment, _ = experiment_and_law
    amounts, strength, loss = experiment.alone()
    # Half of twelve is among the amounts, where the strength is in proportion to them: a quarter more, a half more.
    runs = strength[:, :1] * np.array([[0.75, 1.25]])
    exact = experiment.needs["correlation"]
    monkeypatch.setattr(type(experiment), "alone", lambda self: (amounts, runs, loss))
    spread = type(experiment)(experiment.study).needs["correlation"]
    assert spread.needed == pytest.approx(exact.needed)
    # Of two runs that are 1.5 on both sides of six the standard error is 1.5, and twice that of twelve.
    np.testing.assert_allclose(spread.error**2 - exact.error**2, 3.0**2)


def test_whole_neurons_leave_nothing_open_between_neighbours_and_samples_do(experiment_and_law):
    experiment, _ = experiment_and_law
    # Half strength is passed from four to six, and neurons might have passed it at five.
    open_ = {"samples": 2.0, "neurons": 1.0}[experiment.resource]
    np.testing.assert_allclose(experiment.needs["correlation"].error, 2 * open_ / np.sqrt(12))


def test_the_claim_is_open_where_another_forecast_within_the_error_of_the_calibration_fits(experiment_and_law):
    experiment, law = experiment_and_law
    runs = np.repeat(law(experiment, 18.0, 2, "correlation")[:, None], 3, axis=1)
    outcomes = []
    for error in (0.1, 6.0):
        other = type(experiment)(experiment.study)
        other.needs = {name: need._replace(error=error) for name, need in experiment.needs.items()}
        outcomes.append(other.nearest(runs))
    certain, open_ = outcomes
    assert open_.value == certain.value
    assert open_.low < certain.low <= certain.high < open_.high


@pytest.mark.slow
@pytest.mark.parametrize(("runs", "alone"), [(96, 24), (24, 192)], ids=["calibration decides", "networks decide"])
def test_the_interval_over_both_kinds_of_networks_holds_the_truth_as_often_as_it_says(runs, alone):
    study = EmergenceParameters(neurons=AMOUNTS[:9])
    amounts, held, draws = np.array(study.neurons), 0, 300

    def means(*needs: float) -> np.ndarray:
        """More abrupt than in proportion, so that the truth is another than that of the law."""
        return np.stack([amounts**4 / (amounts**4 + (need / 2) ** 4) for need in needs], axis=1)

    def drawn(mean: np.ndarray, count: int, draw: np.random.Generator) -> np.ndarray:
        """Networks mostly have a skill or lack it, shape (amounts, count, skills)."""
        mean = mean[:, None] + np.zeros((1, count, 1))
        return draw.beta(mean, 1 - mean)

    one, all_ = means(7.0), means(5.0, 21.0)
    half = float(np.interp(0.5, one[:, 0], amounts))
    first, second = (np.interp(2 * half, amounts, curve) for curve in all_.T)
    last = np.interp(4 * half, amounts, all_[:, 1])
    truth = min(first - 0.5, 0.5 - second, last - 0.5)
    for seed in range(draws):
        draw, sample = np.random.default_rng(seed), study.experiment_type(study)
        strength = drawn(one, alone, draw)[..., 0]
        sample.needs = {"correlation": sample.need(study.neurons, strength, "correlation")}
        claim = sample.nearest(drawn(all_, runs, draw))
        held += claim.interval[0] <= truth <= claim.interval[1]
    # Three deviations of the binomial law below 95 %.
    assert held >= (0.95 - 3 * np.sqrt(0.95 * 0.05 / draws)) * draws

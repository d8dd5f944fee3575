from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies.scaling.emergence_data import EmergenceData
from dynascope.studies.scaling.emergence_parameters import EmergenceParameters
from dynascope.theory.skills import data_emergence, parameter_emergence

AMOUNTS = [1, 2, 3, 4, 6, 8, 9, 12, 18, 24, 36, 72]

# A study for each resource, and the law by which one skill of the given need is learned.
CASES = [
    (
        EmergenceData(skills=2, samples=AMOUNTS, batch_size=8, features=8),
        lambda study, needed, skills, definition: data_emergence(
            study._amounts, study._task.frequencies if skills > 1 else [1.0], needed, definition=definition
        ),
    ),
    (
        EmergenceParameters(skills=2, neurons=AMOUNTS, features=8),
        lambda study, needed, skills, definition: parameter_emergence(
            study._amounts, skills, needed, definition=definition
        ),
    ),
]


@pytest.fixture(params=CASES, ids=lambda case: case[0].resource)
def study_and_law(request, monkeypatch):
    """Networks that learn one skill with 12 samples or neurons, exactly by the law."""
    study, law = request.param

    def alone(self):
        amounts = study._amounts
        return (
            amounts,
            law(study, 12.0, 1, "correlation")[:, 0],
            (1 - law(study, 12.0, 1, "loss_equivalent")[:, 0]) ** 2,
        )

    monkeypatch.setattr(type(study), "_alone", alone)
    return study, law


def test_one_skill_alone_forecasts_all_by_either_definition(study_and_law):
    study, law = study_and_law
    forecast = study._predicted({})
    for name, definition in (("strength", "correlation"), ("loss_equivalent", "loss_equivalent")):
        assert forecast[name].dims == (study.resource, "skill")
        # Half of the strength is at an amount that is among those given, by either definition.
        assert study._needs[definition].needed == pytest.approx(12.0)
        np.testing.assert_allclose(forecast[name], law(study, study._needs[definition].needed, 2, definition))


def test_networks_that_follow_the_law_need_what_is_forecast(study_and_law):
    study, law = study_and_law
    strength = law(study, 6.0, 2, "correlation")
    losses = (1 - law(study, 6.0, 2, "loss_equivalent")) ** 2
    observed = study.record(study._observed(np.stack([strength - 0.01, strength + 0.01], axis=1), losses))
    np.testing.assert_allclose(observed["strength"], strength)
    np.testing.assert_allclose(observed["strength_error"], 0.01)
    np.testing.assert_allclose(observed["loss_equivalent"], law(study, 6.0, 2, "loss_equivalent"), atol=1e-12)
    np.testing.assert_allclose(observed["loss"], study.target_scale**2 / 2 * losses @ study._task.frequencies)
    half, ratio = (observed[f"half_{study.resource}{end}"].to_numpy() for end in ("", "_ratio"))
    np.testing.assert_allclose(half / study._forecast_half, ratio)
    # Of half the need that was calibrated, up to what lies between amounts and, of samples, their chance.
    assert ratio == pytest.approx([0.5, 0.5], rel=0.15)


def test_a_half_that_is_passed_at_once_or_never_is_no_interpolation(study_and_law):
    study, _ = study_and_law
    steps = len(study._amounts)
    assert study._half(np.full(steps, 0.6)) == study._amounts[0]
    assert study._half(np.linspace(0.0, 0.4, steps)) == np.inf
    assert study._amounts[0] < study._half(np.linspace(0.0, 1.0, steps)) < study._amounts[-1]


def test_one_skill_that_is_not_learned_is_an_error_of_the_range(study_and_law, monkeypatch):
    study, _ = study_and_law
    monkeypatch.setattr(
        type(study), "_alone", lambda self: (self._amounts, np.zeros(len(self._amounts)), np.ones(len(self._amounts)))
    )
    fresh = dataclasses.replace(study)
    with pytest.raises(InputError) as refusal:
        fresh._predicted({})
    assert refusal.value.argument == study.resource
    assert refusal.value.value == study._amounts


def test_the_claim_is_open_where_another_forecast_within_the_error_of_the_calibration_fits(study_and_law):
    study, law = study_and_law
    runs = np.repeat(law(study, 18.0, 2, "correlation")[:, None], 3, axis=1)
    outcomes = []
    for error in (0.1, 6.0):
        needs = {name: need._replace(error=error) for name, need in dataclasses.replace(study)._needs.items()}
        other = dataclasses.replace(study)
        other.__dict__["_needs"] = needs
        outcomes.append(other._nearest(runs))
    certain, open_ = outcomes
    assert open_.value == certain.value
    assert open_.low < certain.low <= certain.high < open_.high

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dynascope.studies.noise.stochastic_collapse import networks as collapse_networks
from dynascope.studies.noise.stochastic_collapse.growth_near_zero import NearZero
from dynascope.studies.noise.stochastic_collapse.networks import CollapseNetworks

FIELDS: dict[str, Any] = {"samples": 100, "units": 32, "rates": [0.1, 0.4], "label_noise": 0.3, "batch_size": 4}
FIELDS |= {"weight_decay": 0.0, "time": 60.0, "later_time": 6.0, "window": 5.0, "starts": 3, "seed": 0}
BOTH = CollapseNetworks(networks=("mlp", "convolutional"), **FIELDS)
STARTS = np.array([-0.01, 0.0, 0.01])


def collapse(trainings, rate, noise, *, time, later_rate, later_time):
    """Units fall with the rate on noisy labels alone; what is known afterwards rises with it."""
    left = 1 - noise * rate * np.array([[0.0], [1.0]]) + STARTS
    known = 0.8 + rate * noise + STARTS
    asked = np.full(3, time), np.full(3, later_rate), np.full(3, later_time)
    return {"independent_fraction": left.T, "late_accuracy": known, "asked": np.stack(asked), "units": trainings.units}


def near_zero(trainings, rate, noise, *, time, window):
    grown = 0.1 + STARTS
    return NearZero(grown, grown + 0.01, grown + 0.1)


@pytest.fixture
def measured(monkeypatch):
    monkeypatch.setattr(collapse_networks.NoisyDigits, "collapse", collapse)
    monkeypatch.setattr(collapse_networks, "growth_near_zero", near_zero)
    return {name: values for name, (_, values) in BOTH.measured().items()}


def test_networks_of_each_kind_are_trained_at_their_own_rates_and_times(measured):
    assert measured["units"].shape == (2, 2, 2)
    np.testing.assert_array_equal(measured["units"][:, 0, 0], [32, 8])
    times, later_rates, later_times = np.moveaxis(measured["asked"], 3, 0)[..., 0]
    np.testing.assert_allclose(times[:, 0, 0], [60, 2])
    # Afterwards all go on at the smallest rate of their kind.
    np.testing.assert_allclose(later_rates, np.broadcast_to(np.array([0.1, 0.05])[:, None, None], (2, 2, 2)))
    np.testing.assert_allclose(later_times, 6)
    np.testing.assert_array_equal(measured["final_fraction"], measured["independent_fraction"][..., -1])


def test_claims_are_of_the_differences_that_they_say(measured):
    claims = {each.name: each for each in BOTH.claims(measured)}
    assert claims["mlp: larger rates"].value == pytest.approx(-0.3 * (0.4 - 0.1))
    assert claims["convolutional: larger rates"].value == pytest.approx(-0.3 * (0.2 - 0.05))
    assert claims["mlp: noisy labels"].value == pytest.approx(-0.3 * 0.4)
    assert claims["mlp: generalisation"].value == pytest.approx(0.3 * (0.4 - 0.1))
    assert claims["mlp: growing neurons"].value == pytest.approx(0.1)
    assert claims["mlp: predicted growth"].value == pytest.approx(np.log(0.1))
    assert {each.outcome for each in claims.values()} == {"holds"}


def test_the_opposite_refutes_them(measured):
    turned = measured | {name: -measured[name] for name in ("final_fraction", "late_accuracy")}
    turned |= {"near_growth": -measured["near_growth"], "near_prediction": measured["near_by_batch"]}
    assert {each.outcome for each in BOTH.claims(turned)} == {"does not hold"}


def test_where_there_are_no_networks_nothing_is_claimed_of_neurons(measured):
    alone = CollapseNetworks(networks=("convolutional",), **FIELDS)
    names = [each.name for each in alone.claims({name: each[1:] for name, each in measured.items()})]
    assert names == [f"convolutional: {each}" for each in ("larger rates", "noisy labels", "generalisation")]

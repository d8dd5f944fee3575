from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from dynascope.probes.diffusion import NoiseSpectrum
from dynascope.studies.noise.anomalous_diffusion import networks as resting_networks
from dynascope.studies.noise.anomalous_diffusion.networks import NETWORK_CLAIMS, RestingNetworks
from dynascope.theory import SGD
from dynascope.theory.noise import stationary_displacement

FIELDS: dict[str, Any] = {"data": "digits", "network": "small", "samples": 60, "random_labels": 0.0, "width": 4}
FIELDS |= {"learning_rate": 0.01, "momentum": 0.9, "weight_decay": 0.02, "batch_size": 20, "starts": 3}
NETWORKS = RestingNetworks(**FIELDS, warm_up=2000, legs=3, batches=4, products=8, seed=0)
SPECTRUM = NoiseSpectrum(np.array([2.0, 0.5, 0.1, -0.01]), np.array([1.0, 0.4, 0.2, 0.1]))
TRAINING: Any = {name: getattr(NETWORKS, name) for name in ("learning_rate", "momentum", "weight_decay", "batch_size")}


@pytest.fixture
def going(monkeypatch):
    """Networks that go twice as far as their spectrum says, each by another factor, and are told how they are asked."""
    said = stationary_displacement(np.maximum(SPECTRUM.curvature, 0), SPECTRUM.noise, NETWORKS.steps, SGD(**TRAINING))
    asked = []

    def squared_displacements(task, networks, recorded, **options):
        asked.append(options)
        return np.outer([1.9, 2.0, 2.1], said)

    monkeypatch.setattr(resting_networks, "warmed_up", lambda networks, *rest, **of: (networks, np.full((3, 2), 0.5)))
    monkeypatch.setattr(resting_networks, "noise_modes", lambda networks, *rest, **of: [SPECTRUM] * 3)
    monkeypatch.setattr(resting_networks, "squared_displacements", squared_displacements)
    return {name: values for name, (_, values) in NETWORKS.measured().items()}, asked


def test_the_window_is_between_what_momentum_remembers_and_what_decay_forgets():
    # 1/(1 − β), and half of (1 − β)/(ηλ).
    assert NETWORKS.window == (10, 250)
    assert (NETWORKS.steps[0], NETWORKS.steps[-1]) == (1, 1000)


def test_networks_that_go_as_forecast_have_its_exponent_and_their_own_ratio(going):
    found, asked = going
    assert found["exponent_off"] == pytest.approx(0, abs=1e-12)
    assert found["network_exponent"] == pytest.approx(found["forecast_exponent"], abs=1e-12)
    assert found["forecast_ratio"] == pytest.approx(2, rel=1e-12)
    np.testing.assert_array_equal(found["loss_change"], 0)
    # They go on with batches of their own, not those of the warm-up.
    assert [(each["seed"], each["legs"]) for each in asked] == [(1, 3)]
    assert {each.outcome for each in NETWORKS.claims(found, 0.1)} == {"holds"}


@pytest.mark.parametrize(
    ("changes", "outcomes"),
    [
        ({"exponent_off": 0.3, "off_low": 0.2, "off_high": 0.4}, ("does not hold", "holds")),
        ({"network_exponent": 1.3, "network_low": 1.2, "network_high": 1.4}, ("holds", "does not hold")),
        ({"loss_change": np.full(3, -0.3)}, ("undecided", "undecided")),
        ({"late_exponent": 1.1}, ("undecided", "undecided")),
    ],
)
def test_what_is_claimed_of_them(going, changes, outcomes):
    told = {each.name: each.outcome for each in NETWORKS.claims(going[0] | changes, 0.1)}
    assert told == dict(zip(NETWORK_CLAIMS, outcomes, strict=True))


def test_a_share_of_the_labels_is_random_and_images_stay():
    whole, mixed = NETWORKS.images, dataclasses.replace(NETWORKS, random_labels=0.5).images
    np.testing.assert_array_equal(whole.inputs, mixed.inputs)
    # Half of 60 are drawn anew, a tenth of these as they were: 27 ± 3.9.
    assert 12 < int((whole.labels != mixed.labels).sum()) < 42


def test_the_time_is_that_of_all_steps_and_of_the_forecasts():
    # 3 · (2000 + 3 · 1000 + 4/3 · 4² · 8) steps.
    assert all(each in NETWORKS.time_estimate(0.01) for each in ("2.59 minutes", "1.55e+04 steps", "0.01 seconds"))
    assert "4.31 hours" in NETWORKS.time_estimate(1.0)

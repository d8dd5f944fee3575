from __future__ import annotations

import math

import jax
import numpy as np
import pytest
from scipy.special import zeta

from dynascope.studies.scaling.skill_losses import (
    losses_in_time,
    losses_of_models,
    losses_of_sizes,
    losses_of_training_sets,
)
from dynascope.studies.scaling.skill_training import train_skills
from dynascope.theory.scaling_laws import parameter_law


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


@pytest.mark.slow
def test_one_skill_stands_for_all_with_as_many_samples():
    model = {"target_scale": 1.0, "initial_strength": 0.1}
    samples, sizes = 500, np.array([500, 2236, 10_000])
    losses = losses_of_training_sets(np.array([0.25]), sizes, 60, 0, **model)
    draw = np.random.default_rng(0).zipf(1.25, samples)
    # All skills of the first training set, each with its own weights, for a time in steps of the whole set.
    ranks, counts = np.unique(draw, return_counts=True)
    end = np.array([samples * (math.log(9) + 35) / 2])
    missing = train_skills(counts / samples, end, lambda missing: missing, **model)[0]
    frequencies = ranks**-1.25 / zeta(1.25)
    loss = frequencies @ missing**2 / 2 + (1 - frequencies.sum()) * 0.9**2 / 2
    # Rounding of a sum of frequencies.
    assert losses[0, 0, 0] == pytest.approx(loss, rel=1e-12)


@pytest.mark.slow
def test_models_of_one_task_agree_where_they_meet():
    model, exponents = {"target_scale": 2.0, "initial_strength": 0.1}, np.array([0.4, 0.9])
    by_size = losses_of_sizes(exponents, 60, np.array([5, 20, 60]), **model)
    law = [parameter_law([5, 20, 60], alpha, target_scale=2.0, skills=60) for alpha in exponents]
    np.testing.assert_allclose(by_size, law, rtol=1e-12, atol=1e-15)
    # With a neuron for each skill nothing is left, and of endlessly many skills those without one.
    in_time = losses_in_time(exponents, 60, np.array([1.0, 1e5]), **model)
    np.testing.assert_allclose(in_time[:, -1], 0, atol=1e-12)
    endless = losses_of_models(exponents, np.array([5, 20]), np.full((1, 2), 1e5), **model)[:, 0]
    rest = [parameter_law([5, 20], alpha, target_scale=2.0) for alpha in exponents]
    np.testing.assert_allclose(endless, rest, rtol=1e-12)

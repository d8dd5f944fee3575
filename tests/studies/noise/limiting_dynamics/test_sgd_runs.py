from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.stats

from dynascope.studies.noise.limiting_dynamics.sgd_runs import regression_runs
from dynascope.theory import SGD
from dynascope.theory.noise import finite_data_moments

RECORDED = np.array([1, 3, 10, 30, 100])


def deviations(random, runs):
    """How far all moments of random settings are from the exact ones, in standard errors."""
    inputs, samples = 3, 40
    x = random.normal(size=(samples, inputs)) * 10 ** random.uniform(-1, 0, size=inputs)
    y = x @ random.normal(size=inputs) + random.uniform(0.1, 1) * random.normal(size=samples)
    momentum = random.uniform(0, 0.95)
    steepest = np.linalg.eigvalsh(x.T @ x / samples)[-1]
    # Far from where second moments of the noisiest batches grow.
    rate = random.uniform(0.02, 0.1) * (1 - momentum) / steepest
    sgd = SGD(rate, momentum, random.uniform(0, 0.1) * steepest, int(random.integers(2, 16)))
    start = random.normal(size=inputs)
    found = regression_runs(x, y, RECORDED, sgd, start=start, runs=runs, seed=int(random.integers(1000)))
    theory = finite_data_moments(RECORDED, x, y, sgd, start=start)
    a, b = found.position - theory.position[:, None], found.velocity - theory.velocity[:, None]
    expected = theory.position_covariance, theory.covariance, theory.velocity_covariance
    seen = [(each, np.zeros_like(theory.position)) for each in (a, b)]
    # On the diagonals, and beside them where position meets velocity.
    seen += [(u * v, np.einsum("kii->ki", c)) for u, v, c in zip((a, a, b), (a, b, b), expected, strict=True)]
    away = [(each.mean(1) - mean) / (each.std(1, ddof=1) / np.sqrt(runs)) for each, mean in seen]
    # The first velocity is the first displacement over the rate, which is compared already.
    return np.concatenate([away[0].ravel(), away[2].ravel(), *[each[1:].ravel() for each in (away[1], *away[3:])]])


def chance(count):
    """What the largest of so many exceeds in one of a hundred experiments, whatever they have to do with each other."""
    return scipy.stats.norm.isf(0.01 / (2 * count))


@pytest.mark.slow
def test_twenty_thousand_runs_have_the_exact_moments_of_random_settings():
    random = np.random.default_rng(0)
    away = np.concatenate([deviations(random, 20_000) for _ in range(3)])
    assert np.abs(away).max() < chance(away.size)


@pytest.mark.slow
def test_noise_that_does_not_know_the_weights_is_told_apart(monkeypatch):
    random = np.random.default_rng(1)
    exact = deviations(np.random.default_rng(1), 2000)
    assert np.abs(exact).max() < chance(exact.size)
    theory = finite_data_moments

    def wrong(*arguments, start):
        *data, sgd = arguments
        return theory(*data, dataclasses.replace(sgd, batch_size=sgd.batch_size + 1), start=start)

    monkeypatch.setitem(globals(), "finite_data_moments", wrong)
    away = deviations(random, 2000)
    assert np.abs(away).max() > chance(away.size)


def test_steps_are_those_of_momentum_and_decay_on_the_full_batch():
    # Equal samples: every batch is like the full one, and there is no noise.
    x, y = np.array([[2.0], [2.0]]), np.array([3.0, 3.0])
    sgd = SGD(0.1, momentum=0.5, weight_decay=0.3)
    found = regression_runs(x, y, np.array([0, 1, 2]), sgd, start=np.ones(1), runs=2)
    theta, v, expected = 1.0, 0.0, [(1.0, 0.0)]
    for _ in range(2):
        v = 0.5 * v - (2 * (2 * theta - 3) + 0.3 * theta)
        theta += 0.1 * v
        expected.append((theta, v))
    np.testing.assert_allclose(np.stack([found.position, found.velocity], -1)[:, 0, 0], expected, rtol=1e-12)
    np.testing.assert_allclose(found.loss[0], 0.5, rtol=1e-12)

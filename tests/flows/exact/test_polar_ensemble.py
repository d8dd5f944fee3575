from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import DivergenceError
from dynascope.flows.exact.polar_ensemble import PolarRun, polar_ensemble
from dynascope.flows.exact.polar_neurons import polar_flow
from dynascope.networks import TwoLayer
from dynascope.tasks import Task

TIMES = np.array([0.0, 0.5, 3.0, 20.0])
WEIGHTS = {"rows": (lambda network: network.neurons, ("neuron", "feature"))}


def run(seed, times=TIMES, tolerance=1e-3):
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(12, 3))
    task = Task(x, np.maximum(x @ draw.normal(size=(3, 1)), 0))
    network = TwoLayer(3, 5, 1, activation="relu", seed=seed)
    return PolarRun(task, network.with_neurons(0.3 * np.asarray(network.neurons)), times, tolerance)


@pytest.mark.parametrize("together", [1, 2, 3])
def test_an_ensemble_follows_the_flow_of_each_network(together):
    runs = [run(0), run(1, 2 * TIMES), run(2, tolerance=1e-4)]
    found = polar_ensemble(runs, max_steps=10_000, together=together)
    for each, rows in zip(runs, found, strict=True):
        alone = polar_flow(
            each.task,
            each.network,
            scale=1.0,
            duration=float(each.times[-1]),
            save=each.times,
            statistics=WEIGHTS,
            tolerance=each.tolerance,
        )
        np.testing.assert_allclose(rows, alone["rows"], rtol=1e-7, atol=1e-9)  # the same steps, rounded differently
        assert alone["loss"][-1] < 0.5 * alone["loss"][0]


def test_a_linear_neuron_converges_to_its_exact_solution():
    # With w along the only input, a = w = √s and s' = 2 s (β* − s): the logistic curve.
    task = Task(np.ones((2, 1)), np.full((2, 1), 2.0))
    network = TwoLayer(1, 1, 1).with_neurons(np.full((1, 2), 0.1))
    (rows,) = polar_ensemble([PolarRun(task, network, np.array([0.0, 1.0, 2.0]), 1e-6)], max_steps=10_000)
    grown = np.exp(4 * np.array([0.0, 1.0, 2.0]))
    product = 2.0 / (1 + (2.0 / 0.01 - 1) / grown)
    np.testing.assert_allclose(rows[:, 0, 0] * rows[:, 0, 1], product, rtol=1e-5)  # ten steps' tolerances


def test_a_run_that_does_not_reach_its_end_is_an_error():
    with pytest.raises(DivergenceError, match=r"did not reach time 20 within 20 steps"):
        polar_ensemble([run(0), run(1)], max_steps=20)

from __future__ import annotations

import jax
import numpy as np
import pytest

from dynascope.errors import DivergenceError
from dynascope.networks import TwoLayer
from dynascope.studies.grokking.modular_runs import Recipe, measure, train
from dynascope.tasks.algebra.modular_arithmetic import ModularArithmetic

P, SEEDS = 5, 2
TABLES = [ModularArithmetic("division", P, train_fraction=0.6, seed=seed) for seed in range(SEEDS)]
TASKS, TESTS = [each.train for each in TABLES], [each.test for each in TABLES]
NETWORKS = [TwoLayer(2 * P, 6, P, activation="relu", seed=seed) for seed in range(SEEDS)]


def at(place, networks):
    """The networks of one of the recorded steps."""
    return jax.tree.map(lambda leaf: leaf[:, place], networks)


def mean_loss(outputs, targets, loss: str):
    if loss == "squared":
        return 0.5 * ((outputs - targets) ** 2).sum(axis=1).mean()
    return -(targets * jax.nn.log_softmax(outputs)).sum(axis=1).mean()


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["cross_entropy", "squared"])
def test_training_is_decoupled_adam_written_out(loss):
    rate, decay, steps = 0.01, 0.5, 7
    end = at(-1, train(NETWORKS, TASKS, [0, 3, steps], Recipe(loss, rate, decay), double=True))
    with jax.enable_x64(True):
        for seed, (network, task) in enumerate(zip(NETWORKS, TASKS, strict=True)):
            weights = {"first": network.first, "second": network.second}
            means = {name: np.zeros_like(w) for name, w in weights.items()}
            squares = {name: np.zeros_like(w) for name, w in weights.items()}
            slope = jax.jit(
                jax.grad(
                    lambda w, task=task: mean_loss(
                        jax.nn.relu(task.inputs @ w["first"]) @ w["second"], task.targets, loss
                    )
                )
            )
            for step in range(1, steps + 1):
                for name, g in slope(weights).items():
                    means[name] = 0.9 * means[name] + 0.1 * np.asarray(g)
                    squares[name] = 0.98 * squares[name] + 0.02 * np.asarray(g) ** 2
                    move = (means[name] / (1 - 0.9**step)) / (np.sqrt(squares[name] / (1 - 0.98**step)) + 1e-8)
                    weights[name] = weights[name] - rate * (move + decay * weights[name])
            # Rounding, which moments near zero enlarge.
            np.testing.assert_allclose(end.first[seed], weights["first"], rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(end.second[seed], weights["second"], rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_records_do_not_depend_on_each_other_and_the_first_is_the_start():
    recipe = Recipe("cross_entropy", 3e-3, 1.0)
    run = train(NETWORKS, TASKS, [0, 4, 9], recipe)
    start, end = at(0, run), at(-1, run)
    alone = at(-1, train(NETWORKS, TASKS, [1, 3, 9], recipe))
    np.testing.assert_array_equal(start.first, np.stack([each.first for each in NETWORKS]).astype(np.float32))
    np.testing.assert_array_equal(end.first, alone.first)
    assert end.first.dtype == np.float32


@pytest.mark.slow
def test_what_is_measured_is_what_the_networks_give():
    networks = at(0, train(NETWORKS, TASKS, [0, 1, 2], Recipe("cross_entropy", 1e-3, 0.0), double=True))
    found = measure(networks, TASKS, TESTS, "cross_entropy")
    with jax.enable_x64(True):
        for seed, network in enumerate(NETWORKS):
            outputs, tested = (np.asarray(network(side[seed].inputs)) for side in (TASKS, TESTS))
            np.testing.assert_allclose(found.outputs[seed], outputs, rtol=1e-12)
            np.testing.assert_allclose(found.features[seed] @ network.second, outputs, rtol=1e-12, atol=1e-14)
            right = outputs.argmax(axis=1) == TASKS[seed].targets.argmax(axis=1)
            assert found.accuracy[seed] == pytest.approx(right.mean())
            expected = float(mean_loss(tested, TESTS[seed].targets, "cross_entropy"))
            assert found.test_loss[seed] == pytest.approx(expected)


@pytest.mark.slow
def test_a_network_that_diverges_is_told_even_if_the_others_do_not():
    with pytest.raises(DivergenceError, match=r"diverged by step|finite numbers"):
        train(NETWORKS, TASKS, [0, 1, 2000], Recipe("squared", 1e20, 0.0))
    beyond = [NETWORKS[0], jax.tree.map(lambda leaf: 1e18 * leaf, NETWORKS[1])]
    with pytest.raises(DivergenceError, match=r"a network diverged by step 1"):
        train(beyond, TASKS, [0, 1, 2], Recipe("squared", 1e-3, 0.0))

from __future__ import annotations

import jax
import numpy as np
import pytest

from dynascope.networks import TwoLayer
from dynascope.studies.grokking.grokking_modular.measures import measure
from dynascope.tasks.algebra.modular_arithmetic import ModularArithmetic

P, SEEDS = 5, 2
TABLES = [ModularArithmetic("division", P, train_fraction=0.6, seed=seed) for seed in range(SEEDS)]
TASKS, TESTS = [each.train for each in TABLES], [each.test for each in TABLES]
NETWORKS = [TwoLayer(2 * P, 6, P, activation="relu", seed=seed) for seed in range(SEEDS)]


@pytest.mark.slow
def test_measurements_match_the_networks():
    found = measure(jax.tree.map(lambda *leaves: np.stack(leaves), *NETWORKS), TASKS, TESTS, "cross_entropy")
    with jax.enable_x64(True):
        for seed, network in enumerate(NETWORKS):
            outputs, tested = (np.asarray(network(side[seed].inputs)) for side in (TASKS, TESTS))
            np.testing.assert_allclose(found.outputs[seed], outputs, rtol=1e-12)
            np.testing.assert_allclose(found.features[seed] @ network.second, outputs, rtol=1e-12, atol=1e-14)
            right = outputs.argmax(axis=1) == TASKS[seed].targets.argmax(axis=1)
            assert found.accuracy[seed] == pytest.approx(right.mean())
            expected = -(TESTS[seed].targets * np.asarray(jax.nn.log_softmax(tested))).sum(axis=1).mean()
            assert found.test_loss[seed] == pytest.approx(expected)
    # Activations are of degree one; the gradients of the layers balance for any weights.
    assert found.gradient_balance == pytest.approx(np.ones(SEEDS), rel=1e-10)

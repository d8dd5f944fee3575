from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from dynascope.studies.grokking.grokking_imbalance.experiment import SETTINGS, first_steps, sgd_with_decay
from dynascope.studies.grokking.grokking_imbalance.study import GrokkingImbalance

SMALL = GrokkingImbalance(**GrokkingImbalance.tiny)._runs


@pytest.mark.parametrize("slope", [0.1, 30.0])
def test_sgd_matches_its_steps_written_out(slope):
    rate, decay = 0.05, 0.3
    optimizer = sgd_with_decay(rate, decay)
    weights: Any = jnp.array([1.0, -2.0])
    state, expected, velocity = optimizer.init(weights), np.array([1.0, -2.0]), np.zeros(2)
    for step in range(4):
        gradient = slope * np.array([1.0 + step, -1.0])
        updates, state = optimizer.update(jnp.array(gradient), state, weights)
        weights = optax.apply_updates(weights, updates)
        clipped = gradient * min(1.0, 1.0 / np.linalg.norm(gradient))
        velocity = 0.9 * velocity + clipped + decay * expected
        expected = expected - rate * velocity
    np.testing.assert_allclose(np.asarray(weights), expected, rtol=1e-5)


def quadratic(weights, inputs):
    return (inputs @ weights[0]) ** 2 @ weights[1]


@pytest.mark.slow
def test_recorded_accuracies_and_steps_match_training_written_out():
    runs = dataclasses.replace(SMALL, learning_rates=[0.1] * 4, weight_decays=[0.01] * 4, steps=[20] * 4, records=4)
    found = runs.setting(SETTINGS.index("two-layer, SGD"))
    assert found["recorded_step"].tolist() == [0, 5, 10, 15, 20]
    upstream, seed = 2, 1
    table = runs.tables[seed]
    network = runs._network("two-layer", runs.relative_scales[upstream], seed)
    weights = [jnp.asarray(network.first), jnp.asarray(network.second)]
    whole, targets = runs.whole.inputs, runs.whole.targets
    optimizer = sgd_with_decay(0.1, 0.01)
    state = optimizer.init(weights)

    def loss(weights):
        inside = table.trained
        return 0.5 * ((quadratic(weights, whole[inside]) - targets[inside]) ** 2).sum(axis=1).mean()

    for step in range(21):
        if step % 5 == 0:
            right = np.asarray(quadratic(weights, whole).argmax(axis=1) == targets.argmax(axis=1))
            sides = right[table.trained].mean(), right[~table.trained].mean()
            np.testing.assert_allclose(found["loss"][upstream, seed, step // 5], loss(weights), rtol=1e-4)
            assert found["accuracy"][upstream, seed, step // 5] == pytest.approx(sides[0])
            assert found["test_accuracy"][upstream, seed, step // 5] == pytest.approx(sides[1])
        updates, state = optimizer.update(jax.grad(loss)(weights), state, weights)
        weights = optax.apply_updates(weights, updates)


@pytest.mark.parametrize(
    ("test", "step", "reached"), [([0.2, 0.9, 0.3, 1], 5, True), ([1, 0, 0, 0], 0, True), ([0.8, 0.7, 0, 0], 15, False)]
)
def test_later_accuracies_do_not_affect_the_first_step_at_the_level(test, step, reached):
    found = first_steps(np.arange(0, 20, 5), np.ones(4), np.array(test), 0.9)
    assert (found["test_step"], found["generalised"], found["train_step"]) == (step, reached, 0)


def test_only_the_initial_outputs_of_the_transformer_depend_on_alpha():
    found = SMALL.initial_projections()
    np.testing.assert_allclose(found["two-layer"], 1, rtol=1e-5)
    np.testing.assert_allclose(found["transformer"][1], 1, rtol=1e-12)
    assert np.abs(found["transformer"][[0, 2]] - 1).min() > 1e-3


@pytest.mark.slow
def test_times_of_the_two_layer_network_match_the_reference_runs():
    # Steps at which training and test accuracy reach 95 %, with AdamW; other seeds, and an evaluation every 20 steps.
    reference = {0.5: (40, 420), 1.0: (20, 440), 2.0: (20, 560), 4.0: (20, 1140)}
    fields: dict[str, Any] = {"train_fraction": 0.7, "steps": [1400] * 4, "records": 70, "seeds": 3}
    study = GrokkingImbalance(**fields, relative_scales=list(reference))
    found = study._runs.setting(SETTINGS.index("two-layer, AdamW"))
    assert found["generalised"].all()
    for place, (train, test) in enumerate(reference.values()):
        assert np.abs(np.median(found["train_step"][place]) - train) <= 20
        assert np.median(found["test_step"][place]) == pytest.approx(test, rel=0.3)

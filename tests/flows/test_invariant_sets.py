"""Steps of descent leave no set of vanishing or of equal units, whatever the batches, momentum and decay."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from dynascope.compilation import jit
from dynascope.networks import MLP, Convolutional, Transformer
from dynascope.probes.redundancy import UnitGroup, UnitPart, unit_weights
from dynascope.tasks import Task
from dynascope.training import Batches, Descent, descend
from dynascope.training.optimizers import decayed

RANDOM = np.random.default_rng(0)
IMAGES, TOKENS = RANDOM.normal(size=(12, 16)), np.eye(5)[RANDOM.integers(5, size=(12, 2))].reshape(12, 10)
HEADS = [(f"blocks.0.{each}", 1) for each in ("queries", "keys", "values")]
LAYERS = {
    "neurons": (
        functools.partial(MLP, (16, 4, 2)),
        IMAGES,
        UnitGroup(4, [("weights.0", 1), ("biases.0", 0)], [("weights.1", 0)]),
    ),
    "channels": (
        functools.partial(Convolutional, (4, 4), 2, channels=(4,), width=5),
        IMAGES,
        UnitGroup(4, [("kernels.0", 3), ("kernel_biases.0", 0)], [UnitPart("hidden", 0, interleaved=True)]),
    ),
    "heads": (
        functools.partial(Transformer, 5, 2, 2, width=8, heads=4, hidden_width=6),
        TOKENS,
        UnitGroup(4, HEADS, [("blocks.0.outputs", 0)]),
    ),
}


def within_sets(network, group):
    """The network with unit 0 vanished and units 1 and 2 equal, by the transpose of reading the rows of units."""

    @jit
    def moved(network):
        rows, place = jax.vjp(lambda each: unit_weights(each, group), network)
        change = (jnp.zeros_like(part).at[0].set(-part[0]).at[2].set(part[1] - part[2]) for part in rows)
        return jax.tree.map(jnp.add, network, *place(type(rows)(*change)))

    return jax.tree.map(np.asarray, moved(network))


@pytest.mark.slow
@pytest.mark.parametrize("kind", LAYERS)
def test_batches_momentum_and_decay_keep_units_that_vanish_or_are_equal(kind):
    make, inputs, group = LAYERS[kind]
    task = Task(inputs, np.random.default_rng(1).normal(size=(12, 2)))
    with jax.enable_x64(True):
        network = within_sets(make(seed=3), group)
    _, trained = descend(
        task,
        network,
        Descent(
            decayed(optax.sgd, np.float64(0.01), momentum=0.9),
            learning_rate=0.05,
            steps=20,
            batches=Batches(4, replacement=True),
            save=[0, 20],
        ),
        return_networks=True,
    )
    before, after = (np.concatenate(unit_weights(each, group), axis=1) for each in (network, trained))
    assert np.abs(after - before)[[1, 3]].max(axis=1).min() > 1e-3
    np.testing.assert_array_equal(after[0], 0.0)
    # Products of matrices may add up in another order for each unit.
    np.testing.assert_allclose(after[1], after[2], rtol=0, atol=1e-12)

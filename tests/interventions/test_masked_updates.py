from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from dynascope.errors import InputError
from dynascope.interventions import masked, prune
from dynascope.networks import MLP
from dynascope.tasks import Labelled
from dynascope.training import Descent, descend


@pytest.fixture(scope="module")
def task():
    return Labelled(np.random.default_rng(0).normal(size=(30, 5)), np.arange(30) % 3)


@pytest.mark.slow
@pytest.mark.parametrize("explicit", [True, False])
def test_pruned_weights_stay_zero_under_adam_with_weight_decay(task, explicit):
    pruned = prune(MLP((5, 9, 3)), compression=4.0, rounds=3)
    optimizer = masked(optax.adamw(1e-2, weight_decay=0.1), pruned.mask if explicit else None)
    method = Descent(optimizer, steps=30, loss="cross_entropy")
    record, trained = descend(task, pruned.network, method, return_networks=True)
    assert record["loss"][-1] < record["loss"][0]
    for weight, mask in zip(trained.weights, pruned.mask.weights, strict=True):
        np.testing.assert_array_equal(np.asarray(weight) != 0, mask)
    assert (np.asarray(trained.biases[0]) != 0).any()


@pytest.mark.slow
def test_every_member_of_an_ensemble_keeps_its_own_mask(task):
    pruned = [prune(MLP((5, 9, 3), seed=seed), compression=4.0, rounds=3) for seed in range(3)]
    method = Descent(masked(optax.adam(1e-2)), steps=30, loss="cross_entropy")
    _, trained = descend(task, [each.network for each in pruned], method, return_networks=True)
    for member, each in enumerate(pruned):
        np.testing.assert_array_equal(np.asarray(trained.weights[0])[member] != 0, each.mask.weights[0])


@pytest.mark.slow
def test_training_equals_that_of_the_kept_weights_alone():
    draw = np.random.default_rng(0)
    mask, start, target = draw.uniform(size=(3, 4)) < 0.5, draw.normal(size=(3, 4)), draw.normal(size=(3, 4))
    optimizer = optax.chain(optax.clip_by_global_norm(0.3), optax.adam(0.1))
    with jax.enable_x64(True):
        wrapped = masked(optimizer, {"w": mask})
        whole: Any = {"w": jnp.asarray(start)}
        part: Any = jnp.asarray(start[mask])
        states = wrapped.init(whole), optimizer.init(part)
        for _ in range(5):
            moves, state = wrapped.update({"w": whole["w"] - target}, states[0], whole)
            fewer, other = optimizer.update(part - target[mask], states[1], part)
            whole, part, states = optax.apply_updates(whole, moves), optax.apply_updates(part, fewer), (state, other)
        np.testing.assert_allclose(whole["w"][mask], part, rtol=1e-12)
        assert (np.asarray(whole["w"])[~mask] == 0).all()


def test_a_mask_of_another_shape_is_rejected_by_name():
    for mask in ({"w": np.ones((2, 3))}, {"v": np.ones((3, 2))}):
        with pytest.raises(InputError) as error:
            masked(optax.sgd(0.1), mask).init({"w": np.ones((3, 2))})
        assert error.value.argument == "mask"

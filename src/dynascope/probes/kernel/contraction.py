"""The kernel from Jacobians: of all parameters at once, or of one layer after the other."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from dynascope.compilation import jit
from dynascope.probes.kernel.conventions import Contraction
from dynascope.probes.kernel.layers import contract_signals
from dynascope.probes.kernel.model import Arrays, Model

__all__ = ["contract_jacobians", "contract_layers"]


@functools.partial(jit, static_argnames=("model", "contraction"))
def contract_jacobians(model: Model, arrays: Arrays, rates, x, other, *, contraction: Contraction) -> jax.Array:
    """J diag(η) J'ᵀ with the whole Jacobians J (n, c, P); `other` is None for the same examples."""
    places = range(len(arrays[0]))
    one = _joined(model, arrays, x, places)
    two = one if other is None else _joined(model, arrays, other, places)
    if rates is not None:
        two = two * jnp.concatenate(
            [jnp.broadcast_to(rate, p.shape).ravel() for rate, p in zip(rates, arrays[0], strict=True)]
        )
    return contract_signals(one, two, contraction)


@functools.partial(jit, static_argnames=("model", "contraction"))
def contract_layers(model: Model, arrays: Arrays, rates, x, other, *, contraction: Contraction) -> jax.Array:
    """The same, summed over the parameter arrays, so that one layer's Jacobian is held at a time."""
    total = jnp.zeros((), dtype=jnp.result_type(*arrays[0]))
    for place in range(len(arrays[0])):
        # The barrier makes a layer wait for the last one, or all Jacobians would be held at once.
        batches, total = jax.lax.optimization_barrier(((x, other), total))
        one = _joined(model, arrays, batches[0], [place])
        two = one if other is None else _joined(model, arrays, batches[1], [place])
        two = two if rates is None else two * jnp.ravel(rates[place])
        total = total + contract_signals(one, two, contraction)
    return total


def _joined(model: Model, arrays: Arrays, x, places) -> jax.Array:
    """∂f_a(x_i)/∂θ for the parameters at these places, shape (n, c, p)."""
    parameters, frozen = arrays

    def outputs(chosen, example):
        merged = list(parameters)
        for place, each in zip(places, chosen, strict=True):
            merged[place] = each
        return model.outputs(merged, frozen, example)

    blocks = jax.vmap(jax.jacrev(outputs), (None, 0))([parameters[place] for place in places], x)
    return jnp.concatenate([jnp.reshape(each, (*each.shape[:2], -1)) for each in blocks], axis=-1)

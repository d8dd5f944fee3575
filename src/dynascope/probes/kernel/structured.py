"""The kernel of any JAX function, of its dense layers and convolutions from what flows through them."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp

from dynascope.compilation import jit
from dynascope.probes.kernel.conventions import Contraction
from dynascope.probes.kernel.dense_tracing import DenseUse, layer_signals
from dynascope.probes.kernel.layers import contract_signals, dense_layer_kernel
from dynascope.probes.kernel.model import Arrays, Model

__all__ = ["contract_structured", "forms_gradients"]

# Beyond this many pairs of positions the program would become long for little gain.
_POSITION_PAIRS = 16


def forms_gradients(positions: int, inputs: int, outputs: int, classes: int, contraction: Contraction) -> bool:
    """Whether gradients are cheaper than pairs of positions for a weight of inputs × outputs."""
    products = classes**2 if contraction == "full" else classes
    pairs = positions**2
    return pairs > _POSITION_PAIRS or pairs * (inputs + products * outputs) > products * inputs * outputs


def contract_structured(
    uses: tuple[DenseUse, ...],
    model: Model,
    arrays: Arrays,
    rates: Any,
    x: Any,
    other: Any,
    *,
    contraction: Contraction,
) -> jax.Array:
    """The kernel between two batches from the uses of dense weights; `other` is None for the same batch."""
    one = _signals(model, uses, arrays, x)
    two = one if other is None else _signals(model, uses, arrays, other)
    return _contracted(one, two, rates, contraction=contraction)


@functools.partial(jit, static_argnames=("model", "uses"))
def _signals(model: Model, uses: tuple[DenseUse, ...], arrays: Arrays, x: Any) -> Any:
    return jax.vmap(lambda example: layer_signals(model, list(uses), arrays, example))(x)


@functools.partial(jit, static_argnames=("contraction",))
def _contracted(one: Any, two: Any, rates: Any, *, contraction: Contraction) -> jax.Array:
    (layers, others), (other_layers, other_others) = one, two
    total = jnp.zeros((), dtype=jnp.result_type(*jax.tree.leaves(one)))
    for place, (h, d) in layers.items():
        rate = 1.0 if rates is None else rates[place]
        # The barrier makes a layer wait for the last one, or the products of all would be held at once.
        (h, d, h_other, d_other), total = jax.lax.optimization_barrier(((h, d, *other_layers[place]), total))
        total = total + rate * _layer(h, d, h_other, d_other, contraction)
    for place, jacobian in others.items():
        weighted = other_others[place] if rates is None else other_others[place] * jnp.ravel(rates[place])
        total = total + contract_signals(jacobian, weighted, contraction)
    return total


def _layer(h: jax.Array, d: jax.Array, h_other: jax.Array, d_other: jax.Array, contraction: Contraction) -> jax.Array:
    """The kernel of one weight from h (n, p, k) and D (n, c, p, m)."""
    (_, positions, inputs), (_, classes, _, outputs) = h.shape, d.shape
    if forms_gradients(positions, inputs, outputs, classes, contraction):
        return contract_signals(_gradients(h, d), _gradients(h_other, d_other), contraction)
    return sum(
        (
            dense_layer_kernel(h[:, p], d[:, :, p], h_other[:, q], d_other[:, :, q], contraction)
            for p in range(positions)
            for q in range(positions)
        ),
        start=jnp.zeros((), dtype=h.dtype),
    )


def _gradients(h: jax.Array, d: jax.Array) -> jax.Array:
    found = jnp.einsum("npk,ncpm->nckm", h, d)
    return jnp.reshape(found, (*found.shape[:2], -1))

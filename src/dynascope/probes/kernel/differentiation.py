"""The kernel between two blocks of examples of a JAX function, by each algorithm."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from dynascope.compilation import jit
from dynascope.probes.kernel.contraction import contract_jacobians, contract_layers
from dynascope.probes.kernel.conventions import Contraction
from dynascope.probes.kernel.dense_tracing import layer_signals
from dynascope.probes.kernel.dense_uses import DenseUse
from dynascope.probes.kernel.model import Arrays, Model

__all__ = ["kernel_by_columns", "kernel_from_jacobians", "kernel_from_signals", "projected_outputs"]


@functools.partial(jit, static_argnames=("model", "contraction", "together"))
def kernel_from_jacobians(
    model: Model, arrays: Arrays, rates: Any, x: Any, other: Any, *, contraction: Contraction, together: bool
) -> jax.Array:
    """By `contract_jacobians`."""
    parameters, frozen = arrays

    def jacobians(places: Sequence[int], batch: Any) -> jax.Array:
        def outputs(chosen: Any, example: Any) -> jax.Array:
            merged = list(parameters)
            for place, each in zip(places, chosen, strict=True):
                merged[place] = each
            return model.outputs(merged, frozen, example)

        blocks = jax.vmap(jax.jacrev(outputs), (None, 0))([parameters[place] for place in places], batch)
        return jnp.concatenate([jnp.reshape(each, (*each.shape[:2], -1)) for each in blocks], axis=-1)

    return contract_jacobians(jacobians, parameters, rates, x, other, contraction, together=together, in_turn=_in_turn)


def kernel_from_signals(
    model: Model,
    uses: tuple[DenseUse, ...],
    arrays: Arrays,
    rates: Any,
    x: Any,
    other: Any,
    *,
    contraction: Contraction,
) -> jax.Array:
    """By `contract_layers`; in two programs, so that the passes are compiled once for all pairs of blocks."""
    one = _signals(model, uses, arrays, x)
    two = None if other is None else _signals(model, uses, arrays, other)
    return _contracted(one, two, arrays[0], rates, contraction=contraction)


@functools.partial(jit, static_argnames=("model", "uses"))
def _signals(model: Model, uses: tuple[DenseUse, ...], arrays: Arrays, x: Any) -> Any:
    return jax.vmap(lambda example: layer_signals(model, list(uses), arrays, example))(x)


@functools.partial(jit, static_argnames="contraction")
def _contracted(one: Any, two: Any, parameters: Any, rates: Any, *, contraction: Contraction) -> jax.Array:
    return contract_layers(one, two, parameters, rates, contraction, in_turn=_in_turn)


def _in_turn(needed: Any, total: Any) -> tuple[Any, Any]:
    return jax.lax.optimization_barrier((needed, total))


@functools.partial(jit, static_argnames=("model", "contraction"))
def kernel_by_columns(
    model: Model, arrays: Arrays, rates: Any, x: Any, other: Any, *, contraction: Contraction
) -> jax.Array:
    """J (η Jᵀe) for every e: the gradient of one output for one example, pushed through all examples."""
    parameters, frozen = arrays

    def rows(tangent):
        def outputs(p):
            return jax.vmap(lambda each: model.outputs(p, frozen, each))(x)

        return jax.jvp(outputs, (parameters,), (tangent,))[1]

    def columns(example):
        outputs, pull = jax.vjp(lambda p: model.outputs(p, frozen, example), parameters)
        unit = jnp.eye(outputs.size, dtype=outputs.dtype)

        def column(a):
            gradient = pull(unit[a])[0]
            if rates is not None:
                gradient = tuple(rate * each for rate, each in zip(rates, gradient, strict=True))
            found = rows(gradient)
            return found if contraction == "full" else found[:, a]

        return jax.lax.map(column, jnp.arange(outputs.size))

    found = jax.lax.map(columns, x if other is None else other)
    if contraction == "full":
        return jnp.transpose(found, (2, 3, 0, 1))
    found = jnp.transpose(found, (2, 0, 1))
    return found if contraction == "diagonal" else jnp.mean(found, axis=-1)


@functools.partial(jit, static_argnames=("model", "draws"))
def projected_outputs(model: Model, arrays: Arrays, rates, x, seed, *, draws: int) -> jax.Array:
    """J √η r for Gaussian directions r that depend only on the seed and the shapes, shape (n, c, draws)."""
    parameters, frozen = arrays

    def outputs(p):
        return jax.vmap(lambda each: model.outputs(p, frozen, each))(x)

    def along(number):
        keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), number), len(parameters))
        direction = tuple(jax.random.normal(k, p.shape, p.dtype) for k, p in zip(keys, parameters, strict=True))
        if rates is not None:
            direction = tuple(jnp.sqrt(rate) * each for rate, each in zip(rates, direction, strict=True))
        return jax.jvp(outputs, (parameters,), (direction,))[1]

    return jnp.moveaxis(jax.lax.map(along, jnp.arange(draws)), 0, -1)

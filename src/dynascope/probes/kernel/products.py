"""The kernel column by column, each the product of the kernel with one vector, and its sketch by random directions."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from dynascope.compilation import jit
from dynascope.probes.kernel.model import Arrays, Model

__all__ = ["kernel_columns", "projected_outputs"]


@functools.partial(jit, static_argnames=("model", "contraction"))
def kernel_columns(model: Model, arrays: Arrays, rates, x, other, *, contraction: str) -> jax.Array:
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

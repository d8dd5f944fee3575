"""Counts conservation laws from the Lie brackets of gradient fields."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np

from dynascope.compilation import jit
from dynascope.symmetry.parameters import Model, Point, points, require_finite
from dynascope.symmetry.ranks import rank

__all__ = ["bracket_ranks", "flat_gradients"]

_SPARE = 8  # fields beyond the number of dimensions
_TRIED = 64  # points at which the rank of the gradient fields is computed
_KEPT = 6  # points, those of the largest rank, at which brackets are computed
_ZERO = 1e-9  # brackets below this relative size are rounding errors


def bracket_ranks(model: Model, point: Point, alive: np.ndarray, levels: int, seed: int) -> tuple[int, ...]:
    """Compute the dimension of the span of the fields ∇(r·f), then of the span with their Lie brackets, level by level.

    [X, Y] = (∂Y) X − (∂X) Y is the bracket of a field X and a bracket Y of the previous level, for random inputs and r.
    The iteration ends if a level adds no dimension, or if the fields span the whole space. A law that holds for every
    loss and all data is constant along all fields and brackets, so the number of laws is the number of parameters minus
    the last rank. The rank is lower at points where a unit is inactive for all inputs, because the weights of the unit
    are then conserved. The largest rank over many points is therefore used.

    Args:
        model: The function.
        point: A point; the ranks are computed at random points near it.
        alive: Mask of the elements of the parameters that have a gradient.
        levels: Maximum number of levels.
        seed: Seed of the random points.

    References:
        Abide by the Law and Follow the Flow, arXiv:2307.00144.
    """
    # The number does not depend on `alive`, so that networks of one shape share a compiled program.
    count = alive.size + _SPARE
    random = np.random.default_rng(seed)
    starts, inputs = points(model, point, _TRIED, seed), points(model, point, count, seed + 1)
    size = float(np.sqrt(sum(np.vdot(each, each) for each in starts[0][0])))

    def fields(start: Point, level: int) -> np.ndarray:
        chosen = random.integers(count, size=(count, level + 1)) if level else np.arange(count)[:, None]
        drawn = tuple(np.stack([[inputs[i][2][leaf] for i in row] for row in chosen]) for leaf in range(len(start[2])))
        return _fields(model, level, *start[:2], drawn, random)[:, alive]

    def spanned(levels: list[np.ndarray]) -> int:
        return rank(_sized(levels, size), f"the brackets of level {len(levels) - 1}")

    first = [[fields(start, 0)] for start in starts]
    ranks = np.array([spanned(each) for each in first])
    kept = np.argsort(-ranks, kind="stable")[:_KEPT]
    found = [int(ranks.max())]
    for level in range(1, levels):
        if found[-1] == alive.sum() or found[-2:-1] == found[-1:]:
            break
        for number in kept:
            first[number].append(fields(starts[number], level))
        found.append(max(spanned(first[number]) for number in kept))
    return tuple(found)


def flat_gradients(model: Model, given: list[Point], seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the parameters (points, D) and the gradient of r·f at each point, both flattened."""
    parameters = tuple(np.stack(each) for each in zip(*(p for p, _, _ in given), strict=True))
    inputs = tuple(np.stack(each) for each in zip(*(x for _, _, x in given), strict=True))
    random = np.random.default_rng(seed)
    weights = random.normal(size=(len(given), model.size))
    with jax.enable_x64(True):
        found = np.asarray(_gradients(model, parameters, given[0][1], inputs, weights))
    require_finite(found)
    return np.concatenate([each.reshape(len(given), -1) for each in parameters], 1), found


def _sized(levels: list[np.ndarray], theta: float) -> np.ndarray:
    """Join the rows of all levels; each level is normalised, because brackets can be far larger than fields.

    A bracket is expected to be as large as the product of the sizes of its fields divided by the size of the
    parameters; a far smaller bracket is treated as zero.
    """
    rows, sizes = [], [float(np.median(np.linalg.norm(each, axis=1))) for each in levels]
    for each, size, before in zip(levels, sizes, [theta, *sizes], strict=False):
        if size > _ZERO * sizes[0] * before / theta:
            rows.append(each / size)
    return np.concatenate(rows) if rows else np.zeros((0, levels[0].shape[1]))


def _fields(model: Model, level: int, parameters: Any, frozen: Any, inputs: Any, random: np.random.Generator) -> Any:
    weights = random.normal(size=(*(inputs[0].shape[:2] if inputs else (1, 1)), model.size))
    with jax.enable_x64(True):
        found = np.asarray(_brackets(model, level, parameters, frozen, inputs, weights))
    require_finite(found)
    return found


@functools.partial(jit, static_argnums=(0, 1))
def _brackets(model: Model, level: int, parameters: Any, frozen: Any, inputs: Any, weights: Any) -> Any:
    flat, back = jax.flatten_util.ravel_pytree(parameters)

    def field(theta: Any, x: Any, r: Any) -> Any:
        return jax.grad(lambda each: jnp.vdot(r, model.outputs(back(each), frozen, x)))(theta)

    def bracket(theta: Any, x: Any, r: Any, depth: int) -> Any:
        first, others = tuple(each[0] for each in x), tuple(each[1:] for each in x)

        def one(each: Any) -> Any:
            return field(each, first, r[0])

        if depth == 0:
            return one(theta)

        def other(each: Any) -> Any:
            return bracket(each, others, r[1:], depth - 1)

        along = jax.jvp(other, (theta,), (one(theta),))[1]
        return along - jax.jvp(one, (theta,), (other(theta),))[1]

    return jax.vmap(lambda x, r: bracket(flat, x, r, level))(inputs, weights)


@functools.partial(jit, static_argnums=0)
def _gradients(model: Model, parameters: Any, frozen: Any, inputs: Any, weights: Any) -> Any:
    def at(theta: Any, x: Any, r: Any) -> Any:
        return jax.grad(lambda each: jnp.vdot(r, model.outputs(each, frozen, x)))(theta)

    found = jax.vmap(at)(parameters, inputs, weights)
    return jnp.concatenate([jnp.reshape(each, (len(weights), -1)) for each in found], 1)

"""The margins of a classifier and their velocity under gradient flow."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from dynascope.compilation import jit
from dynascope.symmetry.parameters import Model
from dynascope.validation import require, require_array

__all__ = ["Loss", "MarginProblem", "signs_of"]

Loss = Literal["exponential", "cross_entropy"]

_FAR = 30.0  # argument above which softplus(−z) equals exp(−z) up to rounding
# Largest and smallest increase of ν in an explicit step, and largest step length relative to the parameters.
_MOST_RISE, _LEAST, _TURN = 0.05, 1e-3, 0.01
_ROWS = 256  # points per call of a compiled program, for paths of all lengths
_COARSE = 1e-4  # smallest relative increase of ν in an explicit step


@dataclasses.dataclass(eq=False)
class MarginProblem:
    """A network, its samples and all other quantities that are constant along the flow."""

    model: Model
    shapes: tuple[tuple[int, ...], ...]
    loss: Loss
    fixed: tuple[Any, ...]

    def margins(self, theta: np.ndarray) -> np.ndarray:
        """Compute the margins q, shape (samples, wrong classes)."""
        return np.asarray(_margins_of(self.model, self.shapes, theta, *self.fixed))

    def level(self, q: np.ndarray) -> float:
        """Compute ν = log(1/L)."""
        z = np.logaddexp.reduce(-q, axis=1)
        if self.loss == "cross_entropy":
            near = np.maximum(z, -_FAR)
            z = np.where(z > -_FAR, np.log(np.logaddexp(0, near)), z)
        return -float(np.logaddexp.reduce(z))

    def descended(self, theta: np.ndarray, requested: np.ndarray, most: int) -> tuple[np.ndarray, ...]:
        """Integrate with explicit steps, and return the state just after each level was passed.

        Returns:
            Parameters, ν, normalised time and log-time at the levels, the number of levels passed, and the last ν.
        """
        found = _descended(self.model, self.shapes, self.loss, theta, requested, most, *self.fixed)
        return tuple(np.asarray(each) for each in found)

    def velocity(self, y: float, state: np.ndarray) -> np.ndarray:
        """Compute the derivatives of θ, q − ν and the normalised time with respect to y = asinh ν."""
        return np.asarray(_velocity(self.model, self.shapes, self.loss, y, state, *self.fixed))

    def paces(self, y: np.ndarray, states: np.ndarray) -> np.ndarray:
        """Compute the derivative of the normalised time with respect to y at many points."""
        found = []
        for start in range(0, len(y), _ROWS):
            places = np.minimum(np.arange(start, start + _ROWS), len(y) - 1)
            found.append(_paces(self.model, self.shapes, self.loss, y[places], states[places], *self.fixed))
        return np.concatenate(found)[: len(y)]

    def jacobian(self, y: float, state: np.ndarray) -> np.ndarray:
        """Compute the Jacobian of the velocity."""
        return np.asarray(_jacobian(self.model, self.shapes, self.loss, y, state, *self.fixed))


def signs_of(model: Model, parameters: Any, frozen: Any, leaves: Any, labels: ArrayLike) -> np.ndarray:
    """Compute the coefficients of the outputs in each margin: y for one output, or e_y − e_c for classes."""
    with jax.enable_x64(True):
        found = jax.eval_shape(
            lambda each: model.apply(model.tree(each, frozen), jax.tree.unflatten(model.inputs, leaves)), parameters
        )
    shapes = [each.shape for each in jax.tree.leaves(found)]
    require(
        len(shapes) == 1 and len(shapes[0]) in (1, 2) and shapes[0][0] > 0,
        f"apply returns {' and '.join(f'an array of shape {shape}' for shape in shapes) or 'no array'}",
        argument="apply",
        value=shapes,
        remedy="return an array of shape (samples,), or of shape (samples, classes)",
    )
    samples = shapes[0][0]
    classes = shapes[0][1] if len(shapes[0]) == 2 else 1
    y = require_array("labels", labels, (samples,))
    allowed = np.array([-1.0, 1.0]) if classes == 1 else np.arange(classes)
    wrong = y[~np.isin(y, allowed)]
    require(
        not wrong.size,
        f"labels contains {wrong[0] if wrong.size else 0:g}",
        argument="labels",
        value=wrong[:1].tolist(),
        remedy="give labels of -1 and 1 for one output" if classes == 1 else f"give integers from 0 to {classes - 1}",
    )
    if classes == 1:
        return y[:, None, None]
    own, unit = y.astype(int), np.eye(classes)
    others = np.array([[c for c in range(classes) if c != each] for each in own])
    return unit[own][:, None] - unit[others]


@functools.partial(jit, static_argnums=(0, 1))
def _margins_of(model: Model, shapes: Any, theta: Any, frozen: Any, leaves: Any, signs: Any) -> Any:
    return _margins(model, shapes, theta, frozen, leaves, signs)


@functools.partial(jit, static_argnums=(0, 1, 2))
def _velocity(model: Model, shapes: Any, loss: Loss, y: Any, state: Any, *fixed: Any) -> Any:
    return _rise(model, shapes, loss, y, state, *fixed)


@functools.partial(jit, static_argnums=(0, 1, 2))
def _paces(model: Model, shapes: Any, loss: Loss, y: Any, states: Any, *fixed: Any) -> Any:
    return jax.vmap(lambda *each: _rise(model, shapes, loss, *each, *fixed)[-1])(y, states)


@functools.partial(jit, static_argnums=(0, 1, 2))
def _jacobian(model: Model, shapes: Any, loss: Loss, y: Any, state: Any, *fixed: Any) -> Any:
    return jax.jacfwd(lambda each: _rise(model, shapes, loss, y, each, *fixed))(state)


@functools.partial(jit, static_argnums=(0, 1, 2))
def _descended(model: Model, shapes: Any, loss: Loss, theta: Any, requested: Any, most: Any, *fixed: Any) -> Any:
    """Take steps along ∇ν with a target increase in ν, which is raised after a success and lowered after a failure."""

    def value(each: Any) -> Any:
        return -_log_loss(_margins(model, shapes, each, *fixed), loss)

    rise = jax.value_and_grad(value)

    def going(state: Any) -> Any:
        return (state["passed"] < requested.size) & (state["count"] < most) & jnp.isfinite(state["level"])

    def step(state: Any) -> Any:
        here, slope, level = state["theta"], state["slope"], state["level"]
        squared = jnp.sum(slope**2)
        share = jnp.minimum(state["share"], _TURN * jnp.linalg.norm(here) * jnp.sqrt(squared))
        there = here + share / squared * slope
        new, after = rise(there)
        least = jnp.maximum(_LEAST, _COARSE * level)
        fine = (new > level + share / 4) | (state["share"] <= least)
        took = share / squared
        known = jnp.logaddexp(state["clock"], jnp.log(took) + (new + level) / 2)
        moved = {"theta": there, "slope": after, "level": new, "time": state["time"] + took, "clock": known}
        kept = jax.tree.map(lambda a, b: jnp.where(fine, a, b), moved, {name: state[name] for name in moved})
        reached = jnp.searchsorted(requested, kept["level"], side="right")
        late = (jnp.arange(requested.size) >= state["passed"]) & (jnp.arange(requested.size) < reached)
        seen = {name: kept[name] for name in ("theta", "level", "time", "clock")}
        recorded = jax.tree.map(
            lambda rows, now: jnp.where(late.reshape(-1, *(1,) * now.ndim), now, rows), state["recorded"], seen
        )
        share = jnp.where(fine, jnp.minimum(1.05 * state["share"], _MOST_RISE), state["share"] / 2)
        share = jnp.maximum(share, least)
        passed = jnp.maximum(state["passed"], reached)
        return {**kept, "share": share, "count": state["count"] + 1, "passed": passed, "recorded": recorded}

    level, slope = rise(theta)
    first = {"theta": theta, "level": level, "time": jnp.zeros(()), "clock": jnp.full((), -jnp.inf)}
    empty = jax.tree.map(lambda leaf: jnp.zeros((requested.size, *leaf.shape)), first)
    counts = {"count": jnp.zeros((), int), "passed": jnp.zeros((), int)}
    start = {**first, "slope": slope, "share": jnp.full((), _LEAST), "recorded": empty, **counts}
    end = jax.lax.while_loop(going, step, start)
    record = end["recorded"]
    return record["theta"], record["level"], record["time"], record["clock"], end["passed"], end["level"]


@functools.partial(jit, static_argnums=(0, 1, 2))
def _rise(model: Model, shapes: Any, loss: Loss, y: Any, state: Any, *fixed: Any) -> Any:
    """Compute the velocity; the sample weights use the q − ν of the state, to avoid rounding errors of large q."""
    size = sum(math.prod(shape) for shape in shapes)
    theta, above = state[:size], state[size:-1].reshape(fixed[-1].shape[:2])
    level = jnp.sinh(y)
    # ∂/∂q of log Σ exp(ν − ν_i), which keeps the sum of the weights from drifting.
    weights = -jax.grad(lambda each: _log_loss(each + level, loss))(above)
    _, pull = jax.vjp(lambda each: _margins(model, shapes, each, *fixed), theta)
    (slope,) = pull(weights)
    _, moved = jax.jvp(lambda each: _margins(model, shapes, each, *fixed), (theta,), (slope,))
    pace = jnp.cosh(y) / jnp.sum(weights * moved)
    return jnp.concatenate([pace * slope, jnp.ravel(pace * moved - jnp.cosh(y)), pace[None]])


def _log_loss(q: Any, loss: Loss) -> Any:
    """Compute log L."""
    z = jax.nn.logsumexp(-q, axis=1)
    if loss == "cross_entropy":
        near = jnp.maximum(z, -_FAR)
        z = jnp.where(z > -_FAR, jnp.log(jax.nn.softplus(near)), z)
    return jax.nn.logsumexp(z)


def _margins(model: Model, shapes: Any, theta: Any, frozen: Any, leaves: Any, signs: Any) -> Any:
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    parts = tuple(part.reshape(shape) for part, shape in zip(jnp.split(theta, ends[:-1]), shapes, strict=True))
    outputs = model.outputs(parts, frozen, leaves).reshape(signs.shape[0], 1, signs.shape[2])
    return jnp.sum(signs * outputs, axis=2)

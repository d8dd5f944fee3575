"""Training of the multilinear model, which the scaling laws are held against: every skill by its own weights."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from dynascope.tasks.expectation import Expectation
from dynascope.training.descend import descend
from dynascope.training.optimizers import runge_kutta

__all__ = ["train_skills"]

_STEP = 0.01  # a step over the time at which it is made
_STABLE = 2.0  # the method of fourth order is stable up to 2.78
_AXES = ("run", "neurons", "skill")  # of what is measured, as records have to name them


def train_skills(
    shares: np.ndarray,
    times: np.ndarray,
    measure: Callable[..., Any],
    *arrays: np.ndarray,
    target_scale: float,
    initial_strength: float,
) -> np.ndarray:
    """Train f = Σ_k a_k b_k g_k by gradient flow and measure what it has not learned.

    ȧ_k = p_k b_k (S − a_k b_k) and ḃ_k = p_k a_k (S − a_k b_k), from a_k = b_k = √R₀, are the flow of the loss on a
    training set in which the share p_k of the samples asks for skill k; as the skills do not overlap, no other enters.
    Followed for all weights at once by the classical method of fourth order, with steps of a hundredth of the time that
    has passed. A skill for which they are too long to be stable is left alone: so long after it was learned, only
    e^−200 (S/R₀ − 1) of it is missing.

    Args:
        shares: p_k ≥ 0 with any members in front, shape (..., skills).
        times: Gradient-flow times at which to measure, positive and increasing, shape (times,).
        measure: Of S − a_k b_k, shape (..., skills), and of the arrays; the same function finds a compiled program.
        arrays: What else it needs.
        target_scale: S.
        initial_strength: R₀.

    Returns:
        What was measured, one row for each time.
    """
    rate = 2 * target_scale * shares.max()
    # From zero to the first of these in one step, which is as short for the fastest skill as any later one.
    starts = np.concatenate([[min(_STEP / rate, times[0] / 2)], times[:-1]])
    counts = np.maximum(np.ceil(np.log(times / starts) / _STEP), 1)
    start = np.full(shares.shape, math.sqrt(initial_strength))
    asked, scale = np.asarray(shares, np.float64), np.array(target_scale, np.float64)
    recorded = 1 + np.cumsum(counts.astype(np.int32))
    measured = jax.eval_shape(measure, start, *arrays)
    run = descend(
        _Skills(start, start, asked, scale, arrays),
        Expectation(_loss, "skills"),
        steps=int(recorded[-1]),
        learning_rate=_Lengths(starts, recorded, (times / starts) ** (1 / counts)),
        optimizer=_runge_kutta_where_stable,
        record_steps=recorded,
        statistics={"measured": (_of_missing(measure), _AXES[: measured.ndim])},
    )
    return run["measured"].to_numpy()


class _Skills(eqx.Module):
    """The model f = Σ_k a_k b_k g_k; what else belongs to a run are arrays too, so that all share a program.

    Attributes:
        first: a_k.
        second: b_k.
        shares: p_k.
        target_scale: S.
        arrays: What is needed to measure.
    """

    first: Any
    second: Any
    shares: Any
    target_scale: Any
    arrays: Any

    def __call__(self, skills: Any) -> Any:
        return jnp.sum(self.first * self.second * skills, axis=-1)

    @property
    def missing(self) -> Any:
        """What every skill lacks, S − a_k b_k."""
        return jax.lax.stop_gradient(self.target_scale) - self.first * self.second


class _Lengths(eqx.Module):
    """The length of the step after so many: to the first start, and then at equal ratios within each interval.

    Attributes:
        starts: Of the intervals, shape (intervals,).
        ends: Number of steps at the end of each.
        ratios: Of the time after a step to that before it.
    """

    starts: Any
    ends: Any
    ratios: Any

    def __call__(self, steps: Any) -> Any:
        place = jnp.searchsorted(self.ends, steps, side="right")
        # One step leads to the first start.
        before = jnp.where(place == 0, 1, self.ends[place - 1])
        start, ratio = self.starts[place], self.ratios[place]
        return jnp.where(steps == 0, self.starts[0], start * ratio ** (steps - before) * (ratio - 1))


def _runge_kutta_where_stable(lengths: Any) -> optax.GradientTransformationExtraArgs:
    """The classical method, which leaves skills alone for which a step is too long."""
    method = runge_kutta(lengths)

    def update(updates: Any, state: Any, params: Any = None, **given: Any) -> tuple[Any, Any]:
        stable = 2 * params.target_scale * params.shares * lengths(state.count) < _STABLE
        changes: Any
        changes, after = method.update(updates, state, params, **given)
        own = [jnp.where(stable, each, 0) for each in (changes.first, changes.second)]
        return eqx.tree_at(lambda each: (each.first, each.second), changes, own), after

    return optax.GradientTransformationExtraArgs(method.init, update)


def _loss(network: Any) -> Any:
    """Half the mean over samples of (S − a_k b_k)² of the skill that a sample asks for."""
    return jnp.sum(jax.lax.stop_gradient(network.shares) * network.missing**2) / 2


@functools.cache
def _of_missing(measure: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda network: measure(network.missing, *network.arrays)

"""Training of the multilinear model, in which every skill has separate weights."""

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
from dynascope.training.descend import Descent, descend
from dynascope.training.optimizers import runge_kutta

__all__ = ["train_skills"]

_STEP = 0.01  # step size relative to the elapsed time
_STABLE = 2.0  # the fourth-order Runge–Kutta method is stable up to 2.78
_AXES = ("run", "neurons", "skill")  # dimensions of the measurement in the record


def train_skills(
    shares: np.ndarray,
    times: np.ndarray,
    measure: Callable[..., Any],
    *arrays: np.ndarray,
    target_scale: float,
    initial_strength: float,
) -> np.ndarray:
    """Train f = Σ_k a_k b_k g_k by gradient flow and measure the missing strengths S − a_k b_k.

    The flow ȧ_k = p_k b_k (S − a_k b_k), ḃ_k = p_k a_k (S − a_k b_k) from a_k = b_k = √R₀ is the gradient flow of the
    loss on a training set in which a fraction p_k of the samples requires skill k. Skills do not overlap, so their
    equations are independent. The classical fourth-order Runge–Kutta method integrates all weights at once, with steps
    of one percent of the elapsed time. A skill is no longer updated once this step is unstable for it; by then only a
    fraction e^−200 (S/R₀ − 1) of its strength is missing.

    Args:
        shares: p_k ≥ 0, shape (..., skills).
        times: Gradient-flow times at which to measure, positive and increasing, shape (times,).
        measure: A function of S − a_k b_k, shape (..., skills), and of `arrays`; part of the compilation-cache key.
        arrays: Further arguments of `measure`.
        target_scale: S.
        initial_strength: R₀.

    Returns:
        The measurements, one row for each time.
    """
    rate = 2 * target_scale * shares.max()
    # The first step, from zero to the first start, is short enough for the fastest skill.
    starts = np.concatenate([[min(_STEP / rate, times[0] / 2)], times[:-1]])
    counts = np.maximum(np.ceil(np.log(times / starts) / _STEP), 1)
    start = np.full(shares.shape, math.sqrt(initial_strength))
    frequencies, scale = np.asarray(shares, np.float64), np.array(target_scale, np.float64)
    recorded = 1 + np.cumsum(counts.astype(np.int32))
    measured = jax.eval_shape(measure, start, *arrays)
    run = descend(
        Expectation(_loss, "skills"),
        _Skills(start, start, frequencies, scale, arrays),
        Descent(
            _runge_kutta_where_stable,
            learning_rate=_Lengths(starts, recorded, (times / starts) ** (1 / counts)),
            steps=int(recorded[-1]),
            save=recorded,
            statistics={"measured": (_of_missing(measure), _AXES[: measured.ndim])},
        ),
    )
    return run["measured"].to_numpy()


class _Skills(eqx.Module):
    """The model f = Σ_k a_k b_k g_k, with all constants as arrays so that all runs share one compiled program.

    Attributes:
        first: a_k.
        second: b_k.
        shares: p_k.
        target_scale: S.
        arrays: Further arguments of the measurement.
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
        """The missing strength of every skill, S − a_k b_k."""
        return jax.lax.stop_gradient(self.target_scale) - self.first * self.second


class _Lengths(eqx.Module):
    """A schedule of step sizes: one step to the first start, then geometrically spaced times in each interval.

    Attributes:
        starts: Start times of the intervals, shape (intervals,).
        ends: Cumulative number of steps at the end of each interval.
        ratios: Ratio of consecutive times in each interval.
    """

    starts: Any
    ends: Any
    ratios: Any

    def __call__(self, steps: Any) -> Any:
        place = jnp.searchsorted(self.ends, steps, side="right")
        # The first step ends at the first start.
        before = jnp.where(place == 0, 1, self.ends[place - 1])
        start, ratio = self.starts[place], self.ratios[place]
        return jnp.where(steps == 0, self.starts[0], start * ratio ** (steps - before) * (ratio - 1))


def _runge_kutta_where_stable(lengths: Any) -> optax.GradientTransformationExtraArgs:
    """The classical Runge–Kutta method, which stops updating skills for which the step is unstable."""
    method = runge_kutta(lengths)

    def update(updates: Any, state: Any, params: Any = None, **given: Any) -> tuple[Any, Any]:
        stable = 2 * params.target_scale * params.shares * lengths(state.count) < _STABLE
        changes: Any
        changes, after = method.update(updates, state, params, **given)
        masked = [jnp.where(stable, each, 0) for each in (changes.first, changes.second)]
        return eqx.tree_at(lambda each: (each.first, each.second), changes, masked), after

    return optax.GradientTransformationExtraArgs(method.init, update)


def _loss(network: Any) -> Any:
    """The loss: half the mean over samples of (S − a_k b_k)² for the required skill k."""
    return jnp.sum(jax.lax.stop_gradient(network.shares) * network.missing**2) / 2


@functools.cache
def _of_missing(measure: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda network: measure(network.missing, *network.arrays)

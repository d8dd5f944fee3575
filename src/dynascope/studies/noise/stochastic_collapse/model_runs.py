"""Simulations of three models in which noise drives weights to zero or repels them from zero.

The models are a weight in a double well, a student trained on noisy labels, and a neuron under matrix noise. Each
ensemble is simulated in one compiled loop.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from dynascope.compilation import filter_jit
from dynascope.flows.counted_noise import noise_key, normal_noise

__all__ = ["NoisyStudents", "double_well", "matrix_noise", "noisy_students"]

_EARLY = 3.0  # the imbalance u² − v² is recorded after this many e-foldings, while it is far above rounding
_IMBALANCE = 0.3  # initial imbalance of students, relative to s


class NoisyStudents(NamedTuple):
    """Strengths uv that students learned from noisy labels.

    Attributes:
        learned: Mean of uv over the last half of the steps, minus the mean of the noise ε. The subtracted term has mean
            zero and serves as a control variate: it cancels fluctuations of uv that follow the label noise.
        log_product: log |uv| after the first half of the steps and at the end, along the first axis.
        imbalance_ratio: u² − v² early in training, divided by its prediction from the errors at every step.
    """

    learned: Float[np.ndarray, "rates strengths runs"]
    log_product: Float[np.ndarray, "2 rates strengths runs"]
    imbalance_ratio: Float[np.ndarray, "rates strengths runs"]


def double_well(
    noises: Sequence[float] | np.ndarray, durations: Sequence[float] | np.ndarray, *, runs: int, steps: int, seed: int
) -> Float[np.ndarray, "2 noises runs"]:
    """Simulate dθ = (θ − θ³) dt + ζθ dW from θ = 1; return log |θ| after the first half of the steps and at the end.

    Strang splitting integrates half a step of the cubic drift, a step of noise and linear growth, and another half step
    of the cubic drift. Each part is solved exactly, so no path crosses zero.

    Args:
        noises: Noise amplitudes ζ.
        durations: Duration for each noise level.
        runs: Number of paths for each noise level.
        steps: Number of steps.
        seed: Seed of the noise.

    Example:
        >>> halfway, end = double_well([2.0], [20.0], runs=500, steps=2000, seed=0)
        >>> print(bool(abs(np.mean(end - halfway) / 10 + 1) < 0.15))
        True
    """
    time_steps = np.asarray(durations, float) / steps
    with jax.enable_x64(True):
        squares = _wells(
            np.asarray(noises, float)[:, None], time_steps[:, None], runs, np.int64(steps), noise_key(seed)
        )
        return np.log(np.asarray(squares)) / 2


def noisy_students(
    strengths: np.ndarray, learning_rates: np.ndarray, *, noise_variance: float, runs: int, steps: int, seed: int
) -> NoisyStudents:
    """Gradient descent of students uv on ½(s + ε − uv)², Var ε = ς², from uv = s and u² − v² = 0.3 s.

    Args:
        strengths: Strengths s of the teachers, shape (rates, strengths).
        learning_rates: Learning rates η, shape (rates,).
        noise_variance: Variance ς² of the label noise.
        runs: Number of students for each strength and learning rate.
        steps: Number of steps.
        seed: Seed of the noise.

    Example:
        >>> chosen = {"noise_variance": 4.0, "runs": 50, "steps": 4000, "seed": 0}
        >>> found = noisy_students(np.array([[1.0]]), np.array([0.05]), **chosen)
        >>> print(bool(abs(found.learned.mean() - 0.9) < 0.02), bool(abs(found.imbalance_ratio - 1).max() < 1e-9))
        True True
    """
    rates, s = np.asarray(learning_rates, float)[:, None, None], np.asarray(strengths, float)[..., None]
    early = np.rint(_EARLY / (rates**2 * noise_variance)).astype(np.int64).clip(1, max(steps // 2, 1))
    with jax.enable_x64(True):
        deviation = np.asarray(noise_variance, float) ** 0.5
        found = _students(s, rates, deviation, runs, np.int64(steps), early, noise_key(seed))
        return NoisyStudents(*map(np.asarray, found))


def matrix_noise(
    sizes: Sequence[tuple[int, int]], *, strength: float, runs: int, steps: int, seed: int
) -> Float[np.ndarray, "sizes runs"]:
    """Growth rate of log ‖(u, v)‖ under u ← u + ηZv, v ← v + ηZᵀu over the last half of the steps, in units of ης².

    Neurons are initially balanced, ‖u‖ = ‖v‖, and are renormalised to norm one after every step. The zero-mean term 2η
    uᵀZv is subtracted from the growth of each step as a control variate.

    Args:
        sizes: Numbers of inputs n and outputs m of each neuron; v has shape (n,) and u has shape (m,).
        strength: η²ς² (n + m), the relative change of the squared norm due to noise in a step.
        runs: Number of neurons of each size.
        steps: Number of steps.
        seed: Seed of the noise and of the initial weights.

    Example:
        >>> found = matrix_noise([(1, 1), (6, 6)], strength=0.05, runs=50, steps=2000, seed=0)
        >>> print(np.sign(found.mean(axis=1)))
        [-1.  1.]
    """
    n, m = np.array(sizes).T
    inputs, outputs = (np.arange(each.max()) < each[:, None] for each in (n, m))
    step = np.sqrt(strength / (n + m))
    spread = step[:, None, None, None] * (outputs[:, None, :, None] & inputs[:, None, None, :])
    with jax.enable_x64(True):
        grown = _neurons(spread.astype(np.float32), inputs, outputs, runs, np.int64(steps), noise_key(seed))
        return np.asarray(grown) / ((steps - steps // 2) * step[:, None] ** 2)


def _halves(steps: Any, move: Any, state: Any) -> tuple[Any, Any]:
    """The state after the first half of the steps and at the end."""
    halfway = jax.lax.fori_loop(0, steps // 2, move, state)
    return halfway, jax.lax.fori_loop(steps // 2, steps, move, halfway)


def _normal(key: Any, step: Any, *shape: int) -> Any:
    """Standard normal numbers for one step, in single precision."""
    count = math.prod(shape)
    lanes = jnp.arange(-(-count // 2), dtype=np.uint32)
    return jnp.concatenate(normal_noise((key[0], key[1]), step, lanes))[:count].reshape(shape)


@filter_jit
def _wells(zeta: Any, time_step: Any, runs: int, steps: Any, key: Any) -> Any:
    """θ² of each path; half a step of θ' = −θ³ maps it to θ²/(1 + θ²Δt)."""
    rate, spread = ((2 * each).astype(np.float32) for each in ((1 - zeta**2 / 2) * time_step, zeta * time_step**0.5))

    def move(k: Any, square: Any) -> Any:
        factor = jnp.exp(rate + spread * _normal(key, k, len(zeta), runs))
        square = square / (1 + time_step * square) * factor
        return square / (1 + time_step * square)

    return jnp.stack(_halves(steps, move, jnp.ones((len(zeta), runs))))


@filter_jit
def _students(s: Any, rates: Any, deviation: Any, runs: int, steps: Any, early: Any, key: Any) -> Any:
    shape = (*s.shape[:2], runs)
    zero = jnp.zeros(shape)
    larger = jnp.sqrt(s * (_IMBALANCE + jnp.sqrt(_IMBALANCE**2 + 4)) / 2) + zero
    first = larger, s / larger

    def moved(k: Any, u: Any, v: Any) -> tuple[Any, Any, Any, Any]:
        noise = deviation * _normal(key, k, *shape)
        z = s - u * v + noise
        return u + rates * z * v, v + rates * z * u, z, noise

    def follow(k: Any, state: Any) -> Any:
        u, v, factor = state
        new_u, new_v, z, _ = moved(k, u, v)
        after = new_u, new_v, factor * (1 - (rates * z) ** 2)
        return tuple(jnp.where(k < early, *each) for each in zip(after, state, strict=True))

    u, v, factor = jax.lax.fori_loop(0, jnp.max(early), follow, (*first, zero + 1))
    ratio = (u - v) * (u + v) / (_IMBALANCE * s * factor)

    def move(k: Any, state: Any) -> Any:
        u, v, total = state
        new_u, new_v, _, noise = moved(k, u, v)
        return new_u, new_v, total + u * v - noise

    halfway, end = _halves(steps, move, (*first, zero))
    logs = jnp.stack([jnp.log(jnp.abs(each[0] * each[1])) for each in (halfway, end)])
    return (end[2] - halfway[2]) / (steps - steps // 2), logs, ratio


@filter_jit
def _neurons(spread: Any, inputs: Any, outputs: Any, runs: int, steps: Any, key: Any) -> Any:
    kinds, _, m, n = spread.shape

    def norms(weights: Any) -> Any:
        return jnp.sqrt(jnp.sum(weights * weights, axis=2, keepdims=True))

    def move(k: Any, state: Any) -> Any:
        u, v, grown = state
        z = spread * _normal(key, k + 1, kinds, runs, m, n)
        moved = jnp.sum(z * v[:, :, None], axis=3)
        linear = 2 * jnp.sum(u * moved, axis=2, keepdims=True)
        u, v = u + moved, v + jnp.sum(z * u[..., None], axis=2)
        size = jnp.hypot(norms(u), norms(v))
        return u / size, v / size, grown + (jnp.log(size) - linear).astype(float)

    start = _normal(key, jnp.uint32(0), kinds, runs, m + n)
    u, v = start[..., :m] * outputs[:, None], start[..., m:] * inputs[:, None]
    first = u / norms(u) / np.float32(2**0.5), v / norms(v) / np.float32(2**0.5), jnp.zeros((kinds, runs, 1))
    halfway, end = _halves(steps, move, first)
    return (end[2] - halfway[2])[..., 0]

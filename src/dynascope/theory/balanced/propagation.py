"""Integration of the matrix Riccati flow of a λ-balanced network, by exact steps on a factor of its solution."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.theory.kernels import nan_outside
from dynascope.theory.second_derivatives import once_differentiable
from dynascope.validation import is_traced, require, require_known

__all__ = ["Steps", "drift_matrix", "fixed_steps", "plan_steps", "propagate"]

# max |f| Δ of a step. The Cholesky factor loses half as many digits as exp(2 max |f| Δ) has. The loss is negligible at
# the first value. At the second value it is about half of 16 digits, and longer steps are rejected.
_PHASE, _LARGEST_PHASE = 4.0, 16.0
_MOST_STEPS = 1_000_000
_CLOSE = 1e-3  # difference of eigenvalues times Δ, below which a divided difference is replaced by the derivative


def drift_matrix(target_map: Any, balance: Any, numbers: Any = jnp) -> Any:
    """Return F = [[−λ/2 I, Σ], [Σᵀ, λ/2 I]], using `numpy` or `jax.numpy`."""
    inputs, outputs = target_map.shape[-2:]
    leading = np.broadcast_shapes(target_map.shape[:-2], balance.shape)
    target_map = numbers.broadcast_to(target_map, (*leading, inputs, outputs))
    half = numbers.broadcast_to(balance[..., None, None] / 2, (*leading, 1, 1))
    rows = (
        numbers.concatenate([-half * numbers.eye(inputs, dtype=target_map.dtype), target_map], axis=-1),
        numbers.concatenate(
            [numbers.swapaxes(target_map, -1, -2), half * numbers.eye(outputs, dtype=target_map.dtype)], axis=-1
        ),
    )
    return numbers.concatenate(rows, axis=-2)


class Steps(NamedTuple):
    """Integration steps that lead to each of the sorted output times; all steps to the same time have equal lengths.

    Attributes:
        lengths: Length Δ of the steps that lead to each time, shape (times,).
        counts: Number of steps that lead to each time, shape (times,). None if one static number applies to all times.
        ranks: Position of each given time among the sorted times, shape (times,).
    """

    lengths: Any
    counts: Any
    ranks: Any


def plan_steps(speed: float, times: Float[np.ndarray, " times"]) -> Steps:
    """Plan integration steps that are short enough for double precision, and omit steps between equal times.

    The numbers of steps are stored in an array, so one compiled program works for all times.

    Args:
        speed: Growth rate of the fastest mode, max |f| √(η₁ η₂), where f are the eigenvalues of F.
        times: Times t ≥ 0, in any order.

    Example:
        >>> steps = plan_steps(4.0, np.array([1.5, 0.0, 1.0]))
        >>> steps.lengths.tolist(), steps.counts.tolist(), steps.ranks.tolist()
        ([0.0, 1.0, 0.5], [0, 1, 1], [2, 0, 1])
    """
    order = np.argsort(times, kind="stable")
    gaps = np.diff(times[order], prepend=0.0)
    counts = np.ceil(gaps * speed / _PHASE) if speed > 0 else (gaps > 0).astype(float)
    counts = np.where(gaps > 0, np.maximum(counts, 1), 0)
    latest = _MOST_STEPS * _PHASE / speed if speed > 0 else math.inf
    require(
        counts.sum() <= _MOST_STEPS,
        f"times up to {times.max():g} span too many e-folds of the fastest mode ({times.max() * speed:.3g})",
        argument="times",
        value=float(times.max()),
        remedy=f"choose times up to {latest:.3g}, or compute the limit with balanced_limit",
    )
    return Steps(gaps / np.maximum(counts, 1), counts.astype(int), np.argsort(order))


def fixed_steps(speed: float | None, times: Any, steps: int) -> Steps:
    """Plan a given number of steps between neighbouring times.

    Args:
        speed: As in `plan_steps`; None if it is not known.
        times: Increasing times t ≥ 0. If traced times decrease, the steps have negative lengths.
        steps: Number of steps between neighbouring times.

    Example:
        >>> fixed_steps(4.0, np.array([1.0, 3.0]), 2).lengths.tolist()
        [0.5, 1.0]
        >>> fixed_steps(40.0, np.array([1.0, 3.0]), 2)
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: steps is 2, so the fastest mode grows by 40 e-folds per step: choose ...
    """
    require_known(steps=steps)
    numbers = jnp if is_traced(times) else np
    gaps = numbers.diff(times, prepend=0.0)
    if not is_traced(times):
        require(
            bool(np.all(gaps >= 0)),
            "times decreases, which is not possible if steps is given",
            argument="times",
            value=times.shape,
            remedy="sort the times, or omit steps",
        )
        speed = speed or 0.0
        longest, apart = float(gaps.max(initial=0.0)) * speed, steps * _PHASE / speed if speed > 0 else math.inf
        require(
            longest <= _LARGEST_PHASE * steps,
            f"steps is {steps}, so the fastest mode grows by {longest / steps:.3g} e-folds per step",
            argument="steps",
            value=steps,
            remedy=f"choose at least {math.ceil(longest / _PHASE)} steps, or times that are at most {apart:.3g} apart",
        )
    return Steps(gaps / steps, None, np.arange(len(times)))


def propagate(
    factor: Float[Array, "size width"],
    drift: Float[Array, "size size"],
    lengths: Float[Array, " times"],
    counts: Any,
    stuck: Any = False,
) -> Float[Array, "times size width"]:
    """Integrate Q' = F Q − ½ Q Qᵀ Q up to a rotation of the columns, which does not affect Q Qᵀ.

    Each step is exact: with M = ∫₀^Δ exp(2Fs) ds and L Lᵀ = I + Qᵀ M Q, the factor becomes exp(FΔ) Q L⁻ᵀ. The number of
    columns is constant, so rounding errors cannot increase the rank of a bottleneck.

    Args:
        factor: Q(0).
        drift: F, symmetric.
        lengths: Δ of the steps that lead to each time; zero for equal times.
        counts: Number of steps that lead to each time, or one number for all times, which allows reverse-mode
            differentiation.
        stuck: Whether the layers have λ = 0 and the determinant of their product has the wrong sign. The flow then
            converges to a saddle.

    Returns:
        Q at each time; NaN after the first step that is too long for double precision.
    """
    values, vectors = jax.lax.stop_gradient(jnp.linalg.eigh(drift))
    # For a saddle, the eigenbasis of F prevents rounding errors of shrinking modes from entering growing modes.
    plain = jnp.eye(len(values), dtype=drift.dtype)
    basis, vectors = jnp.where(stuck, vectors, plain), jnp.where(stuck, plain, vectors)
    drift = basis.T @ drift @ basis

    def advance(q: Array, part: tuple[Array, Array | None]) -> tuple[Array, Array]:
        length, count = part
        moving, short = length > 0, jnp.max(jnp.abs(values)) * length <= _LARGEST_PHASE
        growth, integral = _step_matrices(drift, jnp.where(moving, length, 1.0), values, vectors)

        def step(_: Any, q: Array) -> Array:
            root = jnp.linalg.cholesky(jnp.eye(q.shape[1], dtype=q.dtype) + q.T @ integral @ q)
            ahead = jax.scipy.linalg.solve_triangular(root, (growth @ q).T, lower=True).T
            return jnp.where(moving, ahead, q)

        q = jax.lax.fori_loop(0, counts if count is None else count, step, q)
        q = nan_outside(short, q, leading=True)
        return q, q

    each = None if isinstance(counts, int) else counts
    start = jnp.where(stuck, _kept_at_saddle(basis.T @ factor, values), factor)
    found = basis @ jax.lax.scan(advance, start, (lengths, each))[1]
    return jnp.where(jnp.cumsum(lengths)[:, None, None] == 0, factor, found)  # exact at t = 0


def _kept_at_saddle(factor: Array, values: Array) -> Array:
    """Rotate the columns of a factor so that the components of the first columns along growing modes are exactly zero.

    Half of the modes grow, and one of them is missing at a saddle. A step adds only multiples of earlier columns to
    each column, so zeros in the first columns remain.
    """
    growing = values[:, None] > 0
    _, _, rows = jnp.linalg.svd(jax.lax.stop_gradient(jnp.where(growing, factor, 0.0)))
    still = jnp.arange(factor.shape[1]) <= factor.shape[1] - len(values) // 2
    return jnp.where(growing & still, 0.0, factor @ rows[::-1].T)


@jax.custom_jvp
def _step_matrices(drift: Array, duration: Array, values: Array, vectors: Array) -> tuple[Array, Array]:
    """Return exp(FΔ) and ∫₀^Δ exp(2Fs) ds, from the eigenvalues and eigenvectors of F."""
    growth, integral = _exponentials(values, duration)
    return (vectors * growth) @ vectors.T, (vectors * integral) @ vectors.T


@_step_matrices.defjvp
def _step_matrices_jvp(primals, tangents):
    # The derivatives of eigenvectors diverge for equal eigenvalues, which are common here. Those of a matrix function
    # do not.
    (drift, duration, values, vectors), (drift_dot, duration_dot, *_) = primals, tangents
    # A second derivative would treat the eigenvalues and eigenvectors as constants.
    drift = once_differentiable(drift, "the solution of balanced.gram", "target_map")
    growth, integral = _exponentials(values, duration)
    turned = vectors.T @ drift_dot @ vectors
    middle = (values[:, None] + values) / 2
    gap = values[:, None] - values
    close = jnp.abs(gap) * duration < _CLOSE
    _, slopes = jax.jvp(lambda x: _exponentials(x, duration), (middle,), (jnp.ones_like(middle),))
    divided = [
        jnp.where(close, slope, (value[:, None] - value) / jnp.where(close, 1.0, gap))
        for value, slope in zip((growth, integral), slopes, strict=True)
    ]
    changes = [vectors @ (each * turned) @ vectors.T for each in divided]
    matrices = (vectors * growth) @ vectors.T, (vectors * integral) @ vectors.T
    changes[0] += duration_dot * drift @ matrices[0]
    changes[1] += duration_dot * (vectors * growth**2) @ vectors.T
    return matrices, tuple(changes)


def _exponentials(values: Array, duration: Array) -> tuple[Array, Array]:
    phase = 2 * values * duration
    small = jnp.abs(phase) < 1e-5
    safe = jnp.where(small, 1.0, phase)
    ratio = jnp.where(small, 1 + phase / 2 + phase**2 / 6, jnp.expm1(safe) / safe)
    return jnp.exp(phase / 2), duration * ratio

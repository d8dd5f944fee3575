"""The matrix Riccati flow of a λ-balanced network, by steps that keep a factor of its solution."""

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

__all__ = ["Steps", "drift_matrix", "given_steps", "plan_steps", "propagate"]

# max |f| Δ of a step. The Cholesky factor below loses half the digits of exp(2 max |f| Δ): none that count at the first
# value, and half of 16 digits at the second, beyond which results are rejected.
_PHASE, _LARGEST_PHASE = 4.0, 16.0
_MOST_STEPS = 1_000_000
_CLOSE = 1e-3  # differences of eigenvalues times Δ below which a divided difference is taken as a derivative


def drift_matrix(target_map: Any, balance: Any, numbers: Any = jnp) -> Any:
    """F = [[−λ/2 I, Σ], [Σᵀ, λ/2 I]], in the arrays of jax.numpy or of NumPy."""
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
    """How times are crossed: from each to the next, as they increase, by equal steps.

    Attributes:
        lengths: Δ of the steps to each time, shape (times,).
        counts: How many there are, shape (times,); None where they are equally many, which a program has to know.
        ranks: Which of these stretches ends at a time, as they were given, shape (times,).
    """

    lengths: Any
    counts: Any
    ranks: Any


def plan_steps(speed: float, times: Float[np.ndarray, " times"]) -> Steps:
    """Steps that are short enough, of which none is made where times are equal.

    Their numbers are values, so that one program crosses all times.

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
        f"the times up to {times.max():g} span {times.max() * speed:.3g} e-folds",
        argument="times",
        value=float(times.max()),
        remedy=f"choose times up to {latest:.3g}, or call balanced_limit for the end of training",
    )
    return Steps(gaps / np.maximum(counts, 1), counts.astype(int), np.argsort(order))


def given_steps(speed: float | None, times: Any, steps: int) -> Steps:
    """As `plan_steps`, for a given number of steps from each time to the next.

    Args:
        speed: As in `plan_steps`; None if it is not known.
        times: Times t ≥ 0. Where JAX traces them, steps get negative lengths where times decrease.
        steps: Number of steps.

    Example:
        >>> given_steps(4.0, np.array([1.0, 3.0]), 2).lengths.tolist()
        [0.5, 1.0]
        >>> given_steps(40.0, np.array([1.0, 3.0]), 2)
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: steps is 2, and the fastest mode grows by 40 e-folds in each step: choose at ...
    """
    require_known(steps=steps)
    numbers = jnp if is_traced(times) else np
    gaps = numbers.diff(times, prepend=0.0)
    if not is_traced(times):
        require(
            bool(np.all(gaps >= 0)),
            "times do not increase, as they must where the number of steps is given",
            argument="times",
            value=times.shape,
            remedy="sort them, or leave steps out",
        )
        speed = speed or 0.0
        longest, apart = float(gaps.max(initial=0.0)) * speed, steps * _PHASE / speed if speed > 0 else math.inf
        require(
            longest <= _LARGEST_PHASE * steps,
            f"steps is {steps}, and the fastest mode grows by {longest / steps:.3g} e-folds in each step",
            argument="steps",
            value=steps,
            remedy=f"choose at least {math.ceil(longest / _PHASE)} steps, or times at most {apart:.3g} apart",
        )
    return Steps(gaps / steps, None, np.arange(len(times)))


def propagate(
    factor: Float[Array, "size width"],
    drift: Float[Array, "size size"],
    lengths: Float[Array, " times"],
    counts: Any,
    stuck: Any = False,
) -> Float[Array, "times size width"]:
    """Follow Q' = F Q − ½ Q Qᵀ Q up to a rotation of its columns, which leaves Q Qᵀ alone.

    Each step is exact: with M = ∫₀^Δ exp(2Fs) ds and L Lᵀ = I + Qᵀ M Q, the factor becomes exp(FΔ) Q L⁻ᵀ. The columns
    stay as many as they are, so that no rounding fills up the rank of a bottleneck.

    Args:
        factor: Q(0).
        drift: F, symmetric.
        lengths: Δ of the steps of each stretch; where it is zero nothing moves.
        counts: How many steps each stretch has, or one number for all, which can be differentiated backwards.
        stuck: Whether the layers have λ = 0 and a determinant of the wrong sign, so that the flow ends at a saddle.

    Returns:
        Q after each stretch; NaN after a stretch whose steps are too long for 16 digits.
    """
    values, vectors = jax.lax.stop_gradient(jnp.linalg.eigh(drift))
    # At a saddle in the basis of F, where rounding moves nothing from shrinking modes into growing ones.
    plain = jnp.eye(len(values), dtype=drift.dtype)
    basis, vectors = jnp.where(stuck, vectors, plain), jnp.where(stuck, plain, vectors)
    drift = basis.T @ drift @ basis

    def stretch(q: Array, part: tuple[Array, Array | None]) -> tuple[Array, Array]:
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
    found = basis @ jax.lax.scan(stretch, start, (lengths, each))[1]
    return jnp.where(jnp.cumsum(lengths)[:, None, None] == 0, factor, found)  # t = 0 without rounding


def _kept_at_saddle(factor: Array, values: Array) -> Array:
    """The factor with its columns rotated, so that the first ones have no growing part, not even by rounding.

    Half of the modes grow, and at a saddle one of them is missing. A step adds to each column only those before it, so
    that zeros stay in the first columns.
    """
    growing = values[:, None] > 0
    _, _, rows = jnp.linalg.svd(jax.lax.stop_gradient(jnp.where(growing, factor, 0.0)))
    still = jnp.arange(factor.shape[1]) <= factor.shape[1] - len(values) // 2
    return jnp.where(growing & still, 0.0, factor @ rows[::-1].T)


@jax.custom_jvp
def _step_matrices(drift: Array, duration: Array, values: Array, vectors: Array) -> tuple[Array, Array]:
    """exp(FΔ) and ∫₀^Δ exp(2Fs) ds, from the eigenvalues and eigenvectors of F."""
    growth, integral = _exponentials(values, duration)
    return (vectors * growth) @ vectors.T, (vectors * integral) @ vectors.T


@_step_matrices.defjvp
def _step_matrices_jvp(primals, tangents):
    # The derivative of eigenvectors is infinite where eigenvalues coincide, as they often do here; that of a function
    # of the matrix is not.
    (drift, duration, values, vectors), (drift_dot, duration_dot, *_) = primals, tangents
    # A second derivative would take the eigenvalues and eigenvectors for constants.
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

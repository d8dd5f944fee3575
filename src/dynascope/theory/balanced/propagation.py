"""The matrix Riccati flow of a λ-balanced network, by steps that keep a factor of its solution."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from dynascope.arguments import require

__all__ = ["drift_matrix", "plan_steps", "propagate"]

# max |f| Δ of a step. The Cholesky factor below loses half the digits of exp(2 max |f| Δ).
_PHASE = 4.0
_FEWEST_STEPS, _MOST_STEPS = 16, 1_000_000
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


def plan_steps(
    speed: float, times: Float[np.ndarray, " times"]
) -> tuple[Float[np.ndarray, " steps"], Int[np.ndarray, " times"]]:
    """Steps that cross the times, and after how many of them each time is reached.

    Their number is a power of two from 16 on, so that other times seldom ask for another program; the last have no
    length.

    Args:
        speed: Largest |eigenvalue| of F, over all members of an ensemble.
        times: Times t ≥ 0 in any order.

    Raises:
        InputError: The times need more than a million steps.

    Example:
        >>> steps, places = plan_steps(4.0, np.array([1.5, 0.0, 1.0]))
        >>> len(steps), steps[:3].tolist(), places.tolist()
        (16, [1.0, 0.5, 0.0], [2, 0, 1])
    """
    order = np.argsort(times, kind="stable")
    gaps = np.diff(times[order], prepend=0.0)
    counts = np.ceil(gaps * speed / _PHASE).astype(int) if speed > 0 else (gaps > 0).astype(int)
    counts = np.where(gaps > 0, np.maximum(counts, 1), 0)
    total = int(counts.sum())
    require(
        total <= _MOST_STEPS,
        f"the times up to {times.max():g} span {times.max() * speed:.3g} e-folds",
        argument="times",
        value=float(times.max()),
        remedy="choose earlier times, or ask balanced_limit for what remains in the end",
    )
    steps = np.zeros(1 << max(total - 1, _FEWEST_STEPS - 1).bit_length())
    steps[:total] = np.repeat(gaps / np.maximum(counts, 1), counts)
    places = np.empty(len(times), int)
    places[order] = np.cumsum(counts)
    return steps, places


def propagate(
    factor: Float[Array, "size width"], drift: Float[Array, "size size"], steps: Float[Array, " steps"]
) -> Float[Array, "steps_and_one size width"]:
    """Follow Q' = F Q − ½ Q Qᵀ Q up to a rotation of its columns, which leaves Q Qᵀ alone.

    Each step is exact: with M = ∫₀^Δ exp(2Fs) ds and L Lᵀ = I + Qᵀ M Q, the factor becomes exp(FΔ) Q L⁻ᵀ. The columns
    stay as many as they are, so that no rounding fills up the rank of a bottleneck.

    Args:
        factor: Q(0).
        drift: F, symmetric.
        steps: Δ of each step; none where it is zero.

    Returns:
        Q at the start and after each step.
    """
    values, vectors = jax.lax.stop_gradient(jnp.linalg.eigh(drift))

    def step(q: Array, duration: Array) -> tuple[Array, Array]:
        moving = duration > 0
        growth, integral = _step_matrices(drift, jnp.where(moving, duration, 1.0), values, vectors)
        root = jnp.linalg.cholesky(jnp.eye(q.shape[1], dtype=q.dtype) + q.T @ integral @ q)
        ahead = jax.scipy.linalg.solve_triangular(root, (growth @ q).T, lower=True).T
        q = jnp.where(moving, ahead, q)
        return q, q

    return jnp.concatenate([factor[None], jax.lax.scan(step, factor, steps)[1]])


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

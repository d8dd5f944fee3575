"""The spectrum of a feature map on samples: the directions in which a linear model learns, and how fast it learns each.

A linear model f(x) = w·Φ(x) is, in the eigenfeatures e_k of E[Φ Φᵀ], a sum of modes √ρ_k e_k that do not disturb each
other; gradient flow learns the mode k at the rate ρ_k.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Real

from dynascope.arguments import (
    all_finite,
    in_units,
    nan_outside,
    real_arrays,
    require,
    require_array,
    require_broadcast,
    require_positive,
    require_times,
)
from dynascope.compilation import AnyArray, float64_jit
from dynascope.results.named_tuples import short_repr
from dynascope.theory.domain import covers
from dynascope.theory.features.ridge import require_fitting

__all__ = ["FeatureSpectrum", "ModeFlow", "TrainingFlow", "eigenspectrum", "mode_flow", "training_flow"]

_NEGLIGIBLE = 1e-12  # singular values below this fraction of the largest, times the larger side, count as zero


class FeatureSpectrum(NamedTuple):
    """The eigenfeatures of a feature map, strongest first.

    Attributes:
        intensity: ρ_k > 0, eigenvalues of HᵀH/n, shape (r,), r the rank of the feature matrix.
        directions: u_k, orthonormal columns, shape (p, r).
    """

    intensity: Float[np.ndarray, " r"]
    directions: Float[np.ndarray, "p r"]

    __repr__ = short_repr

    def eigenfeatures(self, features: Real[ArrayLike, "m p"]) -> Float[np.ndarray, "m r"]:
        """e_k(x) = u_k·Φ(x)/√ρ_k on any samples; orthonormal in the mean over those the spectrum was taken from.

        Args:
            features: Φ(x), shape (m, p).

        Raises:
            InputError: Values that are not finite, or another number of features.
        """
        rows = require_array("features", features, (None, len(self.directions)))
        return rows @ self.directions / np.sqrt(self.intensity)


class TrainingFlow(NamedTuple):
    """A linear model under gradient flow on its training samples.

    Attributes:
        weights: w(t), shape (times, p); its values elsewhere are f(x, t) = w(t)·Φ(x).
        outputs: f(x_j, t) on the training samples, shape (times, n).
        loss: L(t) = 1/(2n) Σ_j (f(x_j, t) − y_j)², shape (times,).
        intensity: ρ_k, the rates over η, shape (r,).
    """

    weights: Float[np.ndarray, "times p"]
    outputs: Float[np.ndarray, "times n"]
    loss: Float[np.ndarray, " times"]
    intensity: Float[np.ndarray, " r"]

    __repr__ = short_repr


class ModeFlow(NamedTuple):
    """A linear model under gradient flow on the population.

    Attributes:
        coefficients: ⟨e_k|f⟩ at each time, shape (times..., k).
        learned_fraction: 1 − exp(−η ρ_k t), shape (times..., k).
        loss: L = ½ E(f − f*)², shape (times...).
    """

    coefficients: Float[AnyArray, "... k"]
    learned_fraction: Float[AnyArray, "... k"]
    loss: Float[AnyArray, ...]

    __repr__ = short_repr


@covers(
    network="linear model on fixed features",
    data="any features",
    start="any",
    gives="eigenfeatures and the rate at which each is learned",
    reference="Nam, DPhil thesis (2024), algorithm 1",
)
@in_units("features", features="f", gives={"intensity": "f^2"})
def eigenspectrum(features: Real[ArrayLike, "n p"], *, relative_tolerance: float | None = None) -> FeatureSpectrum:
    """The eigenvalues and eigenfeatures of T[f](x') = E_x[Φ(x)·Φ(x') f(x)], from samples of Φ.

    From the singular values H = A diag(s) Uᵀ of the feature matrix, with samples as rows: ρ_k = s_k²/n and
    e_k(x) = u_k·Φ(x)/√ρ_k. The algorithm as printed leaves out the 1/n, which makes ρ n times too large. At most
    min(n, p) modes can be found. Inside a group of equal eigenvalues the directions are arbitrary.

    Cost: O(n p min(n, p)) operations.

    Args:
        features: H, shape (n, p), with n ≥ p or n < p.
        relative_tolerance: Singular values below this fraction of the largest count as zero; if not given,
            1e-12·max(n, p).

    Returns:
        `FeatureSpectrum`, whose signs are fixed by making the largest entry of each direction positive.

    Raises:
        InputError: Features that are not finite, or all zero, or a tolerance that is not positive.

    References:
        Nam, DPhil thesis (2024), algorithm 1 and equation 1.33, with the factor 1/n.

    Example:
        >>> features = np.array([[1, 0], [1, 1], [0, 2], [-1, 1], [2, -1]])
        >>> spectrum = eigenspectrum(features)
        >>> spectrum.intensity.round(6), np.abs(spectrum.eigenfeatures(features)[:2, 0]).round(6)
        (array([1.8, 1. ]), array([0.527046, 0.      ]))
    """
    _, sizes, directions = _decompose(features, relative_tolerance)
    return FeatureSpectrum(sizes**2 / np.shape(features)[0], directions)


@covers(
    network="linear model on fixed features",
    data="the population",
    start="any",
    gives="coefficient of each mode and loss at any time",
    reference="Nam, DPhil thesis (2024), 1.26",
)
@in_units(
    "intensity",
    "learning_rate",
    "target_coefficients|initial_coefficients",
    times="t",
    intensity="r",
    target_coefficients="v",
    initial_coefficients="v",
    unreachable_power="v^2",
    learning_rate="r^-1 t^-1",
    gives=("v", "", "v^2"),
)
def mode_flow(
    times: Real[ArrayLike, ...],
    intensity: Real[ArrayLike, " k"],
    target_coefficients: Real[ArrayLike, " k"],
    *,
    initial_coefficients: Real[ArrayLike, ...] = 0.0,
    unreachable_power: Real[ArrayLike, ""] = 0.0,
    learning_rate: Real[ArrayLike, ""] = 1.0,
) -> ModeFlow:
    """Gradient flow on infinitely many samples: each mode decays at its own rate.

    ⟨e_k|f⟩(t) = c_k + (c_k⁰ − c_k) exp(−η ρ_k t), L(t) = ½ Σ_k (c_k − c_k⁰)² exp(−2 η ρ_k t) + ½ ‖f⊥‖². For a finite
    number of samples see `training_flow`. Values traced by JAX that are outside the domain give NaN.

    Args:
        times: Gradient-flow times t ≥ 0, of any shape.
        intensity: ρ_k ≥ 0, shape (k,).
        target_coefficients: c_k = ⟨e_k|f*⟩, shape (k,).
        initial_coefficients: c_k⁰, shape (k,) or a number.
        unreachable_power: ‖f⊥‖² ≥ 0 of the target outside the modes.
        learning_rate: η > 0.

    Returns:
        `ModeFlow`, over times and modes.

    Raises:
        InputError: A value that is not finite or out of range, or shapes that do not fit.

    Example:
        >>> flow = mode_flow(np.array([0.0, 1.0, 10.0]), np.array([1.0, 0.1]), np.array([1.0, 1.0]))
        >>> print(flow.loss.round(4))
        [1.     0.477  0.0677]
    """
    known = real_arrays(
        times=times,
        intensity=intensity,
        target_coefficients=target_coefficients,
        initial_coefficients=initial_coefficients,
        unreachable_power=unreachable_power,
        learning_rate=learning_rate,
        minimum={"times": 0, "intensity": 0, "unreachable_power": 0},
        above={"learning_rate": 0},
        broadcast=False,
    )
    require(
        known[1].ndim > 0,
        "intensity is a single number",
        argument="intensity",
        value=(),
        remedy="give one value for each mode",
    )
    require_fitting("target_coefficients", known[2], known[1])
    require_fitting("initial_coefficients", known[3], known[1])
    require_broadcast(times=known[0].shape, learning_rate=known[5].shape, unreachable_power=known[4].shape)
    return _mode_flow(*known)


@covers(
    network="linear model on fixed features (a kernel machine)",
    data="any training samples",
    start="any",
    gives="weights, outputs and training loss at any time",
    reference="Nam, DPhil thesis (2024), appendix A.2",
)
@in_units(
    "features",
    "targets",
    "learning_rate",
    times="t",
    features="f",
    targets="y",
    initial_weights="y f^-1",
    learning_rate="f^-2 t^-1",
    gives=("y f^-1", "y", "y^2", "f^2"),
)
def training_flow(
    times: Real[ArrayLike, " times"],
    features: Real[ArrayLike, "n p"],
    targets: Real[ArrayLike, " n"],
    *,
    initial_weights: Real[ArrayLike, " p"] | None = None,
    learning_rate: float = 1.0,
    relative_tolerance: float | None = None,
) -> TrainingFlow:
    """Gradient flow of a linear model on n samples: the modes of the training kernel K/n, K = H Hᵀ.

    With H = A diag(s) Uᵀ, ρ_k = s_k²/n and the residual r₀ = y − H w₀ at the start, the residual is
    r(t) = r₀ − Σ_k a_k (a_k·r₀)(1 − exp(−η ρ_k t)), and w(t) = w₀ + Σ_k u_k (a_k·r₀)(1 − exp(−η ρ_k t))/s_k. The
    weights never leave w₀ + span of the data, so that the flow from zero ends at the solution of least norm. A kernel
    without features has them in any factor H of its matrix K.

    Args:
        times: Gradient-flow times t ≥ 0 of the loss 1/(2n) Σ_j (f(x_j) − y_j)², shape (times,).
        features: H, shape (n, p).
        targets: y, shape (n,).
        initial_weights: w₀, shape (p,); zero if not given.
        learning_rate: η > 0.
        relative_tolerance: As for `eigenspectrum`; modes below it are never learned.

    Returns:
        `TrainingFlow`.

    Raises:
        InputError: Values that are not finite, shapes that do not fit, t < 0 or η ≤ 0.

    References:
        Nam, DPhil thesis (2024), equation 1.26 and appendix A.2, with samples in place of the population.

    Example:
        >>> flow = training_flow(np.array([0.0, 1.0, 1e3]), np.diag([1.0, 2.0]), np.array([1.0, 2.0]))
        >>> flow.weights.round(4).tolist()
        [[0.0, 0.0], [0.3935, 0.8647], [1.0, 1.0]]
    """
    when = require_array("times", times, (None,))
    require_times(when)
    require_positive(learning_rate=learning_rate)
    rows = require_array("features", features, (None, None))
    y = require_array("targets", targets, (len(rows),))
    start = np.zeros(rows.shape[1])
    if initial_weights is not None:
        start = require_array("initial_weights", initial_weights, start.shape)
    modes, sizes, directions = _decompose(rows, relative_tolerance)
    intensity = sizes**2 / len(rows)
    residual = y - rows @ start
    missing = modes.T @ residual
    decay = -learning_rate * np.multiply.outer(when, intensity)
    learned = -np.expm1(decay) * missing
    left = np.exp(decay) * missing
    unreachable = np.sum((residual - modes @ missing) ** 2)
    return TrainingFlow(
        weights=start + (learned / sizes) @ directions.T,
        outputs=rows @ start + learned @ modes.T,
        loss=(np.sum(left**2, axis=1) + unreachable) / (2 * len(rows)),
        intensity=intensity,
    )


@float64_jit
def _mode_flow(times: Array, rho: Array, target: Array, start: Array, outside: Array, rate: Array) -> ModeFlow:
    modes = all_finite(rho, target, start) & (rho >= 0)
    inside = all_finite(times, rate) & (times >= 0) & (rate > 0) & modes.all()
    phase = nan_outside(inside, rate * times)[..., None] * rho
    fraction = -jnp.expm1(-phase)
    left = jnp.sum(((target - start) * jnp.exp(-phase)) ** 2, axis=-1)
    loss = (left + nan_outside(jnp.isfinite(outside) & (outside >= 0), outside)) / 2
    return ModeFlow(start + (target - start) * fraction, fraction, loss)


def _decompose(features: ArrayLike, relative_tolerance: float | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A (n, r), s (r,) and U (p, r) of H = A diag(s) Uᵀ without its null directions."""
    rows = require_array("features", features, (None, None))
    unit = np.max(np.abs(rows), initial=0.0)
    require(
        unit > 0,
        "features are all zero",
        argument="features",
        value=rows.shape,
        remedy="pass features that vary, in at least one row and column",
    )
    if relative_tolerance is None:
        relative_tolerance = _NEGLIGIBLE * max(rows.shape)
    require_positive(relative_tolerance=relative_tolerance)
    # The squares of tiny or huge features would leave the floating-point range inside the decomposition.
    left, sizes, right = np.linalg.svd(rows / unit, full_matrices=False)
    kept = sizes > relative_tolerance * sizes[0]
    left, sizes, directions = left[:, kept], sizes[kept] * unit, right[kept].T
    largest = np.argmax(np.abs(directions), axis=0)
    signs = np.sign(directions[largest, np.arange(len(sizes))])
    return left * signs, sizes, directions * signs

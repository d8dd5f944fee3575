"""The spectrum of a feature map, and gradient flow of a linear model in its modes.

In the eigenfeatures e_k of E[Φ Φᵀ], a linear model f(x) = w·Φ(x) is a sum of independent modes √ρ_k e_k. Gradient flow
learns mode k at the rate ρ_k.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple, TypeAlias

import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Gt, IsFinite
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Real

from dynascope.compilation import AnyArray, float64_jit
from dynascope.results.named_tuples import short_repr
from dynascope.theory.domain import covers
from dynascope.theory.features.ridge import require_fitting
from dynascope.theory.kernels import all_finite, nan_outside
from dynascope.validation import checked, require, require_shape
from dynascope.validation.bounded import FiniteArray, NonNegativeArray, PositiveFloat

__all__ = ["FeatureSpectrum", "ModeFlow", "TrainingFlow", "eigenspectrum", "mode_flow", "training_flow"]

_NEGLIGIBLE = 1e-12  # singular values below this fraction of the largest, times max(n, p), count as zero

Rows: TypeAlias = IsFinite[Real[npt.ArrayLike, "n p"]]


class FeatureSpectrum(NamedTuple):
    """Eigenvalues and eigenfeatures of a feature map, strongest first.

    Attributes:
        intensity: Eigenvalues ρ_k > 0 of HᵀH/n, shape (r,), where r is the rank of the feature matrix.
        directions: Eigenvectors u_k as orthonormal columns, shape (p, r).
    """

    intensity: Float[np.ndarray, " r"]
    directions: Float[np.ndarray, "p r"]

    __repr__ = short_repr

    @checked
    def eigenfeatures(self, features: IsFinite[Real[npt.ArrayLike, "m p"]]) -> Float[np.ndarray, "m r"]:
        """Evaluate the eigenfeatures e_k(x) = u_k·Φ(x)/√ρ_k on any samples.

        The eigenfeatures are orthonormal on average over the samples from which the spectrum was computed.

        Args:
            features: Φ(x), shape (m, p).

        Raises:
            InputError: If a value is not finite, or the number of features differs.
        """
        rows = np.asarray(features)
        require_shape("features", rows, (None, len(self.directions)))
        return rows @ self.directions / np.sqrt(self.intensity)


class TrainingFlow(NamedTuple):
    """Trajectory of a linear model under gradient flow on its training samples.

    Attributes:
        weights: w(t), shape (times, p); on other samples, f(x, t) = w(t)·Φ(x).
        outputs: f(x_j, t) on the training samples, shape (times, n).
        loss: L(t) = 1/(2n) Σ_j (f(x_j, t) − y_j)², shape (times,).
        intensity: Eigenvalues ρ_k, which are the rates at which the modes are learned, divided by η, shape (r,).
    """

    weights: Float[np.ndarray, "times p"]
    outputs: Float[np.ndarray, "times n"]
    loss: Float[np.ndarray, " times"]
    intensity: Float[np.ndarray, " r"]

    __repr__ = short_repr


class ModeFlow(NamedTuple):
    """Trajectory of a linear model under gradient flow on the population.

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
def eigenspectrum(features: Rows, *, relative_tolerance: PositiveFloat | None = None) -> FeatureSpectrum:
    """Compute the eigenvalues and eigenfeatures of T[f](x') = E_x[Φ(x)·Φ(x') f(x)] from samples of Φ.

    With the singular value decomposition H = A diag(s) Uᵀ of the feature matrix (one sample per row), ρ_k = s_k²/n and
    e_k(x) = u_k·Φ(x)/√ρ_k. There are at most min(n, p) modes. Within a group of equal eigenvalues, the directions are
    arbitrary.

    Cost: O(n p min(n, p)) operations.

    Args:
        features: Feature matrix H, shape (n, p).
        relative_tolerance: Singular values below this fraction of the largest count as zero; 1e-12·max(n, p) if not
            given.

    Returns:
        A `FeatureSpectrum`. The sign of each direction makes its largest entry positive.

    Raises:
        InputError: If a feature is not finite, all features are zero, or the tolerance is not positive.

    References:
        Nam, DPhil thesis (2024), algorithm 1 and equation 1.33. The printed algorithm omits the factor 1/n.

    Example:
        >>> features = np.array([[1, 0], [1, 1], [0, 2], [-1, 1], [2, -1]])
        >>> spectrum = eigenspectrum(features)
        >>> spectrum.intensity.round(6), np.abs(spectrum.eigenfeatures(features)[:2, 0]).round(6)
        (array([1.8, 1. ]), array([0.527046, 0.      ]))
    """
    _, sizes, directions = _decompose(np.asarray(features), relative_tolerance)
    return FeatureSpectrum(sizes**2 / np.shape(features)[0], directions)


@covers(
    network="linear model on fixed features",
    data="the population",
    start="any",
    gives="coefficient of each mode and loss at any time",
    reference="Nam, DPhil thesis (2024), 1.26",
)
def mode_flow(
    times: NonNegativeArray,
    intensity: Annotated[Real[ArrayLike, " k"], Ge(0)],
    target_coefficients: IsFinite[Real[ArrayLike, " k"]],
    *,
    initial_coefficients: FiniteArray = 0.0,
    unreachable_power: Annotated[Real[ArrayLike, ""], Ge(0)] = 0.0,
    learning_rate: Annotated[Real[ArrayLike, ""], Gt(0)] = 1.0,
) -> ModeFlow:
    """Gradient flow of a linear model on the population, mode by mode.

        ⟨e_k|f⟩(t) = c_k + (c_k⁰ − c_k) exp(−η ρ_k t)
        L(t) = ½ Σ_k (c_k − c_k⁰)² exp(−2 η ρ_k t) + ½ ‖f⊥‖²

    For a finite number of samples, use `training_flow`. Inside `jit`, values outside the domain give NaN.

    Args:
        times: Gradient-flow times t ≥ 0, of any shape.
        intensity: Eigenvalues ρ_k ≥ 0, shape (k,).
        target_coefficients: c_k = ⟨e_k|f*⟩, shape (k,).
        initial_coefficients: c_k⁰, shape (k,) or a number.
        unreachable_power: Power ‖f⊥‖² ≥ 0 of the target outside the span of the modes.
        learning_rate: η > 0.

    Returns:
        A `ModeFlow` over times and modes.

    Raises:
        InputError: If a value is not finite or out of range, or the shapes do not match.

    Example:
        >>> flow = mode_flow(np.array([0.0, 1.0, 10.0]), np.array([1.0, 0.1]), np.array([1.0, 1.0]))
        >>> print(flow.loss.round(4))
        [1.     0.477  0.0677]
    """
    modes = np.shape(intensity)
    require_fitting("target_coefficients", target_coefficients, modes)
    require_fitting("initial_coefficients", initial_coefficients, modes)
    return _mode_flow(times, intensity, target_coefficients, initial_coefficients, unreachable_power, learning_rate)


@covers(
    network="linear model on fixed features (a kernel machine)",
    data="any training samples",
    start="any",
    gives="weights, outputs and training loss at any time",
    reference="Nam, DPhil thesis (2024), appendix A.2",
)
def training_flow(
    times: Annotated[Real[npt.ArrayLike, " times"], Ge(0)],
    features: Rows,
    targets: IsFinite[Real[npt.ArrayLike, " n"]],
    *,
    initial_weights: IsFinite[Real[npt.ArrayLike, " p"]] | None = None,
    learning_rate: PositiveFloat = 1.0,
    relative_tolerance: PositiveFloat | None = None,
) -> TrainingFlow:
    """Gradient flow of a linear model on n training samples, in the modes of the training kernel K/n, K = H Hᵀ.

    With H = A diag(s) Uᵀ, ρ_k = s_k²/n and the initial residual r₀ = y − H w₀, the residual and the weights are

        r(t) = r₀ − Σ_k a_k (a_k·r₀)(1 − exp(−η ρ_k t)),
        w(t) = w₀ + Σ_k u_k (a_k·r₀)(1 − exp(−η ρ_k t))/s_k.

    The weights change only within the span of the data, so from w₀ = 0 the flow converges to the minimum-norm solution.
    For a kernel without explicit features, use any factor H of the kernel matrix K = H Hᵀ.

    Args:
        times: Gradient-flow times t ≥ 0 of the loss 1/(2n) Σ_j (f(x_j) − y_j)², shape (times,).
        features: Feature matrix H, shape (n, p).
        targets: y, shape (n,).
        initial_weights: w₀, shape (p,); zero if not given.
        learning_rate: η > 0.
        relative_tolerance: As for `eigenspectrum`; modes below it are never learned.

    Returns:
        A `TrainingFlow`.

    Raises:
        InputError: If a value is not finite or out of range, or the shapes do not match.

    References:
        Nam, DPhil thesis (2024), equation 1.26 and appendix A.2, with samples instead of the population.

    Example:
        >>> flow = training_flow(np.array([0.0, 1.0, 1e3]), np.diag([1.0, 2.0]), np.array([1.0, 2.0]))
        >>> flow.weights.round(4).tolist()
        [[0.0, 0.0], [0.3935, 0.8647], [1.0, 1.0]]
    """
    rows, y = np.asarray(features), np.asarray(targets)
    require_shape("targets", y, (len(rows),))
    start = np.zeros(rows.shape[1]) if initial_weights is None else np.asarray(initial_weights)
    require_shape("initial_weights", start, (rows.shape[1],))
    modes, sizes, directions = _decompose(rows, relative_tolerance)
    intensity = sizes**2 / len(rows)
    residual = y - rows @ start
    missing = modes.T @ residual
    decay = -learning_rate * np.multiply.outer(times, intensity)
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


def _decompose(rows: np.ndarray, relative_tolerance: float | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return A (n, r), s (r,) and U (p, r) of H = A diag(s) Uᵀ, without null directions."""
    unit = np.max(np.abs(rows), initial=0.0)
    require(
        unit > 0,
        "features are all zero",
        argument="features",
        value=rows.shape,
        remedy="give a feature matrix with at least one nonzero entry",
    )
    if relative_tolerance is None:
        relative_tolerance = _NEGLIGIBLE * max(rows.shape)
    # Without this scaling, squares of extreme features would overflow or underflow inside the decomposition.
    left, sizes, right = np.linalg.svd(rows / unit, full_matrices=False)
    kept = sizes > relative_tolerance * sizes[0]
    left, sizes, directions = left[:, kept], sizes[kept] * unit, right[kept].T
    largest = np.argmax(np.abs(directions), axis=0)
    signs = np.sign(directions[largest, np.arange(len(sizes))])
    return left * signs, sizes, directions * signs

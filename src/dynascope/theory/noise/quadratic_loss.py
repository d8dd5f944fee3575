"""Quadratic loss with batch noise, and SGD steps on this loss."""

from __future__ import annotations

import dataclasses
import functools
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from dynascope.results.named_tuples import short_repr
from dynascope.theory.domain import covers
from dynascope.theory.sgd import SGD
from dynascope.validation import require, require_array
from dynascope.validation.bounded import FiniteNumbers, NonNegativeFloat

__all__ = ["NoisySteps", "QuadraticLoss", "checked_regression", "covers_modes", "noisy_steps", "quadratic_loss"]


covers_modes = functools.partial(
    covers,
    network="any, near a minimum, along the eigenvectors of the Hessian",
    data="any, with additive batch noise that commutes with the Hessian",
    start="any",
    reference="arXiv:2107.09133",
)


class QuadraticLoss(NamedTuple):
    """The loss ½ (θ − θ*)ᵀ H (θ − θ*) + constant of a linear regression, with its gradient noise.

    Attributes:
        curvature: Eigenvalues ρ of H, in decreasing order, shape (d,).
        directions: Eigenvectors q as columns, shape (d, d).
        minimum: θ*, the least-norm minimum, shape (d,).
        centre: μ = (H + λ)⁻¹ H θ*, the minimum of the loss with weight decay, shape (d,).
        noise: Σ, the covariance of the per-sample gradients at μ, shape (d, d).
        mode_noise: s = qᵀ Σ q for each eigenvector q, shape (d,).
        residual: Mean squared residual at μ; equal to σ² if s = σ² ρ.
    """

    curvature: Float[np.ndarray, " d"]
    directions: Float[np.ndarray, "d d"]
    minimum: Float[np.ndarray, " d"]
    centre: Float[np.ndarray, " d"]
    noise: Float[np.ndarray, "d d"]
    mode_noise: Float[np.ndarray, " d"]
    residual: float

    __repr__ = short_repr


@covers(
    network="linear regression, one output",
    data="any",
    start="any",
    gives="curvatures, minimum and gradient noise of a quadratic loss",
    reference="arXiv:2107.09133",
)
def quadratic_loss(
    inputs: FiniteNumbers, targets: FiniteNumbers, *, weight_decay: NonNegativeFloat = 0.0
) -> QuadraticLoss:
    """Curvatures, minimum and gradient noise of a linear regression.

        H = XᵀX/N,   θ* = H⁻¹ Xᵀy/N,   Σ = E[g gᵀ] − E[g] E[g]ᵀ   of the per-sample gradients g = x (xᵀμ − y)

    The loss is L = ½ E(xᵀθ − y)², the mean over samples; weight decay adds ½ λ‖θ‖². At μ, the gradient of a batch of S
    samples drawn with replacement is ∇L plus noise of covariance Σ/S.

    Args:
        inputs: X, shape (N, d).
        targets: y, shape (N,) or (N, 1).
        weight_decay: λ ≥ 0.

    Raises:
        InputError: If the shapes do not match, an array is not finite, or the weight decay is negative.

    References:
        Kunin, Sagastuy-Breña, Gillespie, Margalit, Tanaka, Ganguli, Yamins, arXiv:2107.09133.

    Example:
        >>> loss = quadratic_loss([[2.0, 0.0], [0.0, 1.0]], [2.0, 3.0])
        >>> print(loss.curvature, loss.minimum, loss.residual)
        [2.  0.5] [1. 3.] 0.0
    """
    x, y = checked_regression(inputs, targets)
    curvature, directions = np.linalg.eigh(x.T @ x / len(x))
    curvature, directions = np.maximum(curvature[::-1], 0.0), directions[:, ::-1]
    # Eigenvalues that are zero up to rounding; the minimum of least norm is zero along them.
    flat = curvature <= len(x) * np.finfo(float).eps * curvature.max(initial=0.0)
    curvature = np.where(flat, 0.0, curvature)
    projection = directions.T @ (x.T @ y / len(x))
    minimum = directions @ (np.where(flat, 0.0, projection) / np.where(flat, 1.0, curvature))
    steep = np.where(flat, 1.0, curvature + weight_decay)
    centre = directions @ (np.where(flat, 0.0, projection) / steep)
    residuals = x @ centre - y
    gradients = x * residuals[:, None]
    centred = gradients - gradients.mean(axis=0)
    noise = centred.T @ centred / len(x)
    along = np.mean((centred @ directions) ** 2, axis=0)
    return QuadraticLoss(curvature, directions, minimum, centre, noise, along, float(np.mean(residuals**2)))


@dataclasses.dataclass(frozen=True)
class NoisySteps:
    """SGD steps v ← β v − (∇L + λθ + noise), θ ← θ + η v along modes.

    Attributes:
        curvature: h = ρ + λ of each mode.
        noise: Variance s/S of the noise of one step along each mode.
        rate: η.
        momentum: β.
    """

    curvature: np.ndarray
    noise: np.ndarray
    rate: float
    momentum: float

    @property
    def damping(self) -> float:
        """Damping γ = (1 − β)/(η(1 + β)) of the oscillator that the steps approximate."""
        return (1 - self.momentum) / (self.rate * (1 + self.momentum))

    @property
    def squared_frequency(self) -> np.ndarray:
        """Squared frequency ω² = 2h/(η(1 + β)) of the oscillator; negative for negative curvature."""
        return np.asarray(2 * self.curvature / (self.rate * (1 + self.momentum)))

    @property
    def velocity_variance(self) -> np.ndarray:
        """Stationary velocity variance s/(S(1 − β²)) in continuous time."""
        return np.asarray(self.noise / (1 - self.momentum**2))

    @property
    def step_variance(self) -> np.ndarray:
        """Stationary velocity variance 2s/(S(1 − β)(2(1 + β) − ηh)) of the discrete steps."""
        return np.asarray(2 * self.noise / (1 - self.momentum) / (self.edge - self.rate * self.curvature))

    @property
    def edge(self) -> float:
        """Stability limit 2(1 + β) of ηh."""
        return 2 * (1 + self.momentum)

    def require_stable(self) -> None:
        """Raise `InputError` if the steps diverge along a mode."""
        steepest = float(self.rate * self.curvature.max(initial=0.0))
        require(
            steepest < self.edge,
            f"learning_rate times the largest curvature is {steepest:.6g}, so the steps diverge",
            argument="learning_rate",
            value=self.rate,
            remedy=f"choose a rate below 2(1 + β)/h = {self.edge / max(self.curvature.max(initial=0.0), 1e-300):.6g}",
        )

    def require_stationary(self) -> None:
        """Raise `InputError` if the steps have no stationary law along a mode."""
        self.require_stable()
        flattest = float(self.curvature.min(initial=np.inf))
        require(
            flattest > 0,
            f"curvature plus weight decay is {flattest:g} along a mode, so the weights have no stationary distribution",
            argument="curvature",
            value=flattest,
            remedy="use the moments at a finite time, or the displacement, which grows diffusively",
        )


def noisy_steps(curvature: ArrayLike, noise: ArrayLike, sgd: SGD) -> NoisySteps:
    """Return the SGD steps along modes of curvature ρ and noise s, each a number or an array of shape (modes,)."""
    rho, spread = np.asarray(curvature), np.asarray(noise)
    require(
        rho.ndim <= 1,
        f"curvature has shape {rho.shape}",
        argument="curvature",
        value=rho.shape,
        remedy="give one number or a one-dimensional array",
    )
    require(
        spread.ndim == 0 or spread.shape == rho.shape,
        f"noise has shape {spread.shape}, but curvature has shape {rho.shape}",
        argument="noise",
        value=spread.shape,
        remedy="give one number, or one per mode",
    )
    steep, drawn = np.asarray(rho + sgd.weight_decay), np.broadcast_to(spread * sgd.noise_share, rho.shape)
    return NoisySteps(steep, drawn, float(sgd.learning_rate), float(sgd.momentum))


def checked_regression(inputs: ArrayLike, targets: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Check the data of a regression with one output, and return X, shape (N, d), and y, shape (N,)."""
    x = require_array("inputs", inputs, (None, None))
    require(x.size > 0, "inputs is empty", argument="inputs", value=x.shape, remedy="give at least one sample")
    y = require_array("targets", targets, (len(x),), (len(x), 1))
    return x, y.reshape(len(x))

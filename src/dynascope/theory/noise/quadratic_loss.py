"""A quadratic loss with the noise of its batches, and SGD on it: what every law of this room starts from."""

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
    network="any near a minimum, in its Hessian's eigenvectors",
    data="any, in batches of additive noise that commutes with the Hessian",
    start="any",
    reference="arXiv:2107.09133",
)


class QuadraticLoss(NamedTuple):
    """The loss ½ (θ − θ*)ᵀ H (θ − θ*) + constant of a linear regression, along the eigenvectors of H.

    Attributes:
        curvature: Eigenvalues ρ of H, the largest first, shape (d,).
        directions: Their eigenvectors q as columns, shape (d, d).
        minimum: θ*, of least norm where there are many, shape (d,).
        centre: μ = (H + λ)⁻¹ H θ*, where descent with weight decay rests, shape (d,).
        noise: Σ, the covariance over samples of their gradients at μ, shape (d, d).
        mode_noise: s = qᵀ Σ q of each eigenvector, shape (d,).
        residual: Mean of the squared residuals at μ, which is σ² where s = σ² ρ.
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
    gives="curvatures, minimum and noise of gradients of a quadratic loss",
    reference="arXiv:2107.09133",
)
def quadratic_loss(
    inputs: FiniteNumbers, targets: FiniteNumbers, *, weight_decay: NonNegativeFloat = 0.0
) -> QuadraticLoss:
    """H = XᵀX/N, θ* = H⁻¹ Xᵀy/N, and Σ = E[g gᵀ] − E[g] E[g]ᵀ of the gradients g = x (xᵀμ − y) of single samples.

    The loss is L = ½ E(xᵀθ − y)², the mean over samples, to which weight decay adds ½ λ‖θ‖². A batch of S samples drawn
    with replacement has the gradient ∇L at μ up to noise of covariance Σ/S.

    Args:
        inputs: X, shape (N, d).
        targets: y, shape (N,) or (N, 1).
        weight_decay: λ ≥ 0.

    Raises:
        InputError: Arrays that do not fit each other or are not finite, or a negative weight decay.

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
    # What is zero but for rounding has no minimum of its own.
    flat = curvature <= len(x) * np.finfo(float).eps * curvature.max(initial=0.0)
    curvature = np.where(flat, 0.0, curvature)
    pull = directions.T @ (x.T @ y / len(x))
    minimum = directions @ (np.where(flat, 0.0, pull) / np.where(flat, 1.0, curvature))
    steep = np.where(flat, 1.0, curvature + weight_decay)
    centre = directions @ (np.where(flat, 0.0, pull) / steep)
    residuals = x @ centre - y
    gradients = x * residuals[:, None]
    away = gradients - gradients.mean(axis=0)
    noise = away.T @ away / len(x)
    along = np.mean((away @ directions) ** 2, axis=0)
    return QuadraticLoss(curvature, directions, minimum, centre, noise, along, float(np.mean(residuals**2)))


@dataclasses.dataclass(frozen=True)
class NoisySteps:
    """Steps v ← β v − (∇L + λθ + noise), θ ← θ + η v along modes.

    Attributes:
        curvature: h = ρ + λ of each mode.
        noise: Variance of the noise of one step along each mode, s/S.
        rate: η.
        momentum: β.
    """

    curvature: np.ndarray
    noise: np.ndarray
    rate: float
    momentum: float

    @property
    def damping(self) -> float:
        """γ = (1 − β)/(η(1 + β)), for which position and velocity are those of a damped oscillator."""
        return (1 - self.momentum) / (self.rate * (1 + self.momentum))

    @property
    def squared_frequency(self) -> np.ndarray:
        """ω² = 2h/(η(1 + β)), negative where the loss curves downwards."""
        return np.asarray(2 * self.curvature / (self.rate * (1 + self.momentum)))

    @property
    def velocity_variance(self) -> np.ndarray:
        """s/(S(1 − β²)), that of the velocity in continuous time."""
        return np.asarray(self.noise / (1 - self.momentum**2))

    @property
    def step_variance(self) -> np.ndarray:
        """2s/(S(1 − β)(2(1 + β) − ηh)), that of the velocity of steps."""
        return np.asarray(2 * self.noise / (1 - self.momentum) / (self.edge - self.rate * self.curvature))

    @property
    def edge(self) -> float:
        """2(1 + β), the ηh from which steps diverge."""
        return 2 * (1 + self.momentum)

    def require_stable(self) -> None:
        """Raise `InputError` if steps along a mode diverge."""
        steepest = float(self.rate * self.curvature.max(initial=0.0))
        require(
            steepest < self.edge,
            f"learning_rate times the largest curvature is {steepest:.6g}, at which steps diverge",
            argument="learning_rate",
            value=self.rate,
            remedy=f"choose a rate below 2(1 + β)/h = {self.edge / max(self.curvature.max(initial=0.0), 1e-300):.6g}",
        )

    def require_stationary(self) -> None:
        """Raise `InputError` if steps along a mode have no stationary law."""
        self.require_stable()
        flattest = float(self.curvature.min(initial=np.inf))
        require(
            flattest > 0,
            f"curvature has {flattest:g} with weight decay, a mode along which weights never come to rest",
            argument="curvature",
            value=flattest,
            remedy="ask for moments at a time, which are known, or for displacements, which grow as diffusion does",
        )


def noisy_steps(curvature: ArrayLike, noise: ArrayLike, sgd: SGD) -> NoisySteps:
    """The steps of SGD along modes of curvature ρ and noise s, each one number or a row."""
    rho, spread = np.asarray(curvature), np.asarray(noise)
    require(
        rho.ndim <= 1,
        f"curvature has shape {rho.shape}",
        argument="curvature",
        value=rho.shape,
        remedy="give one number or a row",
    )
    require(
        spread.ndim == 0 or spread.shape == rho.shape,
        f"noise has shape {spread.shape}, and curvature {rho.shape}",
        argument="noise",
        value=spread.shape,
        remedy="give one number, or one for each mode",
    )
    steep, drawn = np.asarray(rho + sgd.weight_decay), np.broadcast_to(spread * sgd.noise_share, rho.shape)
    return NoisySteps(steep, drawn, float(sgd.learning_rate), float(sgd.momentum))


def checked_regression(inputs: ArrayLike, targets: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """X, shape (N, d), and y, shape (N,), of a regression with one output."""
    x = require_array("inputs", inputs, (None, None))
    require(x.size > 0, "inputs is empty", argument="inputs", value=x.shape, remedy="give at least one sample")
    y = require_array("targets", targets, (len(x),), (len(x), 1))
    return x, y.reshape(len(x))

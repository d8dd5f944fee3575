"""Stationary covariance of SGD when the gradient noise does not commute with the Hessian."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from dynascope.results.named_tuples import short_repr
from dynascope.theory.domain import covers
from dynascope.theory.noise.quadratic_loss import noisy_steps
from dynascope.theory.sgd import SGD
from dynascope.validation import require, require_array, require_covariance
from dynascope.validation.bounded import FiniteNumbers

__all__ = ["StationaryCovariance", "stationary_covariance", "symmetric_matrix"]

_ROUNDING = 1e-10  # relative asymmetry of a Hessian up to which it counts as symmetric
_Time = Literal["discrete", "continuous"]


class StationaryCovariance(NamedTuple):
    """Covariances of position a = θ − μ and velocity v in the coordinates of the weights, each of shape (d, d).

    Attributes:
        position: E a aᵀ.
        cross: E a vᵀ.
        velocity: E v vᵀ.
    """

    position: Float[np.ndarray, "d d"]
    cross: Float[np.ndarray, "d d"]
    velocity: Float[np.ndarray, "d d"]

    __repr__ = short_repr


@covers(
    network="any, near a minimum",
    data="any, with additive batch noise of any covariance",
    start="any",
    gives="stationary covariance of the weights and velocity under SGD",
    reference="arXiv:2107.09133",
)
def stationary_covariance(
    hessian: FiniteNumbers,
    noise: FiniteNumbers,
    sgd: SGD,
    *,
    time: _Time = "discrete",
) -> StationaryCovariance:
    """Stationary covariance of position and velocity under SGD for any covariance of the gradient noise.

        P = M P Mᵀ + N (Σ/S) Nᵀ   for discrete steps,   A P + P Aᵀ + D = 0   in continuous time

    The equations decouple into one system for each pair of eigenvectors i and j of H. With h = ρ + λ, the solution for
    discrete steps is

        E a_i a_j = Σ_ij/S / [(1 − β)(h_i + h_j)/η + (β (h_i − h_j)²)/(1 − β²) − (1 − β) h_i h_j/(1 + β)],
        E v_i v_j = (h_i + h_j)/(η(1 + β)) E a_i a_j,   E a_i v_j = (h_i − β h_j)/(1 − β²) E a_i a_j.

    In continuous time, (1 + β)(h_i − h_j)²/(4(1 − β)) replaces the last two terms in the bracket. The relation for E
    v_i v_j is unchanged, and E a_i v_j = (h_i − h_j)/(2(1 − β)) E a_i a_j.

    Args:
        hessian: H, symmetric, shape (d, d), with H + λ positive definite.
        noise: Σ, the covariance of the per-sample gradients, positive semi-definite, shape (d, d).
        sgd: η, β, λ, S and N, with ηh < 2(1 + β).
        time: "discrete" for steps, or "continuous".

    Raises:
        InputError: If a setting is out of range, the steps diverge, H + λ is not positive definite, or the matrices do
            not match.

    References:
        Kunin, Sagastuy-Breña, Gillespie, Margalit, Tanaka, Ganguli, Yamins, arXiv:2107.09133.

    Example:
        >>> found = stationary_covariance([[2.0, 0.0], [0.0, 1.0]], [[1.0, 0.5], [0.5, 1.0]], SGD(0.1))
        >>> print(found.position.round(6))
        [[0.027778 0.017857]
         [0.017857 0.052632]]
    """
    h = symmetric_matrix("hessian", hessian)
    spread = require_covariance("noise", noise)
    require(
        spread.shape == h.shape,
        f"noise has shape {spread.shape}, but hessian has shape {h.shape}",
        argument="noise",
        value=spread.shape,
        remedy="give the covariance of the gradients, with the same shape as hessian",
    )
    rho, modes = np.linalg.eigh(h)
    chosen = noisy_steps(rho, 0.0, sgd)
    chosen.require_stationary()
    one, other, beta = chosen.curvature[:, None], chosen.curvature[None, :], chosen.momentum
    with np.errstate(all="ignore"):
        plain = (1 - beta) * (one + other) / chosen.rate
        if time == "discrete":
            rest = beta * (one - other) ** 2 / (1 - beta**2) - (1 - beta) / (1 + beta) * one * other
            cross = (one - beta * other) / (1 - beta**2)
        else:
            rest = (1 + beta) * (one - other) ** 2 / (4 * (1 - beta))
            cross = (one - other) / (2 * (1 - beta))
        position = sgd.noise_share * (modes.T @ spread @ modes) / (plain + rest)
        velocity = (one + other) / (chosen.rate * (1 + beta)) * position
        return StationaryCovariance(*(modes @ part @ modes.T for part in (position, cross * position, velocity)))


def symmetric_matrix(name: str, values: ArrayLike) -> Float[np.ndarray, "d d"]:
    """Check that a matrix is symmetric, and convert it to float64."""
    matrix = require_array(name, values, (None, None))
    matrix = require_array(name, matrix, (len(matrix), len(matrix)))
    require(matrix.size > 0, f"{name} is empty", argument=name, value=matrix.shape, remedy="give a square matrix")
    asymmetry = float(np.abs(matrix - matrix.T).max())
    require(
        asymmetry <= _ROUNDING * float(np.abs(matrix).max()),
        f"{name} is not symmetric",
        argument=name,
        value=asymmetry,
        remedy="give a symmetric matrix",
    )
    return np.asarray((matrix + matrix.T) / 2)

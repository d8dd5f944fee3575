"""The stationary covariance of SGD where the noise of its batches does not commute with the Hessian."""

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

_ROUNDING = 1e-10  # relative asymmetry of a Hessian that counts as rounding
_Time = Literal["discrete", "continuous"]


class StationaryCovariance(NamedTuple):
    """Covariances of position a = θ − μ and velocity v in the coordinates of the weights, each (d, d).

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
    network="any near a minimum",
    data="any, in batches of additive noise of any covariance",
    start="any",
    gives="stationary covariance of weights and velocity of SGD",
    reference="arXiv:2107.09133",
)
def stationary_covariance(
    hessian: FiniteNumbers,
    noise: FiniteNumbers,
    sgd: SGD,
    *,
    time: _Time = "discrete",
) -> StationaryCovariance:
    """P = M P Mᵀ + N (Σ/S) Nᵀ of steps, or A P + P Aᵀ + D = 0 of continuous time, solved for each pair of modes.

    Between eigenvectors i and j of H, with h = ρ + λ, the equation of steps has the solution

        E a_i a_j = Σ_ij/S / [(1 − β)(h_i + h_j)/η + (β (h_i − h_j)²)/(1 − β²) − (1 − β) h_i h_j/(1 + β)],
        E v_i v_j = (h_i + h_j)/(η(1 + β)) E a_i a_j,   E a_i v_j = (h_i − β h_j)/(1 − β²) E a_i a_j,

    and that of continuous time (1 + β)(h_i − h_j)²/(4(1 − β)) in place of the last two terms of the bracket, with the
    same E v_i v_j and with E a_i v_j = (h_i − h_j)/(2(1 − β)) E a_i a_j.

    Args:
        hessian: H, symmetric, of shape (d, d), with H + λ positive definite.
        noise: Σ, the covariance over samples of their gradients, positive semi-definite, of shape (d, d).
        sgd: η, β, λ, S and N, with ηh < 2(1 + β).
        time: "discrete" for steps, or "continuous".

    Raises:
        InputError: A setting out of range, steps that diverge, a flat mode, or matrices that do not fit.

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
        f"noise has shape {spread.shape}, and hessian {h.shape}",
        argument="noise",
        value=spread.shape,
        remedy="give the covariance of gradients, of the shape of the Hessian",
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
    """The values as a symmetric float64 matrix."""
    matrix = require_array(name, values, (None, None))
    matrix = require_array(name, matrix, (len(matrix), len(matrix)))
    require(matrix.size > 0, f"{name} is empty", argument=name, value=matrix.shape, remedy="give a square matrix")
    apart = float(np.abs(matrix - matrix.T).max())
    require(
        apart <= _ROUNDING * float(np.abs(matrix).max()),
        f"{name} is not symmetric",
        argument=name,
        value=apart,
        remedy="give a symmetric matrix",
    )
    return np.asarray((matrix + matrix.T) / 2)

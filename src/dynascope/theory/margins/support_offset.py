"""How far the weights of a linear classifier stay from the max-margin direction, however long it is trained."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from dynascope.arguments import require, require_array
from dynascope.theory.domain import covers
from dynascope.theory.margins.max_margin import max_margin

__all__ = ["support_offset"]

_ACTIVE = 1e-9


@covers(
    network="linear",
    data="separable, with independent support vectors",
    start="any",
    gives="the distance from the direction that training ends in",
    reference="arXiv:1710.10345",
    exact=False,
)
def support_offset(data: ArrayLike) -> Float[np.ndarray, " inputs"]:
    """The r of w = ν ŵ + r + r_⊥ at log(1/L) = ν, L = Σ exp(−z_i · w): z_i · r = log(Σα/α_i) of each support vector.

    ŵ is the max-margin solution and α are its multipliers, to which the shares exp(−z_i · w)/L tend. What the other
    samples add to ν falls as exp(−(m − 1)ν) with m their margin under ŵ. So the direction is off by ‖r + r_⊥‖/(ν ‖ŵ‖),
    with r_⊥ orthogonal to all support vectors, which the start and the early flow decide; it is zero where these span
    the inputs.

    Args:
        data: z_i = y_i x_i, shape (samples, inputs).

    Returns:
        r, in the span of the support vectors.

    Raises:
        InputError: Data that are not separable, or whose support vectors are not independent.

    References:
        Soudry, Hoffer, Nacson, Gunasekar, Srebro, arXiv:1710.10345, section 4.

    Example:
        >>> print(support_offset([[1.0, 1.0], [1.0, -1.0]])[0].round(6))  # log 2 along the first input
        0.693147
    """
    z = require_array("data", data, (None, None))
    found = max_margin(z)
    alpha, touching = found.multipliers, int((z @ found.weights < 1 + _ACTIVE).sum())
    support = alpha > _ACTIVE * alpha.max()
    vectors = z[support]
    values = np.linalg.svd(vectors, compute_uv=False)
    require(
        touching == len(vectors) <= z.shape[1] and values[-1] > _ACTIVE * values[0],
        f"the {touching} samples at the margin are not independent, or some of them have no share in it",
        argument="data",
        value=touching,
        remedy="leave out samples that occur twice",
    )
    return np.linalg.lstsq(vectors, np.log(alpha.sum() / alpha[support]), rcond=None)[0]

"""How far the weights of a classifier stay from the max-margin direction, however long it is trained."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dynascope.theory.domain import covers
from dynascope.theory.margins.max_margin import Data, Factors, max_margin
from dynascope.validation import require

__all__ = ["support_offset"]

_ACTIVE = 1e-9


@covers(
    network="f = Σ β_j x_j where each β_j is one weight, or a product of several",
    data="separable, with independent support vectors",
    start="any",
    gives="the distance from the direction that training ends in",
    reference="arXiv:1710.10345",
    exact=False,
)
def support_offset(data: Data, factors: Factors = 1) -> Float[np.ndarray, " inputs"]:
    """The r of β = ν β̂ + r + r_⊥ at log(1/L) = ν, L = Σ exp(−z_i · β): z_i · r = log(Σα/α_i) of each support vector.

    β̂ is the max-margin solution and α are its multipliers, to which the shares exp(−z_i · β)/L tend. What the other
    samples add to ν falls as exp(−(m − 1)ν) with m their margin under β̂. So the direction is off by ‖r + r_⊥‖/(ν ‖β̂‖),
    with r_⊥ orthogonal to all support vectors; it is zero where these are as many as the inputs. Elsewhere the start
    and the early flow decide it where each β_j is one weight, and where products stand beside single weights it grows
    as log ν, as `support_drift` says. Of products alone support vectors must be as many as inputs.

    Args:
        data: z_i = y_i x_i, shape (samples, inputs), with z_i · β > 0 for some β.
        factors: Of each input, as `max_margin` takes them.

    Returns:
        r, shape (inputs,), in the span of the support vectors.

    Raises:
        InputError: Data that are not separable, whose support vectors are not independent, or of products alone fewer
            than the inputs; or a block that is discarded.

    References:
        Soudry, Hoffer, Nacson, Gunasekar, Srebro, arXiv:1710.10345, section 4, for linear classifiers.

    Example:
        >>> print(support_offset([[1.0, 1.0], [1.0, -1.0]])[0].round(6))  # log 2 along the first input
        0.693147
    """
    z = np.asarray(data)
    found = max_margin(z, factors)
    require(
        found.discarded.size == 0,
        "the block of the largest rate is discarded, which leaves shares of log(ν)/ν",
        argument="factors",
        value=found.discarded.tolist(),
        remedy="give data that need it",
    )
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
    require(
        len(vectors) == z.shape[1] or bool(np.min(factors) == 1),
        f"{len(vectors)} samples are at the margin of {z.shape[1]} inputs, all with products",
        argument="data",
        value=len(vectors),
        remedy="give data with as many support vectors as inputs",
    )
    return np.linalg.lstsq(vectors, np.log(alpha.sum() / alpha[support]), rcond=None)[0]

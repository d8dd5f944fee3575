"""How the weights of a classifier drift beside the max-margin direction, and how far from it they stay."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dynascope.theory.domain import covers
from dynascope.theory.margins.max_margin import Data, Factors, max_margin
from dynascope.validation import require

__all__ = ["support_drift", "support_offset"]

_ACTIVE = 1e-9


@covers(
    network="f = Σ β_j x_j where some β_j are one weight, and others products of several",
    data="separable",
    start="any",
    gives="how the distance from the direction that training ends in grows",
    reference="arXiv:2210.03820",
    exact=False,
)
def support_drift(data: Data, factors: Factors = 1) -> Float[np.ndarray, " inputs"]:
    """The C of β = ν β̂ + C log ν + O(1) at log(1/L) = ν, orthogonal to all support vectors.

    A product of two moves as β' = 2|β| g where a single weight moves as β' = g, with g the force Σ p z of the samples.
    For both to grow as ν β̂ the force on products is sign(β̂)/(2ν) of that on single weights, and not zero as in the
    limit. Where support vectors are fewer than inputs they cannot add up to that: single weights take a force c/ν
    besides, with (c, sign(β̂)/2) in the span of the support vectors and c the single part of C, which leaves margins as
    they are. With N a basis of what is orthogonal to the support vectors, and N_1, N_2 its rows of single weights and
    of products of two, C = −N (N_1ᵀN_1)⁻¹ N_2ᵀ sign(β̂)/2. Products of more factors take a force of ν^{−(2 − 2/k)}, of
    which the integral is finite. Derived here.

    Args:
        data: z_i = y_i x_i, shape (samples, inputs), with z_i · β > 0 for some β.
        factors: Of each input, as `max_margin` takes them, some of them one.

    Returns:
        C, shape (inputs,), in units of one over the data; zero where all are single weights, or support vectors are as
        many as inputs.

    Raises:
        InputError: Data that are not separable, a block that is discarded, weights that the problem leaves open or does
            not use, or products alone.

    References:
        Kunin, Yamamura, Ma, Ganguli, arXiv:2210.03820, for the limit.

    Example:
        >>> print(support_drift([[1.0, 0.0, 1.0], [1.0, 1.0, -1.0]], [1, 1, 2]).round(6))
        [ 0.1 -0.2 -0.1]
    """
    z = np.asarray(data)
    found = max_margin(z, factors)
    each = np.broadcast_to(np.asarray(factors), z.shape[1])
    single, double = each == 1, each == 2
    require(
        bool(single.any()) and found.discarded.size == 0,
        "products alone grow, of which this does not tell",
        argument="factors",
        value=each.tolist(),
        remedy="give single weights too, and data that need them",
    )
    vectors = z[z @ found.weights < 1 + _ACTIVE]
    _, values, right = np.linalg.svd(vectors)
    free = right[int((values > _ACTIVE * values[0]).sum()) :].T
    if free.shape[1] == 0:
        return np.zeros(z.shape[1])
    own = free[single]
    require(
        len(own) >= free.shape[1] and bool(np.linalg.svd(own, compute_uv=False)[-1] > _ACTIVE),
        "products are not all held by samples at the margin",
        argument="data",
        value=len(vectors),
        remedy="give data with a unique solution",
    )
    require(
        bool((np.abs(found.weights[double]) > _ACTIVE).all()),
        "a product is not used at the margin, and falls behind",
        argument="data",
        value=found.weights.tolist(),
        remedy="leave out inputs that are not used",
    )
    force = free[double].T @ np.sign(found.weights[double]) / 2
    return -free @ np.linalg.solve(own.T @ own, force)


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

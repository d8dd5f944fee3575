"""Deviation of the weights of a classifier from the max-margin direction: a logarithmic drift and a constant offset."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dynascope.theory.domain import covers
from dynascope.theory.margins.max_margin import Data, Factors, max_margin
from dynascope.validation import require

__all__ = ["support_drift", "support_offset"]

_ACTIVE = 1e-9


@covers(
    network="f = Σ β_j x_j, where some β_j are single weights and others products of weights",
    data="separable",
    start="any",
    gives="the logarithmic drift away from the limit direction of training",
    reference="arXiv:2210.03820",
    exact=False,
)
def support_drift(data: Data, factors: Factors = 1) -> Float[np.ndarray, " inputs"]:
    """Logarithmic drift C of the weights away from the max-margin direction, orthogonal to all support vectors.

        β = ν β̂ + C log ν + O(1) at log(1/L) = ν,   C = −N (N_1ᵀN_1)⁻¹ N_2ᵀ sign(β̂)/2

    N is a basis of the orthogonal complement of the support vectors, and N_1 and N_2 are its rows for single weights
    and for products of two weights. A single weight moves as β' = g, and a product of two as β' = 2|β| g, where g = Σ p
    z is the force of the samples z with shares p of the loss. For both to grow as ν β̂, the force on products must be
    sign(β̂)/(2ν) times the force on single weights, and thus vanishes only in the limit. If there are fewer support
    vectors than inputs, the support vectors alone cannot provide this force. Single weights then receive an additional
    force c/ν, where (c, sign(β̂)/2) is in the span of the support vectors and c is the part of C for single weights.
    The drift C leaves the margins unchanged. Products of more factors receive a force of ν^{−(2 − 2/k)}, whose integral
    is finite. The formula is derived here.

    Args:
        data: z_i = y_i x_i, shape (samples, inputs), with z_i · β > 0 for some β.
        factors: Number of factors of each input, as in `max_margin`; at least one input must have a single factor.

    Returns:
        C, shape (inputs,), in inverse units of the data; zero if all inputs have single weights, or there are as many
        support vectors as inputs.

    Raises:
        InputError: If the data are not separable, parameters are discarded, the solution is not unique or does not use
            all products, or there are no single weights.

    References:
        Kunin, Yamamura, Ma, Ganguli, arXiv:2210.03820, for the limit direction.

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
        "every growing coefficient is a product of weights, a case that the formula does not cover",
        argument="factors",
        value=each.tolist(),
        remedy="include inputs with one weight each that are needed to separate the data",
    )
    vectors = z[z @ found.weights < 1 + _ACTIVE]
    _, values, right = np.linalg.svd(vectors)
    free = right[int((values > _ACTIVE * values[0]).sum()) :].T
    if free.shape[1] == 0:
        return np.zeros(z.shape[1])
    single_rows = free[single]
    require(
        len(single_rows) >= free.shape[1] and bool(np.linalg.svd(single_rows, compute_uv=False)[-1] > _ACTIVE),
        "the samples at the margin do not determine all products",
        argument="data",
        value=len(vectors),
        remedy="give data with a unique solution",
    )
    require(
        bool((np.abs(found.weights[double]) > _ACTIVE).all()),
        "a product is zero in the max-margin solution",
        argument="data",
        value=found.weights.tolist(),
        remedy="omit inputs that the solution does not use",
    )
    force = free[double].T @ np.sign(found.weights[double]) / 2
    return -free @ np.linalg.solve(single_rows.T @ single_rows, force)


@covers(
    network="f = Σ β_j x_j, where each β_j is a single weight or a product of weights",
    data="separable, with independent support vectors",
    start="any",
    gives="the constant offset from the limit direction of training",
    reference="arXiv:1710.10345",
    exact=False,
)
def support_offset(data: Data, factors: Factors = 1) -> Float[np.ndarray, " inputs"]:
    """Constant offset r of the weights from the max-margin direction, in the span of the support vectors.

        β = ν β̂ + r + r_⊥ at log(1/L) = ν, L = Σ exp(−z_i · β),   z_i · r = log(Σα/α_i) for each support vector

    β̂ is the max-margin solution and α its multipliers, the limits of the shares exp(−z_i · β)/L. The contribution of
    the other samples to ν decreases as exp(−(m − 1)ν), where m is their margin under β̂. The relative deviation from
    the limit direction is therefore ‖r + r_⊥‖/(ν ‖β̂‖). The vector r_⊥ is orthogonal to all support vectors, and zero
    if there are as many support vectors as inputs. Otherwise it depends on the initial weights and the early flow if
    all inputs have single weights, and grows as log ν if there are also products (`support_drift`). If all inputs have
    products, there must be as many support vectors as inputs.

    Args:
        data: z_i = y_i x_i, shape (samples, inputs), with z_i · β > 0 for some β.
        factors: Number of factors of each input, as in `max_margin`.

    Returns:
        r, shape (inputs,).

    Raises:
        InputError: If the data are not separable, the support vectors are linearly dependent, parameters are discarded,
            or all inputs have products and there are fewer support vectors than inputs.

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
        "the parameters of the largest rate are discarded, but their share decreases only as log(ν)/ν",
        argument="factors",
        value=found.discarded.tolist(),
        remedy="give data that cannot be separated without these parameters",
    )
    alpha, touching = found.multipliers, int((z @ found.weights < 1 + _ACTIVE).sum())
    support = alpha > _ACTIVE * alpha.max()
    vectors = z[support]
    values = np.linalg.svd(vectors, compute_uv=False)
    require(
        touching == len(vectors) <= z.shape[1] and values[-1] > _ACTIVE * values[0],
        f"the samples at the margin ({touching}) are linearly dependent, or some have a multiplier of zero",
        argument="data",
        value=touching,
        remedy="remove duplicate samples",
    )
    require(
        len(vectors) == z.shape[1] or bool(np.min(factors) == 1),
        f"data has {len(vectors)} support vectors for {z.shape[1]} inputs, but no factor is one",
        argument="data",
        value=len(vectors),
        remedy="give data with one support vector per input",
    )
    return np.linalg.lstsq(vectors, np.log(alpha.sum() / alpha[support]), rcond=None)[0]

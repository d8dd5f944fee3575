"""Symmetry breaking in attention by query and value biases that are not learned."""

from __future__ import annotations

import functools
from typing import Annotated, NamedTuple

import numpy as np
from annotated_types import Ge
from jaxtyping import Float

from dynascope.results.named_tuples import short_repr
from dynascope.theory.domain import covers
from dynascope.validation import require, require_array
from dynascope.validation.bounded import FiniteNumbers, PositiveInt

__all__ = [
    "BiasedCharge",
    "GeneratorCount",
    "attention_defect",
    "attention_generators",
    "biased_attention_defect",
    "biased_charge_parts",
    "biased_charge_rate",
]

_covers = functools.partial(covers, network="attention", data="any", start="any", reference="arXiv:2601.22257")
_SPANNED = 1e-12  # a singular value below this, relative to the largest, is a rounding error


class GeneratorCount(NamedTuple):
    """Dimensions of the symmetry group of a pair of attention matrices.

    Attributes:
        total: Number of independent generators A of the group.
        symmetric: Number of generators A = Aᵀ; gradient flow conserves one charge for each.
        skew: Number of generators A = −Aᵀ, which are rotations and conserve nothing under gradient flow.
    """

    total: int
    symmetric: int
    skew: int


class BiasedCharge(NamedTuple):
    """Parts of a symmetric matrix C relative to the projector P onto the span of the biases, each (d_k, d_k).

    Attributes:
        inside: P C P.
        mixed: P C (1 − P) + (1 − P) C P.
        outside: (1 − P) C (1 − P), which gradient flow conserves if C is the charge of a pair of attention matrices.
    """

    inside: Float[np.ndarray, "width width"]
    mixed: Float[np.ndarray, "width width"]
    outside: Float[np.ndarray, "width width"]

    __repr__ = short_repr


@_covers(gives="the derivative of the loss along mixing of attention coordinates, from gradients")
def attention_defect(
    first: FiniteNumbers, second: FiniteNumbers, first_gradient: FiniteNumbers, second_gradient: FiniteNumbers
) -> Float[np.ndarray, "width width"]:
    """Derivative of the loss along the mixing of the coordinates of queries and keys, or of values.

        E = ∂L/∂W_Q W_Qᵀ − W_K (∂L/∂W_K)ᵀ,   F = ∂L/∂W_V W_Vᵀ − W_Oᵀ ∂L/∂W_O

    Without biases, the loss depends on W_Q and W_K only through W_QᵀW_K, so E = 0. Likewise, F = 0 because the loss
    depends on W_V and W_O only through W_O W_V. Under gradient flow, dC/dt = −(E + Eᵀ) for the charge
    C = W_Q W_Qᵀ − W_K W_Kᵀ.

    For a learned bias, append the bias to W_Q as a column, and zeros to W_K, also in the gradients. If a constant bias
    is added to the learned one, append the sum of both biases. The gradients of the sum and of the learned bias are the
    same, so E = 0: the map b → G⁻ᵀ(b + b_Q) − b_Q of the learned bias b compensates for the constant b_Q, and gradient
    flow conserves W_Q W_Qᵀ + (b + b_Q)(b + b_Q)ᵀ − W_K W_Kᵀ. If b_Q is drawn again for every batch, no map of b
    compensates for all draws, and the average loss loses the symmetry.

    Args:
        first: W_Q or W_V, shape (d_k, n).
        second: W_K or W_Oᵀ, shape (d_k, m).
        first_gradient: Gradient with respect to `first`, in the same shape.
        second_gradient: Gradient with respect to `second`, in the same shape.

    Returns:
        E or F, shape (d_k, d_k).

    Raises:
        InputError: If the shapes do not match, or a value is not finite.

    References:
        Symmetry Breaking in Transformers, arXiv:2601.22257; the formula is derived here.

    Example:
        >>> import numpy as np
        >>> query, key, slope = np.array([[1.0], [2.0]]), np.array([[3.0], [1.0]]), 0.5
        >>> attention_defect(query, key, slope * key, slope * query).tolist()  # L = ½ W_QᵀW_K
        [[0.0, 0.0], [0.0, 0.0]]
    """
    one = require_array("first", first, (None, None))
    other = require_array("second", second, (len(one), None))
    slope = require_array("first_gradient", first_gradient, one.shape)
    other_slope = require_array("second_gradient", second_gradient, other.shape)
    with np.errstate(all="ignore"):
        return slope @ one.T - other @ other_slope.T


@_covers(gives="the symmetry defect of attention with a fixed bias")
def biased_attention_defect(bias: FiniteNumbers, bias_gradient: FiniteNumbers) -> Float[np.ndarray, "width width"]:
    """Symmetry defect due to a fixed bias of queries or values, a matrix of rank one.

        E = −(W_K p) b_Qᵀ,   p = ∂L/∂(W_Kᵀ b_Q);   F = −(W_Oᵀ p_V) b_Vᵀ,   p_V = ∂L/∂(W_O b_V)

    The loss depends on b_Q only through W_Kᵀ b_Q, so W_K p = ∂L/∂b_Q. The same holds for W_Oᵀ p_V = ∂L/∂b_V.

    Args:
        bias: b_Q or b_V, shape (d_k,).
        bias_gradient: ∂L/∂b_Q or ∂L/∂b_V, shape (d_k,), although the bias is not trained.

    Returns:
        E or F, as in `attention_defect`, shape (d_k, d_k).

    Raises:
        InputError: If the shapes do not match, or a value is not finite.

    References:
        Symmetry Breaking in Transformers, arXiv:2601.22257; the formula is derived here.

    Example:
        >>> biased_attention_defect([1.0, 0.0], [0.25, 0.5]).tolist()
        [[-0.25, 0.0], [-0.5, 0.0]]
    """
    offset, slope = _bias_and_gradient(bias, bias_gradient)
    with np.errstate(all="ignore"):
        return 0.0 - np.outer(slope, offset)


@_covers(gives="the rate of change of the attention charge with a fixed bias under gradient flow")
def biased_charge_rate(bias: FiniteNumbers, bias_gradient: FiniteNumbers) -> Float[np.ndarray, "width width"]:
    """Rate of change of the charge of attention with a fixed bias under gradient flow.

        dC/dt = −(E + Eᵀ) = ∂L/∂b bᵀ + b (∂L/∂b)ᵀ,   C = W_Q W_Qᵀ − W_K W_Kᵀ   or   W_V W_Vᵀ − W_OᵀW_O

    The rate is zero on the complement of b. The parts inside and outside the span of b follow from
    `biased_charge_parts`. With several heads, b is the bias of one head.

    Args:
        bias: b_Q or b_V, shape (d_k,).
        bias_gradient: ∂L/∂b_Q or ∂L/∂b_V, shape (d_k,), although the bias is not trained.

    Returns:
        dC/dt, shape (d_k, d_k), in units of the squared weights per unit time.

    Raises:
        InputError: If the shapes do not match, or a value is not finite.

    References:
        Symmetry Breaking in Transformers, arXiv:2601.22257; the formula is derived here.

    Example:
        >>> biased_charge_rate([1.0, 0.0], [0.25, 0.5]).tolist()
        [[0.5, 0.5], [0.5, 0.0]]
    """
    offset, slope = _bias_and_gradient(bias, bias_gradient)
    with np.errstate(all="ignore"):
        outer = np.outer(slope, offset)
        return outer + outer.T


@_covers(gives="the parts of an attention charge inside and outside the span of the biases")
def biased_charge_parts(charge: FiniteNumbers, biases: FiniteNumbers) -> BiasedCharge:
    """Split a charge of attention, its drift or its rate, by the span of the biases.

        C = P C P + [P C (1 − P) + (1 − P) C P] + (1 − P) C (1 − P)

    P projects onto the span of the biases. Gradient flow changes the first two parts, and conserves the last one.

    Args:
        charge: C, shape (d_k, d_k), symmetric.
        biases: One bias, shape (d_k,), or all biases that occurred in a run, shape (draws, d_k). If constant biases are
            added to a learned one, give only their differences from the first constant bias.

    Returns:
        The three parts, which add up to C.

    Raises:
        InputError: If the shapes do not match, a value is not finite, or C is not symmetric.

    References:
        Symmetry Breaking in Transformers, arXiv:2601.22257; the formula is derived here.

    Example:
        >>> parts = biased_charge_parts([[3.0, 1.0], [1.0, 2.0]], [0.5, 0.0])
        >>> parts.inside.tolist(), parts.mixed.tolist(), parts.outside.tolist()
        ([[3.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]], [[0.0, 0.0], [0.0, 2.0]])
    """
    offsets = np.atleast_2d(require_array("biases", biases, (None,), (None, None)))
    width = offsets.shape[1]
    matrix = require_array("charge", charge, (width, width))
    with np.errstate(all="ignore"):
        asymmetry, size = float(np.abs(matrix - matrix.T).max(initial=0)), float(np.abs(matrix).max(initial=0))
        require(
            asymmetry <= 1e-8 * size,
            f"charge differs from its transpose by {asymmetry:.3g}",
            argument="charge",
            value=asymmetry,
            remedy="give a symmetric matrix, such as W_Q W_Qᵀ − W_K W_Kᵀ",
        )
        # Each bias is scaled to unit size, so that extreme values neither overflow nor vanish.
        sizes = np.abs(offsets).max(1, keepdims=True, initial=0)
        _, values, rows = np.linalg.svd(offsets / np.where(sizes > 0, sizes, 1), full_matrices=False)
        basis = rows[values > _SPANNED * max(values.max(initial=0), np.finfo(float).tiny)]
        projector = basis.T @ basis
        left = projector @ matrix
        inside = left @ projector
        mixed = left + left.T - 2 * inside
        return BiasedCharge(inside, mixed, matrix - inside - mixed)


@_covers(gives="the number of symmetry generators of attention with biases that are not learned")
def attention_generators(
    head_width: PositiveInt, draws: Annotated[int, Ge(0)] = 0, *, learned: bool = False
) -> GeneratorCount:
    """Number of generators of the symmetry group of queries and keys, or of values and outputs.

        {A: Aᵀ b = 0 for each bias b}:   d (d − r),   (d − r)(d − r + 1)/2 symmetric,   (d − r)(d − r − 1)/2 skew

    Here, d is the width of the head. The group acts as W_Q → exp(−A)ᵀ W_Q, W_K → exp(A) W_K, and similarly for values
    and outputs. The number r of constraints is the dimension of the span of the biases, min(d, draws). A learned bias
    moves along with the queries and compensates for one constant bias; only differences between constant biases break
    the symmetry, so r = min(d, draws − 1). With a learned bias, the generators are affine, and "symmetric" and "skew"
    refer to A.

    Args:
        head_width: d, the number of coordinates of queries, or of values, in a head.
        draws: Number of different biases in a run, assumed to be linearly independent up to d biases: 0 without a bias,
            1 for a fixed bias, and the number of batches for a bias that is drawn again for every batch.
        learned: Whether a learned bias is added to the constant ones.

    Returns:
        The dimensions of the group.

    Raises:
        InputError: If a number is not an integer in its range.

    References:
        Symmetry Breaking in Transformers, arXiv:2601.22257; the formula is derived here.

    Example:
        >>> attention_generators(2, 1), attention_generators(2, 1, learned=True).total, attention_generators(2, 100)
        (GeneratorCount(total=2, symmetric=1, skew=0), 4, GeneratorCount(total=0, symmetric=0, skew=0))
    """
    free = head_width - min(head_width, max(draws - bool(learned), 0))
    return GeneratorCount(head_width * free, free * (free + 1) // 2, free * (free - 1) // 2)


def _bias_and_gradient(bias: FiniteNumbers, bias_gradient: FiniteNumbers) -> tuple[np.ndarray, np.ndarray]:
    offset = require_array("bias", bias, (None,))
    return offset, require_array("bias_gradient", bias_gradient, offset.shape)

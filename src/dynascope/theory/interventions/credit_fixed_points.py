"""Fixed points of learning rules for feedback weights, and the rates at which the feedback weights approach them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from dynascope.results.named_tuples import short_repr
from dynascope.theory.interventions.credit_primitives import AlignmentCoefficients, credit_theory
from dynascope.validation import require, require_array, require_covariance
from dynascope.validation.bounded import FiniteNumbers, NonNegativeFloat, NonNegativeInt, PositiveFloat

__all__ = ["AlignmentFixedPoint", "alignment_fixed_point", "kolen_pollack_gap"]

_SINGULAR = 1e-13  # rate relative to the largest rate below which feedback weights do not converge


class AlignmentFixedPoint(NamedTuple):
    """The fixed point of feedback weights for fixed forward weights and inputs.

    Attributes:
        backward: B*, shape (inputs, outputs); for backpropagation, B* would equal W.
        rates: Rates of the independent modes of B − B*, shape (inputs, outputs). Gradient descent with rate η
            multiplies each mode by 1 − η · rate, and converges if η < 2/max(rates).
    """

    backward: Float[np.ndarray, "inputs outputs"]
    rates: Float[np.ndarray, "inputs outputs"]

    __repr__ = short_repr


@credit_theory(
    network="one layer with fixed weights and learned feedback weights", start="any", gives="limit of feedback weights"
)
def alignment_fixed_point(
    coefficients: AlignmentCoefficients, weights: FiniteNumbers, input_moment: FiniteNumbers
) -> AlignmentFixedPoint:
    """Fixed point of feedback weights that minimise a sum of primitives, for fixed forward weights W.

    The primitives are defined in `alignment_primitive`. With C = ⟨xᵀ x⟩ and S = Wᵀ C W, the fixed point solves a
    Sylvester equation:

        (decay + sparse C) B + null B S = (amplification C + self_alignment) W

    In the eigenbases of C and S, with eigenvalues c_i and s_j, the modes have the rates decay + sparse c_i + null s_j.
    Special cases are

        weight mirror (amplification α, decay β)                   B* = (α/β) C W
        information alignment (amplification α, decay β, null γ)   B* = α C W (β + γ Wᵀ C W)⁻¹
        activation alignment (amplification α, sparse β)           B* = (α/β) W for every invertible C
        symmetric alignment (self_alignment α, decay β)            B* = (α/β) W

    Args:
        coefficients: Coefficients of the primitives; at least one of decay, sparse and null must be positive.
        weights: W, shape (inputs, outputs).
        input_moment: Second moment C of the inputs, symmetric and positive semi-definite, shape (inputs, inputs), or
            the variances of independent inputs, shape (inputs,).

    Raises:
        InputError: If the shapes do not match, or if a rate is zero and the fixed point is therefore not unique.

    References:
        Kunin, Nayebi, Sagastuy-Brena, Ganguli, Bloom, Yamins, arXiv:2003.01513.

    Example:
        >>> mirror = AlignmentCoefficients(amplification=1.0, decay=0.5)
        >>> alignment_fixed_point(mirror, [[1.0], [1.0]], [2.0, 1.0]).backward.tolist()
        [[4.0], [2.0]]
    """
    w = require_array("weights", weights, (None, None))
    moment = require_covariance("input_moment", input_moment)
    require(
        len(moment) == len(w),
        f"input_moment has shape {moment.shape}, but weights has shape {w.shape}",
        argument="input_moment",
        value=moment.shape,
        remedy="give the second moment of the inputs of the layer",
    )
    with np.errstate(all="ignore"):
        powers, left = np.linalg.eigh(moment)
        responses, right = np.linalg.eigh(w.T @ moment @ w)
        rates = np.add.outer(
            coefficients.decay + coefficients.sparse * np.maximum(powers, 0.0),
            coefficients.null * np.maximum(responses, 0.0),
        )
        require(
            bool(rates.min(initial=np.inf) > _SINGULAR * rates.max(initial=0.0)),
            f"with these coefficients, a mode of the feedback weights has rate {rates.min(initial=np.inf):.3g}",
            argument="coefficients",
            value=coefficients,
            remedy="choose a positive decay, so that the fixed point is unique",
        )
        driven = coefficients.amplification * moment @ w + coefficients.self_alignment * w
        return AlignmentFixedPoint(left @ ((left.T @ driven @ right) / rates) @ right.T, rates)


@credit_theory(network="any, trained by plain SGD", start="any", gives="distance of feedback weights from weights")
def kolen_pollack_gap(
    gap: FiniteNumbers,
    steps: NonNegativeInt,
    *,
    learning_rate: PositiveFloat,
    weight_decay: NonNegativeFloat,
) -> np.ndarray:
    """Difference between forward weights and feedback weights under the Kolen–Pollack rule.

        W_t − B_t = (1 − ηλ)ᵗ (W_0 − B_0)

    In each step of plain SGD, forward weights and feedback weights receive the same gradient and the same weight decay,
    so their difference decays independently of the data. With a positive decay and ηλ < 2, B converges to W.

    Args:
        gap: W_0 − B_0, any shape.
        steps: t ≥ 0.
        learning_rate: η.
        weight_decay: λ ≥ 0.

    Raises:
        InputError: If a setting is out of range, or the difference overflows because ηλ > 2.

    References:
        Kolen, Pollack, Backpropagation without weight transport (1994); Akrout et al., arXiv:1904.05391.

    Example:
        >>> float(kolen_pollack_gap(2.0, 2, learning_rate=0.5, weight_decay=1.0))
        0.5
    """
    with np.errstate(all="ignore"):
        return np.asarray((1 - learning_rate * weight_decay) ** steps * np.asarray(gap, float))

"""The five primitives that make up local learning rules for feedback weights, with their gradients."""

from __future__ import annotations

import dataclasses
import functools
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float

from dynascope.results.named_tuples import short_repr
from dynascope.theory.domain import covers
from dynascope.validation import checked, require_array
from dynascope.validation.bounded import FiniteNumbers, NonNegativeFloat

__all__ = ["AlignmentCoefficients", "AlignmentPrimitive", "PrimitiveName", "alignment_primitive", "credit_theory"]

PrimitiveName: TypeAlias = Literal["decay", "amplification", "null", "sparse", "self_alignment"]
credit_theory = functools.partial(covers, data="any", reference="arXiv:2003.01513")


@checked
@dataclasses.dataclass(frozen=True)
class AlignmentCoefficients:
    """Coefficients c_P of the primitives P in the regulariser R = Σ c_P P of the feedback weights of a layer.

    The primitives are defined in `alignment_primitive`. Decay, amplification and null are local; sparse and
    self_alignment require that the forward and backward synapses of a layer exchange information.

    Attributes:
        decay: β ≥ 0, coefficient of ½ ‖B‖².
        amplification: α ≥ 0, coefficient of −⟨z · x B⟩.
        null: γ ≥ 0, coefficient of ½ ⟨‖z Bᵀ‖²⟩.
        sparse: Coefficient ≥ 0 of ½ ⟨‖x B‖²⟩.
        self_alignment: Coefficient ≥ 0 of −tr(Bᵀ W).

    Raises:
        InputError: If a coefficient is negative or not finite.

    References:
        Kunin, Nayebi, Sagastuy-Brena, Ganguli, Bloom, Yamins, arXiv:2003.01513.

    Example:
        >>> AlignmentCoefficients(amplification=1.0, decay=0.5).null
        0.0
    """

    decay: NonNegativeFloat = 0.0
    amplification: NonNegativeFloat = 0.0
    null: NonNegativeFloat = 0.0
    sparse: NonNegativeFloat = 0.0
    self_alignment: NonNegativeFloat = 0.0


class AlignmentPrimitive(NamedTuple):
    """A primitive and its gradient.

    Attributes:
        value: P, averaged over the samples.
        gradient: ∇_B P, shape (inputs, outputs).
    """

    value: Float[np.ndarray, ""]
    gradient: Float[np.ndarray, "inputs outputs"]

    __repr__ = short_repr


@credit_theory(
    network="one layer with separate feedback weights",
    start="any",
    gives="regulariser of the feedback weights and its gradient",
)
def alignment_primitive(
    name: PrimitiveName, inputs: FiniteNumbers, weights: FiniteNumbers, backward: FiniteNumbers
) -> AlignmentPrimitive:
    """Value of one of the five primitives, and its gradient with respect to the feedback weights.

    A layer computes z = x W and propagates an error δ back as δ Bᵀ, whereas backpropagation uses δ Wᵀ. The primitives
    are

        decay           ½ ‖B‖²           ∇_B = B
        amplification   −⟨z · x B⟩       ∇_B = −⟨xᵀ z⟩
        null            ½ ⟨‖z Bᵀ‖²⟩      ∇_B = B ⟨zᵀ z⟩
        sparse          ½ ⟨‖x B‖²⟩       ∇_B = ⟨xᵀ x⟩ B
        self_alignment  −tr(Bᵀ W)        ∇_B = −W

    ⟨·⟩ is the mean over samples. The authors' code omits the factors ½, so its coefficients for the quadratic
    primitives are half as large.

    Args:
        name: "decay", "amplification", "null", "sparse" or "self_alignment".
        inputs: Inputs x of the layer, shape (samples, inputs).
        weights: W, shape (inputs, outputs).
        backward: B, shape (inputs, outputs).

    Raises:
        InputError: If the name is unknown, the shapes do not match or a value is not finite.

    References:
        Kunin, Nayebi, Sagastuy-Brena, Ganguli, Bloom, Yamins, arXiv:2003.01513.

    Example:
        >>> found = alignment_primitive("amplification", [[1.0, 2.0]], [[0.5], [1.0]], [[1.0], [0.0]])
        >>> float(found.value), found.gradient.tolist()
        (-2.5, [[-2.5], [-5.0]])
    """
    x, w, b = _layer(inputs, weights, backward)
    with np.errstate(all="ignore"):
        z, samples = x @ w, len(x)
        value, gradient = {
            "decay": lambda: (np.sum(b**2) / 2, b),
            "amplification": lambda: (-np.sum(z * (x @ b)) / samples, -x.T @ z / samples),
            "null": lambda: (np.sum((z @ b.T) ** 2) / (2 * samples), b @ (z.T @ z) / samples),
            "sparse": lambda: (np.sum((x @ b) ** 2) / (2 * samples), x.T @ (x @ b) / samples),
            "self_alignment": lambda: (-np.sum(b * w), -w),
        }[name]()
    return AlignmentPrimitive(np.asarray(value), gradient)


def _layer(inputs: FiniteNumbers, weights: FiniteNumbers, backward: FiniteNumbers) -> tuple[np.ndarray, ...]:
    w = require_array("weights", weights, (..., None, None))
    w = require_array("weights", w, w.shape[-2:])
    b = require_array("backward", backward, w.shape)
    x = require_array("inputs", inputs, (..., None, len(w)))
    return require_array("inputs", x, x.shape[-2:]), w, b

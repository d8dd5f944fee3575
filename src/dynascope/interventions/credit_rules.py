"""Rules that determine the feedback weights of a layer, from backpropagation to alignment by local regularisers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from dynascope.interventions.feedback_layers import FeedbackLayer
from dynascope.theory.interventions import AlignmentCoefficients, alignment_fixed_point
from dynascope.validation import checked
from dynascope.validation.bounded import FiniteNumbers

__all__ = ["CREDIT_RULES", "CreditRule", "regularizer"]

_NONE = AlignmentCoefficients()


@checked
@dataclasses.dataclass(frozen=True)
class CreditRule:
    """A rule for the feedback weights B of a layer with weights W.

    Attributes:
        name: Name of the rule.
        feedback: How B is determined: "weights", B = W (backpropagation); "fixed", B keeps its random initial value;
            "signs", B = s sign(W), where s is the initial mean of |W|; "equal updates", B receives the gradient of W
            and the same weight decay; "regularizer", B descends a regulariser.
        coefficients: Coefficients of the regulariser; all zero for the other rules.

    Raises:
        InputError: If the name of `feedback` is unknown.

    References:
        Kunin, Nayebi, Sagastuy-Brena, Ganguli, Bloom, Yamins, arXiv:2003.01513; Lillicrap et al. (2016), feedback
        alignment; Moskovitz et al., arXiv:1812.06488, sign symmetry; Akrout et al., arXiv:1904.05391, weight mirror and
        Kolen-Pollack.

    Example:
        >>> rule = CREDIT_RULES["symmetric alignment"]
        >>> rule.fixed_point(np.eye(2), np.eye(2), np.ones((2, 2))).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """

    name: str
    feedback: Literal["weights", "fixed", "signs", "equal updates", "regularizer"] = "regularizer"
    coefficients: AlignmentCoefficients = _NONE

    @property
    def primitives(self) -> dict[str, float]:
        """The primitives with positive coefficients."""
        return {name: value for name, value in dataclasses.asdict(self.coefficients).items() if value > 0}

    @property
    def learns(self) -> bool:
        """Whether the feedback weights have a separate update rule."""
        return self.feedback in ("regularizer", "equal updates")

    def fixed_point(
        self, weights: FiniteNumbers, input_moment: FiniteNumbers, initial: FiniteNumbers
    ) -> Float[np.ndarray, "inputs outputs"]:
        """The limit of the feedback weights for fixed weights.

        Kolen-Pollack reaches its limit W because weight decay shrinks W − B while W and B receive equal gradients.

        Args:
            weights: W, shape (inputs, outputs).
            input_moment: ⟨xᵀ x⟩ of the inputs of the layer, shape (inputs, inputs).
            initial: The initial feedback weights, shape (inputs, outputs).

        Raises:
            InputError: If the shapes do not match, or the fixed point of the regulariser is not unique.
        """
        w = np.asarray(weights)
        if self.feedback == "regularizer":
            return alignment_fixed_point(self.coefficients, w, input_moment).backward
        if self.feedback == "fixed":
            return np.asarray(initial)
        return np.mean(np.abs(w)) * np.sign(w) if self.feedback == "signs" else w


CREDIT_RULES: Mapping[str, CreditRule] = {
    rule.name: rule
    for rule in (
        CreditRule("backpropagation", "weights"),
        CreditRule("feedback alignment", "fixed"),
        CreditRule("sign symmetry", "signs"),
        CreditRule("Kolen-Pollack", "equal updates"),
        CreditRule("weight mirror", coefficients=AlignmentCoefficients(amplification=1.0, decay=1.0)),
        CreditRule(
            "information alignment", coefficients=AlignmentCoefficients(amplification=1.0, decay=0.25, null=0.25)
        ),
        CreditRule("activation alignment", coefficients=AlignmentCoefficients(amplification=1.0, sparse=1.0)),
        CreditRule("symmetric alignment", coefficients=AlignmentCoefficients(self_alignment=1.0, decay=1.0)),
    )
}


def regularizer(layer: FeedbackLayer, x: Any, backward: Any, coefficients: Mapping[str, Any]) -> Any:
    """The weighted sum of primitives that the feedback weights of a dense or convolutional layer descend.

    Averages are over samples and, for convolutions, over the pixels of the output. In convolutional layers, the
    products x B and z Bᵀ of the dense primitives are the convolution and the transposed convolution with the kernel B.

    Args:
        layer: The layer; its weights are constants.
        x: Inputs of the layer.
        backward: B.
        coefficients: Coefficients by name of the primitive.

    Example:
        >>> from dynascope.interventions.feedback_layers import FeedbackDense
        >>> layer = FeedbackDense(np.array([[0.5], [1.0]]), np.zeros(1))
        >>> float(regularizer(layer, np.array([[1.0, 2.0]]), np.array([[1.0], [0.0]]), {"amplification": 1.0}))
        -2.5
    """
    x, weights, backward = jnp.asarray(x), jnp.asarray(layer.weights), jnp.asarray(backward)
    z = layer.operator(x, weights)
    count = z.size // z.shape[-1]
    through, back = jax.vjp(lambda x: layer.operator(x, backward), x)
    primitives = {
        "decay": lambda: jnp.sum(backward**2) / 2,
        "amplification": lambda: -jnp.sum(z * through) / count,
        "null": lambda: jnp.sum(back(z)[0] ** 2) / (2 * count),
        "sparse": lambda: jnp.sum(through**2) / (2 * count),
        "self_alignment": lambda: -jnp.sum(backward * weights),
    }
    return sum(value * primitives[name]() for name, value in coefficients.items())

"""The kernel, together with the conventions under which it was computed."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from dynascope.results.named_tuples import short_repr

__all__ = ["CONTRACTIONS", "Contraction", "NeuralTangentKernel"]

Contraction = Literal["full", "diagonal", "trace"]
CONTRACTIONS: dict[Contraction, tuple[str, ...]] = {
    "full": ("sample", "class", "other_sample", "other_class"),
    "diagonal": ("sample", "other_sample", "class"),
    "trace": ("sample", "other_sample"),
}


class NeuralTangentKernel(NamedTuple):
    """A neural tangent kernel Θ_{ia,jb} = ⟨∂f_a(x_i)/∂θ, η ∂f_b(x_j)/∂θ⟩ between examples i, j and outputs a, b.

    Attributes:
        values: The kernel, an array with the axes `dimensions`.
        dimensions: Names of the axes.
        contraction: The contraction over outputs: "full" keeps Θ_{ia,jb}, "diagonal" keeps Θ_{ia,ja}, "trace" is the
            mean of Θ_{ia,ja} over a, and "pseudo" is (1/c) Σ_ab Θ_{ia,jb}, the kernel of the function c^(−1/2) Σ_a f_a.
        algorithm: The algorithm that was used.
        normalisation: Description of the normalisation over outputs.
        parametrisation: Description of the parameters with respect to which gradients are taken.
        outputs: Indices of the outputs used; () for all.
    """

    values: Any
    dimensions: tuple[str, ...]
    contraction: Contraction | Literal["pseudo"]
    algorithm: str
    normalisation: str
    parametrisation: str
    outputs: tuple[int, ...] = ()

    __repr__ = short_repr

"""A two-layer linear network of one output, before it learns inputs on a line."""

from __future__ import annotations

from typing import NamedTuple

from annotated_types import IsFinite
from jax.typing import ArrayLike
from jaxtyping import Real

from dynascope.theory.layer_rates import LayerRates
from dynascope.validation.bounded import PositiveArray

__all__ = ["LineNetwork"]


class LineNetwork(NamedTuple):
    """The network f(x) = γ x W u and its learning rates. Many networks go in leading axes (...), which broadcast.

    Attributes:
        first: W, shape (..., d, h), acting as x @ W.
        second: u, shape (..., h), with the same leading axes as W.
        multiplier: γ > 0, shape (...); a sign goes into u.
        rates: Learning rates η₁ of W and η₂ of u, shape (...).

    Example:
        >>> import numpy as np
        >>> from dynascope.theory.line_inputs import LineData, time_scale
        >>> network = LineNetwork(np.array([[1.0, 0.0]]), np.array([0.0, 1.0]), multiplier=2.0)
        >>> print(f"{time_scale(network, LineData(np.ones(1), 1.0, 2.0)).time:.3f}")
        0.088
    """

    first: IsFinite[Real[ArrayLike, "... inputs width"]]
    second: IsFinite[Real[ArrayLike, "... width"]]
    multiplier: PositiveArray = 1.0
    rates: LayerRates = LayerRates()

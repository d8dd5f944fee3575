"""Initial weights and target of a scalar network, with validation."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from annotated_types import IsFinite
from jax.typing import ArrayLike
from jaxtyping import Real

from dynascope.validation import is_traced, require, require_broadcast
from dynascope.validation.bounded import FiniteArray, PositiveArray

__all__ = ["Setting", "require_fitting"]


class Setting(NamedTuple):
    """The initial network f(x) = (x/Z) Σ aᵢ bᵢ and its target f*(x) = S x.

    Leading axes are batch axes: numbers have shape (...), weights (..., neurons), and both broadcast.

    Attributes:
        target: S, of any sign.
        output_weights: Initial a, shape (..., neurons).
        input_weights: Initial b, shape (..., neurons).
        input_power: E[x²] > 0.
        divisor: Z ≠ 0, the divisor of the output.

    Example:
        >>> from dynascope.theory.scalar_networks.scalar import scalar_limit
        >>> print(scalar_limit(Setting(1.0, [0.5, -0.3], [0.1, 0.4], divisor=2.0)).status)
        converges
    """

    target: FiniteArray
    output_weights: IsFinite[Real[ArrayLike, "... neurons"]]
    input_weights: IsFinite[Real[ArrayLike, "... neurons"]]
    input_power: PositiveArray = 1.0
    divisor: FiniteArray = 1.0


def require_fitting(setting: Setting, **numbers: Any) -> None:
    """Raise `InputError` if the shapes of a setting, or of further numbers, do not match, or if Z is zero."""
    shapes = {name: getattr(each, "shape", ()) for name, each in setting._asdict().items()}
    a, b = shapes["output_weights"], shapes["input_weights"]
    require(
        is_traced(setting.divisor) or np.all(np.asarray(setting.divisor) != 0),
        "setting.divisor is 0",
        argument="setting.divisor",
        value=0.0,
        remedy="choose a nonzero divisor, for example 1",
    )
    require(
        len(a) > 0 and len(b) > 0 and a[-1] == b[-1] > 0,
        f"setting.output_weights has shape {a}, but setting.input_weights has shape {b}",
        argument="setting.input_weights",
        value=b,
        remedy="give one output weight and one input weight per neuron along the last axis",
    )
    leading = {f"setting.{name}": shape[:-1] if "weights" in name else shape for name, shape in shapes.items()}
    require_broadcast(**leading, **{name: getattr(each, "shape", ()) for name, each in numbers.items()})

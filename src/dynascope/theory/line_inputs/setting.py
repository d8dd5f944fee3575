"""Network and data for inputs along a line, with their checks."""

from __future__ import annotations

import functools
from typing import Annotated, NamedTuple, TypeAlias

import numpy as np
from annotated_types import Ge, Gt, IsFinite
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Real

from dynascope.results.named_tuples import short_repr
from dynascope.theory.assumptions import INPUTS_ON_A_LINE, ONE_OUTPUT
from dynascope.theory.domain import covers
from dynascope.theory.finite_answers import finite_answers
from dynascope.theory.layer_rates import LayerRates
from dynascope.validation import require, require_array
from dynascope.validation.bounded import FiniteArray, PositiveArray

__all__ = ["LineData", "LineNetwork", "covers_line", "line_data"]

_Number: TypeAlias = Real[Array | np.ndarray, "..."] | float

_ROUNDING = 1e-8  # relative size of the second singular value, below which it counts as rounding error


covers_line = functools.partial(
    covers,
    network="two-layer linear, one output, any width, layer-wise rates",
    data="inputs on a line, any targets",
    start="any",
    reference="arXiv:2401.07085",
    assumes=(ONE_OUTPUT, INPUTS_ON_A_LINE),
)


class LineNetwork(NamedTuple):
    """The network f(x) = γ x W u and its learning rates.

    For a batch of networks, all attributes may have leading axes (...), which broadcast.

    Attributes:
        first: W, shape (..., d, h), acting as x @ W.
        second: u, shape (..., h), with the same leading axes as W.
        multiplier: γ > 0, shape (...); include a negative sign in u.
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


class LineData(NamedTuple):
    """Inputs x = a n along a line, with targets y, summarised by the numbers that determine ½ E(f − y)².

    Attributes:
        direction: n, a unit vector of shape (d,).
        power: E[a²] > 0, the mean squared length of the inputs.
        target: S = E[a y]/E[a²], the slope of the best linear fit y ≈ S a.
        unexplained: E[(y − S a)²] ≥ 0, the part of the targets that no linear network can fit.
    """

    direction: IsFinite[Real[Array | np.ndarray, " inputs"]]
    power: Annotated[_Number, Gt(0)]
    target: IsFinite[_Number]
    unexplained: Annotated[_Number, Ge(0)] = 0.0

    __repr__ = short_repr


@finite_answers()
def line_data(inputs: IsFinite[Real[ArrayLike, "samples inputs"]], targets: FiniteArray) -> LineData:
    """Compute the direction of the inputs x = a n, and the slope of the targets along it, from samples.

    The results are means over the samples: E[a²], S = E[a y]/E[a²] and E[(y − S a)²].

    Args:
        inputs: Samples in rows, shape (n, d), all on one line through the origin, such as `task.inputs`.
        targets: One target per sample, shape (n, 1) or (n,), such as `task.targets`.

    Returns:
        The data as NumPy float64 numbers. The sign of n makes its largest component positive.

    Raises:
        InputError: If the inputs are all zero or not on a line, the targets have the wrong shape, or a value is not
            finite.

    References:
        Xu & Ziyin, arXiv:2401.07085, section 2.

    Example:
        >>> data = line_data([[3.0, 4.0], [-1.5, -2.0], [6.0, 8.0]], [1.0, -0.5, 2.0])
        >>> data.direction.round(12).tolist(), round(data.power, 12), round(data.target, 12)
        ([0.6, 0.8], 43.75, 0.2)
    """
    x = require_array("inputs", inputs, (None, None))
    require(
        x.size > 0 and bool(np.any(x)),
        "inputs are all zero",
        argument="inputs",
        value=x.shape,
        remedy="give at least one nonzero sample",
    )
    y = require_array("targets", targets, (len(x), 1) if np.ndim(targets) == 2 else (len(x),)).reshape(-1)
    # Relative to the largest input, squares neither overflow nor underflow.
    unit = np.abs(x).max()
    _, sizes, right = np.linalg.svd(x / unit, full_matrices=False)
    second = float(sizes[1] / sizes[0]) if len(sizes) > 1 else 0.0
    require(
        second <= _ROUNDING,
        f"inputs are not on a line through the origin (the second singular value is {second:.3g} times the first)",
        argument="inputs",
        value=second,
        remedy="project the inputs onto one direction, or use a theory for whitened inputs",
    )
    direction = right[0] * np.sign(right[0, np.argmax(np.abs(right[0]))])
    along = x @ direction
    target = float(np.mean(along / unit * y) / np.mean((along / unit) ** 2) / unit)
    return LineData(direction, float(np.mean(along**2)), target, float(np.mean((y - target * along) ** 2)))

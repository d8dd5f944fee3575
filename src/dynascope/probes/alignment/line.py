"""Alignment of the two layers of a network trained on inputs along a line."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, NamedTuple

import numpy as np

from dynascope.probes.alignment.vectors import clipped, largest, unit_vector
from dynascope.results.named_tuples import short_repr
from dynascope.validation import array_namespace, holds, require, require_finite_values

__all__ = ["LineAlignment", "LineLayers", "line_alignment"]


class LineAlignment(NamedTuple):
    """The alignment of two layers along a line.

    Attributes:
        alignment: The cosine ζ of the output weights u and the input weights v along the line, as a scalar or over
            `time`; zero if u or v vanishes.
    """

    alignment: Annotated[Any, "time"]

    __repr__ = short_repr


def line_alignment(first: Any, second: Any, direction: Any) -> LineAlignment:
    """Compute the alignment of the output weights u with the input weights v = n·W of a two-layer network.

        ζ = cos∠(u, v)

    `theory.line_inputs.layer_cosine` predicts ζ for the network f(x) = γ Σ u_i w_i·x trained on inputs x = a n along a
    line. Unlike the alignment of singular vectors, ζ has a sign: the sign of the slope of f along n.

    Cost: 2dh operations per time, and memory for 2h numbers.

    Args:
        first: W, shape (d, h) or (times, d, h). All arrays must come from one library: NumPy, JAX or PyTorch.
        second: u, shape (h,) or (h, 1), optionally with a leading time axis.
        direction: n, shape (d,), of any positive length.

    Raises:
        InputError: If shapes do not match, the direction is zero, or values are not finite (the last two are not
            checked under JAX tracing).

    References:
        Xu & Ziyin, When Does Feature Learning Happen?, arXiv:2401.07085, equations 20 to 22.

    Example:
        >>> import numpy as np
        >>> line_alignment(np.array([[1.0, 0.0], [0.0, 5.0]]), np.array([-3.0, 4.0]), np.array([1.0, 0.0]))
        LineAlignment(alignment=-0.6)
    """
    xp = array_namespace(first, second, direction)
    for name, values in (("first", first), ("second", second), ("direction", direction)):
        require_finite_values(name, values, floating=True)
    shape = tuple(first.shape)
    outputs = second[..., 0] if tuple(second.shape) == (*shape[:-2], *shape[-1:], 1) else second
    require(
        len(shape) in (2, 3)
        and min(shape) > 0
        and tuple(outputs.shape) == (*shape[:-2], shape[-1])
        and tuple(direction.shape) == shape[-2:-1],
        f"first {shape}, second {tuple(second.shape)} and direction {tuple(direction.shape)} do not fit together",
        argument="second",
        value=tuple(second.shape),
        remedy="give arrays of shapes (d, h), (h,) and (d,), optionally with a leading time axis for both weights",
    )
    require(
        holds(xp.any(direction != 0)),
        "direction is zero",
        argument="direction",
        value=0.0,
        remedy="give the direction of the line that contains the inputs",
    )
    # Divide by the largest entries, because products of small numbers can underflow.
    scaled = first / largest(first, (-2, -1))
    inputs = xp.sum(scaled * (direction / largest(direction, -1))[:, None], axis=-2)
    cosine = xp.sum(unit_vector(outputs) * unit_vector(inputs), axis=-1)
    return LineAlignment(clipped(cosine))


@dataclasses.dataclass(frozen=True)
class LineLayers:
    """A probe of a network with one output: the alignment and norms of its layers along a line.

    Attributes:
        direction: Unit vector along the line.
    """

    direction: tuple[float, ...]

    @classmethod
    def of(cls, line: Any) -> LineLayers:
        """Create the probe from the `direction` of data along a line."""
        return cls(tuple(map(float, line.direction)))

    def __call__(self, network: Any) -> dict[str, tuple[tuple[str, ...], Any]]:
        """Measure one network with the layers `first` and `second`."""
        inputs, outputs = np.array(self.direction) @ network.first, network.second[:, 0]
        first, second = (inputs @ inputs) ** 0.5, (outputs @ outputs) ** 0.5
        alignment = outputs @ inputs / (first * second)
        return {"alignment": ((), alignment), "first_norm": ((), first), "second_norm": ((), second)}

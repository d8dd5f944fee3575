"""Weights of each unit of a layer: neurons, convolution channels, or attention heads."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from jaxtyping import Shaped

from dynascope.results.named_tuples import short_repr
from dynascope.validation import array_namespace, checked, require, require_finite_values
from dynascope.validation.bounded_scalars import PositiveInt

__all__ = ["UnitGroup", "UnitPart", "UnitWeights", "unit_weights"]


@dataclasses.dataclass(frozen=True)
class UnitPart:
    """One array of weights, and the axis along which its units are arranged.

    Attributes:
        parameter: Name of the array, such as "weights.0" or "blocks.0.queries".
        axis: The axis of the units, divided equally among them.
        interleaved: Whether unit i has the entries i, i + h, i + 2h, …, as for channels after pixels are flattened.
            Otherwise each unit has a contiguous block, as for heads.

    Example:
        >>> import numpy as np
        >>> channels = UnitGroup(2, [("kernel", 1)], [UnitPart("hidden", 0, interleaved=True)])
        >>> arrays = {"kernel": np.eye(2), "hidden": np.arange(4.0).reshape(4, 1)}
        >>> unit_weights(arrays, channels).outgoing.tolist()
        [[0.0, 2.0], [1.0, 3.0]]
    """

    parameter: str
    axis: int
    interleaved: bool = False


@dataclasses.dataclass(frozen=True)
class UnitGroup:
    """The units of a layer, any two of which are interchangeable.

    Attributes:
        units: Number of units h.
        incoming: The weights that lead into the units, including biases, as `UnitPart` or pairs (name, axis).
        outgoing: The weights that lead out of the units, in the same form.

    Raises:
        InputError: If the number of units is not positive, or if `incoming` or `outgoing` is empty.

    Example:
        >>> neurons = UnitGroup(32, [("weights.0", 1), ("biases.0", 0)], [("weights.1", 0)])
        >>> channels = UnitGroup(8, [("kernels.0", 3), ("kernel_biases.0", 0)], [("kernels.1", 2)])
        >>> heads = UnitGroup(4, [(f"blocks.0.{each}", 1) for each in ("queries", "keys", "values")],
        ...                   [("blocks.0.outputs", 0)])
        >>> last_channels = UnitGroup(16, [("kernels.1", 3)], [UnitPart("hidden", 0, interleaved=True)])
    """

    units: PositiveInt
    incoming: Sequence[UnitPart | tuple[str, int]]
    outgoing: Sequence[UnitPart | tuple[str, int]]

    def __post_init__(self):
        for name in ("incoming", "outgoing"):
            parts = tuple(each if isinstance(each, UnitPart) else UnitPart(*each) for each in getattr(self, name))
            require(
                len(parts) > 0,
                f"{name} is empty",
                argument=name,
                value=0,
                remedy="give the name of an array and the axis of its units",
            )
            object.__setattr__(self, name, parts)


class UnitWeights(NamedTuple):
    """The weights of each unit, as rows.

    Attributes:
        incoming: (w_i, b_i), shape (units, incoming weights).
        outgoing: a_i, shape (units, outgoing weights).
    """

    incoming: Shaped[Any, "units _"]
    outgoing: Shaped[Any, "units _"]

    __repr__ = short_repr


@checked
def unit_weights(parameters: Any, group: UnitGroup) -> UnitWeights:
    """Gather the weights p_i = (w_i, b_i; a_i) of each unit from the arrays of a network.

    Cost: no operations, and memory for one copy of the layer's weights.

    Args:
        parameters: NumPy, JAX or PyTorch arrays by name, e.g. `dict(module.named_parameters())`; or a JAX module or any
            tree of arrays, with the names that `descend` uses.
        group: The arrays and axes of the units.

    Raises:
        InputError: If an array or axis does not exist, or the length of an axis is not a multiple of the number of
            units.

    Example:
        >>> import numpy as np
        >>> arrays = {"first": np.arange(6.0).reshape(2, 3), "second": np.arange(3.0).reshape(3, 1)}
        >>> found = unit_weights(arrays, UnitGroup(3, [("first", 1)], [("second", 0)]))
        >>> found.incoming.tolist(), found.outgoing.ravel().tolist()
        ([[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]], [0.0, 1.0, 2.0])
    """
    arrays = _named(parameters)
    return UnitWeights(*(_rows(arrays, parts, group.units) for parts in (group.incoming, group.outgoing)))


def _named(parameters: Any) -> dict[str, Any]:
    """Return the arrays by name."""
    if isinstance(parameters, Mapping) and all(hasattr(each, "shape") for each in parameters.values()):
        return dict(parameters)
    import jax  # imported here, because arrays by name do not need JAX

    leaves = jax.tree_util.tree_flatten_with_path(parameters)[0]
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in leaves}


def _rows(arrays: Mapping[str, Any], parts: Sequence[Any], units: int) -> Any:
    """Concatenate the weights of each unit from all parts."""
    rows = []
    for part in parts:
        require(
            part.parameter in arrays and hasattr(arrays[part.parameter], "shape"),
            f"there is no array {part.parameter!r}",
            argument="group",
            value=part.parameter,
            remedy=f"choose from {', '.join(arrays)}",
        )
        array = arrays[part.parameter]
        require_finite_values("parameters", array, floating=True)
        shape = tuple(array.shape)
        require(
            -len(shape) <= part.axis < len(shape) and shape[part.axis] % units == 0,
            f"{part.parameter} has shape {shape}, whose axis {part.axis} cannot be divided into {units} units",
            argument="group",
            value=shape,
            remedy="give the axis of the units; its length must be a multiple of their number",
        )
        xp = array_namespace(array)
        lying = xp.moveaxis(array, part.axis, 0)
        share, rest = shape[part.axis] // units, math.prod(shape) // shape[part.axis]
        if part.interleaved:
            lying = xp.moveaxis(xp.reshape(lying, (share, units, rest)), 1, 0)
        rows.append(xp.reshape(lying, (units, share * rest)))
    return array_namespace(*rows).concat(rows, axis=1)

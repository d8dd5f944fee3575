"""Which weights belong to which unit of a layer: neurons, channels of a convolution, heads of attention."""

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
    """One array of weights and the axis along which its units lie.

    Attributes:
        parameter: Name of the array, such as "weights.0" or "blocks.0.queries".
        axis: The axis; each unit has an equal share of it.
        interleaved: Whether unit i has the entries i, i + h, i + 2h, …, as channels have after pixels are made a row;
            otherwise each has a block of neighbours, as heads have.

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
    """The units of a layer, any two of which can be exchanged.

    Attributes:
        units: h, how many there are.
        incoming: What leads into them, biases too: `UnitPart`, or pairs of a name and an axis.
        outgoing: What leads on.

    Raises:
        InputError: A number of units that is not positive, or no incoming or outgoing part.

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
                remedy="name an array and the axis along which its units lie",
            )
            object.__setattr__(self, name, parts)


class UnitWeights(NamedTuple):
    """The weights of each unit in a row.

    Attributes:
        incoming: (w_i, b_i), shape (units, incoming weights).
        outgoing: a_i, shape (units, outgoing weights).
    """

    incoming: Shaped[Any, "units _"]
    outgoing: Shaped[Any, "units _"]

    __repr__ = short_repr


@checked
def unit_weights(parameters: Any, group: UnitGroup) -> UnitWeights:
    """The weights p_i = (w_i, b_i; a_i) of each unit, gathered from the arrays of a network.

    Cost: no operations; memory for the weights of the layer once more.

    Args:
        parameters: Arrays of one library, NumPy, JAX or PyTorch, by their names, as `dict(module.named_parameters())`
            is; or a module of JAX, or any nest of arrays, whose names are those of `descend`.
        group: Which arrays, and along which axes.

    Raises:
        InputError: An array or an axis that there is not, or one that the units cannot share equally.

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
    """The arrays by their names."""
    if isinstance(parameters, Mapping) and all(hasattr(each, "shape") for each in parameters.values()):
        return dict(parameters)
    import jax  # not at the top, so that arrays by name need no JAX

    leaves = jax.tree_util.tree_flatten_with_path(parameters)[0]
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in leaves}


def _rows(arrays: Mapping[str, Any], parts: Sequence[Any], units: int) -> Any:
    """What all parts have for each unit, side by side."""
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
            f"{part.parameter} has shape {shape}, along whose axis {part.axis} {units} units cannot lie",
            argument="group",
            value=shape,
            remedy="name the axis of the units, whose length is a multiple of their number",
        )
        xp = array_namespace(array)
        lying = xp.moveaxis(array, part.axis, 0)
        share, rest = shape[part.axis] // units, math.prod(shape) // shape[part.axis]
        if part.interleaved:
            lying = xp.moveaxis(xp.reshape(lying, (share, units, rest)), 1, 0)
        rows.append(xp.reshape(lying, (units, share * rest)))
    return array_namespace(*rows).concat(rows, axis=1)

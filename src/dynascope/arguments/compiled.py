"""Arguments of compiled functions: checked in NumPy where they are known, and inside the program where they are not."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from dynascope.arguments.arrays import real_array, require_broadcast, require_times
from dynascope.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from jax import Array

__all__ = [
    "all_finite",
    "fitting",
    "in_one_shape",
    "nan_outside",
    "real_arrays",
    "real_times",
    "real_value",
    "require_last_axes",
]

_Values = TypeVar("_Values")
_NONE: Mapping[str, float] = MappingProxyType({})


def real_arrays(
    *,
    minimum: Mapping[str, float] = _NONE,
    above: Mapping[str, float] = _NONE,
    below: Mapping[str, float] = _NONE,
    broadcast: bool = True,
    **arguments: Any,
) -> list[Any]:
    """The arguments as arrays checked by `real_array`, those of NumPy of one type, in the order they are given in.

    Where they must fit together, those that are known come in their common shape.

    Args:
        minimum: Smallest value allowed, by the name of the argument.
        above: Number that every value must exceed, likewise.
        below: Number that every value must stay under, likewise.
        broadcast: Whether their shapes must fit together.
        **arguments: The values by the name of the argument. Python numbers have 64 bits, but beside arrays of JAX, as
            there, the precision of those, unless they are too small or too large for it.

    Raises:
        InputError: As `real_array`, or shapes that do not fit.

    Example:
        >>> times, rate = real_arrays(times=[0, 1], rate=2.0, minimum={"times": 0}, above={"rate": 0})
        >>> times.dtype == rate.dtype, times.tolist()
        (True, [0.0, 1.0])
    """
    # Imported here so that the command line can report a bad argument without loading arrays.
    import jax
    import numpy as np

    arrays = {
        name: real_array(
            name,
            value,
            minimum=minimum.get(name, -math.inf),
            above=above.get(name, -math.inf),
            below=below.get(name, math.inf),
        )
        for name, value in arguments.items()
    }
    if broadcast:
        require_broadcast(**{name: array.shape for name, array in arrays.items()})
    compiled = any(isinstance(each, jax.Array) for each in arrays.values())
    dtype = np.dtype(np.float64)
    if compiled:
        plain = [type(value) in (int, float) for value in arguments.values()]
        # By the rules of NumPy, as those of JAX know no 64 bits where they are switched off.
        kinds = [0.0 if weak else each.dtype for weak, each in zip(plain, arrays.values(), strict=True)]
        given = [float(each) for weak, each in zip(plain, arrays.values(), strict=True) if weak]
        common = np.result_type(*kinds)
        dtype = common if _held(given, jax.numpy.finfo(common)) else dtype
    # What JAX holds is widened where it is computed with.
    values = [each if isinstance(each, jax.Array) else np.asarray(each, dtype) for each in arrays.values()]
    return in_one_shape(*values) if broadcast else values


def _held(numbers: Sequence[float], limits: Any) -> bool:
    """Whether a type of these limits makes none of the numbers zero or infinite."""
    return all(not each or float(limits.tiny) <= abs(each) <= float(limits.max) for each in numbers)


def fitting(**values: Any) -> list[Any]:
    """The numbers and arrays in their common shape, where all are known, after checking that they broadcast.

    Args:
        **values: Checked values by the name of the argument.

    Raises:
        InputError: As `require_broadcast`.

    Example:
        >>> import numpy as np
        >>> [each.tolist() for each in fitting(times=np.array([1.0, 2.0]), rate=3.0)]
        [[1.0, 2.0], [3.0, 3.0]]
    """
    shapes = {name: getattr(each, "shape", ()) for name, each in values.items()}
    if len({*shapes.values()}) == 1:
        return list(values.values())
    require_broadcast(**shapes)
    return in_one_shape(*values.values())


def in_one_shape(*values: Any) -> list[Any]:
    """The numbers in their common shape, where all are known: one program serves, whichever of them are arrays.

    Args:
        *values: Python numbers or arrays that fit together. Where there are arrays of JAX, all stay what they are.

    Example:
        >>> [each.tolist() for each in in_one_shape([1.0, 2.0], 3.0)]
        [[1.0, 2.0], [3.0, 3.0]]
        >>> in_one_shape(1.0, 3.0)
        [1.0, 3.0]
    """
    # Imported here, as above.
    import jax
    import numpy as np

    if all(type(each) is float for each in values) or any(isinstance(each, jax.Array) for each in values):
        return list(values)
    if not any(map(np.ndim, values)):
        return list(values)
    return list(np.broadcast_arrays(*values))


def real_value(name: str, value: Any, *, last: tuple[int | None, ...] = (), **limits: Any) -> Any:
    """The value as `real_array` gives it, but a Python number as a float: its precision is that of the arrays it meets.

    Args:
        name: Name of the argument, for the message.
        value: Real numbers in any form.
        last: Length of each of the last axes; None accepts any but zero.
        limits: Further arguments of `real_array`.

    Raises:
        InputError: As `real_array`, or other last axes.

    Example:
        >>> real_value("rate", 0.5, above=0), real_value("weights", [[1, 2]], last=(2,)).shape
        (0.5, (1, 2))
    """
    array = real_array(name, value, **limits)
    require_last_axes(name, array, *last)
    return float(value) if type(value) in (int, float) else array


def require_last_axes(name: str, value: Any, *last: int | None) -> None:
    """Raise `InputError` unless the last axes of an array have these lengths.

    Args:
        name: Name of the argument, for the message.
        value: An array, or a number, which has no axes.
        *last: Length of each of the last axes; None accepts any but zero.

    Example:
        >>> import numpy as np
        >>> require_last_axes("weights", np.ones((5, 2, 3)), None, 3)
    """
    shape = getattr(value, "shape", ())
    fits = len(shape) >= len(last) and all(
        got > 0 and want in (None, got) for want, got in zip(last, shape[len(shape) - len(last) :], strict=True)
    )
    if not fits:
        wanted = ", ".join(["...", *("any" if length is None else str(length) for length in last)])
        remedy = f"give numbers of the shape ({wanted})"
        raise InputError(f"{name} has shape {shape}", argument=name, value=shape, remedy=remedy)


def real_times(times: Any, **options: Any) -> Any:
    """The times as `require_times` gives them, but a Python number as a float.

    Args:
        times: A row of gradient-flow times t ≥ 0, or one of them.
        options: Further arguments of `require_times`.

    Raises:
        InputError: As `require_times`.

    Example:
        >>> real_times(2.0), real_times([1, 2]).tolist()
        (2.0, [1.0, 2.0])
    """
    checked = require_times(times, **options)
    return float(times) if type(times) in (int, float) else checked


def all_finite(*arrays: np.ndarray | Array) -> Array:
    """Where every one of the arrays, which broadcast, is finite; inside a compiled function.

    Example:
        >>> import numpy as np
        >>> all_finite(np.array([1.0, np.inf]), 2.0).tolist()
        [True, False]
    """
    from jax import numpy as jnp  # not at the top, as above

    return functools.reduce(jnp.logical_and, map(jnp.isfinite, arrays))


def nan_outside(inside: Array, values: _Values, *, leading: bool = False) -> _Values:
    """The values, and NaN where the arguments they follow from are not inside the domain.

    Args:
        inside: Truth values whose shape broadcasts with that of each of the values.
        values: An array, or a tuple of arrays; those of truth values or whole numbers stay as they are.
        leading: Whether the axes of `inside` are the first of each of the values, instead of the last.

    Example:
        >>> from jax import numpy as jnp
        >>> nan_outside(jnp.array([True, False]), jnp.array([2.0, 3.0])).tolist()
        [2.0, nan]
        >>> nan_outside(jnp.array([True, False]), jnp.ones((2, 2)), leading=True).tolist()
        [[1.0, 1.0], [nan, nan]]
    """
    import jax  # not at the top, as above

    # A product, unlike a choice, takes the NaN into the derivatives too.
    factor = jax.numpy.where(inside, 1.0, math.nan)

    def limited(value: Array) -> Array:
        if not jax.numpy.issubdtype(value.dtype, jax.numpy.floating):
            return value
        further = value.ndim - factor.ndim if leading else 0
        return value * factor.astype(value.dtype).reshape(*factor.shape, *(1,) * further)

    return jax.tree.map(limited, values)

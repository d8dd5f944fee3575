"""Arguments of compiled functions: checked in NumPy where they are known, and inside the program where they are not."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from dynascope.arguments.arrays import is_traced, real_array, require_broadcast
from dynascope.arguments.numbers import require

if TYPE_CHECKING:
    import numpy as np
    from jax import Array

__all__ = ["all_finite", "nan_outside", "real_arrays", "require_known"]

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
    """The arguments as arrays of one type, checked by `real_array`, in the order in which they are given.

    Args:
        minimum: Smallest value allowed, by the name of the argument.
        above: Number that every value must exceed, likewise.
        below: Number that every value must stay under, likewise.
        broadcast: Whether their shapes must fit together.
        **arguments: The values by the name of the argument. Python numbers take the precision of the arrays beside
            them, as in JAX.

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
    plain = [type(value) in (bool, int, float) for value in arguments.values()]
    dtype = jax.numpy.result_type(*(0.0 if weak else each for weak, each in zip(plain, arrays.values(), strict=True)))
    return [
        each if each.dtype == dtype else each.astype(dtype) if isinstance(each, jax.Array) else np.asarray(each, dtype)
        for each in arrays.values()
    ]


def require_known(**arguments: Any) -> None:
    """Raise `InputError` if JAX traces one of the arguments of a function that has to read their values.

    Example:
        >>> require_known(target=1.0)
    """
    for name, value in arguments.items():
        require(
            not is_traced(value),
            f"{name} is traced by JAX",
            argument=name,
            value=type(value).__name__,
            remedy="call this outside of jit, vmap and grad, with leading axes for many cases",
        )


def all_finite(*arrays: np.ndarray | Array) -> Array:
    """Where every one of the arrays, which broadcast, is finite; inside a compiled function.

    Example:
        >>> import numpy as np
        >>> all_finite(np.array([1.0, np.inf]), 2.0).tolist()
        [True, False]
    """
    from jax import numpy as jnp  # not at the top, as above

    return functools.reduce(jnp.logical_and, map(jnp.isfinite, arrays))


def nan_outside(inside: Array, values: _Values) -> _Values:
    """The values, and NaN where the arguments they follow from are not inside the domain.

    Args:
        inside: Truth values whose shape broadcasts with that of each of the values.
        values: An array, or a tuple of arrays.

    Example:
        >>> import numpy as np
        >>> nan_outside(np.array([True, False]), np.array([2.0, 3.0])).tolist()
        [2.0, nan]
    """
    import jax  # not at the top, as above

    # A product, unlike a choice, takes the NaN into the derivatives too.
    factor = jax.numpy.where(inside, 1.0, math.nan)
    return jax.tree.map(lambda value: value * factor.astype(value.dtype), values)

"""Arguments of compiled functions: checked in NumPy where they are known, and inside the program where they are not."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from dynascope.validation import require_broadcast

if TYPE_CHECKING:
    import numpy as np
    from jax import Array

__all__ = [
    "all_finite",
    "broadcast",
    "broadcast_known",
    "nan_outside",
]

_Values = TypeVar("_Values")
_NONE: Mapping[str, float] = MappingProxyType({})


def broadcast(**values: Any) -> list[Any]:
    """The numbers and arrays in their common shape, where all are known, after checking that they broadcast.

    Args:
        **values: Checked values by the name of the argument.

    Raises:
        InputError: As `require_broadcast`.

    Example:
        >>> import numpy as np
        >>> [each.tolist() for each in broadcast(times=np.array([1.0, 2.0]), rate=3.0)]
        [[1.0, 2.0], [3.0, 3.0]]
    """
    shapes = {name: getattr(each, "shape", ()) for name, each in values.items()}
    if len({*shapes.values()}) == 1:
        return list(values.values())
    require_broadcast(**shapes)
    return broadcast_known(*values.values())


def broadcast_known(*values: Any) -> list[Any]:
    """The numbers in their common shape, where all are known: one program serves, whichever of them are arrays.

    Args:
        *values: Python numbers or arrays that fit together. Where there are arrays of JAX, all stay what they are.

    Example:
        >>> [each.tolist() for each in broadcast_known([1.0, 2.0], 3.0)]
        [[1.0, 2.0], [3.0, 3.0]]
        >>> broadcast_known(1.0, 3.0)
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

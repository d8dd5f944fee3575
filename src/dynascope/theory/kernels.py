"""Broadcast the arguments of compiled formulas, and return NaN outside their domain for traced arguments."""

from __future__ import annotations

import functools
import math
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


def broadcast(**values: Any) -> list[Any]:
    """Check that the arguments broadcast, and broadcast them as `broadcast_known` does.

    Args:
        **values: Validated values, by argument name.

    Raises:
        InputError: If the shapes do not broadcast.

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
    """Broadcast NumPy arrays and numbers to one shape, so that one compiled program handles all combinations.

    Args:
        *values: Python numbers or arrays that broadcast. If any is a JAX array, all are returned unchanged.

    Example:
        >>> [each.tolist() for each in broadcast_known([1.0, 2.0], 3.0)]
        [[1.0, 2.0], [3.0, 3.0]]
        >>> broadcast_known(1.0, 3.0)
        [1.0, 3.0]
    """
    # Imported late, as in `finite_answers`.
    import jax
    import numpy as np

    if all(type(each) is float for each in values) or any(isinstance(each, jax.Array) for each in values):
        return list(values)
    if not any(map(np.ndim, values)):
        return list(values)
    return list(np.broadcast_arrays(*values))


def all_finite(*arrays: np.ndarray | Array) -> Array:
    """Test element-wise whether all of several broadcastable arrays are finite; for use inside a compiled function.

    Example:
        >>> import numpy as np
        >>> all_finite(np.array([1.0, np.inf]), 2.0).tolist()
        [True, False]
    """
    from jax import numpy as jnp  # imported late, as above

    return functools.reduce(jnp.logical_and, map(jnp.isfinite, arrays))


def nan_outside(inside: Array, values: _Values, *, leading: bool = False) -> _Values:
    """Replace values by NaN where the arguments are outside the domain.

    Args:
        inside: Boolean array that broadcasts with each of the values.
        values: An array, or a tuple of arrays; boolean and integer arrays stay unchanged.
        leading: Whether the axes of `inside` are the leading axes of each value, instead of the trailing ones.

    Example:
        >>> from jax import numpy as jnp
        >>> nan_outside(jnp.array([True, False]), jnp.array([2.0, 3.0])).tolist()
        [2.0, nan]
        >>> nan_outside(jnp.array([True, False]), jnp.ones((2, 2)), leading=True).tolist()
        [[1.0, 1.0], [nan, nan]]
    """
    import jax  # imported late, as above

    # Unlike `where`, a product also makes the derivatives NaN.
    factor = jax.numpy.where(inside, 1.0, math.nan)

    def limited(value: Array) -> Array:
        if not jax.numpy.issubdtype(value.dtype, jax.numpy.floating):
            return value
        further = value.ndim - factor.ndim if leading else 0
        return value * factor.astype(value.dtype).reshape(*factor.shape, *(1,) * further)

    return jax.tree.map(limited, values)

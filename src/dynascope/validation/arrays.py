"""Checks of arrays, known or traced by JAX."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

from dynascope.errors import InputError
from dynascope.validation.known import require_bounds
from dynascope.validation.numbers import require
from dynascope.validation.shapes import require_shape

if TYPE_CHECKING:
    import numpy as np
    from jax import Array

__all__ = [
    "is_traced",
    "real_array",
    "require_array",
    "require_covariance",
    "require_known",
    "require_unmasked",
]

_ROUNDING = 1e-10  # largest relative asymmetry or negative eigenvalue of a covariance that is attributed to rounding


def require_array(name: str, values: Any, *shapes: tuple[Any, ...], infinite: bool = False) -> np.ndarray:
    """Return the values as a float64 array after checking that they are finite and have one of the shapes.

    Args:
        name: Name of the argument, for the message.
        values: Anything that `numpy.asarray` accepts.
        *shapes: Allowed lengths of the axes, as in `require_shape`.
        infinite: Whether infinite values are accepted.

    Returns:
        Array of dtype float64.

    Raises:
        InputError: The values are not real numbers, are not finite, or have none of the shapes.

    Example:
        >>> require_array("x", [[1, 2], [3, 4]], (None, 2)).shape
        (2, 2)
    """
    import numpy as np  # here, so that the command line reports a bad argument without loading arrays

    require_known(**{name: values})
    require_unmasked(name, values)
    try:
        # Casting would silently drop imaginary parts, count dates in nanoseconds and parse text.
        if np.asarray(values).dtype.kind in "cmMSU":
            raise TypeError
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"{name} is not an array of real numbers",
            argument=name,
            value=type(values).__name__,
            remedy="pass real numbers in rows of equal length",
        ) from None
    require_shape(name, array, *shapes)
    bad = int(np.sum(np.isnan(array) if infinite else ~np.isfinite(array)))
    require(
        bad == 0,
        f"{name} contains NaN"
        if infinite
        else f"{name} contains {bad} {'value that is' if bad == 1 else 'values that are'} not finite",
        argument=name,
        value=bad,
        remedy="drop or replace all such values first",
    )
    return array


def require_covariance(name: str, values: Any) -> np.ndarray:
    """Return Σ as a symmetric float64 matrix after checking that it is positive semi-definite and not zero.

    Args:
        name: Name of the argument, for the message.
        values: Σ of shape (d, d), or the d variances of independent inputs.

    Raises:
        InputError: The matrix is asymmetric, not positive semi-definite, zero, or not finite.

    Example:
        >>> require_covariance("covariance", [2.0, 1.0])
        array([[2., 0.],
               [0., 1.]])
    """
    import numpy as np  # here, so that the command line reports a bad argument without loading arrays

    matrix = require_array(name, values, (None,), (None, None))
    matrix = require_array(name, np.diag(matrix) if matrix.ndim == 1 else matrix, (len(matrix),) * 2)
    largest = np.abs(matrix).max(initial=0.0)
    asymmetry = np.abs(matrix - matrix.T).max(initial=0.0)
    require(
        asymmetry <= _ROUNDING * largest,
        f"{name} is not symmetric",
        argument=name,
        value=float(asymmetry),
        remedy="give a symmetric matrix or a vector of variances",
    )
    matrix = (matrix + matrix.T) / 2
    lowest = np.linalg.eigvalsh(matrix).min(initial=0.0)
    require(
        largest > 0 and lowest >= -_ROUNDING * largest,
        f"{name} has the eigenvalue {lowest:.6g}" if lowest < 0 else f"{name} is zero",
        argument=name,
        value=float(lowest),
        remedy="give a positive semi-definite matrix that is not zero",
    )
    return matrix


def is_traced(value: Any) -> bool:
    """Whether JAX traces the value, so that only its shape and type are known.

    Example:
        >>> is_traced([1.0, 2.0])
        False
    """
    # A value can be traced only if JAX is loaded.
    return "jax" in sys.modules and isinstance(value, sys.modules["jax"].core.Tracer)


def real_array(
    name: str,
    value: Any,
    *,
    minimum: float = -math.inf,
    above: float = -math.inf,
    below: float = math.inf,
    maximum: float = math.inf,
    dimensions: int | None = None,
) -> np.ndarray | Array:
    """Convert real numbers to a floating-point array for a compiled function, after checking all known values.

    Args:
        name: Name of the argument, for the message.
        value: Real numbers in any form. JAX arrays keep their type; if they are traced, which requires
            `jax.enable_x64`, only their shape is checked. A NumPy array narrower than 64 bits keeps its precision;
            everything else becomes a float64 NumPy array.
        minimum: Smallest value allowed.
        above: Number that every value must exceed.
        below: Number that every value must be less than.
        maximum: Largest value allowed.
        dimensions: Number of axes; None for any.

    Raises:
        InputError: The values are not real, not finite, out of range or too large for float64; the number of axes
            differs; or the values are traced in float32, in which small values underflow and squares overflow.

    Example:
        >>> real_array("times", [0, 1, 2], minimum=0).tolist()
        [0.0, 1.0, 2.0]
    """
    import jax  # here, so that checks of NumPy arrays do not load JAX
    import numpy as np  # here, so that the command line reports a bad argument without loading arrays

    known = value
    if not isinstance(value, jax.Array):
        require_unmasked(name, value)
        traced = isinstance(value, list | tuple) and any(map(is_traced, jax.tree.leaves(value)))
        try:
            known = (jax.numpy if traced else np).asarray(value)
        except (TypeError, ValueError, OverflowError):
            known = np.asarray(None)
    # Checks dtype.kind, because NumPy considers timedelta64 a subtype of integer.
    if not (known.dtype.kind in "iu" or jax.numpy.issubdtype(known.dtype, np.floating)):
        raise InputError(f"{name} is not real", argument=name, value=type(value).__name__, remedy="pass real numbers")
    if dimensions is not None:
        require(
            known.ndim == dimensions,
            f"{name} has shape {known.shape}",
            argument=name,
            value=known.shape,
            remedy=f"pass an array with {dimensions} {'axis' if dimensions == 1 else 'axes'}"
            if dimensions
            else "pass a single number",
        )
    if is_traced(known):
        require(
            jax.numpy.result_type(float) == np.float64,
            f"{name} is traced by JAX in 32 bits",
            argument=name,
            value=str(known.dtype),
            remedy="compile, map or differentiate inside jax.enable_x64(True)",
        )
    else:
        require_bounds(name, np.asarray(known), minimum=minimum, above=above, below=below, maximum=maximum)
    if isinstance(known, jax.Array):
        return known if jax.numpy.issubdtype(known.dtype, np.floating) else known.astype(jax.numpy.result_type(float))
    # Everything except floating-point arrays of a narrower type becomes 64 bits wide.
    narrow = known.dtype.kind == "f" and known.dtype.itemsize < 8
    with np.errstate(over="ignore", under="ignore"):
        # Converted to native byte order, which JAX assumes without checking.
        array = np.asarray(known, known.dtype.newbyteorder("=") if narrow else np.float64)
    if not np.isfinite(array).all():
        lost = known[~np.isfinite(array)].ravel()[:1]
        raise InputError(
            f"{name} contains {lost[0]}, which double precision cannot represent",
            argument=name,
            value=lost.tolist(),
            remedy="choose other units",
        )
    return array


def require_unmasked(name: str, value: Any) -> None:
    """Raise `InputError` if a NumPy array has masked values, which arithmetic would otherwise use.

    Example:
        >>> require_unmasked("x", [1.0, 2.0])
    """
    import numpy as np  # here, as above

    hidden = int(np.ma.count_masked(value)) if isinstance(value, np.ma.MaskedArray) else 0
    require(
        hidden == 0,
        f"{name} contains {hidden} masked {'value' if hidden == 1 else 'values'}",
        argument=name,
        value=type(value).__name__,
        remedy="drop the masked values, or fill them with .filled()",
    )


def require_known(**arguments: Any) -> None:
    """Raise `InputError` if JAX traces an argument of a function that must read its values.

    Example:
        >>> require_known(target=1.0)
    """
    for name, value in arguments.items():
        require(
            not is_traced(value),
            f"{name} is traced by JAX",
            argument=name,
            value=type(value).__name__,
            remedy="call this function outside jit, vmap and grad, and pass many cases along leading axes",
        )

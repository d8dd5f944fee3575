"""Every check of an argument, once.

Each raises `InputError` with the argument, the value received and what to do instead. Values are checked in NumPy or
plain Python, before anything is compiled.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, SupportsIndex

from dynascope.errors import InputError

if TYPE_CHECKING:
    import numpy as np

__all__ = ["require", "require_array", "require_context", "require_covariance", "require_positive", "require_seed"]

_ROUNDING = 1e-10  # relative asymmetry or negative eigenvalue of a covariance that counts as rounding


def require(condition: Any, problem: str, *, argument: str, value: Any = None, remedy: str) -> None:
    """Raise `InputError` unless the condition holds."""
    if not condition:
        raise InputError(problem, argument=argument, value=value, remedy=remedy)


def require_positive(**arguments: Any) -> None:
    """Raise `InputError` unless every named number is finite and positive.

    Example:
        >>> require_positive(width=3, scale=1e-8)
    """
    for name, value in arguments.items():
        try:
            valid = math.isfinite(value) and value > 0
        except (TypeError, ValueError, OverflowError):
            valid = False
        require(
            valid,
            f"{name} is {value}",
            argument=name,
            value=value,
            remedy="choose a finite positive number",
        )


def require_seed(seed: Any) -> None:
    """Raise `InputError` unless the seed is a whole number from zero.

    Example:
        >>> require_seed(0)
    """
    require(
        isinstance(seed, SupportsIndex) and int(seed) >= 0,
        f"seed is {seed}",
        argument="seed",
        value=seed,
        remedy="choose zero or a positive whole number",
    )


def require_array(name: str, values: Any, shape: tuple[int | None, ...]) -> np.ndarray:
    """Return the values as a float64 array after checking that they are finite and have the shape.

    Args:
        name: Name of the argument, for the message.
        values: Anything `numpy.asarray` takes.
        shape: Expected length of each axis; None accepts any length.

    Returns:
        Array of dtype float64.

    Raises:
        InputError: The values are not real numbers, not finite, or of another shape.

    Example:
        >>> require_array("x", [[1, 2], [3, 4]], (None, 2)).shape
        (2, 2)
    """
    # Imported here so that the command line can report a bad argument without loading arrays.
    import numpy as np

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
    matches = array.ndim == len(shape) and all(
        want is None or want == got for want, got in zip(shape, array.shape, strict=True)
    )
    wanted = "(" + ", ".join("any" if length is None else str(length) for length in shape) + ")"
    require(
        matches,
        f"{name} has shape {array.shape}",
        argument=name,
        value=array.shape,
        remedy=f"pass an array of shape {wanted}",
    )
    bad = int(array.size - np.isfinite(array).sum())
    require(
        bad == 0,
        f"{name} has {bad} values that are not finite",
        argument=name,
        value=bad,
        remedy="drop or fill them first",
    )
    return array


def require_covariance(name: str, values: Any) -> np.ndarray:
    """Return Σ as a symmetric float64 matrix after checking that it is positive semi-definite and not zero.

    Args:
        name: Name of the argument, for the message.
        values: Σ of shape (d, d), or the d variances of independent inputs.

    Raises:
        InputError: The values are no such matrix, or not finite.

    Example:
        >>> require_covariance("covariance", [2.0, 1.0])
        array([[2., 0.],
               [0., 1.]])
    """
    import numpy as np

    # As objects, rows of unequal length are one axis of lists, which require_array then refuses by name.
    nesting = np.asarray(values, dtype=object).ndim
    matrix = require_array(name, values, (None, None) if nesting == 2 else (None,))
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


def require_context(context_length: Any) -> float:
    """Return the number N of labelled examples in a prompt after checking that it is at least one; it may be infinite.

    Example:
        >>> require_context(20)
        20.0
    """
    require(
        context_length >= 1,
        f"context_length is {context_length}",
        argument="context_length",
        value=context_length,
        remedy="choose at least one example, or infinity",
    )
    return float(context_length)

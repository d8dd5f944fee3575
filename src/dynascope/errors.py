"""The two ways a call can fail: the input was bad, or the run went wrong.

Both carry what a machine needs to report the failure (the argument, the value, the remedy) beside the sentence that a
person reads.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, SupportsIndex

if TYPE_CHECKING:
    import numpy as np

__all__ = ["DivergenceError", "InputError", "require", "require_array", "require_positive", "require_seed"]


class InputError(ValueError):
    """An argument is outside the domain of what was asked.

    Args:
        problem: One clause that says what is wrong, with the value received.
        argument: Name of the offending argument.
        value: The value received, or a short description of it.
        remedy: One clause that says what to do instead.

    Example:
        >>> raise InputError("scale is -1.0", argument="scale", value=-1.0, remedy="choose a positive number")
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: scale is -1.0: choose a positive number.
    """

    def __init__(self, problem: str, *, argument: str, value: Any = None, remedy: str):
        super().__init__(f"{problem}: {remedy}.")
        self.argument = argument
        self.value = value
        self.remedy = remedy


class DivergenceError(RuntimeError):
    """A training run left the finite numbers or could not be continued.

    Args:
        problem: One clause that says what happened.
        time: Gradient-flow time at which it happened.
        remedy: One clause that says what to try.
    """

    def __init__(self, problem: str, *, time: float, remedy: str):
        super().__init__(f"{problem}: {remedy}.")
        self.time = time
        self.remedy = remedy


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

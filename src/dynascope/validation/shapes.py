"""Checks of shapes of arrays that are checked already, known or traced by JAX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynascope.errors import InputError
from dynascope.validation.numbers import require

if TYPE_CHECKING:
    import numpy as np
    from jax import Array

__all__ = ["count_axes", "require_broadcast", "require_last_axes", "require_row_of_times", "require_shape"]


def count_axes(values: Any) -> int:
    """The number of axes of an array that is not checked yet; rows of unequal length count as one axis of lists.

    Example:
        >>> count_axes([[1, 2], [3, 4]]), count_axes([[1, 2], [3]]), count_axes("frob")
        (2, 1, 0)
    """
    import numpy as np  # not at the top, as above

    return values.ndim if hasattr(values, "ndim") else np.asarray(values, dtype=object).ndim


def require_shape(name: str, array: np.ndarray | Array, shape: tuple[int | None, ...]) -> None:
    """Raise `InputError` unless an array has the shape.

    Args:
        name: Name of the argument, for the message.
        array: Checked values.
        shape: Expected length of each axis; None accepts any length.

    Example:
        >>> import numpy as np
        >>> require_shape("targets", np.ones(3), (4,))
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: targets has shape (3,): pass an array of shape (4).
    """
    if array.ndim == len(shape) and all(want in (None, got) for want, got in zip(shape, array.shape, strict=True)):
        return
    wanted = ", ".join("any" if length is None else str(length) for length in shape)
    raise InputError(
        f"{name} has shape {array.shape}",
        argument=name,
        value=array.shape,
        remedy=f"pass an array of shape ({wanted})",
    )


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


def require_row_of_times(times: Any, *, name: str = "times", single: bool = True) -> None:
    """Raise `InputError` unless there is one axis, or none where a single time may be given.

    Example:
        >>> import numpy as np
        >>> require_row_of_times(np.arange(3.0))
    """
    shape = getattr(times, "shape", ())
    fits = len(shape) == 1 or (single and not shape)
    require(fits, f"{name} has shape {shape}", argument=name, value=shape, remedy="give a row of times")


def require_broadcast(**shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The common shape of arguments whose (leading) axes must fit together.

    Args:
        **shapes: The shape by the name of the argument.

    Raises:
        InputError: They do not broadcast; the error names the first that does not fit those before it.

    Example:
        >>> require_broadcast(times=(5,), rate=())
        (5,)
        >>> require_broadcast(times=(5,), rate=(3,))
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: rate has the leading shape (3,), which does not fit that of times, (5,): give...
    """
    import numpy as np  # here, so that the command line reports a bad argument without loading arrays

    common: tuple[int, ...] = ()
    if len(different := {*shapes.values()} - {common}) < 2:
        return next(iter(different), common)
    seen: list[str] = []
    for name, shape in shapes.items():
        try:
            common = np.broadcast_shapes(common, shape)
        except ValueError:
            raise InputError(
                f"{name} has the leading shape {shape}, which does not fit that of {', '.join(seen)}, {common}",
                argument=name,
                value=shape,
                remedy="give single numbers, or shapes that broadcast",
            ) from None
        seen.append(name)
    return common

"""Checks of the shapes of arrays, known or traced by JAX."""

from __future__ import annotations

from typing import Any

from dynascope.errors import InputError

__all__ = ["require_broadcast", "require_shape"]


def require_shape(name: str, array: Any, *shapes: tuple[Any, ...]) -> None:
    """Raise `InputError` unless an array has one of the shapes.

    Args:
        name: Name of the argument, for the message.
        array: A checked array, or a number, which has no axes.
        *shapes: Allowed lengths of the axes. None allows any length. A leading `...` allows additional leading axes;
            then the other axes must not be empty.

    Raises:
        InputError: If the array has none of the shapes.

    Example:
        >>> import numpy as np
        >>> require_shape("weights", np.ones((5, 2, 3)), (..., None, 3))
        >>> require_shape("targets", np.ones(3), (4,))
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: targets has shape (3,): pass an array of shape (4).
    """
    found = tuple(getattr(array, "shape", ()))
    if not any(_fits(found, shape) for shape in shapes):
        allowed = " or ".join(f"({', '.join(map(_length, shape))})" for shape in shapes)
        remedy = f"pass an array of shape {allowed}"
        raise InputError(f"{name} has shape {found}", argument=name, value=found, remedy=remedy)


def _fits(found: tuple[int, ...], shape: tuple[Any, ...]) -> bool:
    leading = shape[:1] == (...,)
    last = shape[leading:]
    if len(found) < len(last) or (len(found) > len(last) and not leading):
        return False
    lengths = found[len(found) - len(last) :]
    return all(want in (None, got) and got >= leading for want, got in zip(last, lengths, strict=True))


def _length(length: Any) -> str:
    return "..." if length is ... else "any" if length is None else str(length)


def require_broadcast(**shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the common shape to which the (leading) axes of arguments broadcast.

    Args:
        **shapes: The shapes, by argument name.

    Raises:
        InputError: The shapes do not broadcast; the error names the first argument that does not fit the preceding
            ones.

    Example:
        >>> require_broadcast(times=(5,), rate=())
        (5,)
        >>> require_broadcast(times=(5,), rate=(3,))
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: rate has the leading shape (3,), which does not fit the shape (5,) of times: ...
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
                f"{name} has the leading shape {shape}, which does not fit the shape {common} of {', '.join(seen)}",
                argument=name,
                value=shape,
                remedy="give numbers, or arrays whose shapes broadcast",
            ) from None
        seen.append(name)
    return common

"""Checks that concrete (not traced) arrays contain numbers within bounds, whole numbers, or increasing numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dynascope.errors import InputError
from dynascope.validation.numbers import require

if TYPE_CHECKING:
    import numpy as np

__all__ = ["require_bounds", "require_increasing", "require_whole_numbers"]


def require_bounds(
    name: str,
    values: np.ndarray,
    *,
    minimum: float = -math.inf,
    above: float = -math.inf,
    below: float = math.inf,
    maximum: float = math.inf,
) -> None:
    """Raise `InputError` unless all numbers of an array are finite and within the bounds.

    Args:
        name: Name of the argument, for the message.
        values: Numbers of any shape.
        minimum: Smallest value allowed.
        above: Number that every value must exceed.
        below: Number that every value must be less than.
        maximum: Largest value allowed.

    Raises:
        InputError: A number is not finite or not within the bounds.

    Example:
        >>> import numpy as np
        >>> require_bounds("noise", np.array([1.0, -0.5]), minimum=0)
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: noise contains -0.5: choose finite numbers of at least 0.
    """
    inside = (values >= minimum) & (values > above) & (values < below) & (values <= maximum)
    wrong = values[~(inside & (abs(values) < math.inf))]
    if wrong.size:
        worst = float(wrong.ravel()[0])
        bounds = (("of at least", minimum), ("above", above), ("below", below), ("of at most", maximum))
        limits = " and ".join(f"{words} {bound:g}" for words, bound in bounds if math.isfinite(bound))
        limits = limits.replace(" and of at most", " and at most")
        raise InputError(
            f"{name} {'contains' if values.ndim else 'is'} {worst:.6g}",
            argument=name,
            value=worst,
            remedy=f"choose finite numbers {limits}".rstrip(),
        )


def require_whole_numbers(name: str, values: np.ndarray, *, least: int = 0, most: int | None = None) -> None:
    """Raise `InputError` unless all numbers of an array are whole and within the bounds.

    Args:
        name: Name of the argument, for the message.
        values: Finite numbers of any shape.
        least: Smallest value allowed.
        most: Largest value allowed; None for no limit.

    Raises:
        InputError: A number is not whole or not within the bounds.

    Example:
        >>> import numpy as np
        >>> require_whole_numbers("samples", np.array([10.0, 0.5]), least=1)
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: samples contains 0.5: give whole numbers of at least 1.
    """
    wrong = (values < least) | (values % 1 != 0)
    wrong = values[wrong if most is None else wrong | (values > most)].ravel()
    require(
        wrong.size == 0,
        f"{name} contains {wrong[0] if wrong.size else 0:g}",
        argument=name,
        value=float(wrong[0]) if wrong.size else None,
        remedy=f"give whole numbers {f'of at least {least}' if most is None else f'from {least} to {most}'}",
    )


def require_increasing(
    name: str, values: np.ndarray, *, fewest: int = 1, remedy: str = "sort the numbers and drop duplicates"
) -> None:
    """Raise `InputError` unless a sequence of numbers strictly increases.

    Args:
        name: Name of the argument, for the message.
        values: Finite numbers, shape (n,).
        fewest: Minimum number of values.
        remedy: How to fix a sequence that does not increase, for the message.

    Raises:
        InputError: There are too few numbers, or a number is not larger than the one before it.

    Example:
        >>> import numpy as np
        >>> require_increasing("levels", np.array([1.0, 3.0, 2.0]))
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: levels is not increasing, since 2 follows 3: sort the numbers and drop duplicates.
    """
    require(
        len(values) >= fewest,
        f"{name} has {len(values)} {'number' if len(values) == 1 else 'numbers'}",
        argument=name,
        value=len(values),
        remedy=f"give at least {fewest} increasing numbers",
    )
    late = (~(values[1:] > values[:-1])).nonzero()[0]  # comparisons with NaN are false
    before, after = values[late[0] : late[0] + 2] if late.size else (0.0, 0.0)
    require(
        not late.size,
        f"{name} is not increasing, since {after:g} follows {before:g}",
        argument=name,
        value=float(after),
        remedy=remedy,
    )

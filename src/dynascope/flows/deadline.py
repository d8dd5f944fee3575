"""Optional time limits, after which flows stop and return the results recorded so far."""

from __future__ import annotations

import contextlib
import contextvars
import math
import time
from collections.abc import Iterator

from dynascope.validation import checked
from dynascope.validation.bounded_scalars import PositiveFloat

__all__ = ["is_limited", "overdue", "stopping_after"]

# A context variable, like the progress listener.
_end: contextvars.ContextVar[float] = contextvars.ContextVar("dynascope_deadline", default=math.inf)


@checked
@contextlib.contextmanager
def stopping_after(seconds: PositiveFloat) -> Iterator[None]:
    """Stop every flow in this context after the given number of seconds, and keep the results recorded so far.

    Flows run in compiled pieces and check the time after each piece. Every flow completes at least one piece. The limit
    includes compilation time.

    Args:
        seconds: Time limit in seconds from now. If limits are nested, the earliest applies.

    Raises:
        InputError: If the number of seconds is not positive.

    Example:
        >>> with stopping_after(3600):
        ...     is_limited(), overdue()
        (True, False)
    """
    token = _end.set(min(_end.get(), time.monotonic() + seconds))
    try:
        yield
    finally:
        _end.reset(token)


def is_limited() -> bool:
    """Whether a time limit is set."""
    return math.isfinite(_end.get())


def overdue() -> bool:
    """Whether the time limit has passed.

    Example:
        >>> overdue()
        False
    """
    return time.monotonic() >= _end.get()

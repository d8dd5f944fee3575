"""When long computations end with what they have; never, unless somebody gives them a time."""

from __future__ import annotations

import contextlib
import contextvars
import math
import time
from collections.abc import Iterator

from dynascope.validation import checked
from dynascope.validation.bounded_scalars import PositiveFloat

__all__ = ["is_limited", "overdue", "stopping_after"]

# Of this context, as who listens to progress is.
_end: contextvars.ContextVar[float] = contextvars.ContextVar("dynascope_deadline", default=math.inf)


@checked
@contextlib.contextmanager
def stopping_after(seconds: PositiveFloat) -> Iterator[None]:
    """Let every flow inside end after so many seconds, with what it has recorded until then.

    Flows run in compiled pieces, and look at the clock between two of them; so each makes one piece at least, and the
    compiling of it counts.

    Args:
        seconds: From now on; of two such limits the earlier one holds.

    Raises:
        InputError: The seconds are not positive.

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
    """Whether there is such a time."""
    return math.isfinite(_end.get())


def overdue() -> bool:
    """Whether it is over.

    Example:
        >>> overdue()
        False
    """
    return time.monotonic() >= _end.get()

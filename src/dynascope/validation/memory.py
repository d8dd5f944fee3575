"""Limits on memory, so that a computation that cannot fit is rejected before it starts."""

from __future__ import annotations

import contextlib
import functools
import os
import re
from pathlib import Path
from typing import Any

from dynascope.validation.numbers import require

__all__ = ["formatted_bytes", "machine_memory", "require_memory", "require_room", "require_unpacked"]

_UNKNOWN = 8 * 10**9  # bytes, if the system does not report its memory
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # of a container
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([KMGT]?)B?", re.IGNORECASE)

_SHARE = 4  # arrays may take 1/_SHARE of the memory, because computations make several copies of them


@functools.cache
def machine_memory() -> int:
    """Return the memory available to this process in bytes: that of the machine or, if smaller, of its container.

    Example:
        >>> machine_memory() > 10**8
        True
    """
    found = _UNKNOWN
    with contextlib.suppress(AttributeError, ValueError, OSError):
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for place in _LIMITS:
        with contextlib.suppress(OSError, ValueError):
            found = min(found, int(Path(place).read_text()))
    return found


def require_memory(size: float, what: str, *, argument: str, value: Any = None, remedy: str) -> None:
    """Raise `InputError` if a computation requires more memory than is available.

    The available memory is that of the machine, or the value of the environment variable `DYNASCOPE_MEMORY`, such as
    `8GB`.

    Args:
        size: Required memory in bytes.
        what: The object or computation that requires it, for the message.
        argument: Name of the argument that determines the size.
        value: Value of this argument.
        remedy: How to reduce the memory, for the message.

    Example:
        >>> require_memory(10**6, "the network", argument="width", value=9, remedy="choose a smaller one")
        >>> require_memory(10**18, "the network", argument="width", value=10**15, remedy="choose a smaller one")
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: the network needs 1 EB, but only ... GB of memory is available: choose...
    """
    limited = bool(os.environ.get("DYNASCOPE_MEMORY"))
    there = _limit() if limited else machine_memory()
    allowed = "is allowed by DYNASCOPE_MEMORY" if limited else "of memory is available"
    problem = f"{what} needs {formatted_bytes(size)}, but only {formatted_bytes(there)} {allowed}"
    require(size <= there, problem, argument=argument, value=value, remedy=remedy)


def require_room(numbers: int, *, each: int = 8, **sizes: Any) -> None:
    """Raise `InputError` if arrays with this number of elements need more than a quarter of the memory of the machine.

    Args:
        numbers: Total number of elements.
        each: Bytes per element.
        **sizes: The arguments that determine the number of elements, by name; the error names the largest.

    Example:
        >>> require_room(3 * 100, width=100)
        >>> require_room(3 * 10**15, inputs=3, width=10**15)
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: width is 1000000000000000, which requires arrays of 2.4e+07 GB: ...
    """
    needed, limit = each * int(numbers), machine_memory() // _SHARE
    name = max(sizes, key=lambda argument: sizes[argument])
    require(
        needed <= limit,
        f"{name} is {sizes[name]}, which requires arrays of {needed / 10**9:.2g} GB",
        argument=name,
        value=sizes[name],
        remedy=f"choose a smaller value (the limit, a quarter of the memory of this machine, is {limit / 1e9:.2g} GB)",
    )


def require_unpacked(size: float, what: str, *, argument: str = "path", value: Any = None) -> None:
    """Raise `InputError` if the unpacked content of a file needs more than a quarter of the memory.

    The environment variable `DYNASCOPE_MEMORY` sets another limit, such as `8GB`.

    Args:
        size: Size in bytes after unpacking.
        what: The file or the part of it, for the message.
        argument: Name of the argument with the path of the file.
        value: Value of this argument.

    Raises:
        InputError: The unpacked size exceeds the limit, or `DYNASCOPE_MEMORY` is not a number of bytes.

    Example:
        >>> require_unpacked(10**6, "trees.npz")
        >>> require_unpacked(10**15, "trees.npz")
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: trees.npz takes 1 PB when unpacked, but the limit is ...: give a smaller file...
    """
    limit = _limit()
    require(
        size <= limit,
        f"{what} takes {formatted_bytes(size)} when unpacked, but the limit is {formatted_bytes(limit)}",
        argument=argument,
        value=value,
        remedy="give a smaller file, or set the environment variable DYNASCOPE_MEMORY to a larger limit, such as 8GB",
    )


def formatted_bytes(size: float) -> str:
    """Format a number of bytes with a unit.

    Example:
        >>> formatted_bytes(7.45e9), formatted_bytes(12), formatted_bytes(10**40)
        ('7.45 GB', '12 bytes', '1e+16 YB')
    """
    if size < 1000:
        return f"{int(size)} bytes"
    power, units = 0, ("kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB")
    scaled = float(size) / 1000
    while scaled >= 999.5 and power + 1 < len(units):
        scaled, power = scaled / 1000, power + 1
    return f"{scaled:.3g} {units[power]}"


def _limit() -> float:
    text = os.environ.get("DYNASCOPE_MEMORY", "")
    if not text:
        return machine_memory() / 4
    found = _SIZE.fullmatch(text.strip())
    require(
        found is not None,
        f"DYNASCOPE_MEMORY is {text!r}",
        argument="DYNASCOPE_MEMORY",
        value=text,
        remedy="set it to an amount of memory, such as 8GB",
    )
    assert found is not None
    return float(found[1]) * _UNITS[found[2].upper()]

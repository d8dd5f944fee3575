"""How much memory there is, so that what cannot fit is refused before it is asked for."""

from __future__ import annotations

import contextlib
import functools
import os
import re
from pathlib import Path
from typing import Any

from dynascope.validation.numbers import require

__all__ = ["machine_memory", "require_memory", "require_room", "require_unpacked", "said_bytes"]

_UNKNOWN = 8 * 10**9  # bytes, where the system does not tell
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # of a container
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([KMGT]?)B?", re.IGNORECASE)

_SHARE = 4  # of the memory, arrays may take one part: what is computed from them takes as much again, and again


@functools.cache
def machine_memory() -> int:
    """Bytes of memory that this process may have: those of the machine, or of the container that it is in.

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
    """Raise `InputError` with the bytes that it would need unless something fits into the memory.

    That is the memory of the machine, or what the environment variable `DYNASCOPE_MEMORY` says, such as `8GB`.

    Args:
        size: Bytes that are needed.
        what: What needs them.
        argument: Name of the argument that makes it so large.
        value: Its value.
        remedy: What to do instead.

    Example:
        >>> require_memory(10**6, "the network", argument="width", value=9, remedy="choose a smaller one")
        >>> require_memory(10**18, "the network", argument="width", value=10**15, remedy="choose a smaller one")
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: the network needs 1 EB, and there are ... GB of memory: choose a smaller one.
    """
    said = bool(os.environ.get("DYNASCOPE_MEMORY"))
    there = _limit() if said else machine_memory()
    allowed = "allowed by DYNASCOPE_MEMORY" if said else "of memory"
    problem = f"{what} needs {said_bytes(size)}, and there are {said_bytes(there)} {allowed}"
    require(size <= there, problem, argument=argument, value=value, remedy=remedy)


def require_room(numbers: int, *, each: int = 8, **sizes: Any) -> None:
    """Raise `InputError` if arrays of so many numbers take more than a quarter of the memory of the machine.

    Args:
        numbers: How many numbers they hold.
        each: Bytes of one.
        **sizes: The arguments from which that number follows, by name; the error names the largest.

    Example:
        >>> require_room(3 * 100, width=100)
        >>> require_room(3 * 10**15, inputs=3, width=10**15)
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: width is 1000000000000000, for which arrays of 2.4e+07 GB would be needed: ...
    """
    needed, limit = each * int(numbers), machine_memory() // _SHARE
    name = max(sizes, key=lambda argument: sizes[argument])
    require(
        needed <= limit,
        f"{name} is {sizes[name]}, for which arrays of {needed / 10**9:.2g} GB would be needed",
        argument=name,
        value=sizes[name],
        remedy=f"choose a smaller one: a quarter of the memory of this machine is {limit / 1e9:.2g} GB",
    )


def require_unpacked(size: float, what: str, *, argument: str = "path", value: Any = None) -> None:
    """Raise `InputError` unless what a file says that it holds may be unpacked: a quarter of the memory.

    The environment variable `DYNASCOPE_MEMORY` sets another limit, such as `8GB`.

    Args:
        size: Bytes that it takes when it is unpacked.
        what: The file, or the part of it.
        argument: Name of the argument that names it.
        value: Its value.

    Raises:
        InputError: It takes more, or the limit is no number of bytes.

    Example:
        >>> require_unpacked(10**6, "trees.npz")
        >>> require_unpacked(10**15, "trees.npz")
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: trees.npz takes 1 PB when it is unpacked, and ... allowed: give less of it, or...
    """
    limit = _limit()
    require(
        size <= limit,
        f"{what} takes {said_bytes(size)} when it is unpacked, and {said_bytes(limit)} are allowed",
        argument=argument,
        value=value,
        remedy="give less of it, or allow more by the environment variable DYNASCOPE_MEMORY, such as 8GB",
    )


def said_bytes(size: float) -> str:
    """A number of bytes as a person reads it.

    Example:
        >>> said_bytes(7.45e9), said_bytes(12), said_bytes(10**40)
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
    said = os.environ.get("DYNASCOPE_MEMORY", "")
    if not said:
        return machine_memory() / 4
    found = _SIZE.fullmatch(said.strip())
    require(
        found is not None,
        f"DYNASCOPE_MEMORY is {said!r}",
        argument="DYNASCOPE_MEMORY",
        value=said,
        remedy="set it to a number of bytes, such as 8GB",
    )
    assert found is not None
    return float(found[1]) * _UNITS[found[2].upper()]

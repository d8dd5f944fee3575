"""When and with which versions a result was made."""

from __future__ import annotations

import dataclasses
import datetime
import platform
import sys
from collections.abc import Mapping

__all__ = ["Provenance"]

# What decides, beside this package and Python, which numbers come out; it has done so only where it is loaded.
_READ = ("jax", "numpy")


@dataclasses.dataclass(frozen=True)
class Provenance:
    """When, by which command and with which versions a result was made.

    It belongs to a result and not to its records, so that equal runs give equal records.

    Attributes:
        version: The version of dynascope.
        date: The date and time, UTC.
        versions: The versions of the packages that decide which numbers come out.
        command: The command that makes the result again.
    """

    version: str = ""
    date: str = ""
    versions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    command: str = ""

    @classmethod
    def now(cls, *, version: str, command: str = "") -> Provenance:
        """The provenance of a result that is made now.

        Example:
            >>> import numpy
            >>> Provenance.now(version="0.1.0").versions["numpy"] == numpy.__version__
            True
        """
        return cls(version, f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC", _versions(), command)


def _versions() -> dict[str, str]:
    loaded = {name: sys.modules[name].__version__ for name in _READ if name in sys.modules}
    return {**loaded, "python": platform.python_version()}

"""Date, command and package versions of a result."""

from __future__ import annotations

import dataclasses
import datetime
import platform
import sys
from collections.abc import Mapping

__all__ = ["Provenance"]

# Packages that affect the numbers, besides dynascope and Python; recorded only if loaded.
_READ = ("jax", "numpy")


@dataclasses.dataclass(frozen=True)
class Provenance:
    """Date, command and package versions of a result.

    The provenance is part of the result rather than of its records, so identical runs produce identical records.

    Attributes:
        version: The version of dynascope.
        date: The date and time, UTC.
        versions: The versions of the packages that affect the numbers.
        command: The command that reproduces the result.
    """

    version: str = ""
    date: str = ""
    versions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    command: str = ""

    @classmethod
    def now(cls, *, version: str, command: str = "") -> Provenance:
        """Return the provenance of a result made at the current time.

        Example:
            >>> import numpy
            >>> Provenance.now(version="0.1.0").versions["numpy"] == numpy.__version__
            True
        """
        return cls(version, f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC", _versions(), command)


def _versions() -> dict[str, str]:
    loaded = {name: sys.modules[name].__version__ for name in _READ if name in sys.modules}
    return {**loaded, "python": platform.python_version()}

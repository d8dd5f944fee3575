"""When and with which versions a result was made."""

from __future__ import annotations

import datetime
import platform
import sys
from typing import Any

__all__ = ["provenance"]

# What decides, beside this package and Python, which numbers come out; it has done so only where it is loaded.
_READ = ("jax", "numpy")


def provenance() -> dict[str, Any]:
    """The attributes `date`, in universal time, and `versions`, by name; this package's version is in every record.

    They belong to a tree and not to its records, so that equal runs give equal records.

    Example:
        >>> import numpy
        >>> provenance()["versions"]["numpy"] == numpy.__version__
        True
    """
    return {"date": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC", "versions": _versions()}


def _versions() -> dict[str, str]:
    loaded = {name: sys.modules[name].__version__ for name in _READ if name in sys.modules}
    return {**loaded, "python": platform.python_version()}

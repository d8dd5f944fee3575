"""When and with which versions a result was made."""

from __future__ import annotations

import datetime
import functools
import json
import platform
from importlib.metadata import version

__all__ = ["provenance"]

_READ = ("jax", "numpy")  # what decides, beside this package and Python, which numbers come out


def provenance() -> dict[str, str]:
    """The attributes `date`, in universal time, and `versions`, as JSON; this package's version is in every record.

    They belong to a tree and not to its records, so that equal runs give equal records.

    Example:
        >>> import numpy
        >>> json.loads(provenance()["versions"])["numpy"] == numpy.__version__
        True
    """
    return {"date": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC", "versions": _versions()}


@functools.cache
def _versions() -> str:
    return json.dumps({**{name: version(name) for name in _READ}, "python": platform.python_version()})

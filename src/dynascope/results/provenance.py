"""When and with which versions a result was made."""

from __future__ import annotations

import datetime
import json
import platform
import sys

__all__ = ["provenance"]

# What decides, beside this package and Python, which numbers come out; it has done so only where it is loaded.
_READ = ("jax", "numpy")


def provenance() -> dict[str, str]:
    """The attributes `date`, in universal time, and `versions`, as JSON; this package's version is in every record.

    They belong to a tree and not to its records, so that equal runs give equal records.

    Example:
        >>> import numpy
        >>> json.loads(provenance()["versions"])["numpy"] == numpy.__version__
        True
    """
    return {"date": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC", "versions": _versions()}


def _versions() -> str:
    loaded = {name: sys.modules[name].__version__ for name in _READ if name in sys.modules}
    return json.dumps({**loaded, "python": platform.python_version()})

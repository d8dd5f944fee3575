"""Selection of parameters by their names."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Collection

__all__ = ["selection"]


def selection(parameters: str | Collection[str] | Callable[[str], bool] | None) -> Callable[[str], bool]:
    """Return a function that tests whether the name of a parameter matches one of the patterns.

    Example:
        >>> selected = selection(["encoder.*", "*.bias"])
        >>> [selected(name) for name in ("encoder.weight", "head.bias", "head.weight")]
        [True, True, False]
    """
    if parameters is None:
        return lambda name: True
    if callable(parameters):
        return parameters
    patterns = [parameters] if isinstance(parameters, str) else list(parameters)
    return lambda name: any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)

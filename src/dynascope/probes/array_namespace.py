"""Which library an array belongs to, so that one probe serves NumPy, JAX and PyTorch."""

from __future__ import annotations

from typing import Any

from dynascope.errors import InputError

__all__ = ["array_namespace", "holds"]


def array_namespace(*arrays: Any) -> Any:
    """The array-API functions of the library that all these arrays belong to.

    NumPy and JAX offer them themselves; PyTorch has them only through array-api-compat, which the extra `torch` brings.

    Args:
        *arrays: One array or more, all of one library.

    Raises:
        InputError: An argument is not an array, or the arrays are of different libraries.

    Example:
        >>> import numpy as np
        >>> array_namespace(np.ones(3), np.zeros(2)) is np
        True
    """
    found = [_namespace(each) for each in arrays]
    if any(each is not found[0] for each in found):
        names = sorted({each.__name__ for each in found})
        raise InputError(
            f"arrays of different libraries were given ({', '.join(names)})",
            argument="array",
            value=names,
            remedy="convert all of them to the arrays of one library",
        )
    return found[0]


def holds(condition: Any) -> bool:
    """Whether it holds, or is not known because JAX traces."""
    try:
        return bool(condition)
    except TypeError:
        return True


def _namespace(array: Any) -> Any:
    if hasattr(array, "__array_namespace__"):
        return array.__array_namespace__()
    try:
        from array_api_compat import array_namespace as compatible_namespace

        return compatible_namespace(array)
    except (ImportError, TypeError):
        raise InputError(
            f"arrays of type {type(array).__name__} are not understood",
            argument="array",
            value=type(array).__name__,
            remedy="pass arrays of NumPy, JAX, or PyTorch (with dynascope[torch] installed)",
        ) from None

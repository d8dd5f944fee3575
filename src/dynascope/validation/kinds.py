"""Types in annotations: whether a value has a type, and the description of the type."""

from __future__ import annotations

import collections.abc
import contextlib
import math
import numbers
import os
import types
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from dynascope.validation.arrays import is_traced

__all__ = ["admits", "in_words", "is_array"]

_ROWS = (Sequence, Collection, Iterable, list, tuple)
_WORDS = {bool: "True or False", int: "a whole number", float: "a number", str: "text", type(None): "None"}
_MOST_WHOLE = 2**63 - 1  # limit of shapes and loops
_MOST = 100  # maximum number of elements to check


def admits(kind: Any, value: Any) -> bool:
    """Whether a value has the type in an annotation; an unsupported annotation admits every value.

    Example:
        >>> admits(float | None, 3), admits(int, 2.5), admits(Sequence[str], "ab")
        (True, False, False)
    """
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return any(admits(each, value) for each in parts)
    if origin is Annotated:
        return admits(parts[0], value)
    if isinstance(kind, TypeVar):
        return any(admits(each, value) for each in kind.__constraints__ or (kind.__bound__ or Any,))
    if origin is Literal:
        return any(type(value) is type(each) for each in parts)  # the function itself checks which of them it is
    if kind is None or kind is type(None):
        return value is None
    if kind in (int, float):
        return is_traced(value) or (_is_number(value) and (kind is float or _is_whole(value)))
    if kind is bool:
        return type(value).__name__ in ("bool_", "bool") or (isinstance(value, int) and value in (0, 1))
    if _is_path(kind):
        return isinstance(value, os.PathLike)
    if origin is collections.abc.Callable:
        return callable(value)
    if origin in (Mapping, dict):
        return isinstance(value, Mapping)
    if origin in _ROWS:
        return _is_row(value, parts)
    if is_array(kind):
        return is_traced(value) or _is_numeric(value, kind)
    if isinstance(kind, type):
        with contextlib.suppress(TypeError):  # a protocol without runtime checks
            return is_traced(value) or isinstance(value, kind)
    return True


def _is_number(value: Any) -> bool:
    """Whether the value is one real number that a float can represent."""
    if not isinstance(value, numbers.Real) and getattr(value, "ndim", None) != 0:
        return False
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return getattr(getattr(value, "dtype", None), "kind", "f") in "iufb"


def _is_whole(value: Any) -> bool:
    return (
        not isinstance(value, bool)
        and math.isfinite(value)
        and bool(value == int(value))
        and bool(abs(value) <= _MOST_WHOLE)
    )


def _is_path(kind: Any) -> bool:
    return get_origin(kind) is os.PathLike or (isinstance(kind, type) and issubclass(kind, PurePath))


def _is_row(value: Any, parts: Sequence[Any]) -> bool:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable) or hasattr(value, "columns"):
        return False
    if not isinstance(value, list | tuple) or not parts or hasattr(value, "_fields"):
        part = get_args(parts[0])[0] if parts and get_origin(parts[0]) is Annotated else (*parts, Any)[0]
        of_numbers = part in (Any, int, float) or any(map(is_array, (part, *get_args(part))))
        return getattr(value, "ndim", 1) > 0 and (of_numbers or getattr(value, "dtype", None) in (None, object))
    several = len(parts) > 1 and parts[1] is not ...
    if several and len(value) != len(parts):
        return False
    kinds = parts if several else [parts[0]] * len(value)
    return all(admits(kind, each) for kind, each in zip(kinds[:_MOST], value[:_MOST], strict=True))


def _is_numeric(value: Any, kind: Any) -> bool:
    """Whether the value is an array of numbers, or convertible to one, with the number of axes in the annotation."""
    import numpy as np  # here, so that the command line reports a bad argument without loading arrays

    if isinstance(value, complex):
        return False
    if hasattr(value, "detach"):
        axes = value.ndim
    else:
        try:
            array = np.asarray(value)
        except (TypeError, ValueError, OverflowError):
            return False
        axes = array.ndim
        if array.dtype.kind not in "iufbc" and "float" not in array.dtype.name:
            return False
    shape = getattr(kind, "dim_str", "...")
    return "..." in shape or "*" in shape or axes == len(shape.split())


def is_array(kind: Any) -> bool:
    """Whether an annotation is an array type, with or without a shape.

    Example:
        >>> is_array(float)
        False
    """
    return isinstance(kind, type) and (hasattr(kind, "array_type") or kind.__name__ in ("ndarray", "Array"))


def in_words(kind: Any) -> str:
    """Describe the type in an annotation for an error; `Annotated[…, "text"]` provides its own description.

    Example:
        >>> in_words(Sequence[float] | None)
        'a list in which each element is a number or None'
    """
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        words = list(dict.fromkeys(in_words(each) for each in parts))
        return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
    if origin is Annotated:
        return next((each for each in kind.__metadata__ if isinstance(each, str)), in_words(parts[0]))
    if isinstance(kind, TypeVar):
        return " or ".join(in_words(each) for each in kind.__constraints__ or (kind.__bound__,))
    if origin is Literal:
        return " or ".join(map(repr, parts))
    if _is_path(kind):
        return "a path"
    if origin is collections.abc.Callable:
        return "a function"
    if origin in (Mapping, dict):
        return "a dictionary"
    if origin in _ROWS:
        return "a list" if not parts or parts[0] is Any else f"a list in which each element is {in_words(parts[0])}"
    if is_array(kind):
        shape = getattr(kind, "dim_str", "")
        return "an array of numbers" + (f" of shape ({', '.join(shape.split())})" if shape else "")
    if kind is None or kind in _WORDS:
        return _WORDS[kind if kind is not None else type(None)]
    name = getattr(kind, "__name__", str(kind))
    vowels = "AEFHILMNORSX" if name.isupper() else "AEIOU"  # as in "an SGD"
    return f"{'an' if name[:1] in vowels else 'a'} {name}"

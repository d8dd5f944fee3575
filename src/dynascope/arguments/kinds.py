"""Arguments of another kind than the annotation of a function says: a path for a record, text for a number, ….

Functions check values, of which they know what is allowed. Where one fails in another way, the face of its room, which
is what strangers call, looks for an argument that it cannot take, and names it.
"""

from __future__ import annotations

import collections.abc
import contextlib
import functools
import inspect
import numbers
import os
import sys
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin

import lazy_loader

from dynascope.arguments.arrays import is_traced
from dynascope.arguments.numbers import require, shown
from dynascope.errors import InputError

__all__ = ["checked", "face"]

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

_ROWS = (Sequence, Collection, Iterable, list, tuple)
_FOREIGN = (TypeError, AttributeError, ValueError, LookupError, ArithmeticError, RuntimeError)
_MOST = 100  # elements that are looked at one by one
_WORDS = {bool: "True or False", int: "a whole number", float: "a number", str: "text", type(None): "None"}


def face(name: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """What the `__init__` of a room needs to offer the names of its stub, loaded when they are used.

    Its functions refuse arguments of another kind than their annotations say, by name.

    Args:
        name: `__name__` of the room.
        file: `__file__` of the room.

    Returns:
        Its `__getattr__`, `__dir__` and `__all__`.
    """
    load, names, offered = lazy_loader.attach_stub(name, file)

    def get(attribute: str) -> Any:
        value = load(attribute)
        if not (inspect.isfunction(value) or (hasattr(value, "__wrapped__") and not inspect.isclass(value))):
            return value
        guarded, room = checked(value), vars(sys.modules[name])
        if room.get(attribute) is value:  # in the place of a module of the same name
            room[attribute] = guarded
        return guarded

    return get, names, offered


@functools.cache
def checked(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """The function, which fails with `InputError` where an argument is of another kind than its annotation says.

    Args:
        function: Any function. Annotations that are not understood allow everything.

    Returns:
        A function of the same arguments.

    Example:
        >>> @checked
        ... def repeated(word: str, times: int = 2) -> str:
        ...     return word * times
        >>> repeated("ab")
        'abab'
        >>> repeated(None)
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: word is None: give text.
    """
    parameters = inspect.signature(function).parameters
    positional = [name for name, each in parameters.items() if each.kind <= each.POSITIONAL_OR_KEYWORD]

    @functools.wraps(function)
    def call(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Result:
        try:
            return function(*arguments, **named)
        except InputError:
            raise
        except _FOREIGN:
            for name, value in (*zip(positional, arguments, strict=False), *named.items()):
                if name in parameters and value is not parameters[name].default:
                    _require_kind(name, value, _annotations(function).get(name, Any))
            raise

    return call


@functools.cache
def _annotations(function: Callable[..., Any]) -> dict[str, Any]:
    """What the annotations mean; those whose names are only known to a type checker are left out."""
    found = {}
    plain = inspect.unwrap(function)
    for name, said in getattr(plain, "__annotations__", {}).items():
        if not isinstance(said, str):
            found[name] = said
            continue
        with contextlib.suppress(Exception):  # whatever a name that is not there makes of an expression
            found[name] = eval(said, vars(sys.modules[plain.__module__]))
    return found


def _require_kind(name: str, value: Any, kind: Any) -> None:
    require(
        _admits(kind, value),
        f"{name} is {repr(shown(value)) if isinstance(value, str) else shown(value)}",
        argument=name,
        value=shown(value),
        remedy=f"give {_in_words(kind)}",
    )


def _admits(kind: Any, value: Any) -> bool:
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return any(_admits(each, value) for each in parts)
    if origin is Annotated:
        return _admits(parts[0], value)
    if origin is Literal:
        return any(type(value) is type(each) for each in parts)  # which of them it is the function looks up itself
    if kind is None or kind is type(None):
        return value is None
    if kind in (int, float):
        return is_traced(value) or _is_number(value)
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
    if _is_array(kind):
        return not (value is None or isinstance(value, str | bytes | Mapping | set) or callable(value))
    if isinstance(kind, type):
        with contextlib.suppress(TypeError):  # of a protocol that cannot be asked
            return is_traced(value) or isinstance(value, kind)
    return True


def _is_number(value: Any) -> bool:
    """Whether it is one real number that a float can hold."""
    if not isinstance(value, numbers.Real) and getattr(value, "ndim", None) != 0:
        return False
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return getattr(getattr(value, "dtype", None), "kind", "f") in "iufb"


def _is_path(kind: Any) -> bool:
    return get_origin(kind) is os.PathLike or (isinstance(kind, type) and issubclass(kind, PurePath))


def _is_row(value: Any, parts: Sequence[Any]) -> bool:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        return False
    if not isinstance(value, list | tuple) or not parts or hasattr(value, "_fields"):
        return getattr(value, "ndim", 1) > 0
    several = len(parts) > 1 and parts[1] is not ...
    if several and len(value) != len(parts):
        return True  # how many there must be is told by the function
    kinds = parts if several else [parts[0]] * len(value)
    return all(_admits(kind, each) for kind, each in zip(kinds[:_MOST], value[:_MOST], strict=True))


def _is_array(kind: Any) -> bool:
    """Whether it is an annotation of an array, with or without a shape."""
    return isinstance(kind, type) and (hasattr(kind, "array_type") or kind.__name__ in ("ndarray", "Array"))


def _in_words(kind: Any) -> str:
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        words = list(dict.fromkeys(_in_words(each) for each in parts))
        return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
    if origin is Annotated:
        return _in_words(parts[0])
    if origin is Literal:
        return " or ".join(map(repr, parts))
    if _is_path(kind):
        return "a path"
    if origin is collections.abc.Callable:
        return "a function"
    if origin in (Mapping, dict):
        return "a dictionary"
    if origin in _ROWS:
        return "a list" if not parts or parts[0] is Any else f"a list of which each is {_in_words(parts[0])}"
    if _is_array(kind):
        return "an array of numbers"
    if kind is None or kind in _WORDS:
        return _WORDS[kind if kind is not None else type(None)]
    name = getattr(kind, "__name__", str(kind))
    return f"{'an' if name[:1] in 'AEIOU' else 'a'} {name}"

"""Arguments of another kind than the annotation of a function says: a path for a record, text for a number, ….

Functions check values, of which they know what is allowed. Where one fails in another way, the face of its room, which
is what strangers call, looks for an argument that it cannot take, and names it.
"""

from __future__ import annotations

import collections.abc
import contextlib
import dataclasses
import functools
import inspect
import math
import numbers
import os
import sys
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin

import lazy_loader

from dynascope.arguments.arrays import is_traced
from dynascope.arguments.numbers import require, shown
from dynascope.arguments.plain import plainly
from dynascope.errors import InputError

__all__ = ["checked", "face"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

_ROWS = (Sequence, Collection, Iterable, list, tuple)
_FOREIGN = (TypeError, AttributeError, ValueError, LookupError, ArithmeticError, RuntimeError)
_MOST_WHOLE = 10**12  # beyond which no number of anything fits
_MANY_AXES = 4  # which no argument has that is not annotated with its shape
_MOST = 100  # elements that are looked at one by one
_WORDS = {bool: "True or False", int: "a whole number", float: "a number", str: "text", type(None): "None"}


def face(
    name: str, file: str, *, kinds: bool = True
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """What the `__init__` of a room needs to offer the names of its stub, loaded when they are used.

    Its functions and classes refuse arguments of another kind than their annotations say, by name.

    Args:
        name: `__name__` of the room.
        file: `__file__` of the room.
        kinds: Whether kinds are told from annotations, as they are not where these are of another library's.

    Returns:
        Its `__getattr__`, `__dir__` and `__all__`.
    """
    load, names, offered = lazy_loader.attach_stub(name, file)
    guard: Any = checked if kinds else plainly

    def get(attribute: str) -> Any:
        value = load(attribute)
        if inspect.isclass(value):
            return _with_checked_methods(value) if kinds else value
        if not (inspect.isfunction(value) or (hasattr(value, "__wrapped__") and not inspect.isclass(value))):
            return value
        guarded, room = guard(value), vars(sys.modules[name])
        if room.get(attribute) is value:  # in the place of a module of the same name
            room[attribute] = guarded
        return guarded

    return get, names, offered


@functools.cache
def checked(function: _Function) -> _Function:
    """The function, which fails with `InputError` where an argument is of another kind than its annotation says.

    It gets its arguments `plainly`.

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
    if getattr(function, "guarded", None) is function:
        return function
    signature = inspect.signature(function)
    parameters = signature.parameters
    positional = [name for name, each in parameters.items() if each.kind <= each.POSITIONAL_OR_KEYWORD]
    plain = plainly(function)

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        try:
            return plain(*arguments, **named)
        except InputError:
            raise
        except _FOREIGN:
            if not _binds(signature, arguments, named):
                raise
            for name, value in (*zip(positional, arguments, strict=False), *named.items()):
                if name in parameters and name not in ("self", "cls") and value is not parameters[name].default:
                    _require_kind(name, value, _annotations(function).get(name, Any))
                    _require_plain(name, value)
            raise

    # Decorators hand on what a function holds, and so it says of which one this is true.
    vars(call)["guarded"] = call
    return cast(_Function, call)


def _binds(signature: inspect.Signature, arguments: tuple[Any, ...], named: dict[str, Any]) -> bool:
    """Whether the function has arguments of these names; if not, Python's own error says which it has not."""
    try:
        signature.bind(*arguments, **named)
    except TypeError:
        return False
    return True


@functools.cache
def _with_checked_methods(kind: Any) -> Any:
    """The class itself, of which what strangers call is checked; methods of networks are called in programs."""
    names = ["__init__"]
    if dataclasses.is_dataclass(kind) and "__call__" not in vars(kind):
        names += [name for name in vars(kind) if not name.startswith("_")]
    for name in names:
        own = vars(kind).get(name)
        if isinstance(own, classmethod):
            setattr(kind, name, classmethod(checked(own.__func__)))
        elif inspect.isfunction(own):
            setattr(kind, name, checked(own))
    return kind


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
            found[name] = eval(said, _usual_names() | vars(sys.modules[plain.__module__]))
    return found


def _usual_names() -> dict[str, Any]:
    """Libraries that a module may know for its annotations only, by the names that they have everywhere."""
    usual = {"xr": "xarray", "np": "numpy", "pd": "pandas", "jax": "jax", "plt": "matplotlib.pyplot"}
    return {name: sys.modules[library] for name, library in usual.items() if library in sys.modules}


def _require_kind(name: str, value: Any, kind: Any) -> None:
    require(
        _admits(kind, value),
        f"{name} is {repr(shown(value)) if isinstance(value, str) else shown(value)}",
        argument=name,
        value=shown(value),
        remedy=f"give {_in_words(kind)}",
    )


def _require_plain(name: str, value: Any) -> None:
    """Refuse what fits together with no others."""
    problem, remedy = "", ""
    if (isinstance(value, list) and not value) or getattr(value, "size", 1) == 0:
        problem, remedy = "is empty", "give some numbers"
    elif getattr(value, "ndim", 0) >= _MANY_AXES:
        problem, remedy = (
            f"has shape {tuple(getattr(value, 'shape', ()))}",
            "give numbers of a shape that fits the others",
        )
    elif getattr(value, "requires_grad", False):
        problem, remedy = "is a tensor that is differentiated", "give it detached, by .detach()"
    elif type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "detach"):
        problem, remedy = "is a tensor of PyTorch", "give all arrays as tensors, or this one by .numpy()"
    elif hasattr(value, "toarray"):
        problem, remedy = "is a sparse matrix", "give it by .toarray()"
    elif type(value).__module__.partition(".")[0] == "pandas":
        problem, remedy = f"is a {type(value).__name__}", "give it by .to_numpy()"
    require(not problem, f"{name} {problem}", argument=name, value=type(value).__name__, remedy=remedy)


def _admits(kind: Any, value: Any) -> bool:
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return any(_admits(each, value) for each in parts)
    if origin is Annotated:
        return _admits(parts[0], value)
    if isinstance(kind, TypeVar):
        return any(_admits(each, value) for each in kind.__constraints__ or (kind.__bound__ or Any,))
    if origin is Literal:
        return any(type(value) is type(each) for each in parts)  # which of them it is the function looks up itself
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
    if _is_array(kind):
        return is_traced(value) or _is_numeric(value, kind)
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


def _is_whole(value: Any) -> bool:
    return not isinstance(value, bool) and math.isfinite(value) and value == int(value) and abs(value) < _MOST_WHOLE


def _is_path(kind: Any) -> bool:
    return get_origin(kind) is os.PathLike or (isinstance(kind, type) and issubclass(kind, PurePath))


def _is_row(value: Any, parts: Sequence[Any]) -> bool:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        return False
    if not isinstance(value, list | tuple) or not parts or hasattr(value, "_fields"):
        of_numbers = not parts or parts[0] in (Any, int, float) or _is_array(parts[0])
        return getattr(value, "ndim", 1) > 0 and (of_numbers or getattr(value, "dtype", None) in (None, object))
    several = len(parts) > 1 and parts[1] is not ...
    if several and len(value) != len(parts):
        return False
    kinds = parts if several else [parts[0]] * len(value)
    return all(_admits(kind, each) for kind, each in zip(kinds[:_MOST], value[:_MOST], strict=True))


def _is_numeric(value: Any, kind: Any) -> bool:
    """Whether it is an array of numbers, or becomes one, of as many axes as the annotation says."""
    import numpy as np  # here, so that the command line reports a bad argument without loading arrays

    if isinstance(value, complex):
        return False
    if hasattr(value, "detach"):
        axes, size = value.ndim, value.numel()
    else:
        try:
            array = np.asarray(value)
        except (TypeError, ValueError, OverflowError):
            return False
        axes, size = array.ndim, array.size
        if array.dtype.kind not in "iufbc" and "float" not in array.dtype.name:
            return False
    said = getattr(kind, "dim_str", "...")
    return size > 0 and ("..." in said or "*" in said or axes == len(said.split()))


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
    if isinstance(kind, TypeVar):
        return " or ".join(_in_words(each) for each in kind.__constraints__ or (kind.__bound__,))
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
        shape = getattr(kind, "dim_str", "")
        return "an array of numbers" + (f" of shape ({', '.join(shape.split())})" if shape else "")
    if kind is None or kind in _WORDS:
        return _WORDS[kind if kind is not None else type(None)]
    name = getattr(kind, "__name__", str(kind))
    return f"{'an' if name[:1] in 'AEIOU' else 'a'} {name}"

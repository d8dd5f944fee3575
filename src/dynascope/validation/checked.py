"""Functions that check their arguments against their annotations: the type of each, and the bounds of its numbers."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

import lazy_loader

from dynascope.errors import InputError
from dynascope.validation.annotations import Check, checks_of

__all__ = ["checked", "face"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


def checked(function: _Function) -> _Function:
    """Wrap a function so that every argument is checked against its annotation before the function runs.

    Numbers and arrays are checked against bounds of `annotated-types`, such as `Annotated[float, Gt(0)]`. An argument
    with bounds must also be finite; the function receives it as a Python number or a floating-point array. Traced
    values are accepted if the annotation names a JAX array. The function itself checks constraints between arguments.

    Args:
        function: A function, or a class, whose `__init__` and public methods are then checked. An argument whose
            annotation implies no restriction may have any value.

    Returns:
        A function with the same signature, whose `InputError` names the argument, the value and the remedy.

    Example:
        >>> from typing import Annotated
        >>> from annotated_types import Ge, Gt
        >>> @checked
        ... def decay(rate: Annotated[float, Gt(0)], steps: Annotated[int, Ge(0)] = 1) -> float:
        ...     return (1 - rate) ** steps
        >>> decay(0.5, steps=2)
        0.25
        >>> decay(-0.5)
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: rate is -0.5: choose a finite number above 0.
    """
    return cast(_Function, _with_checked_methods(function) if inspect.isclass(function) else _checked(function))


@functools.cache
def _checked(function: Callable[..., Any]) -> Callable[..., Any]:
    if getattr(function, "guarded", None) is function:
        return function
    signature = inspect.signature(function)
    names = [name for name, each in signature.parameters.items() if each.kind <= each.POSITIONAL_OR_KEYWORD]
    defaults = {name: each.default for name, each in signature.parameters.items()}
    checks: dict[str, Check] | None = None

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        nonlocal checks
        if checks is None:  # at the first call, because annotations may name later imports
            checks = checks_of(function)
        given = list(arguments)
        try:
            for place, name in enumerate(names[: len(given)]):
                if name in checks and given[place] is not defaults[name]:
                    given[place] = checks[name](name, given[place])
            for name, value in named.items():
                if name in checks and value is not defaults[name]:
                    named[name] = checks[name](name, value)
        except InputError as error:
            signature.bind(*arguments, **named)  # raises Python's error if the arguments do not match the signature
            raise error.with_traceback(None) from None  # the traceback ends at the user's call
        return function(*given, **named)

    # The attribute refers to this function, because decorators copy attributes to other functions.
    vars(call)["guarded"] = call
    return call


def face(name: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Lazily load the names in the stub of a package, for its `__init__`.

    The functions and classes of the package are `checked`.

    Args:
        name: `__name__` of the package.
        file: `__file__` of the package.

    Returns:
        `__getattr__`, `__dir__` and `__all__` of the package.
    """
    load, names, offered = lazy_loader.attach_stub(name, file)

    def get(attribute: str) -> Any:
        value = load(attribute)
        if not (inspect.isclass(value) or inspect.isfunction(value) or hasattr(value, "__wrapped__")):
            return value
        guarded, room = checked(cast(Callable[..., Any], value)), vars(sys.modules[name])
        if room.get(attribute) is value:  # replaces a module of the same name
            room[attribute] = guarded
        return guarded

    return get, names, offered


@functools.cache
def _with_checked_methods(kind: Any) -> Any:
    """Check the public methods of a class in place, except those of networks, which run inside compiled programs."""
    names: Iterable[str] = ["__init__"]
    if dataclasses.is_dataclass(kind) and "__call__" not in vars(kind):
        names = ["__init__", *(name for name in vars(kind) if not name.startswith("_"))]
    for name in names:
        own = vars(kind).get(name)
        if isinstance(own, classmethod):
            setattr(kind, name, classmethod(checked(own.__func__)))
        elif inspect.isfunction(own):
            setattr(kind, name, checked(own))
    return kind

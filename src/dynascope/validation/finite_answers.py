"""Functions whose answers are finite: where an answer overflows or is NaN, the call raises instead of returning it."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from dynascope.errors import InputError
from dynascope.validation.arrays import is_traced
from dynascope.validation.checked import checked

__all__ = ["arguments_of", "finite_answers", "is_finite", "require_answer", "sizes_of"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

_ORDINARY = 64  # arguments between 2⁻⁶⁴ and 2⁶⁴ are not what an error of arithmetic comes from


def finite_answers(*, infinite: bool = False) -> Callable[[_Function], _Function]:
    """Decorate a function so that its arguments are `checked` and an answer that is not finite raises.

    Args:
        infinite: Whether ∞ is among the answers, so that only NaN is refused.

    Raises:
        InputError: When called: the answer is not finite; the error names the argument of the most unusual size.

    Example:
        >>> @finite_answers()
        ... def area(radius: float) -> float:
        ...     return math.pi * radius * radius
        >>> area(1e200)
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: radius is about 1e+200, for which the answer leaves the floating-point numbers: ...
    """

    def decorate(function: _Function) -> _Function:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def call(*positional: Any, **named: Any) -> Any:
            try:
                answer = function(*positional, **named)
            except InputError:
                raise
            except (ArithmeticError, ValueError):
                given = arguments_of(signature, positional, named)
                if max(map(abs, _extremes(given).values()), default=0.0) <= _ORDINARY:
                    raise
                raise _beyond(given) from None
            if not is_finite(answer, infinite):
                raise _beyond(arguments_of(signature, positional, named))
            return answer

        return checked(call)  # pyright: ignore[reportReturnType]

    return decorate


def require_answer(answer: Any, arguments: Mapping[str, Any], *, infinite: bool = False) -> Any:
    """Return the answer if all its known numbers are finite.

    Args:
        answer: Arrays and numbers, in tuples and records.
        arguments: What it is the answer to, by name.
        infinite: Whether ∞ is one.

    Raises:
        InputError: NaN or ∞ in the answer; it names the argument of the most unusual size.

    Example:
        >>> require_answer((1.0, "static"), {})
        (1.0, 'static')
    """
    if not is_finite(answer, infinite):
        raise _beyond(arguments)
    return answer


def is_finite(answer: Any, infinite: bool) -> bool:
    """Whether all known numbers of an answer are numbers, and finite unless ∞ is one."""
    import jax  # not at the top, so that the command line reports a bad argument without it
    import numpy as np

    held = vars(answer) if dataclasses.is_dataclass(answer) else answer
    for part in jax.tree.leaves(held):
        if isinstance(part, float | np.ndarray | np.generic | jax.Array) and not is_traced(part):
            values = np.asarray(part)
            if values.dtype.kind == "f" and (np.isnan(values).any() if infinite else not np.isfinite(values).all()):
                return False
    return True


def arguments_of(signature: inspect.Signature, positional: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call by name with their defaults, those of `**options` beside the others."""
    bound = signature.bind(*positional, **named)
    bound.apply_defaults()
    found: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        found |= value if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD else {name: value}
    return found


def _beyond(arguments: Mapping[str, Any]) -> InputError:
    """The error of an answer that is not finite; it names the argument of the most unusual size."""
    extremes = _extremes(arguments)
    name = max(extremes, key=lambda each: abs(extremes[each]), default="times")
    size = f"1e{extremes.get(name, 0.0) * math.log10(2):+.0f}"
    return InputError(
        f"{name} is about {size}, for which the answer leaves the floating-point numbers",
        argument=name,
        value=size,
        remedy="choose values nearer to those of the other arguments",
    )


def _extremes(arguments: Mapping[str, Any]) -> dict[str, float]:
    """The most unusual size of each argument, in powers of two."""
    sizes = {name: sizes_of(value) for name, value in arguments.items()}
    return {name: max(found, key=abs) for name, found in sizes.items() if found}


def sizes_of(value: Any) -> list[float] | None:
    """Sizes of the largest number and of the smallest but zero, in powers of two; None where it holds no numbers."""
    import jax  # not at the top, as above
    import numpy as np

    try:
        if dataclasses.is_dataclass(value):  # settings, which are numbers
            value = [part for part in vars(value).values() if isinstance(part, int | float)]
        parts = [np.asarray(part, np.float64).ravel() for part in jax.tree.leaves(value)]
    except (TypeError, ValueError, OverflowError):
        return None
    found = np.abs(np.concatenate(parts)) if parts else np.zeros(0)
    if not np.isfinite(found).all():
        return None
    found = found[found > 0]
    return [math.log2(found.max()), math.log2(found.min())] if found.size else []

"""Decorator for functions with finite results: raise `InputError` if a result overflows or is NaN."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from dynascope.errors import InputError
from dynascope.validation import checked, is_traced

__all__ = ["arguments_of", "finite_answers", "is_finite", "require_answer", "sizes_of"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

_ORDINARY = 64  # arguments between 2⁻⁶⁴ and 2⁶⁴ do not make a result overflow on their own


def finite_answers(*, infinite: bool = False) -> Callable[[_Function], _Function]:
    """Decorate a function so that it checks its arguments and raises `InputError` for a result that is not finite.

    Args:
        infinite: Whether ∞ is a valid result. If so, only NaN raises `InputError`.

    Raises:
        InputError: If a result or an intermediate value of a call is not finite. The error lists the arguments above
            2⁶⁴ or below 2⁻⁶⁴ or, if all are between these limits, every numeric argument.

    Example:
        >>> @finite_answers()
        ... def area(radius: float) -> float:
        ...     return math.pi * radius * radius
        >>> area(1e200)
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: the result is not a finite number at radius ≈ 1e+200: choose less extreme values.
    """

    def decorate(function: _Function) -> _Function:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def call(*positional: Any, **named: Any) -> Any:
            try:
                answer = function(*positional, **named)
            except InputError:
                raise
            except (ArithmeticError, ValueError) as error:
                given = arguments_of(signature, positional, named)
                # NumPy and SciPy raise ValueError for intermediate values that are not finite.
                if isinstance(error, ValueError) and not _extreme(_sizes(given)):
                    raise
                raise _overflow(given) from error
            if not is_finite(answer, infinite):
                raise _overflow(arguments_of(signature, positional, named))
            return answer

        return checked(call)  # pyright: ignore[reportReturnType]

    return decorate


def require_answer(answer: Any, arguments: Mapping[str, Any], *, infinite: bool = False) -> Any:
    """Return a result unchanged if all its concrete numbers are finite.

    Args:
        answer: Arrays and numbers, in tuples and records.
        arguments: The arguments of the computation, by name.
        infinite: Whether ∞ is valid.

    Raises:
        InputError: If the result contains NaN or ∞; the error lists the arguments as in `finite_answers`.

    Example:
        >>> require_answer((1.0, "static"), {})
        (1.0, 'static')
    """
    if not is_finite(answer, infinite):
        raise _overflow(arguments)
    return answer


def is_finite(answer: Any, infinite: bool) -> bool:
    """Whether a result contains no NaN and, unless ∞ is valid, no infinite number; traced values are skipped."""
    import jax  # imported late, so that the command line can report a bad argument without loading JAX
    import numpy as np

    held = vars(answer) if dataclasses.is_dataclass(answer) else answer
    for part in jax.tree.leaves(held):
        if isinstance(part, float | np.ndarray | np.generic | jax.Array) and not is_traced(part):
            values = np.asarray(part)
            finite = values.dtype.kind != "f" or np.isfinite(values).all()
            if not finite and not (infinite and not np.isnan(values).any()):
                return False
    return True


def arguments_of(signature: inspect.Signature, positional: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by name, with defaults filled in and `**options` merged."""
    bound = signature.bind(*positional, **named)
    bound.apply_defaults()
    found: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        found |= value if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD else {name: value}
    return found


def _overflow(arguments: Mapping[str, Any]) -> InputError:
    """Return the error for a result that is not finite."""
    sizes = _sizes(arguments)
    values = {name: f"{2.0**size:.3g}" for name, size in (_extreme(sizes) or sizes).items()}
    listed = ", ".join(f"{name} ≈ {value}" for name, value in values.items())
    return InputError(
        f"the result is not a finite number{f' at {listed}' if listed else ''}",
        argument=", ".join(values) or "arguments",
        value=", ".join(values.values()),
        remedy="choose less extreme values",
    )


def _sizes(arguments: Mapping[str, Any]) -> dict[str, float]:
    """Base-2 logarithm of the most extreme number of each argument."""
    return {name: max(found, key=abs) for name, value in arguments.items() if (found := sizes_of(value))}


def _extreme(sizes: Mapping[str, float]) -> dict[str, float]:
    """Return the sizes above 2⁶⁴ or below 2⁻⁶⁴."""
    return {name: size for name, size in sizes.items() if abs(size) > _ORDINARY}


def sizes_of(value: Any) -> list[float] | None:
    """Base-2 logarithms of the largest and the smallest non-zero absolute value; None if there are no numbers."""
    import jax  # imported late, as above
    import numpy as np

    try:
        if dataclasses.is_dataclass(value):  # settings that consist of numbers
            value = [part for part in vars(value).values() if isinstance(part, int | float)]
        parts = [np.asarray(part, np.float64).ravel() for part in jax.tree.leaves(value)]
    except (TypeError, ValueError, OverflowError):
        return None
    found = np.abs(np.concatenate(parts)) if parts else np.zeros(0)
    if not np.isfinite(found).all():
        return None
    found = found[found > 0]
    return [math.log2(found.max()), math.log2(found.min())] if found.size else []

"""Rescale extreme arguments to units in which they are of order one, and convert the result back.

A function declares the units of its arguments and its result. Squares of large numbers then do not overflow and small
initial weights do not underflow, and the formulas need no special cases.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from dynascope.errors import InputError
from dynascope.theory.finite_answers import arguments_of, finite_answers, is_finite, require_answer, sizes_of
from dynascope.validation import checked, is_traced

__all__ = ["in_units", "parsed_units"]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Units = str | Mapping[str, Any] | tuple[Any, ...]

_ORDINARY = 64  # arguments between 2⁻⁶⁴ and 2⁶⁴ are not rescaled
_SMALL, _LARGE = 2.0**-_ORDINARY, 2.0**_ORDINARY


def in_units(
    *standards: str, gives: _Units = "", infinite: bool = False, **units: _Units
) -> Callable[[_Function], _Function]:
    """Declare the units of a function, and rescale its arguments if any is above 2⁶⁴ or below 2⁻⁶⁴.

    Units are powers of two, so rescaling causes no rounding errors. In these units, the arguments in `standards` are of
    order one. Values that JAX traces are not rescaled. The decorated function also validates its arguments with
    `validation.checked`.

    Args:
        *standards: Names of the arguments that should be of order one, the most important first. An entry such as
            "target|weights" offers alternatives; the function chooses the argument that, if scaled to order one, keeps
            the other at most of order one. An argument is skipped if it is zero or if earlier arguments already
            determine its units.
        gives: Units of the result: one unit for all numbers, a mapping from names to units, or a tuple with one unit
            per part.
        infinite: Whether ∞ is a valid result.
        **units: Units of each argument that has units, such as "metre^2 second^-1"; for a record, a mapping from the
            names of its parts to units. An omitted argument of `**options` counts as 1.

    Raises:
        InputError: If the result of a call is NaN or overflows.

    Example:
        >>> @in_units("length", length="m", gives="m^2")
        ... def diagonal_square(length, count=2):
        ...     return length**4 / length**2 * count
        >>> print(f"{diagonal_square(1e-100):.0e}")
        2e-200
        >>> diagonal_square(1e160)
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: the result is not a finite number at length ≈ 1e+160: choose less extreme values.
    """

    def state(function: _Function) -> _Function:
        signature = inspect.signature(function)

        finite = finite_answers(infinite=infinite)(function)

        @functools.wraps(function)
        def call(*positional: Any, **named: Any) -> Any:
            if all(map(_is_ordinary, (*positional, *named.values()))):
                answer = function(*positional, **named)
                if is_finite(answer, infinite):
                    return answer
            given = arguments_of(signature, positional, named)
            powers = _powers(standards, units, given)
            if not powers:
                return finite(*positional, **named)
            changed = {name: _scaled(given[name], unit, powers) for name, unit in units.items()}
            try:
                answer = finite(**given | changed)
            except InputError:
                finite(*positional, **named)  # so that the error reports the original values
                raise
            backwards = {unit: -power for unit, power in powers.items()}
            return require_answer(_scaled(answer, gives, backwards), given, infinite=infinite)

        vars(call)["units"] = {"gives": gives, "arguments": units}
        return checked(call)  # pyright: ignore[reportReturnType]

    return state


def _is_ordinary(value: Any) -> bool:
    """Quick check that no number has to be rescaled; False if the full check is necessary."""
    kind = type(value)
    if kind is float or kind is int:
        return value == 0 or _SMALL < abs(value) < _LARGE
    if value is None or kind is str or kind is bool:
        return True
    if isinstance(value, list | tuple):
        return all(map(_is_ordinary, value))
    if is_traced(value) or getattr(getattr(value, "dtype", None), "kind", "") != "f":
        return False
    import numpy as np  # imported late, as in `finite_answers`

    sizes = abs(np.asarray(value))  # in NumPy, because JAX would trace the result inside a transformation
    return bool(((sizes < _LARGE) & ((sizes > _SMALL) | (sizes == 0))).all())


def _powers(standards: tuple[str, ...], units: Mapping[str, _Units], given: dict[str, Any]) -> dict[str, int]:
    """Return the power of two by which each unit is rescaled; empty if no number has to be rescaled."""
    import numpy as np  # imported late, as in `finite_answers`

    for name in units:
        given.setdefault(name, 1.0)
    sizes: dict[str, tuple[dict[str, int], float]] = {}
    extreme = False
    for name, unit in units.items():
        for path, (part, size) in _measured(name, given[name], unit).items():
            if size is None:  # the function itself rejects such a value
                return {}
            extreme = extreme or abs(size) > _ORDINARY
            if math.isfinite(size):
                sizes[path] = (parsed_units(part), size)
    if not extreme:
        return {}
    names = sorted({unit for parsed, _ in sizes.values() for unit in parsed})
    rows = {path: np.array([parsed.get(unit, 0) for unit in names], float) for path, (parsed, _) in sizes.items()}
    chosen: list[str] = []

    def solved(paths: list[str]) -> np.ndarray:
        return np.linalg.lstsq(np.stack([rows[each] for each in paths]), [-sizes[each][1] for each in paths])[0]

    for standard in standards:
        new = [each for each in standard.split("|") if each in rows]
        new = [each for each in new if np.linalg.matrix_rank([rows[one] for one in [*chosen, each]]) > len(chosen)]
        if new:
            found = {each: solved([*chosen, each]) for each in new}
            chosen.append(min(new, key=lambda each: max(sizes[one][1] + rows[one] @ found[each] for one in new)))
    powers = np.round(solved(chosen)).astype(int) if chosen else np.zeros(len(names), int)
    return dict(zip(names, powers.tolist(), strict=True)) if powers.any() else {}


def _measured(name: str, value: Any, unit: _Units) -> dict[str, tuple[str, float | None]]:
    """Return the unit and the size, as a power of two, of an argument or of each part of a record."""
    if value is None:
        return {}
    if isinstance(unit, Mapping):
        parts = (_measured(f"{name}.{field}", getattr(value, field, None), part) for field, part in unit.items())
        return {path: measured for part in parts for path, measured in part.items()}
    found = sizes_of(value)
    return {name: (str(unit), None if found is None else max(found, default=-math.inf))}


def _scaled(value: Any, unit: _Units, powers: Mapping[str, int]) -> Any:
    """Return a value in rescaled units, including all parts of a record or tuple."""
    if value is None:
        return value
    if isinstance(unit, Mapping):
        parts = {field: _scaled(getattr(value, field), part, powers) for field, part in unit.items()}
        return value._replace(**parts) if hasattr(value, "_replace") else dataclasses.replace(value, **parts)
    if isinstance(unit, tuple):
        parts = [_scaled(each, part, powers) for each, part in zip(value, unit, strict=True)]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    power = sum(powers.get(name, 0) * times for name, times in parsed_units(str(unit)).items())
    if not power:
        return value
    import jax  # imported late, as in `finite_answers`

    return jax.tree.map(lambda part: _times_power(part, power), value)


def _times_power(value: Any, power: int) -> Any:
    import jax  # imported late, as in `finite_answers`
    import numpy as np

    array = np.asarray(value)
    if array.dtype.kind not in "iuf":
        return value
    with np.errstate(over="ignore", under="ignore"):
        scaled = np.ldexp(np.asarray(array, np.float64), power)
    if isinstance(value, jax.Array):
        with jax.enable_x64(True):
            return jax.device_put(scaled)
    return scaled if isinstance(value, np.ndarray) else float(scaled)


@functools.cache
def parsed_units(units: str) -> dict[str, int]:
    """Return the exponent of each unit in a string such as "metre^2 second^-1"."""
    found: dict[str, int] = {}
    for part in units.split():
        name, _, power = part.partition("^")
        found[name] = found.get(name, 0) + int(power or 1)
    return found

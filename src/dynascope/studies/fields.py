"""Fields of studies: each with its default, what it is in one sentence, and the check of its value."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

from dynascope.arguments import require, require_choice, require_integer, require_seed

__all__ = [
    "check_fields",
    "checked",
    "choice",
    "choices",
    "count",
    "described",
    "flag",
    "fraction",
    "number",
    "numbers",
    "positive",
    "seed",
    "text",
]

Bound = float | str | None  # a number, or the name of another field
_Check = Callable[[str, Any, Any], None]


def count(default: int | None, description: str, *, least: Bound = 1, most: Bound = None) -> Any:
    """A whole number from `least` to `most`; None where that is the default."""

    def check(name: str, value: Any, study: Any) -> None:
        if value is None and default is None:
            return
        low, high = _bound(least, study, 1), _bound(most, study, math.inf)
        require_integer(least=int(low), most=high, **{name: value})

    return _field(default, description, check)


def positive(default: float, description: str, *, least: Bound = None, most: Bound = None, below: Bound = None) -> Any:
    """A finite number above zero, from `least` to `most`, and below `below`."""
    return number(default, description, above=0.0, least=least, most=most, below=below)


def fraction(default: float, description: str, *, open_below: bool = False, open_above: bool = False) -> Any:
    """A number from zero to one, without these where the interval is open."""
    return number(
        default,
        description,
        above=0.0 if open_below else None,
        least=None if open_below else 0.0,
        below=1.0 if open_above else None,
        most=None if open_above else 1.0,
    )


def number(
    default: float | None,
    description: str,
    *,
    above: Bound = None,
    least: Bound = None,
    most: Bound = None,
    below: Bound = None,
    nonzero: bool = False,
) -> Any:
    """A finite number within bounds, which are numbers or names of other fields; None where that is the default."""

    def check(name: str, value: Any, study: Any) -> None:
        if value is None and default is None:
            return
        _require_number(name, value, study, above, least, most, below, nonzero)

    return _field(default, description, check)


def numbers(
    default: Sequence[float],
    description: str,
    *,
    fewest: int = 1,
    different: bool = True,
    whole: bool = False,
    increasing: bool = False,
    above: Bound = None,
    least: Bound = None,
    most: Bound = None,
    below: Bound = None,
) -> Any:
    """Finite numbers, each within bounds, and different ones unless `different` is false."""
    many = {0: "a list of", 1: "one or more"}.get(fewest, f"{fewest} or more")

    def check(name: str, value: Any, study: Any) -> None:
        listed = isinstance(value, list | tuple)
        require(
            listed and len(value) >= fewest and (not different or len(set(value)) == len(value)),
            f"{name} is {value}",
            argument=name,
            value=value,
            remedy=f"give {many} {'different ' if different else ''}numbers",
        )
        for each in value:
            if whole:
                require_integer(least=int(_bound(least, study, 1)), most=_bound(most, study, math.inf), **{name: each})
            else:
                _require_number(name, each, study, above, least, most, below, nonzero=False)
        require(
            not increasing or sorted(value) == list(value),
            f"{name} is {value}",
            argument=name,
            value=value,
            remedy="sort the numbers",
        )

    return _field(list(default), description, check)


def choice(default: str | int, description: str, options: Sequence[str | int]) -> Any:
    """One of the options."""
    return _field(default, description, lambda name, value, study: require_choice(name, value, tuple(options)))


def choices(default: Sequence[str], description: str, options: Sequence[str], *, fewest: int = 1) -> Any:
    """Different options, one or more of them unless there may be none."""

    def check(name: str, value: Any, study: Any) -> None:
        different = isinstance(value, list | tuple) and len(value) >= fewest and len(set(value)) == len(value)
        require(
            different and set(value) <= set(options),
            f"{name} is {value}",
            argument=name,
            value=value,
            remedy=f"choose {'one or more of' if fewest else 'from'} {', '.join(options)}, each once",
        )

    return _field(list(default), description, check)


def flag(default: bool, description: str) -> Any:
    """Yes or no."""
    return _field(default, description, lambda name, value, study: require_choice(name, value, (True, False)))


def text(default: str | None, description: str) -> Any:
    """A text that is checked where it is used, such as the path of data."""
    return _field(default, description, lambda name, value, study: None)


def checked(default: Any, description: str, check: Callable[[Any], Any] | None = None) -> Any:
    """Anything, with a check of its own; without one the study checks it where it is used."""
    return _field(default, description, lambda name, value, study: check and check(value))


def seed(description: str) -> Any:
    """A seed, 0 by default."""
    return _field(0, description, lambda name, value, study: require_seed(value))


def check_fields(study: Any) -> None:
    """Check the values of all fields of a study.

    Raises:
        InputError: One is outside its domain.
    """
    for field in dataclasses.fields(study):
        check: _Check | None = field.metadata.get("check")
        if check is not None:
            check(field.name, getattr(study, field.name), study)


def described(study: type) -> str:
    """The docstring of a study with what its fields say of themselves."""
    lines = [f"    {each.name}: {each.metadata['description']}" for each in _own_fields(study)]
    beginning = (study.__doc__ or "").rstrip()
    return f"{beginning}\n\n    Attributes:\n" + "\n".join("    " + line for line in lines) if lines else beginning


def _own_fields(study: type) -> list[Any]:
    return [field for field in dataclasses.fields(study) if "description" in field.metadata]


def _field(default: Any, description: str, check: _Check) -> Any:
    metadata = {"description": description, "check": check}
    if isinstance(default, list):
        return dataclasses.field(default_factory=lambda: list(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def _bound(bound: Bound, study: Any, without: float) -> float:
    if bound is None:
        return without
    return getattr(study, bound) if isinstance(bound, str) else bound


def _require_number(
    name: str, value: Any, study: Any, above: Bound, least: Bound, most: Bound, below: Bound, nonzero: bool
) -> None:
    try:
        finite = math.isfinite(value)
    except (TypeError, OverflowError):
        finite = False
    bounds = (
        ("above", above, lambda bound: value > bound),
        ("of at least", least, lambda bound: value >= bound),
        ("of at most", most, lambda bound: value <= bound),
        ("below", below, lambda bound: value < bound),
    )
    given = [(word, bound, holds) for word, bound, holds in bounds if bound is not None]
    inside = finite and all(holds(_bound(bound, study, 0.0)) for _, bound, holds in given)
    words = " and ".join(
        f"{word} {f'{bound} ({_bound(bound, study, 0.0):g})' if isinstance(bound, str) else f'{bound:g}'}"
        for word, bound, _ in given
    )
    require(
        inside and not (nonzero and value == 0),
        f"{name} is {value}",
        argument=name,
        value=value,
        remedy=f"choose a finite number{' other than zero' if nonzero else ''} {words}".rstrip(),
    )

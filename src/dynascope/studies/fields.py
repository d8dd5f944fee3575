"""Fields of studies: each with its default, what it is in one sentence, and the check of its value."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args, get_type_hints

from dynascope.validation import require, require_choice, require_integer, require_number, require_seed

__all__ = [
    "check_fields",
    "checked",
    "choice",
    "choices",
    "count",
    "described",
    "descriptions",
    "flag",
    "fraction",
    "initial_scale",
    "number",
    "numbers",
    "positive",
    "seed",
    "stand_ins",
    "text",
    "weakest",
]

Bound = float | str | None  # of a field, which is a number, or the name of another field
_Check = Callable[[str, Any, Any], None]


def count(default: int | None, description: str, *, least: Bound = 1, most: Bound = None, zero: str = "") -> Any:
    """A whole number from `least` to `most`; None where that is the default; `zero` says what zero stands for."""

    def check(name: str, value: Any, study: Any) -> None:
        if value is not None or default is not None:
            low, high = _bound(least, study, 1), _bound(most, study, math.inf)
            require_integer(least=int(low), most=high, **{name: value})

    return _field(default, description, check, {"0": zero} if zero else {})


def positive(default: float, description: str, **bounds: Any) -> Any:
    """A finite number above zero, from `least` to `most`, and below `below`."""
    return number(default, description, above=0.0, **bounds)


def fraction(default: float, description: str, *, open_below: bool = False, open_above: bool = False) -> Any:
    """A number from zero to one, without these where the interval is open."""
    bounds: Any = {"above" if open_below else "least": 0.0, "below" if open_above else "most": 1.0}
    return number(default, description, **bounds)


def number(default: float | None, description: str, *, nonzero: bool = False, **bounds: Any) -> Any:
    """A finite number within bounds (`above`, `least`, `most`, `below`), each a number or the name of another field.

    None where that is the default.
    """

    def check(name: str, value: Any, study: Any) -> None:
        if value is not None or default is not None:
            _require_number(name, value, study, bounds, nonzero)

    return _field(default, description, check)


def numbers(
    default: Sequence[float],
    description: str,
    *,
    fewest: int = 1,
    different: bool = True,
    whole: bool = False,
    increasing: bool = False,
    **bounds: Any,
) -> Any:
    """Finite numbers, each within bounds, and different ones unless `different` is false."""
    many = {0: "a list of", 1: "one or more"}.get(fewest, f"{fewest} or more")
    each_of = f"{many} {'different ' if different else ''}numbers"

    def check(name: str, value: Any, study: Any) -> None:
        listed = isinstance(value, list | tuple) and len(value) >= fewest
        right = listed and (not different or len(set(value)) == len(value))
        require(right, f"{name} is {value}", argument=name, value=value, remedy=f"give {each_of}")
        for each in value:
            if whole:
                least, most = _bound(bounds.get("least"), study, 1), _bound(bounds.get("most"), study, math.inf)
                require_integer(least=int(least), most=most, **{name: each})
            else:
                _require_number(name, each, study, bounds)
        in_order = not increasing or sorted(value) == list(value)
        require(in_order, f"{name} is {value}", argument=name, value=value, remedy="sort the numbers")

    return _field(list(default), description, check)


def choice(default: str | int, description: str, options: Sequence[str | int] = ()) -> Any:
    """One of the options, which are those of the Literal by which the field is annotated if none are given."""

    def check(name: str, value: Any, study: Any) -> None:
        require_choice(name, value, tuple(options) or get_args(get_type_hints(type(study))[name]))

    return _field(default, description, check)


def choices(default: Sequence[str], description: str, options: Sequence[str], *, fewest: int = 1) -> Any:
    """Different options, one or more of them unless there may be none."""
    remedy = f"choose {'one or more of' if fewest else 'from'} {', '.join(options)}, each once"

    def check(name: str, value: Any, study: Any) -> None:
        right = isinstance(value, list | tuple) and len(value) >= fewest and len(set(value)) == len(value)
        right = right and set(value) <= set(options)
        require(right, f"{name} is {value}", argument=name, value=value, remedy=remedy)

    return _field(list(default), description, check, {"[]": "none"})


def flag(default: bool, description: str) -> Any:
    """Yes or no."""
    return choice(default, description, (True, False))


def text(default: str | None, description: str) -> Any:
    """A text that is checked where it is used, such as the path of data."""
    return _field(default, description, lambda name, value, study: None)


def checked(default: Any, description: str, check: Callable[[Any], Any] | None = None) -> Any:
    """Anything, with a check of its own; without one the study checks it where it is used."""
    return _field(default, description, lambda name, value, study: check and check(value))


def seed(description: str) -> Any:
    """A seed, 0 by default."""
    return _field(0, description, lambda name, value, study: require_seed(value))


def initial_scale(
    default: float, of: str = "Factor on the initial weights", *, most: float | None = None, beside: str = "1e-4 of it"
) -> Any:
    """The scale from which a staircase starts; above `most` times are known to no better than half or twice."""
    largest, bounds = ("", {"below": 1.0}) if most is None else (f", at most {most:g}", {"most": most})
    return positive(default, f"{of}{largest}; the slopes are measured between it and {beside}.", **bounds)


def weakest(default: float, what: str = "Smallest singular value") -> Any:
    """The smallest of equally spaced strengths, of which the field `strongest` has the largest."""
    return positive(default, f"{what}; the others are equally spaced between them.", most="strongest")


def check_fields(study: Any) -> None:
    """Check the values of all fields of a study.

    Raises:
        InputError: One is outside its domain.
    """
    for field in dataclasses.fields(study):
        if check := field.metadata.get("check"):
            check(field.name, getattr(study, field.name), study)


def descriptions(study: Any) -> dict[str, str]:
    """What the fields of a study say of themselves, by name; nothing of those that say nothing."""
    said = {each.name: each.metadata.get("description") for each in dataclasses.fields(study)}
    return {name: description for name, description in said.items() if description is not None}


def stand_ins(study: Any) -> dict[str, str]:
    """What the values of a study stand for, by the names of the fields whose value stands for something else."""
    meanings = {each.name: each.metadata.get("meanings", {}) for each in dataclasses.fields(study)}
    values = {name: str(getattr(study, name)) for name in meanings}
    return {name: meanings[name][value] for name, value in values.items() if value in meanings[name]}


def described(study: type) -> str:
    """The docstring of a study with what its fields say of themselves."""
    lines = [f"        {name}: {description}" for name, description in descriptions(study).items()]
    return "\n".join([(study.__doc__ or "").rstrip(), *(["\n    Attributes:", *lines] if lines else [])])


def _field(default: Any, description: str, check: _Check, meanings: Mapping[str, str] | None = None) -> Any:
    """A field; an empty list and None stand for the choice of the study unless `meanings` says otherwise."""
    start: dict[str, Any] = {"default_factory": default.copy} if isinstance(default, list) else {"default": default}
    chosen = dict.fromkeys(("None", "[]"), "chosen by the study")
    metadata = {"description": description, "check": check, "meanings": {**chosen, **(meanings or {})}}
    return dataclasses.field(**start, metadata=metadata)


def _bound(bound: Bound, study: Any, without: float) -> float:
    if bound is None:
        return without
    return getattr(study, bound) if isinstance(bound, str) else bound


def _require_number(name: str, value: Any, study: Any, bounds: Mapping[str, Bound], nonzero: bool = False) -> None:
    known = {each: bound for each, bound in bounds.items() if bound is not None}
    limits: Any = {each: _bound(bound, study, 0.0) for each, bound in known.items()}
    named = {each: bound for each, bound in known.items() if isinstance(bound, str)}
    require_number(name, value, named=named, nonzero=nonzero, **limits)

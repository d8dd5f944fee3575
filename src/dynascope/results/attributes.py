"""The schema of the attributes of records, used to validate stored records.

Pages, tables and `print` use these attributes without further checks. Attributes with other names are ignored and not
validated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from dynascope.results.staircase_names import INITIAL_LOSS
from dynascope.validation import require, shown

__all__ = ["CHART", "check_attributes"]

_Check = Callable[[Any], bool]
_LARGEST = 1e300  # of a whole number, which may have any number of digits


class _Kind(NamedTuple):
    """The type of an attribute.

    Attributes:
        check: Returns whether a value has this type.
        words: The text that follows "is not" in error messages.
    """

    check: _Check
    words: str


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < _LARGEST


def _count(value: Any) -> bool:
    return _whole(value) and value >= 1


def _number(value: Any) -> bool:
    return isinstance(value, float) or _whole(value)


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, bool) or _text(value) or _number(value)


def _between(least: float, most: float = math.inf) -> _Check:
    return lambda value: _number(value) and least <= value <= most


def _tolerance(value: Any) -> bool:
    return _number(value) and not value < 0  # NaN where it is unknown


def _flag(value: Any) -> bool:
    return isinstance(value, int) and value in (0, 1)


def _truth(value: Any) -> bool:
    return isinstance(value, bool)


def _one_of(*choices: Any) -> _Check:
    return lambda value: isinstance(value, str) and value in choices


def _either(*checks: _Check) -> _Check:
    return lambda value: any(check(value) for check in checks)


def _none(value: Any) -> bool:
    return value is None


def _list(check: _Check, length: int | None = None) -> _Check:
    return lambda value: isinstance(value, list | tuple) and length in (None, len(value)) and all(map(check, value))


def _object(check: _Check) -> _Check:
    return lambda value: isinstance(value, Mapping) and all(map(check, value.values()))


def _fields(required: Mapping[str, _Check], optional: Mapping[str, _Check] | None = None) -> _Check:
    known = {**required, **(optional or {})}
    return lambda value: (
        isinstance(value, Mapping)
        and required.keys() <= value.keys() <= known.keys()
        and all(known[name](each) for name, each in value.items())
    )


# The fields of a chart as `results.to_attributes` writes them.
CHART: dict[str, _Check] = {
    **dict.fromkeys(("over", "caption", "title", "x_label", "y_label"), _text),
    **dict.fromkeys(("points", "joined", "arrows", "residual", "staircase"), _truth),
    **dict.fromkeys(("trained", "words"), _list(_text)),
    "log": _one_of("", "x", "y", "xy"),
    "members": _object(_list(_plain)),
    "places": _object(_list(_whole)),
    "symbols": _object(_text),
    "interval": _either(_none, _list(_text, 2)),
    "error": _either(_none, _text),
    "decades": _either(_none, _between(0)),
}
_QUANTITY = _fields({"error": _either(_none, _number), "tolerance": _tolerance, "agrees": _truth}, {"reason": _text})
_PARAMETER = _either(_plain, _list(_either(_plain, _list(_plain))), _object(_plain))

_TEXT = _Kind(_text, "text")
_NUMBER = _Kind(_number, "a number")
_TOLERANCE = _Kind(_tolerance, "a non-negative number")
_SHARE = _Kind(_between(0, 1), "a number from 0 to 1")
_COUNT = _Kind(_count, "a positive integer")
_FLAG = _Kind(_flag, "0 or 1")
_TEXTS = _Kind(_list(_text), "a list of strings")
_NAMED_TEXTS = _Kind(_object(_text), "an object that contains strings")
_QUANTITIES = _Kind(_object(_QUANTITY), "an object with error, tolerance and agrees for each quantity")
_KINDS = {
    **dict.fromkeys(("convention", "version", "title", "claim", "reference", "question", "meaning"), _TEXT),
    **dict.fromkeys(("equation", "verdict_sentence", "study", "command", "date", "task", "network", "theory"), _TEXT),
    **dict.fromkeys(("theory_name", "theory_choice", "data_hash", "flow", "optimizer", "solver", "variables"), _TEXT),
    **dict.fromkeys(("curve_variables", "steps", "loss_function", "loss_convention"), _TEXT),
    **dict.fromkeys((INITIAL_LOSS, "curve_error", "share_of_fall"), _NUMBER),
    **dict.fromkeys(("warnings", "description", "findings"), _TEXTS),
    **dict.fromkeys(("descriptions", "stand_ins", "versions"), _NAMED_TEXTS),
    **dict.fromkeys(("agreement", "checks"), _QUANTITIES),
    **dict.fromkeys(("normalised", "complete"), _FLAG),
    **dict.fromkeys(("samples", "input_dimension", "output_dimension", "degree"), _COUNT),
    "smallest_jump": _SHARE,
    "confidence": _SHARE,
    "scale": _Kind(_between(0, _LARGEST), "a finite non-negative number"),
    "batch_size": _Kind(_either(_number, _none), "a number or null"),
    "verdict": _Kind(_one_of("agree", "disagree", "undecided"), "'agree', 'disagree' or 'undecided'"),
    "claims": _Kind(
        _object(_one_of("holds", "does not hold", "undecided")),
        "an object with 'holds', 'does not hold' or 'undecided' for each claim",
    ),
    "parameters": _Kind(_object(_PARAMETER), "an object that contains numbers, strings and lists of these"),
    "image_shape": _Kind(
        _either(_none, _list(_count, 2)),
        "a list with a height and a width, or null",
    ),
    "figures": _Kind(_list(_fields({"variables": _either(_text, _list(_text))}, CHART)), "a list of charts"),
}
_COMPARISON = ("verdict", "verdict_sentence", "agreement", "checks", "claims")  # `compare` writes all of them


def check_attributes(attributes: Mapping[Any, Any]) -> None:
    """Raise `InputError` unless the attributes of a group have the expected types.

    Raises:
        InputError: An attribute has the wrong type, or a part of a comparison is missing.

    Example:
        >>> check_attributes({"task": "trees", "scale": 1e-8})
        >>> check_attributes({"verdict": 5})
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: the attribute 'verdict' is not 'agree', 'disagree' or 'undecided': ...
    """
    for name, value in attributes.items():
        kind = _kind_of(str(name))
        if kind is None:
            continue
        require(
            kind.check(value.item() if isinstance(value, np.generic) else value),
            f"the attribute {str(name)!r} is not {kind.words}",
            argument=str(name),
            value=shown(value),
            remedy="create the record again, or use make_record",
        )
    for name in _missing(attributes):
        require(
            False,
            f"the attribute {name!r} of a comparison is missing",
            argument=name,
            remedy="create the record again",
        )


def _kind_of(name: str) -> _Kind | None:
    if name.endswith("_tolerance_reason"):
        return _TEXT
    return _TOLERANCE if name.endswith("_tolerance") else _KINDS.get(name)


def _missing(attributes: Mapping[Any, Any]) -> Iterator[str]:
    if not attributes.keys().isdisjoint(_COMPARISON):
        yield from (name for name in _COMPARISON if name not in attributes)

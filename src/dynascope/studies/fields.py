"""Fields of studies: each with its default and what it is in one sentence; its annotation states its bounds."""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

from dynascope.validation import require
from dynascope.validation.annotations import bounds_of, check_of
from dynascope.validation.bounded_scalars import NonNegativeInt, PositiveInt

__all__ = [
    "bound_sentences",
    "check_fields",
    "described",
    "descriptions",
    "parameter",
    "said_bounds",
    "stand_ins",
    "with_bounds",
]

_BESIDE = {
    **{"least": ("of at least", operator.ge), "most": ("of at most", operator.le)},
    "below": ("below", operator.lt),
}


def parameter(
    default: Any,
    description: str,
    *,
    least: str = "",
    most: str = "",
    below: str = "",
    options: Sequence[str] = (),
    fewest: int = 1,
    repeats: bool = False,
    increasing: bool = False,
    zero: str = "",
) -> Any:
    """A field whose annotation states its type and bounds, which are checked when the study is made.

    Args:
        default: The default. A list is copied for each study. An empty list and None stand for the choice of the study.
        description: What it is, in one sentence.
        least: The name of another field, which is the smallest value of this one.
        most: The name of another field, which is the largest.
        below: The name of another field, which it must stay below.
        options: What a list may contain.
        fewest: The fewest entries of a list.
        repeats: Whether entries of a list may be equal.
        increasing: Whether a list must be sorted.
        zero: What zero stands for.

    Example:
        >>> from dynascope.studies import Study
        >>> from dynascope.validation.bounded import PositiveInt
        >>> class Sizes(Study):
        ...     width: PositiveInt = parameter(8, "Number of hidden neurons.")
        >>> Sizes(width=0)
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: width is 0: choose an integer of at least 1.
    """
    start: dict[str, Any] = {"default": default}
    if isinstance(default, list | tuple):
        start = {"default_factory": lambda: list(default)}
    meanings = dict.fromkeys(("None", "[]"), "chosen by the study")
    meanings |= ({"[]": "none"} if options else {}) | ({"0": zero} if zero else {})
    others = {word: other for word, other in (("least", least), ("most", most), ("below", below)) if other}
    entries = _Entries(tuple(options), fewest, repeats, increasing)
    metadata = {"description": description, "meanings": meanings, "others": others, "entries": entries}
    return dataclasses.field(**start, metadata=metadata)


class _Entries(NamedTuple):
    """What a list must contain."""

    options: tuple[str, ...]
    fewest: int
    repeats: bool
    increasing: bool

    def check(self, name: str, value: Sequence[Any]) -> None:
        """Refuse a list with too few entries, equal ones, others than the options, or in disorder."""
        many = {0: "", 1: "one or more "}.get(self.fewest, f"{self.fewest} or more ")
        remedy = f"give {many or 'a list of '}{'' if self.repeats else 'different '}values"
        right = len(value) >= self.fewest and (self.repeats or len(set(value)) == len(value))
        if self.options:
            remedy = f"choose {f'{many}of' if many else 'from'} {', '.join(self.options)}, each once"
            right = right and set(value) <= set(self.options)
        require(right, f"{name} is {value}", argument=name, value=value, remedy=remedy)
        in_order = not self.increasing or sorted(value) == list(value)
        require(in_order, f"{name} is {value}", argument=name, value=value, remedy="sort the numbers")


def check_fields(study: Any) -> None:
    """Check the values of all fields of a study, and keep each as its annotation has it.

    Raises:
        InputError: One is outside its domain.
    """
    kinds, fields = _kinds_of(type(study)), _parameters(study)
    for field in fields:
        check = check_of(kinds[field.name])
        value = getattr(study, field.name)
        if check is not None:
            value = check(field.name, value)
            object.__setattr__(study, field.name, value)
        if isinstance(value, list | tuple):
            field.metadata["entries"].check(field.name, value)
    for field in fields:
        for word, other in field.metadata["others"].items():
            value, bound = getattr(study, field.name), getattr(study, other)
            words, holds = _BESIDE[word]
            remedy = f"choose {'an integer' if isinstance(value, int) else 'a number'} {words} {other} ({bound:g})"
            require(holds(value, bound), f"{field.name} is {value}", argument=field.name, value=value, remedy=remedy)


def descriptions(study: Any) -> dict[str, str]:
    """What the fields of a study say of themselves, by name; nothing of those that say nothing."""
    said = {each.name: each.metadata.get("description") for each in dataclasses.fields(study)}
    return {name: description for name, description in said.items() if description is not None}


def said_bounds(study: Any) -> dict[str, str]:
    """The bounds of the fields of a study, or of any dataclass, in words by name; nothing of those that have none.

    Example:
        >>> from dynascope.studies import find_study
        >>> said_bounds(find_study("learnability"))["draws"]
        'at least 10'
    """
    kinds = _kinds_of(study if isinstance(study, type) else type(study))
    others = {each.name: each.metadata.get("others", {}) for each in dataclasses.fields(study)}
    said = {name: _in_words(kinds[name], each) for name, each in others.items()}
    return {name: words for name, words in said.items() if words}


def bound_sentences(study: Any) -> dict[str, str]:
    """The bounds of `said_bounds` as sentences, for the end of a description."""
    return {name: f"{words[0].upper()}{words[1:]}." for name, words in said_bounds(study).items()}


def stand_ins(study: Any) -> dict[str, str]:
    """What the values of a study stand for, by the names of the fields whose value stands for something else."""
    meanings = {each.name: each.metadata.get("meanings", {}) for each in dataclasses.fields(study)}
    values = {name: str(getattr(study, name)) for name in meanings}
    return {name: meanings[name][value] for name, value in values.items() if value in meanings[name]}


def described(study: type) -> str:
    """The docstring of a study with what its fields say of themselves, and their bounds."""
    lines = [f"        {name}: {description}" for name, description in with_bounds(study).items()]
    return "\n".join([(study.__doc__ or "").rstrip(), *(["\n    Attributes:", *lines] if lines else [])])


def with_bounds(study: Any) -> dict[str, str]:
    """What the fields of a study say of themselves and their bounds, as sentences by name."""
    bounds = bound_sentences(study)
    return {name: f"{said} {bounds.get(name, '')}".rstrip() for name, said in descriptions(study).items()}


def _parameters(study: Any) -> list[dataclasses.Field[Any]]:
    return [field for field in dataclasses.fields(study) if "entries" in field.metadata]


@functools.cache
def _kinds_of(study: type) -> dict[str, Any]:
    """What the annotations of a study mean, with their bounds."""
    return get_type_hints(study, include_extras=True)


def _in_words(kind: Any, others: Mapping[str, str]) -> str:
    """The bounds of numbers, or of each number of a list, and the fields that bound them besides."""
    parts = [kind] if get_origin(kind) is Annotated else [part for part in get_args(kind) if bounds_of(part)]
    bounds = bounds_of(parts[0]) if parts else None
    each = "each " if get_origin(kind) is list else ""
    words = ""
    if bounds and parts[0] not in (PositiveInt, NonNegativeInt):  # as every count is
        closed = math.isfinite(bounds.minimum) and math.isfinite(bounds.maximum)
        words = f"between {bounds.minimum:g} and {bounds.maximum:g}" if closed else bounds.words.replace("of at", "at")
    said = [words] * bool(words) + [
        f"{_BESIDE[word][0].removeprefix('of ')} `{other}`" for word, other in others.items()
    ]
    return each + " and ".join(said) if said else ""

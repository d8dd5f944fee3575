"""Fields of studies: defaults, one-sentence descriptions, and bounds from the annotations."""

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
    "bound_descriptions",
    "bound_sentences",
    "check_fields",
    "described",
    "descriptions",
    "parameter",
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
    """Declare a field of a study.

    The annotation of the field states its type and bounds, which are checked when the study is created.

    Args:
        default: The default value. A list is copied for each study. With None or an empty list, the study chooses the
            value.
        description: Description of the field, in one sentence.
        least: Name of another field whose value is a lower bound.
        most: Name of another field whose value is an upper bound.
        below: Name of another field whose value is a strict upper bound.
        options: Allowed entries of a list.
        fewest: Minimum number of entries of a list.
        repeats: Whether a list may contain equal entries.
        increasing: Whether a list must be sorted.
        zero: Meaning of the value zero, if zero has a special meaning.

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
    initial: dict[str, Any] = {"default": default}
    if isinstance(default, list | tuple):
        initial = {"default_factory": lambda: list(default)}
    meanings = dict.fromkeys(("None", "[]"), "chosen by the study")
    meanings |= ({"[]": "none"} if options else {}) | ({"0": zero} if zero else {})
    others = {word: other for word, other in (("least", least), ("most", most), ("below", below)) if other}
    entries = _Entries(tuple(options), fewest, repeats, increasing)
    metadata = {"description": description, "meanings": meanings, "others": others, "entries": entries}
    return dataclasses.field(**initial, metadata=metadata)


class _Entries(NamedTuple):
    """Requirements on the entries of a list."""

    options: tuple[str, ...]
    fewest: int
    repeats: bool
    increasing: bool

    def check(self, name: str, value: Sequence[Any]) -> None:
        """Reject a list with too few, repeated, invalid or unsorted entries."""
        many = {0: "", 1: "one or more "}.get(self.fewest, f"{self.fewest} or more ")
        remedy = f"give {many or 'a list of '}{'' if self.repeats else 'different '}values"
        right = len(value) >= self.fewest and (self.repeats or len(set(value)) == len(value))
        if self.options:
            remedy = f"choose {f'{many}of' if many else 'from'} {', '.join(self.options)}, each once"
            right = right and set(value) <= set(self.options)
        require(right, f"{name} is {value}", argument=name, value=value, remedy=remedy)
        in_order = not self.increasing or sorted(value) == list(value)
        remedy = "sort the numbers in increasing order"
        require(in_order, f"{name} is {value}", argument=name, value=value, remedy=remedy)


def check_fields(study: Any) -> None:
    """Check the values of all fields of a study and convert them to their annotated types.

    Raises:
        InputError: A value is outside its domain.
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
    """The descriptions of a study's fields, by name, for fields that have one."""
    found = {each.name: each.metadata.get("description") for each in dataclasses.fields(study)}
    return {name: description for name, description in found.items() if description is not None}


def bound_descriptions(study: Any) -> dict[str, str]:
    """Describe the bounds of each bounded field of a study or another dataclass, by name.

    Example:
        >>> from dynascope.studies import find_study
        >>> bound_descriptions(find_study("learnability"))["draws"]
        'at least 10'
    """
    kinds = _kinds_of(study if isinstance(study, type) else type(study))
    others = {each.name: each.metadata.get("others", {}) for each in dataclasses.fields(study)}
    found = {name: _bounds_text(kinds[name], each) for name, each in others.items()}
    return {name: text for name, text in found.items() if text}


def bound_sentences(study: Any) -> dict[str, str]:
    """The descriptions of the bounds, by name, as sentences that can follow the description of a field."""
    return {name: f"{text[0].upper()}{text[1:]}." for name, text in bound_descriptions(study).items()}


def stand_ins(study: Any) -> dict[str, str]:
    """The meanings of special field values such as None, by name of the field."""
    meanings = {each.name: each.metadata.get("meanings", {}) for each in dataclasses.fields(study)}
    values = {name: str(getattr(study, name)) for name in meanings}
    return {name: meanings[name][value] for name, value in values.items() if value in meanings[name]}


def described(study: type) -> str:
    """The docstring of a study, followed by the descriptions and bounds of its fields."""
    lines = [f"        {name}: {description}" for name, description in with_bounds(study).items()]
    return "\n".join([(study.__doc__ or "").rstrip(), *(["\n    Attributes:", *lines] if lines else [])])


def with_bounds(study: Any) -> dict[str, str]:
    """The descriptions of a study's fields, each followed by its bounds, by name."""
    bounds = bound_sentences(study)
    return {name: f"{text} {bounds.get(name, '')}".rstrip() for name, text in descriptions(study).items()}


def _parameters(study: Any) -> list[dataclasses.Field[Any]]:
    return [field for field in dataclasses.fields(study) if "entries" in field.metadata]


@functools.cache
def _kinds_of(study: type) -> dict[str, Any]:
    """The evaluated annotations of a study, including bounds."""
    return get_type_hints(study, include_extras=True)


def _bounds_text(kind: Any, others: Mapping[str, str]) -> str:
    """Describe the bounds of a number or of the numbers in a list, and the fields that bound them."""
    parts = [kind] if get_origin(kind) is Annotated else [part for part in get_args(kind) if bounds_of(part)]
    bounds = bounds_of(parts[0]) if parts else None
    each = "each " if get_origin(kind) is list else ""
    words = ""
    if bounds and parts[0] not in (PositiveInt, NonNegativeInt):  # bounds that every count has
        closed = math.isfinite(bounds.minimum) and math.isfinite(bounds.maximum)
        words = f"between {bounds.minimum:g} and {bounds.maximum:g}" if closed else bounds.words.replace("of at", "at")
    texts = [words] * bool(words) + [
        f"{_BESIDE[word][0].removeprefix('of ')} `{other}`" for word, other in others.items()
    ]
    return each + " and ".join(texts) if texts else ""

"""The public functions of theory, without what states domains, which computes nothing."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from typing import Any, get_args

from documented import Member, members

from dynascope import theory
from dynascope.validation.annotations import Bounds, bounds_of, kinds_of

__all__ = ["MEMBERS", "NOT_NEGATIVE", "POSITIVE", "stated_bounds"]

MEMBERS = {name: member for name, member in members(theory).items() if not name.startswith("domain.")}

# Arguments by name, or by function and name, of which zero and negative numbers are refused, or negative ones only, and
# of which the annotation does not say so.
_POSITIVE = """
    learning_rate losses rate scale target_power
"""
_NOT_NEGATIVE = """
    rates samples times
"""


def stated_bounds(member: Member) -> dict[str, Bounds]:
    """The bounds that the annotations of a function state, by argument, or by the place of a part in a record."""
    return dict(_bounds_in(inspect.unwrap(member.function), f"{member.name}."))


def _bounds_in(annotated: Any, prefix: str) -> Iterator[tuple[str, Bounds]]:
    for name, kind in kinds_of(annotated).items():
        for each in (kind, *get_args(kind)):  # of an optional one that of what is given
            if (bounds := bounds_of(each)) is not None:
                yield prefix + name, bounds
            elif hasattr(each, "_fields") or dataclasses.is_dataclass(each):
                yield from _bounds_in(each, f"{prefix}{name}.")


_BOUNDS = {place: bounds for member in MEMBERS.values() for place, bounds in stated_bounds(member).items()}
POSITIVE = {*_POSITIVE.split(), *(place for place, each in _BOUNDS.items() if each.above >= 0 or each.minimum > 0)}
NOT_NEGATIVE = {*_NOT_NEGATIVE.split(), *(place for place, each in _BOUNDS.items() if each.minimum == 0)}

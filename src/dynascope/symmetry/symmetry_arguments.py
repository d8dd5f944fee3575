"""Validates the symmetries recorded during a run, and lists the parameters on which they act."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dynascope.symmetry.charge import Charge
from dynascope.validation import require, shown

__all__ = ["parameter_paths", "require_symmetries"]


def require_symmetries(symmetries: Any, *, remedy: str) -> None:
    """Raise `InputError` if the argument is not a non-empty sequence of `Charge` objects."""
    require(
        isinstance(symmetries, Sequence) and len(symmetries) > 0 and all(isinstance(s, Charge) for s in symmetries),
        f"symmetries is {shown(symmetries)}",
        argument="symmetries",
        value=type(symmetries).__name__,
        remedy=remedy,
    )


def parameter_paths(symmetries: Sequence[Charge]) -> tuple[str, ...]:
    """Return the parameters of all symmetries without repetition, in the order of the dimension `layer`."""
    return tuple(dict.fromkeys(path for each in symmetries for path in each.paths))

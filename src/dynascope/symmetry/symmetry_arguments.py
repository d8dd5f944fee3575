"""The symmetries that a run is followed by, and the parameters that take part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dynascope.symmetry.charge import Charge
from dynascope.validation import require, shown

__all__ = ["parameter_paths", "require_symmetries"]


def require_symmetries(symmetries: Any, *, remedy: str) -> None:
    """Raise `InputError` unless there is a symmetry, and nothing but symmetries in a sequence."""
    require(
        isinstance(symmetries, Sequence) and len(symmetries) > 0 and all(isinstance(s, Charge) for s in symmetries),
        f"symmetries is {shown(symmetries)}",
        argument="symmetries",
        value=type(symmetries).__name__,
        remedy=remedy,
    )


def parameter_paths(symmetries: Sequence[Charge]) -> tuple[str, ...]:
    """The parameters of all symmetries, each once, in the order in which they are recorded along `layer`."""
    return tuple(dict.fromkeys(path for each in symmetries for path in each.paths))

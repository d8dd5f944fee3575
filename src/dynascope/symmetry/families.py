"""Groups rescalings of individual units into symmetries of layers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynascope.symmetry.charge import Charge, Part
from dynascope.symmetry.scaling import Rescaling

__all__ = ["families"]

_Shape = tuple[int, ...]
# Maps (number of a parameter, shape of its labels, factor) to the flat indices of a unit.
_Acts = dict[tuple[int, _Shape, float], tuple[int, ...]]


def families(found: Sequence[Rescaling], paths: Sequence[str]) -> list[Charge]:
    """Merge the rescalings that act on the same axes of the same parameters with the same factors."""
    gathered: dict[tuple, list[tuple[list[_Acts], dict[tuple, set[int]]]]] = {}
    for each in found:
        acts = _acts(each)
        groups = gathered.setdefault(tuple(acts), [])
        # The units of one symmetry must not overlap.
        apart = (group for group in groups if all(group[1][key].isdisjoint(acts[key]) for key in acts))
        units, taken = next(apart, ([], {key: set() for key in acts}))
        if not units:
            groups.append((units, taken))
        units.append(acts)
        for key, places in acts.items():
            taken[key].update(places)
    return [_charge(key, units, paths) for key, groups in gathered.items() for units, _ in groups]


def _acts(rescaling: Rescaling) -> _Acts:
    """Map (parameter number, label shape, factor) to flat indices; the parameter that is read last has factor 1."""
    rows = [
        (number, shape, exponent, places)
        for number in rescaling.order
        for shape, places, exponent in rescaling.places.get(number, ())
    ]
    last = rows[-1][2]
    return {(number, shape, float(exponent / last)): places for number, shape, exponent, places in rows}


def _charge(
    key: tuple[tuple[int, _Shape, float], ...], units: list[dict[tuple, tuple[int, ...]]], paths: Sequence[str]
) -> Charge:
    parts = []
    for number, shape, factor in key:
        labels = np.full(int(np.prod(shape, dtype=int)), -1)
        for unit, acts in enumerate(units):
            labels[list(acts[number, shape, factor])] = unit
        parts.append(Part(paths[number], labels.reshape(shape), factor))
    kind = "scale" if all(part.factor > 0 for part in parts) else "rescale"
    return Charge(kind, tuple(parts), len(units))

"""Detects units that mix linearly, rather than only rescale, from the gradient of one loss."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import chain

import numpy as np

from dynascope.symmetry.charge import Charge, Part
from dynascope.symmetry.parameters import Model, Point
from dynascope.symmetry.symmetry_defects import holds_globally, lengths

__all__ = ["mixing_units", "of_units"]

_EXACT = 1e-9  # rounding error of a derivative along a symmetry, relative to ‖g‖ ‖ξ‖
_DEAD = 1e-12  # a unit with a relative gradient below this counts as inactive
_MOST_TRIALS = 64  # largest number of blocks that are tested one by one if they do not all mix


def mixing_units(
    charge: Charge, model: Model, given: Sequence[Point], gradients: Sequence[tuple[np.ndarray, ...]]
) -> list[Charge]:
    """Split a symmetry into matrix symmetries of the units that mix and the remaining rescalings.

    The direction of a pair (a, b) combines θ_a += θ_b in the parts with f = 1 and θ_b −= θ_a in the parts with f = −1.
    The derivatives of a loss along all directions form one matrix of products of the gradient with the parameters.
    Units a and b mix if their entry and the transposed entry are zero at random points. Units that all mix with each
    other form a block.
    """
    whole = dataclasses.replace(charge, kind="matrix", block=charge.units)
    counts = [np.unique(part.labels[part.labels >= 0], return_counts=True)[1] for part in charge.parts]
    regular = all(abs(part.factor) == 1 for part in charge.parts) and all(len(set(each)) == 1 for each in counts)
    if charge.kind != "rescale" or charge.units < 2 or not regular:
        return [charge]
    together = np.ones((charge.units, charge.units), bool)
    alive = np.zeros(charge.units, bool)
    for (parameters, frozen, _), gradient in zip(given, gradients, strict=True):
        theta, g = model.tree(parameters, frozen), model.tree(gradient, frozen)
        size = np.sqrt(sum(float(np.vdot(each, each)) for each in gradient))
        along = lengths(charge, theta)
        derivative = np.abs(whole.identity(theta, g)[0])
        together &= derivative <= _EXACT * size * np.maximum(along[:, None], along[None, :])
        alive |= lengths(charge, g) > _DEAD * size
    together &= together.T & alive[:, None] & alive[None, :]
    np.fill_diagonal(together, True)
    blocks: dict[bytes, list[int]] = {}
    for unit, row in enumerate(together):
        blocks.setdefault(row.tobytes(), []).append(unit)
    groups: dict[int, list[list[int]]] = {}
    alone: list[int] = []
    for row, members in blocks.items():
        # Units that mix with units that do not mix with each other do not form a block.
        if 1 < len(members) == np.frombuffer(row, bool).sum():
            groups.setdefault(len(members), []).append(members)
        else:
            alone += members
    found = []
    for size, members in sorted(groups.items()):
        kept = _linear(charge, members, size, model, given[0])
        alone += [unit for each in members if each not in kept for unit in each]
        if kept:
            found.append(of_units(charge, list(chain.from_iterable(kept)), size))
    return [*found, *([of_units(charge, sorted(alone), 1)] if alone else [])]


def _linear(charge: Charge, blocks: list[list[int]], size: int, model: Model, point: Point) -> list[list[int]]:
    """Return the blocks whose units mix everywhere, not only near the point.

    Units with a kink appear to mix if no input moves them across the kink.
    """
    if holds_globally(of_units(charge, list(chain.from_iterable(blocks)), size), model, point, size):
        return blocks
    if len(blocks) > _MOST_TRIALS:
        return []
    return [each for each in blocks if holds_globally(of_units(charge, each, size), model, point, size)]


def of_units(charge: Charge, units: Sequence[int], block: int) -> Charge:
    """Return the symmetry restricted to the given units, in this order."""
    numbers = np.full(charge.units + 1, -1)
    numbers[list(units)] = np.arange(len(units))
    parts = tuple(Part(part.path, numbers[part.labels], part.factor) for part in charge.parts)
    return Charge("matrix" if block > 1 else charge.kind, parts, len(units), block)

"""Measures how strongly a symmetry is violated, by the derivative of the outputs along it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from dynascope.symmetry.charge import Charge
from dynascope.symmetry.parameters import Model, Point, arrays_by_path, outputs

__all__ = ["defects", "holds_globally", "lengths"]

_FAR = 1e-8  # rounding error of outputs at another point of the orbit, relative to the largest output


def defects(
    charge: Charge, model: Model, given: Sequence[Point], gradients: Sequence[tuple[np.ndarray, ...]]
) -> np.ndarray:
    """Return the largest |⟨g, ξ⟩| / (‖g‖ ‖ξ‖) over the points, for each unit or for each block of units that mix."""
    worst = np.zeros(charge.units // charge.block)
    for (parameters, frozen, _), gradient in zip(given, gradients, strict=True):
        theta, g = model.tree(parameters, frozen), model.tree(gradient, frozen)
        derivative = np.abs(charge.identity(theta, g)).reshape(len(worst), -1).max(1)
        along = lengths(charge, theta).reshape(len(worst), -1).max(1)
        size = np.sqrt(sum(float(np.vdot(each, each)) for each in gradient))
        worst = np.maximum(worst, derivative / np.maximum(size * along, np.finfo(float).tiny))
    return worst


def holds_globally(charge: Charge, model: Model, point: Point, seed: int, tolerance: float = _FAR) -> bool:
    """Whether the outputs are unchanged at a distant point of the symmetry orbit."""
    random = np.random.default_rng(seed)
    parameters, frozen, _ = point
    if charge.kind == "matrix":
        turned, _ = np.linalg.qr(random.normal(size=(charge.units // charge.block, charge.mixed, charge.mixed)))
        element = turned * random.uniform(0.7, 1.4, size=(len(turned), 1, charge.mixed))
        # A unit with a kink cannot be on the same side of it for both elements.
        elements = [element, -element]
    else:
        elements = [random.uniform(0.7, 1.4, size=charge.units)]
    theta = model.tree(parameters, frozen)
    before, same = outputs(model, point), True
    for element in elements:
        moved = arrays_by_path(charge.transformed(theta, element))
        after = outputs(model, (tuple(moved[path] for path in model.paths), *point[1:]))
        same = same and bool(np.abs(after - before).max() <= tolerance * np.abs(before).max())
    return same


def lengths(charge: Charge, theta: Any) -> np.ndarray:
    """Compute ‖ξ‖ for each unit; for translations, ξ is the shift by one."""
    if charge.kind == "translation":
        return np.asarray(_scaled(charge, 1).form(_ones(charge, theta), theta)) ** 0.5
    return np.asarray(_scaled(charge, 2).form(theta, theta)) ** 0.5


def _scaled(charge: Charge, power: int) -> Charge:
    parts = tuple(dataclasses.replace(part, factor=part.factor**power) for part in charge.parts)
    kind = "translation" if charge.kind == "translation" else "scale"
    return dataclasses.replace(charge, kind=kind, parts=parts, block=1)


def _ones(charge: Charge, theta: Any) -> Any:
    still = dataclasses.replace(charge, kind="translation")
    return still.direction(theta, np.ones(charge.units))

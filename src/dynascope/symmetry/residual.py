"""Finds the part of a matrix symmetry that remains if a function adds constants to intermediate values."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from dynascope.symmetry.charge import Charge
from dynascope.symmetry.mixing import of_units
from dynascope.symmetry.parameters import Model, Point
from dynascope.symmetry.residual_charge import AffineCharge, ResidualCharge
from dynascope.symmetry.symmetry_defects import defects, holds_globally, lengths
from dynascope.symmetry.unit_products import unit_rows

__all__ = ["affine_charge", "residual_charges"]

_Gradients = Sequence[tuple[np.ndarray, ...]]


def residual_charges(
    charge: Charge, model: Model, given: Sequence[Point], gradients: _Gradients, seed: int, tolerance: float
) -> list[ResidualCharge]:
    """Restrict a matrix symmetry to the complement of the constants that break it.

    The derivatives of a loss along all directions of the symmetry form a matrix, which is zero if the symmetry holds.
    With constants c added to the rows of a parameter, the matrix is c pᵀ or p cᵀ, with some p at each point. Its null
    space at all points is therefore the complement of the constants.

    Args:
        charge: A matrix symmetry of the function without constants.
        model: The function with constants.
        given: Random points.
        gradients: Gradients of the function at these points.
        seed: Seed of the group elements that are tested.
        tolerance: Relative rounding error of a derivative along a symmetry.

    Returns:
        One symmetry for each dimension of the complements; none if the symmetry holds or nothing remains.
    """
    derivatives, scale = _derivatives(charge, model, given, gradients)
    if (np.abs(derivatives).max((1, 2, 3)) <= tolerance * scale).all():
        return []
    found: list[ResidualCharge] = []
    # The constants are added on the side of the parts with f > 0, or with f < 0.
    for each in (derivatives, derivatives.swapaxes(2, 3)):
        bases = [
            _null_space(rows.reshape(-1, charge.block), tolerance * s) for rows, s in zip(each, scale, strict=True)
        ]
        here = [
            _restricted(charge, [place for place, basis in enumerate(bases) if basis.shape[1] == kept], bases)
            for kept in sorted({basis.shape[1] for basis in bases} - {0, charge.block}, reverse=True)
        ]
        here = [
            own
            for own in here
            if defects(own, model, given, gradients).max(initial=0.0) <= tolerance
            and holds_globally(own, model, given[0], seed, 1e1 * tolerance)
        ]
        found = max(found, here, key=lambda charges: sum(own.size for own in charges))
    return found


def affine_charge(
    charge: Charge, model: Model, given: Sequence[Point], gradients: _Gradients, seed: int, tolerance: float
) -> AffineCharge | None:
    """Find constants c in one parameter for which a matrix symmetry of the function without constants acts on θ + c.

    The derivative along the symmetry at θ + c is linear in c, so c is the solution of a linear system over the points.
    Arguments are as for `residual_charges`. The result is None if no parameter compensates for the constants.
    """
    derivatives, _ = _derivatives(charge, model, given, gradients)
    for part in charge.parts:
        number = model.paths.index(part.path)
        rows = np.stack([unit_rows(part.labels, each[number], charge.units, charge.block, np) for each in gradients], 1)
        if 2 * rows.shape[-1] > len(given) * charge.block:
            continue  # too few equations for a unique solution
        sides = -derivatives if part.factor > 0 else derivatives.swapaxes(2, 3)
        solved = [
            np.linalg.lstsq(one.reshape(-1, one.shape[-1]), other.reshape(-1, charge.block), rcond=None)[0].T
            for one, other in zip(rows, sides, strict=True)
        ]
        shape = given[0][0][number].shape
        places = unit_rows(part.labels, np.arange(np.prod(shape)).reshape(shape), charge.units, charge.block, np)
        constants = np.zeros(shape)
        constants.ravel()[places] = np.array(solved)
        found = AffineCharge(charge, {part.path: constants})
        if _holds(found, model, given, gradients, seed, tolerance):
            return found
    return None


def _holds(
    found: AffineCharge, model: Model, given: Sequence[Point], gradients: _Gradients, seed: int, tolerance: float
) -> bool:
    """Whether the charge is a symmetry of the function of θ + c."""

    def of_shifted(params: Any, inputs: Any) -> Any:
        return model.apply(AffineCharge(found.charge, negative).shifted(params), inputs)

    negative = {path: -each for path, each in found.constants.items()}
    shifted = dataclasses.replace(model, apply=of_shifted)
    added = [found.constants.get(path, 0.0) for path in model.paths]
    moved = [(tuple(map(np.add, parameters, added)), frozen, inputs) for parameters, frozen, inputs in given]
    exact = defects(found.charge, shifted, moved, gradients).max(initial=0.0) <= tolerance
    return bool(exact) and holds_globally(found.charge, shifted, moved[0], seed, 1e1 * tolerance)


def _derivatives(
    charge: Charge, model: Model, given: Sequence[Point], gradients: _Gradients
) -> tuple[np.ndarray, np.ndarray]:
    """Return the derivatives along the symmetry, shape (blocks, points, a, b), and the scale of each block's."""
    derivatives, scales = [], []
    for (parameters, frozen, _), gradient in zip(given, gradients, strict=True):
        theta = model.tree(parameters, frozen)
        derivatives.append(charge.identity(theta, model.tree(gradient, frozen)))
        size = np.sqrt(sum(float(np.vdot(each, each)) for each in gradient))
        scales.append(size * lengths(charge, theta).reshape(-1, charge.block).max(1))
    return np.stack(derivatives, 1), np.max(scales, 0)


def _null_space(rows: np.ndarray, tolerance: float) -> np.ndarray:
    """Return an orthonormal basis, in columns, of the vectors v with |rows v| ≤ tolerance."""
    _, values, right = np.linalg.svd(rows, full_matrices=True)
    return right[int((values > tolerance).sum()) :].T


def _restricted(charge: Charge, blocks: list[int], bases: list[np.ndarray]) -> ResidualCharge:
    units = list(chain.from_iterable(range(each * charge.block, (each + 1) * charge.block) for each in blocks))
    chosen = of_units(charge, units, charge.block)
    basis = np.stack([bases[each] for each in blocks])
    return ResidualCharge(chosen.kind, chosen.parts, chosen.units, chosen.block, basis)

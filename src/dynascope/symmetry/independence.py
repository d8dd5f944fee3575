"""Count the independent charges of several symmetries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from dynascope.symmetry.charge import Charge
from dynascope.symmetry.parameters import arrays_by_path
from dynascope.symmetry.unit_products import unit_sums

__all__ = ["independent_charges", "not_contained"]

_MOST = 1000  # largest number of charges whose rank is computed; this takes seconds
_SPARE = 10  # random directions beyond the number of charges
_ZERO = 1e-9  # singular values below this, relative to the largest, are rounding errors


def independent_charges(symmetries: Sequence[Charge], params: Any) -> int:
    """Count the independent charges: the rank of their Jacobian at random weights.

    Groups of symmetries without a common parameter are counted separately. For a single symmetry, there is a closed
    form: if k units of n weights each mix, there are k(k + 1)/2 − (k − r)(k − r + 1)/2 independent charges, where
    r = min(k, n). Several symmetries are counted by the rank of their derivatives along random directions. If several
    symmetries have more than 1000 charges, the counts of the individual symmetries are added, which gives an upper
    bound.

    Args:
        symmetries: Symmetries of one function.
        params: The tree of the parameters, or of their shapes.

    References:
        Abide by the Law and Follow the Flow, arXiv:2307.00144.

    Example:
        >>> from dynascope.symmetry import Part
        >>> first, second = Part("[0]", np.arange(4)[:, None], -1.0), Part("[1]", np.arange(4)[None], 1.0)
        >>> mixing = Charge("matrix", (first, second), 4, block=4)
        >>> mixing.size, independent_charges([mixing], [np.ones((4, 1)), np.ones((1, 4))])
        (10, 7)
    """
    return sum(_independent(each, params) for each in _linked(symmetries))


def not_contained(symmetries: Sequence[Charge], larger: Sequence[Charge], params: Any) -> list[Charge]:
    """Return the symmetries whose charges do not all follow from one of the larger symmetries of the same parameters.

    Arguments are as for `independent_charges`.
    """

    def contains(large: Charge, small: Charge) -> bool:
        alike = set(large.paths) == set(small.paths)
        return alike and independent_charges([large, small], params) == independent_charges([large], params)

    return [each for each in symmetries if not any(contains(large, each) for large in larger)]


def _linked(symmetries: Sequence[Charge]) -> list[list[Charge]]:
    """Divide the symmetries into groups that share no parameter."""
    groups: list[list[Charge]] = []
    for charge in symmetries:
        near = [group for group in groups if any(not set(each.paths).isdisjoint(charge.paths) for each in group)]
        apart = [group for group in groups if all(group is not each for each in near)]
        groups = [*apart, [*(each for group in near for each in group), charge]]
    return groups


def _independent(symmetries: list[Charge], params: Any) -> int:
    count = sum(each.size for each in symmetries)
    is_one = len(symmetries) == 1 and len(symmetries[0].paths) == len(symmetries[0].parts)
    random = np.random.default_rng(0)

    def draw() -> Any:
        return jax.tree.map(lambda leaf: random.normal(size=leaf.shape) if hasattr(leaf, "shape") else leaf, params)

    theta = draw()
    if is_one or count > _MOST:
        return sum(_of_one(each, theta) for each in symmetries)
    rows = []
    for _ in range(count + _SPARE):
        direction = draw()
        rows.append(np.concatenate([each.form(direction, theta) for each in symmetries]))
    return int(np.linalg.matrix_rank(np.array(rows), rtol=_ZERO))


def _of_one(charge: Charge, theta: Any) -> int:
    arrays = arrays_by_path(theta)
    weights = sum(
        unit_sums(part.labels, np.ones_like(arrays[part.path]), charge.units, np).max(initial=0.0)
        for part in charge.parts
    )
    missing = charge.mixed - min(charge.mixed, int(weights))
    return charge.size - charge.units // charge.block * missing * (missing + 1) // 2

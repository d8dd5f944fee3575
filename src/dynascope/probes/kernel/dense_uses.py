"""Collects the products z = h W with dense weights while a program is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from dynascope.validation import array_namespace

__all__ = ["DenseUse", "ReadProducts", "Weight", "joined_uses"]


class DenseUse(NamedTuple):
    """One product z = h W of h (positions × inputs) with W (inputs × outputs).

    Attributes:
        parameter: Index of W among the parameters.
        positions: Rows of h for one example: one in a dense layer, the number of output positions in a convolution.
        inputs: Columns of h, per group.
        outputs: Columns of z.
        orientation: The axis of W that is contracted; the same for all uses of one weight.
        groups: Number of independent parts of h and z, as in a convolution with groups.
    """

    parameter: int
    positions: int
    inputs: int
    outputs: int
    orientation: int
    groups: int = 1


class Weight(NamedTuple):
    """A parameter before it enters a product: its current value, the original order of its axes, and its factor."""

    parameter: int
    value: Any
    axes: tuple[int, ...]
    gain: Any


class ReadProducts:
    """Collects the products in a program; a back-end reads the program and calls `perturbed` for each product.

    Attributes:
        perturbations: Perturbations added to z of each product, shape (positions, outputs); derivatives with respect to
            them are the signals.
        uses: The products, in the order of evaluation.
        activations: h of each product, shape (positions, groups, inputs).
        used_elsewhere: Parameters that are also used outside products.
    """

    def __init__(self, perturbations: Sequence[Any] | None):
        super().__init__()
        self.perturbations = perturbations
        self.uses: list[DenseUse] = []
        self.activations: list[Any] = []
        self.used_elsewhere: set[int] = set()

    def perturbed(self, weight: Weight, h: Any, z: Any, features: int, orientation: int, groups: int = 1) -> Any:
        """Record the product, and return z plus a perturbation; `features` is the axis of the features of z."""
        xp = array_namespace(z)
        h = xp.reshape(h * weight.gain, (-1, groups, h.shape[-1] // groups))
        moved = xp.moveaxis(z, features, -1)
        positions, outputs = math.prod(moved.shape[:-1]), moved.shape[-1]
        if self.perturbations is not None:
            perturbation = xp.astype(self.perturbations[len(self.uses)], z.dtype, copy=False)
            z = z + xp.moveaxis(xp.reshape(perturbation, moved.shape), -1, features)
        self.uses.append(DenseUse(weight.parameter, positions, h.shape[-1], outputs, orientation, groups))
        self.activations.append(h)
        return z

    def dense_uses(self) -> list[DenseUse]:
        """Return the products with parameters that are used only in products, and always with the same sizes."""
        kinds: dict[int, set[tuple[int, ...]]] = {}
        for use in self.uses:
            kinds.setdefault(use.parameter, set()).add(use[2:])
        dense = {place for place, found in kinds.items() if len(found) == 1} - self.used_elsewhere
        return [use for use in self.uses if use.parameter in dense]


def joined_uses(uses: Sequence[DenseUse], activations: Sequence[Any], signals: Sequence[Any]) -> dict[int, Any]:
    """Return h (..., p, g, k) and D (..., c, p, g, m) of each weight from the signals (..., c, p, g·m) of each use.

    A weight that is used several times is treated as one layer with more positions.
    """
    layers = {}
    for place in sorted({use.parameter for use in uses}):
        mine = [i for i, use in enumerate(uses) if use.parameter == place]
        xp = array_namespace(signals[mine[0]])
        d = xp.concat([signals[i] for i in mine], axis=-2)
        d = xp.reshape(d, (*d.shape[:-1], uses[mine[0]].groups, -1))
        layers[place] = xp.concat([activations[i] for i in mine], axis=-3), d
    return layers

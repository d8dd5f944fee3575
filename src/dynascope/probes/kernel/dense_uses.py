"""The uses of dense weights that make up most of a kernel: products z = h W, noted where a program is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from dynascope.validation import array_namespace

__all__ = ["DenseUse", "ReadProducts", "Weight", "joined_uses"]


class DenseUse(NamedTuple):
    """One product z = h W of positions × inputs with inputs × outputs.

    Attributes:
        parameter: Place of W among the parameters.
        positions: Rows of h for one example: one in a plain layer, the places of the kernel in a convolution.
        inputs: Columns of h, of one group.
        outputs: Columns of z.
        orientation: The axis of W that is summed over; all uses of one weight share it.
        groups: Independent parts of h and of z, as in a convolution with groups.
    """

    parameter: int
    positions: int
    inputs: int
    outputs: int
    orientation: int
    groups: int = 1


class Weight(NamedTuple):
    """A parameter on its way to a product: its value there, its axes by their first order, and its factor so far."""

    parameter: int
    value: Any
    axes: tuple[int, ...]
    gain: Any


class ReadProducts:
    """The products found so far in a program; a back-end reads it and calls `perturbed` for each of them.

    Attributes:
        perturbations: What to add to z of each product, shape (positions, outputs); its derivatives are the signals.
        uses: The products, in the order of their evaluation.
        activations: h (positions, groups, inputs) of each.
        refused: Parameters that also enter in another way.
    """

    def __init__(self, perturbations: Sequence[Any] | None):
        super().__init__()
        self.perturbations = perturbations
        self.uses: list[DenseUse] = []
        self.activations: list[Any] = []
        self.refused: set[int] = set()

    def perturbed(self, weight: Weight, h: Any, z: Any, features: int, orientation: int, groups: int = 1) -> Any:
        """Note the product, and return z with a perturbation of each of its features, which are on that axis."""
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
        """The products of parameters that enter in no other way, and always with the same sizes."""
        kinds: dict[int, set[tuple[int, ...]]] = {}
        for use in self.uses:
            kinds.setdefault(use.parameter, set()).add(use[2:])
        dense = {place for place, found in kinds.items() if len(found) == 1} - self.refused
        return [use for use in self.uses if use.parameter in dense]


def joined_uses(uses: Sequence[DenseUse], activations: Sequence[Any], signals: Sequence[Any]) -> dict[int, Any]:
    """For each weight h (..., p, g, k) and D (..., c, p, g, m), from the signals (..., c, p, g·m) of each use.

    A weight that is used several times is one layer with more positions.
    """
    layers = {}
    for place in sorted({use.parameter for use in uses}):
        mine = [i for i, use in enumerate(uses) if use.parameter == place]
        xp = array_namespace(signals[mine[0]])
        d = xp.concat([signals[i] for i in mine], axis=-2)
        d = xp.reshape(d, (*d.shape[:-1], uses[mine[0]].groups, -1))
        layers[place] = xp.concat([activations[i] for i in mine], axis=-3), d
    return layers

"""Optimisers that commute with rotations of the weights, and one that does not."""

from __future__ import annotations

from typing import NamedTuple

import optax

from dynascope.training import bbi, ecd, soap

__all__ = ["OPTIMIZERS", "Optimizer"]


class Optimizer(NamedTuple):
    """An optimiser, and what theory predicts about rotations.

    Attributes:
        transformation: The optax transformation.
        commutes: Whether the optimiser commutes with rotations of the weights.
        largest: Largest distance that counts as rounding.
    """

    transformation: optax.GradientTransformation
    commutes: bool
    largest: float = 1e-8


OPTIMIZERS = {
    "heavy ball": Optimizer(optax.sgd(0.05, momentum=0.9), commutes=True),
    "ECD": Optimizer(ecd(0.1, eta=20.0), commutes=True),
    "BBI": Optimizer(bbi(0.05), commutes=True),
    # SOAP divides by the size of small gradients plus ε, which amplifies rounding errors.
    "SOAP": Optimizer(soap(0.01, basis="eigh", every=1, eps=1e-4), commutes=True, largest=1e-6),
    "Adam": Optimizer(optax.adam(0.01), commutes=False),
}

"""What every theory of a staircase returns."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

__all__ = ["Staircase"]


@dataclasses.dataclass(frozen=True)
class Staircase:
    """Plateaus of the loss and the jumps between them, in order.

    Attributes:
        accelerated_times: Limit of t / T at each jump as the scale goes to zero, shape (J,), with T the unit of
            accelerated time (see `record.time_unit`): log(1/scale) for degree 2.
        times: Gradient-flow time t of each jump at the given scale, shape (J,): when the loss passes the middle between
            the two plateaus.
        levels: Loss of each plateau, L = ½ E‖f(x) − y‖², shape (J + 1,); the first is the initial loss.
        learned: One phrase for each jump, what is learned there.
        slow: For each jump, why the observed time approaches the limit only slowly; empty where it does not.
        features: Further quantities by name, each with its dimension names and values; the first dimension is "jump".
        theory: Name of the theory.
        reference: Where it is published.
        warnings: Sentences about the limits of this prediction.
        degree: Degree of homogeneity κ of a neuron.
        normalised: Whether the times are those of the homogeneity-normalised flow.
    """

    accelerated_times: Float[np.ndarray, " jump"]
    times: Float[np.ndarray, " jump"]
    levels: Float[np.ndarray, " level"]
    learned: tuple[str, ...]
    slow: tuple[str, ...]
    features: Mapping[str, tuple[tuple[str, ...], np.ndarray]]
    theory: str
    reference: str
    warnings: tuple[str, ...] = ()
    degree: int = 2
    normalised: bool = False

"""Standardisation of inputs and targets to mean 0 and variance 1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from dynascope.results.numbers import number
from dynascope.tasks.affine import AffineMap
from dynascope.tasks.data.labels import are_classes

__all__ = ["standardising"]

_WORD = "standardised (mean 0, variance 1)"


def standardising(
    inputs: Float[np.ndarray, "n d"],
    targets: Float[np.ndarray, "n c"],
    target_names: Sequence[str],
    *,
    classes: bool | None = None,
) -> tuple[AffineMap, AffineMap, str]:
    """Maps that standardise inputs and targets, and a sentence that explains the units of the loss.

    Quantitative targets are standardised as well. Otherwise, the target with the largest values would be learned first,
    and whether an initialisation is small would depend on the units. Class labels are only centred.

    Args:
        inputs: Array (n, d).
        targets: Array (n, c).
        target_names: One name per target.
        classes: Whether the targets are class labels; by default, their values determine this.

    Example:
        >>> _, _, sentence = standardising(np.array([[1.0], [3.0]]), np.array([[10.0], [30.0]]), ["price"])
        >>> sentence
        "Inputs and target are standardised (mean 0, variance 1); multiply losses by 100 to convert them to units
        of 'price' squared."
    """
    scaled = AffineMap.standardising(inputs)
    if are_classes(targets) if classes is None else classes:
        return scaled, AffineMap.centring(targets), f"Inputs are {_WORD}, and class targets (0 or 1) are centred."
    mapped = AffineMap.standardising(targets)
    if len(target_names) > 1:
        return scaled, mapped, f"Inputs and targets are {_WORD}; each target adds 0.5 to the loss of zero outputs."
    variance = float(mapped.inverse[0]) ** 2
    units = f"multiply losses by {number(variance)} to convert them to units of {target_names[0]!r} squared"
    return scaled, mapped, f"Inputs and target are {_WORD}; {units}."

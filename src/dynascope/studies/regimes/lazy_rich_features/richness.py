"""Scalar networks with different degrees of richness."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynascope.theory.scalar_networks.scalar import Setting

__all__ = ["richer_settings"]

_WIDENINGS = (1, 4, 16)


def richer_settings(neurons: int, target: float, factor: float) -> dict[str, Setting]:
    """A network with weights ±1 and zero output, three richer variants, and wider, lazier variants.

    The outputs of the wider variants are divided by √width. Neurons with zero weights, which stay zero in training, pad
    all networks to one shape.

    Args:
        neurons: Number of neurons; even.
        target: Target slope S > 0.
        factor: Factor c > 0 that multiplies the target, divides the output, or divides the squared weights.
    """
    place = np.arange(neurons * _WIDENINGS[-1])

    def of(width: int, size: float = 1.0, **changed: Any) -> Setting:
        weights = (place < width) / size
        return Setting(target, weights, weights * (-1.0) ** place)._replace(**changed)

    widths = [neurons * each for each in _WIDENINGS]
    return {
        "start": of(neurons),
        "small weights": of(neurons, np.sqrt(factor)),
        "large target": of(neurons, target=factor * target),
        "small output": of(neurons, divisor=factor),
        **{f"{width} neurons, output over √width": of(width, divisor=np.sqrt(width)) for width in widths},
    }

"""Scalar networks that are made richer or lazier."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynascope.theory.scalar_networks.scalar import Setting

__all__ = ["richer_settings"]

_WIDENINGS = (1, 4, 16)


def richer_settings(neurons: int, target: float, factor: float) -> dict[str, Setting]:
    """A network with weights ±1 that starts at zero, made richer in three ways, and widened with outputs over √width.

    All are of one shape: neurons without weights fill up the narrow ones, and stay so.

    Args:
        neurons: Their number, even.
        target: S > 0.
        factor: c > 0, by which the target is multiplied, the output divided, or the square of the weights divided.
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

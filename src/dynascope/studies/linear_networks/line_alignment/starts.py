"""Initial weights of two-layer networks on inputs along a line, for several alignments of the layers."""

from __future__ import annotations

import numpy as np

__all__ = ["STARTS", "line_starts"]

STARTS = ("small", "large orthogonal", "nearly parallel", "parallel", "opposite")


def line_starts(
    direction: np.ndarray, slope: float, width: int, disturbance: float, draw: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """W and u of each initialisation in `STARTS`, shapes (start, d, h) and (start, h).

    Args:
        direction: Unit vector n of the line, shape (d,).
        slope: Slope S of the targets along the line; aligned layers of norm √|S| fit it.
        width: Number h of hidden neurons.
        disturbance: Angle in radians by which nearly parallel and opposite layers are rotated.
        draw: Random generator.
    """
    one, other = np.linalg.qr(draw.normal(size=(width, 2)))[0].T
    turned = np.cos(disturbance) * one + np.sin(disturbance) * other
    random = draw.normal(size=(2, width)) / np.sqrt(width)
    sign, size = np.sign(slope), np.sqrt(abs(slope))
    second = np.stack([0.2 * random[0], 3.0 * one, 1.5 * sign * one, 1.5 * sign * one, 0.8 * sign * one])
    along = np.stack([0.2 * random[1], 3.0 * other, 1.5 * turned, 1.5 * one, -0.8 * turned])
    across = 0.3 / np.sqrt(width) * draw.normal(size=(len(direction), width))
    across -= np.outer(direction, direction @ across)
    return size * (across + direction[:, None] * along[:, None, :]), size * second

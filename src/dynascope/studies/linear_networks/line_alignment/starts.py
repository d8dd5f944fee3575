"""Initial weights of two-layer networks on inputs along a line, for several alignments of the layers."""

from __future__ import annotations

import numpy as np

from dynascope.theory.regimes.phases import Parametrisation, phase_table

__all__ = ["PARAMETRISED", "STARTS", "line_starts", "parametrised_start", "parametrised_starts"]

STARTS = ("small", "large orthogonal", "nearly parallel", "parallel", "opposite")
PARAMETRISED = ("Xavier+", "Kaiming+")


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


def parametrised_starts() -> dict[str, Parametrisation]:
    """Exponents of Xavier and Kaiming initialisation, with the multipliers and rates with which they learn features.

    Example:
        >>> {name: (each.multiplier, each.first_rate) for name, each in parametrised_starts().items()}
        {'Xavier+': (0.0, 0.0), 'Kaiming+': (-1.0, 1.0)}
    """
    table = phase_table()
    return {name: table[name[:-1]]["learning"] for name in PARAMETRISED}


def parametrised_start(
    name: str, slope: float, shape: tuple[int, int], draw: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """W and u of a start in `PARAMETRISED`, with a factor √γ absorbed into both layers.

    With √γ W and √γ u, the network x W u computes the same function during training if the learning rates of both
    layers are γη. In these parametrisations, γη does not depend on the width. They therefore differ only in the initial
    norms of the layers, which are equal for Xavier+. For Kaiming+, the second layer is smaller by the square root of
    the width.

    Args:
        name: Name of the start.
        slope: Slope S of the targets along the line; all weights are multiplied by √|S|.
        shape: Number d of inputs and number h of hidden neurons.
        draw: Random generator.

    Returns:
        W and u, shapes (d, h) and (h,).

    Example:
        >>> first, second = parametrised_start("Kaiming+", 1.0, (3, 400), np.random.default_rng(0))
        >>> first.shape, round(float(np.linalg.norm(first[0]) / np.linalg.norm(second)))
        ((3, 400), 20)
    """
    size = parametrised_starts()[name].at(float(shape[1]))
    root = np.sqrt(abs(slope) * size.multiplier)
    first = root * np.sqrt(size.first_variance) * draw.normal(size=shape)
    return first, root * np.sqrt(size.second_variance) * draw.normal(size=shape[1])

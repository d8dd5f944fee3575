"""How far weights swing along directions, such as the sharpest of the Hessian."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from dynascope.probes.diffusion.displacement import count_checkpoints
from dynascope.results.named_tuples import short_repr
from dynascope.validation import (
    array_namespace,
    checked,
    require,
    require_axes,
    require_one_framework,
    require_real_values,
)

__all__ = ["DirectionMoments", "direction_moments"]


class DirectionMoments(NamedTuple):
    """Coordinates of a path along directions, and their variances.

    Attributes:
        coordinate: a over `checkpoint` and `direction`.
        position_variance: The variance of a, over `direction`.
        move_variance: The mean square of the moves from each checkpoint to the next, over `direction`.
        share: The share of the total variance that is along each direction, over `direction`.
    """

    coordinate: Annotated[Any, "checkpoint direction"]
    position_variance: Annotated[Any, "direction"]
    move_variance: Annotated[Any, "direction"]
    share: Annotated[Any, "direction"]

    __repr__ = short_repr


@checked
def direction_moments(path: Any, directions: Any) -> DirectionMoments:
    """Coordinates a = ⟨θ − mean θ, q⟩ of a path along directions, and their variances, which a thermometer forecasts.

    Steps that follow each other are not independent: a path needs many times `theory.noise.thermometer`'s
    `relaxation_steps` for its variance to be that of the stationary law.

    Cost: 2ndk operations, in memory for 3nd + 3nk numbers.

    Args:
        path: θ of each checkpoint, shape (n, d) with n ≥ 2.
        directions: Unit vectors q as rows, shape (k, d).

    Raises:
        InputError: Shapes that do not fit, or values that are not finite.

    Example:
        >>> import numpy as np
        >>> found = direction_moments(np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 3.0]]), np.eye(2))
        >>> print(found.position_variance.round(4), found.share.round(4))
        [0.6667 2.    ] [0.25 0.75]
    """
    count, size = count_checkpoints(path), path.shape[1]
    _, other = require_axes("directions", directions, 2)
    require_real_values("directions", directions)
    require(
        size == other,
        f"directions have {other} entries, and weights {size}",
        argument="directions",
        value=other,
        remedy="give one row for each direction",
    )
    require_one_framework(path=path, directions=directions)
    xp = array_namespace(path)
    away = path - xp.sum(path, axis=0)[None, :] / count
    along = away @ directions.T
    moves = along[1:, :] - along[:-1, :]
    variance = xp.sum(along * along, axis=0) / count
    # In units of the largest move, whose squares no number is too large for.
    largest = xp.max(xp.abs(away))
    unit = xp.where(largest > 0, largest, xp.ones_like(largest))
    whole = xp.sum((away / unit) ** 2)
    share = xp.sum((along / unit) ** 2, axis=0) / xp.where(whole > 0, whole, xp.ones_like(whole))
    return DirectionMoments(along, variance, xp.sum(moves * moves, axis=0) / (count - 1), share)

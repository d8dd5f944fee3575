"""How far weights are from where they were, and how long their steps remember."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np

from dynascope.results.named_tuples import short_repr
from dynascope.validation import array_namespace, checked, require, require_axes, require_real_values
from dynascope.validation.bounded_scalars import NonNegativeInt

__all__ = ["Displacements", "StepCorrelation", "count_checkpoints", "displacements", "step_correlation"]


class Displacements(NamedTuple):
    """Squared displacements along a path of weights.

    Attributes:
        global_displacement: ‖θ_k − θ_0‖² over `checkpoint`, zero first.
        local_displacement: ‖θ_{k+1} − θ_k‖² over `move`, from each checkpoint to the next.
        squared_drift: ‖θ_{n−1} − θ_0‖²/(n − 1)², that of the mean move.
    """

    global_displacement: Annotated[Any, "checkpoint"]
    local_displacement: Annotated[Any, "move"]
    squared_drift: Annotated[Any, ""]

    __repr__ = short_repr


class StepCorrelation(NamedTuple):
    """The correlation of steps.

    Attributes:
        step_correlation: The mean over j of ⟨d_{j+k}, d_j⟩, over `lag`.
    """

    step_correlation: Annotated[Any, "lag"]

    __repr__ = short_repr


@checked
def displacements(path: Any) -> Displacements:
    """‖θ_k − θ_0‖² and ‖θ_{k+1} − θ_k‖² along a path of weights, and the mean drift of its steps.

    Take θ_0 from the window in which weights are at rest; a path of every step gives local displacements, and one of
    some steps those between them. Cost: 5nd operations, in memory for as many numbers as the path.

    Args:
        path: θ_k, shape (n, d) with n ≥ 2, the weights of each checkpoint in one row.

    Raises:
        InputError: No path of at least two checkpoints of finite numbers.

    Example:
        >>> import numpy as np
        >>> displacements(np.array([[0.0, 0.0], [3.0, 4.0], [3.0, 0.0]]))
        Displacements(global_displacement=[0, 25, 9], local_displacement=[25, 16], squared_drift=2.25)
    """
    count = count_checkpoints(path)
    xp = array_namespace(path)
    away, moves = path - path[:1, :], path[1:, :] - path[:-1, :]
    far = xp.sum(away * away, axis=1)
    return Displacements(far, xp.sum(moves * moves, axis=1), far[-1] / (count - 1) ** 2)


@checked
def step_correlation(path: Any, lags: Sequence[NonNegativeInt] | np.ndarray) -> StepCorrelation:
    """The mean over j of ⟨d_{j+k}, d_j⟩ with the steps d_j = θ_{j+1} − θ_j, for each lag k.

    It is η² times `theory.noise.velocity_correlation` where weights are at rest.

    Cost: 2nd operations for each lag, in memory for nd numbers for each and once more.

    Args:
        path: θ_k after every step, shape (n, d).
        lags: k from 0 to n − 2.

    Raises:
        InputError: No path of finite numbers, or lags that are not within it.

    Example:
        >>> import numpy as np
        >>> step_correlation(np.array([[0.0], [1.0], [3.0], [6.0]]), [0, 1])
        StepCorrelation(step_correlation=[4.6667, 4])
    """
    count = count_checkpoints(path)
    require(len(lags) > 0, "lags is empty", argument="lags", value=0, remedy="give one lag or more")
    require(
        max(lags) < count - 1,
        f"lags has {max(lags)}, of {count - 1} steps",
        argument="lags",
        value=max(lags),
        remedy=f"choose lags up to {count - 2}",
    )
    xp = array_namespace(path)
    moves = path[1:, :] - path[:-1, :]
    products = [moves[each:, :] * moves[: count - 1 - each, :] for each in lags]
    means = xp.stack([xp.sum(each) / each.shape[0] for each in products])
    return StepCorrelation(means)


def count_checkpoints(path: Any) -> int:
    """The number of rows of weights along a path, at least two.

    Raises:
        InputError: No rows of weights, values that are not finite, or one row alone.
    """
    count, _ = require_axes("path", path, 2)
    require_real_values("path", path)
    require(
        count >= 2, "path has one checkpoint", argument="path", value=count, remedy="give the weights of two or more"
    )
    return count

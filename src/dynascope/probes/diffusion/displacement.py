"""Squared displacements of the weights along a training run."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from dynascope.results.named_tuples import short_repr
from dynascope.validation import array_namespace, checked, require, require_axes, require_finite_values

__all__ = ["Displacements", "displacements"]


class Displacements(NamedTuple):
    """Squared displacements along a trajectory of the weights.

    Attributes:
        global_displacement: ‖θ_k − θ_0‖² over `checkpoint`; the first entry is zero.
        local_displacement: ‖θ_{k+1} − θ_k‖² over `move`, from each checkpoint to the next.
        squared_drift: ‖θ_{n−1} − θ_0‖²/(n − 1)², the squared norm of the mean displacement per move.
    """

    global_displacement: Annotated[Any, "checkpoint"]
    local_displacement: Annotated[Any, "move"]
    squared_drift: Annotated[Any, ""]

    __repr__ = short_repr


@checked
def displacements(path: Any) -> Displacements:
    """Compute ‖θ_k − θ_0‖² and ‖θ_{k+1} − θ_k‖² along a trajectory of the weights, and the mean drift.

    Choose θ_0 in the stationary phase of training. If every step is a checkpoint, local displacements are those of
    single steps.

    Cost: 5nd operations and memory for nd numbers.

    Args:
        path: θ_k, the weights of each checkpoint as rows, shape (n, d) with n ≥ 2.

    Raises:
        InputError: If there are fewer than two checkpoints, or values are not finite.

    Example:
        >>> import numpy as np
        >>> displacements(np.array([[0.0, 0.0], [3.0, 4.0], [3.0, 0.0]]))
        Displacements(global_displacement=[0, 25, 9], local_displacement=[25, 16], squared_drift=2.25)
    """
    count, _ = require_axes("path", path, 2)
    require_finite_values("path", path, floating=True)
    require(
        count >= 2,
        "path has one checkpoint",
        argument="path",
        value=count,
        remedy="give the weights of at least two checkpoints",
    )
    xp = array_namespace(path)
    away, moves = path - path[:1, :], path[1:, :] - path[:-1, :]
    far = xp.sum(away * away, axis=1)
    return Displacements(far, xp.sum(moves * moves, axis=1), far[-1] / (count - 1) ** 2)

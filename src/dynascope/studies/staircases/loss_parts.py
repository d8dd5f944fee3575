"""The part of a loss that is in each of several orthogonal parts of the outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np

from dynascope.protocols import Learnable

__all__ = ["loss_parts"]


def loss_parts(task: Learnable, encoding: np.ndarray, projections: Sequence[np.ndarray]) -> Callable[[Any], Any]:
    """The loss in each part of the outputs, as a function of a network whose last layer is called `second`.

    Args:
        task: Its targets are elements of a group in an encoding.
        encoding: Of one element, shape (n,); those of the others are permutations of it.
        projections: On each part, shape (n, n); they commute with the permutations.
    """
    # The loss of a network that leaves the other parts at zero holds their whole power.
    others = np.array([(encoding @ encoding - encoding @ part @ encoding) / 2 for part in projections])
    # Its arrays are no part of compiled programs, which so serve for other encodings too.
    return jax.tree_util.Partial(_losses, task, np.array(projections), others)


def _losses(task: Any, projections: Any, others: Any, network: Any) -> Any:
    def loss(projection: Any) -> Any:
        return task.loss(eqx.tree_at(lambda net: net.second, network, network.second @ projection))

    return jax.vmap(loss)(projections) - others

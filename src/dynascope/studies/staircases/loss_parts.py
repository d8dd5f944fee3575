"""The loss in each of several orthogonal components of the outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np

from dynascope.protocols import Learnable

__all__ = ["loss_parts"]


def loss_parts(task: Learnable, encoding: np.ndarray, projections: Sequence[np.ndarray]) -> Callable[[Any], Any]:
    """A function that computes the loss in each output component of a network whose last layer is called `second`.

    Args:
        task: A task whose targets are encoded elements of a group.
        encoding: Encoding of one element, shape (n,); the encodings of the others are permutations of it.
        projections: Projections onto the components, each of shape (n, n); they commute with the permutations.
    """
    # The loss of outputs in a single component also contains the full target power of the other components.
    others = np.array([(encoding @ encoding - encoding @ part @ encoding) / 2 for part in projections])
    # A Partial passes its arrays as arguments, so that compiled programs can be reused for other encodings.
    return jax.tree_util.Partial(_losses, task, np.array(projections), others)


def _losses(task: Any, projections: Any, others: Any, network: Any) -> Any:
    def loss(projection: Any) -> Any:
        return task.loss(eqx.tree_at(lambda net: net.second, network, network.second @ projection))

    return jax.vmap(loss)(projections) - others

"""Snapshots of networks at recorded steps, stored as weight vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from dynascope.training.descend import Descent, descend

__all__ = ["WEIGHTS", "descend_keeping", "unravelled"]


def _in_a_row(network: Any) -> Any:
    return ravel_pytree(network)[0]


WEIGHTS = {"weights": (_in_a_row, ("weight",))}  # statistics for `Descent`


def descend_keeping(tasks: Any, networks: Sequence[Any], recorded: Any, *, kind: Any, **options: Any) -> Any:
    """Train networks of the same structure and keep snapshots at recorded steps.

    Args:
        networks: One network for each seed.
        tasks: One task for all networks, or one for each.
        recorded: Increasing steps; training ends at the last one.
        kind: Data type, np.float32 or np.float64.
        **options: Further fields of `Descent`.

    Returns:
        The snapshots as one network whose arrays have leading dimensions (networks, steps).
    """
    typed = [jax.tree.map(lambda leaf: leaf.astype(kind), network) for network in networks]
    method = Descent(steps=int(recorded[-1]), save=recorded, statistics=WEIGHTS, **options)
    return unravelled(networks[0], descend(tasks, typed, method)["weights"].to_numpy())


def unravelled(network: Any, rows: np.ndarray) -> Any:
    """A network whose arrays have the leading dimensions of the given weight vectors, shape (…, weights).

    Args:
        network: One of the networks, at any step.
        rows: The `weights` of a record.

    Example:
        >>> made = unravelled({"first": np.zeros((2, 1)), "second": np.zeros(3)}, np.arange(10.0).reshape(2, 5))
        >>> made["first"].shape, made["second"].tolist()
        ((2, 2, 1), [[2.0, 3.0, 4.0], [7.0, 8.0, 9.0]])
    """
    leaves, structure = jax.tree.flatten(network)
    parts = np.split(rows, np.cumsum([leaf.size for leaf in leaves])[:-1], axis=-1)
    shaped = [part.reshape(*rows.shape[:-1], *leaf.shape) for part, leaf in zip(parts, leaves, strict=True)]
    return jax.tree.unflatten(structure, shaped)

"""Renaming of the numbers that a network receives and outputs in one-hot encoding."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import numpy as np

__all__ = ["renamed_network"]


def renamed_network(network: Any, names: np.ndarray) -> Any:
    """The network that acts on renamed numbers as the given network acts on the original numbers.

    Args:
        network: A `Transformer`, or a `TwoLayer` on two numbers.
        names: The new name of each number, shape (p,).

    Example:
        >>> from dynascope.networks.two_layer import TwoLayer
        >>> network = TwoLayer(6, 4, 3)
        >>> renamed = renamed_network(network, np.array([0, 2, 1]))
        >>> np.array_equal(renamed.first[2], network.first[1])
        True
    """
    old = np.argsort(names)
    if hasattr(network, "embedding"):
        rows, ends = lambda each: each.embedding, lambda each: each.unembedding
        order = np.append(old, len(old))
    else:
        rows, ends = lambda each: each.first, lambda each: each.second
        order = np.append(old, len(old) + old)
    return eqx.tree_at(lambda each: (rows(each), ends(each)), network, (rows(network)[order], ends(network)[:, old]))

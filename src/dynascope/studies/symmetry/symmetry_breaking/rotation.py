"""Rotations of the heads of a transformer that do not change its outputs."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Float

from dynascope.networks import Transformer

__all__ = ["rotated"]

_NAMES = ("queries", "query_bias", "keys", "key_bias", "values", "value_bias", "outputs")


def rotated(network: Transformer, fixed: Float[np.ndarray, " d"], draw: np.random.Generator) -> Transformer:
    """Rotate queries and keys, and values and outputs, of all heads by random matrices R with R b = b.

    The outputs do not change if the unlearned biases of queries and values are multiples of b or zero.

    Args:
        network: A transformer with as many key-value heads as heads.
        fixed: b, shape (head width,).
        draw: Generator of the rotations.
    """
    changed = []
    for block in network.blocks:
        inner, outer = (np.kron(np.eye(network.heads), _rotation(fixed, draw)) for _ in range(2))
        changed += [_times(each, inner) for each in (block.queries, block.query_bias, block.keys, block.key_bias)]
        changed += [_times(each, outer) for each in (block.values, block.value_bias)]
        changed.append(outer.T @ block.outputs)
    return eqx.tree_at(
        lambda tree: [getattr(block, name) for block in tree.blocks for name in _NAMES],
        network,
        changed,
        is_leaf=lambda leaf: leaf is None,
    )


def _times(weights: Any, matrix: np.ndarray) -> Any:
    """Multiply weights by a matrix; missing biases remain missing."""
    return None if weights is None else weights @ matrix


def _rotation(fixed: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    """Draw an orthogonal matrix that does not change the given vector."""
    size = len(fixed)
    basis, _ = np.linalg.qr(np.column_stack([fixed, draw.normal(size=(size, size - 1))]))
    turn = np.eye(size)
    turn[1:, 1:] = np.linalg.qr(draw.normal(size=(size - 1, size - 1)))[0]
    return basis @ turn @ basis.T

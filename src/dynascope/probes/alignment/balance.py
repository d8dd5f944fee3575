"""Imbalance of consecutive layers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

from dynascope.probes.alignment.chain import check_chain
from dynascope.probes.alignment.vectors import frobenius_norm, largest, ratio
from dynascope.results.named_tuples import short_repr
from dynascope.symmetry.layer_charges import layer_charges
from dynascope.validation import array_namespace

__all__ = ["Imbalance", "layer_imbalance"]


class Imbalance(NamedTuple):
    """The imbalance of consecutive layers over `layer` 1 … L−1, with a leading `time` axis if the weights have one.

    Attributes:
        imbalance: ‖D_ℓ‖_F with D_ℓ = W_ℓᵀ W_ℓ − W_{ℓ+1} W_{ℓ+1}ᵀ.
        relative_imbalance: ‖D_ℓ‖_F / (‖W_ℓ‖² + ‖W_{ℓ+1}‖²), from 0 for balanced layers to 1; zero if both layers
            vanish.
        balance: λ = −tr D_ℓ/h, positive if the later layer has the larger norm.
        unevenness: ‖D_ℓ + λI‖_F, zero for λ-balanced layers (D_ℓ = −λI).
    """

    imbalance: Annotated[Any, "time layer"]
    relative_imbalance: Annotated[Any, "time layer"]
    balance: Annotated[Any, "time layer"]
    unevenness: Annotated[Any, "time layer"]

    __repr__ = short_repr


def layer_imbalance(weights: Sequence[Any]) -> Imbalance:
    """Compute the imbalance of consecutive layers.

        D_ℓ = W_ℓᵀ W_ℓ − W_{ℓ+1} W_{ℓ+1}ᵀ

    For any data, gradient flow conserves each D_ℓ in a linear network, and the diagonal of D_ℓ in a ReLU network
    without biases. Gradient descent with learning rate η changes the conserved quantities by O(η) over a fixed training
    time. −D_ℓ is the matrix of charges between two layers that `symmetry.find_symmetries` finds.

    Cost: 4 a h² operations and memory for 2h² numbers, for each time and each pair of layers of shapes (a, h) and (h,
        a).

    Args:
        weights: W_1 … W_L, L ≥ 2, as for `layer_alignment`.

    Raises:
        InputError: As for `layer_alignment`.

    References:
        Du, Hu & Lee, Algorithmic regularization in learning deep homogeneous models, arXiv:1806.00900; Dominé et al.,
        From Lazy to Rich, arXiv:2409.14623, for λ-balanced layers.

    Example:
        >>> import numpy as np
        >>> layer_imbalance([np.eye(2), 2 * np.eye(2)])
        Imbalance(imbalance=[4.2426], relative_imbalance=[0.42426], balance=[3], unevenness=[0])
    """
    xp = check_chain(weights, least=2)
    pairs = []
    for one, other in itertools.pairwise(weights):
        # Divide by the largest entry, because squares of small numbers can underflow.
        size = xp.maximum(largest(one, (-2, -1)), largest(other, (-2, -1)))
        charges = layer_charges(one / size, other / size)
        matrix, mean = charges.matrix, charges.total / one.shape[-1]
        identity = xp.astype(_order(matrix)[:, None] == _order(matrix), matrix.dtype)
        norm, square = frobenius_norm(matrix), size[..., 0, 0] ** 2
        uneven = frobenius_norm(matrix - identity * mean[..., None, None])
        pairs.append((square * norm, ratio(norm, charges.size), square * mean, square * uneven))
    return Imbalance(*(xp.stack(values, axis=-1) for values in zip(*pairs, strict=True)))


def _order(matrix: Any) -> Any:
    """Return 0, 1, 2, … on the device of the matrix."""
    xp = array_namespace(matrix)
    return xp.cumulative_sum(xp.ones_like(matrix[(0,) * (len(matrix.shape) - 1)]), axis=0)

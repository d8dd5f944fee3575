"""How far consecutive layers are from balanced."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from dynascope.arguments import array_namespace
from dynascope.probes.alignment.chain import Variables, check_chain
from dynascope.probes.alignment.vectors import frobenius_norm, largest, ratio
from dynascope.symmetry.layer_charges import layer_charges

__all__ = ["layer_imbalance"]


def layer_imbalance(weights: Sequence[Any]) -> Variables:
    """How far consecutive layers are from balanced, D_ℓ = W_ℓᵀ W_ℓ − W_{ℓ+1} W_{ℓ+1}ᵀ.

    Gradient flow of a linear network conserves each D_ℓ, that of a ReLU network without biases its diagonal, whatever
    the data; steps of a learning rate η move them by O(η) in a given time. −D_ℓ is the matrix of charges that
    `symmetry.find_symmetries` finds between the layers.

    Cost: 4 a h² operations for each pair of layers (a, h), (h, a), and memory for 2h² numbers, at each time.

    Args:
        weights: W_1 … W_L, L ≥ 2, as for `layer_alignment`.

    Returns:
        Name → (dimension names, values). Over `layer` 1 … L−1, and `time` in front where the weights have it:
        `imbalance` ‖D_ℓ‖_F; `relative_imbalance`, that over ‖W_ℓ‖² + ‖W_{ℓ+1}‖² (zero where both vanish), from 0 for
        balanced layers to 1; `balance` λ = −tr D_ℓ/h, positive where the later layer is the larger; and `unevenness`
        ‖D_ℓ + λI‖_F, zero for λ-balanced layers.

    Raises:
        InputError: As `layer_alignment`.

    References:
        Du, Hu & Lee, Algorithmic regularization in learning deep homogeneous models, arXiv:1806.00900; Dominé et al.,
        From Lazy to Rich, arXiv:2409.14623, for λ-balanced layers.

    Example:
        >>> import numpy as np
        >>> found = layer_imbalance([np.eye(2), 2 * np.eye(2)])
        >>> found["balance"][1], found["unevenness"][1], found["imbalance"][1].round(3)
        (array([3.]), array([0.]), array([4.243]))
    """
    xp, time = check_chain(weights, least=2)
    found: dict[str, list[Any]] = {name: [] for name in ("imbalance", "relative_imbalance", "balance", "unevenness")}
    for one, other in itertools.pairwise(weights):
        # Divided by the largest entry of the two, as the square of a small number may vanish.
        size = xp.maximum(largest(one, (-2, -1)), largest(other, (-2, -1)))
        charges = layer_charges(one / size, other / size)
        matrix, mean = charges.matrix, charges.total / one.shape[-1]
        identity = xp.astype(_order(matrix)[:, None] == _order(matrix), matrix.dtype)
        norm, square = frobenius_norm(matrix), size[..., 0, 0] ** 2
        found["imbalance"].append(square * norm)
        found["relative_imbalance"].append(ratio(norm, charges.size))
        found["balance"].append(square * mean)
        found["unevenness"].append(square * frobenius_norm(matrix - identity * mean[..., None, None]))
    return {name: ((*time, "layer"), xp.stack(values, axis=-1)) for name, values in found.items()}


def _order(matrix: Any) -> Any:
    """0, 1, 2, … on the device of the matrix."""
    xp = array_namespace(matrix)
    return xp.cumulative_sum(xp.ones_like(matrix[(0,) * (len(matrix.shape) - 1)]), axis=0)

"""Composition of k elements of a finite group, each represented by a shifted encoding vector."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from dynascope.groups.tables import Group
from dynascope.tasks.task import Task
from dynascope.validation import checked, require, require_array
from dynascope.validation.bounded_scalars import PositiveInt

__all__ = ["Composition", "SampledComposition", "group_composition"]

_MOST_NUMBERS = 2e7  # of inputs and targets together, 160 MB


class Composition(NamedTuple):
    """The group, encoding and sequence length of a composition task.

    Attributes:
        group: The group of n elements.
        encoding: x, shape (n,).
        sequence_length: Number k of composed elements.
    """

    group: Group
    encoding: Float[np.ndarray, " n"]
    sequence_length: int


class SampledComposition(Task):
    """A composition task with its group and encoding, which the theory requires.

    Attributes:
        composition: The group, encoding and sequence length; None for derived tasks with other data.
    """

    composition: Composition | None = None


@checked
def group_composition(
    group: Group, encoding: ArrayLike | None = None, *, sequence_length: PositiveInt = 2
) -> SampledComposition:
    """All nᵏ sequences of k group elements with their products as targets.

        (x_{g_1}, …, x_{g_k}) ↦ x_{g_1 ⋯ g_k}

    The element g is encoded as x_g[h] = x[g⁻¹ h]. `theory.groups.composition_staircase` predicts the order in which
    `TwoLayer(k n, width, n, activation="power-k")` learns the task. For a cyclic group and k = 2, the task is modular
    addition.

    Args:
        group: The group of n elements.
        encoding: Encoding vector x, shape (n,). The default is 1 at the identity and 0 elsewhere, minus the mean.
        sequence_length: Number k of elements, at least 1.

    Returns:
        A task with inputs (nᵏ, k n) and targets (nᵏ, n). The last element of the sequence varies fastest.

    Raises:
        InputError: If the encoding is constant or not a finite vector of length n, if k is not a positive integer, or
            if the task would hold more than twenty million numbers.

    Source: Sequential Group Composition (arXiv 2602.03655).

    Example:
        >>> from dynascope.groups import cyclic
        >>> task = group_composition(cyclic(3), [2.0, -1.0, -1.0])
        >>> task.inputs.shape, task.inputs[5], task.targets[5]
        ((9, 6), array([-1.,  2., -1., -1., -1.,  2.]), array([ 2., -1., -1.]))
    """
    n = group.order
    x = np.eye(n)[0] - 1 / n if encoding is None else require_array("encoding", encoding, (n,))
    require(
        bool(np.ptp(x) > 0),
        f"the encoding is constant with value {x[0]}",
        argument="encoding",
        value=float(x[0]),
        remedy="give an encoding with at least two different values",
    )
    k = sequence_length
    require(
        float(n) ** (k + 1) * (k + 1) <= _MOST_NUMBERS,
        f"{n}^{k} sequences of {k} elements of {group.name} require {n ** (k + 1) * (k + 1):.1e} numbers",
        argument="sequence_length",
        value=k,
        remedy="choose a smaller group or a shorter sequence",
    )
    sequences = np.indices((n,) * k).reshape(k, -1)
    encoded = x[group.table[group.inverse]]
    task = SampledComposition(
        inputs=np.concatenate([encoded[elements] for elements in sequences], axis=1),
        targets=encoded[group.product(list(sequences))],
        name=f"composition of {k} elements of {group.name}",
        description=(
            f"All {n**k} sequences of {k} elements of the group {group.name} ({n} elements), and their products.",
            "The element g is encoded as x_g[h] = x[g⁻¹ h].",
        ),
        feature_names=tuple(f"x{j + 1}[{h}]" for j in range(k) for h in range(n)),
        target_names=tuple(f"y[{h}]" for h in range(n)),
    )
    object.__setattr__(task, "composition", Composition(group, x, k))
    return task

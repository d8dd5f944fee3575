"""Composition of the elements of a finite group, each shown as a shifted encoding."""

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
    """What is composed.

    Attributes:
        group: The group of n elements.
        encoding: x, shape (n,).
        sequence_length: k.
    """

    group: Group
    encoding: Float[np.ndarray, " n"]
    sequence_length: int


class SampledComposition(Task):
    """A task that knows what it composes, for the theory of it; one that is made from it with other numbers does not.

    Attributes:
        composition: What it composes.
    """

    composition: Composition | None = None


@checked
def group_composition(
    group: Group, encoding: ArrayLike | None = None, *, sequence_length: PositiveInt = 2
) -> SampledComposition:
    """The task to compose k elements: from (x_{g_1}, …, x_{g_k}) to x_{g_1 ⋯ g_k}, all nᵏ sequences once.

    An element g is shown as the shifted encoding x_g[h] = x[g⁻¹ h]. `TwoLayer(k n, width, n, activation="power-k")` is
    the network whose order of learning `theory.groups.composition_staircase` predicts. For a cyclic group and k = 2 the
    task is modular addition.

    Args:
        group: The group of n elements.
        encoding: x, shape (n,). By default 1 at the identity and 0 elsewhere, less the mean.
        sequence_length: k, from 1.

    Returns:
        The task: inputs (nᵏ, k n) and targets (nᵏ, n), the last element of the sequence varying fastest.

    Raises:
        InputError: The encoding is not n finite numbers or is the same for all elements, k is not a positive whole
            number, or the task would hold more than twenty million numbers.

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
        f"the encoding is {x[0]} everywhere",
        argument="encoding",
        value=float(x[0]),
        remedy="give different numbers to different elements",
    )
    k = sequence_length
    require(
        float(n) ** (k + 1) * (k + 1) <= _MOST_NUMBERS,
        f"{n}^{k} sequences of {k} elements of {group.name} make {n ** (k + 1) * (k + 1):.1e} numbers",
        argument="sequence_length",
        value=k,
        remedy="choose a smaller group or a shorter sequence",
    )
    sequences = np.indices((n,) * k).reshape(k, -1)
    shown = x[group.table[group.inverse]]
    task = SampledComposition(
        inputs=np.concatenate([shown[elements] for elements in sequences], axis=1),
        targets=shown[group.product(list(sequences))],
        name=f"composition of {k} elements of {group.name}",
        description=(
            f"All {n**k} sequences of {k} elements of the group {group.name} ({n} elements), and their products.",
            "An element g is shown as the encoding x_g[h] = x[g⁻¹ h].",
        ),
        feature_names=tuple(f"x{j + 1}[{h}]" for j in range(k) for h in range(n)),
        target_names=tuple(f"y[{h}]" for h in range(n)),
    )
    object.__setattr__(task, "composition", Composition(group, x, k))
    return task

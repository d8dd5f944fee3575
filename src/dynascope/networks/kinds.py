"""Networks by the name of their kind, sized for a task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dynascope.errors import require
from dynascope.networks.diagonal_linear import DiagonalLinear
from dynascope.networks.two_layer import TwoLayer
from dynascope.tasks.task import Task

__all__ = ["KINDS", "network_for"]

KINDS: dict[str, Callable[[Task, int, int], Any]] = {
    "linear": lambda task, width, seed: TwoLayer(task.input_dimension, width, task.output_dimension, seed=seed),
    "diagonal": lambda task, width, seed: DiagonalLinear(task.input_dimension),
}


def network_for(kind: str, task: Task, *, width: int = 50, seed: int = 0) -> Any:
    """A network of the named kind with the task's dimensions, at unit scale.

    Args:
        kind: "linear" (two layers) or "diagonal".
        task: The task it is to learn.
        width: Number of hidden neurons, where the kind has them.
        seed: Seed of the initial weights, where they are random.

    Raises:
        InputError: The kind is unknown.

    Example:
        >>> task = Task([[1.0, 0.0], [0.0, 1.0]], [[2.0], [0.0]])
        >>> network_for("linear", task, width=7).first.shape
        (2, 7)
    """
    require(
        kind in KINDS,
        f"network is {kind!r}",
        argument="network",
        value=kind,
        remedy=f"choose {' or '.join(KINDS)}",
    )
    return KINDS[kind](task, width, seed)

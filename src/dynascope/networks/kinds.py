"""Networks by the name of their kind, sized for a task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dynascope.arguments import require
from dynascope.networks.diagonal_linear import DiagonalLinear
from dynascope.networks.linear_attention import LinearAttention
from dynascope.networks.two_layer import TwoLayer

__all__ = ["KINDS", "network_for"]


def _two_layer(activation: str) -> Callable[[Any, int, int], TwoLayer]:
    def sized(task: Any, width: int, seed: int) -> TwoLayer:
        return TwoLayer(task.input_dimension, width, task.output_dimension, activation=activation, seed=seed)

    return sized


KINDS: dict[str, Callable[[Any, int, int], Any]] = {
    "linear": _two_layer("linear"),
    "diagonal": lambda task, width, seed: DiagonalLinear(task.input_dimension),
    "relu": _two_layer("relu"),
    "quadratic": _two_layer("quadratic"),
    "attention": lambda task, width, seed: LinearAttention(len(task.feature_names), width, seed=seed),
}


def network_for(kind: str, task: Any, *, width: int = 50, seed: int = 0) -> Any:
    """A network of the named kind with the task's dimensions, at unit scale.

    Args:
        kind: "linear", "relu" or "quadratic" (two layers), "diagonal", or "attention" (linear, rank-one heads).
        task: The task it is to learn.
        width: Number of hidden neurons, or of heads, where the kind has them.
        seed: Seed of the initial weights, where they are random.

    Raises:
        InputError: The kind is unknown.

    Example:
        >>> from dynascope.tasks.task import Task
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

"""Networks by the name of their kind, sized for a task."""

from __future__ import annotations

import typing
from typing import Literal

from dynascope.arguments import require_choice
from dynascope.errors import InputError
from dynascope.networks.diagonal_linear import DiagonalLinear
from dynascope.networks.linear_attention import LinearAttention
from dynascope.networks.two_layer import TwoLayer
from dynascope.protocols import Dimensioned, Learnable
from dynascope.tasks.in_context import InContextRegression

__all__ = ["KINDS", "NetworkKind", "network_for"]


NetworkKind = Literal["linear", "diagonal", "relu", "quadratic", "attention"]
KINDS: tuple[NetworkKind, ...] = typing.get_args(NetworkKind)


def network_for(
    kind: NetworkKind, task: Learnable, *, width: int = 50, seed: int = 0
) -> TwoLayer | DiagonalLinear | LinearAttention:
    """A network of the named kind with the task's dimensions, at unit scale.

    Args:
        kind: "linear", "relu" or "quadratic" (two layers), "diagonal", or "attention" (linear, rank-one heads).
        task: The task it is to learn.
        width: Number of hidden neurons, or of heads, where the kind has them.
        seed: Seed of the initial weights, where they are random.

    Raises:
        InputError: The kind is unknown, or the task does not say the dimensions that it needs.

    Example:
        >>> from dynascope.tasks.task import Task
        >>> task = Task([[1.0, 0.0], [0.0, 1.0]], [[2.0], [0.0]])
        >>> network_for("linear", task, width=7).first.shape
        (2, 7)
    """
    require_choice("network", kind, KINDS)
    if kind == "attention":
        if not isinstance(task, InContextRegression):
            raise _unsuited(
                kind, task, "give InContextRegression.on_inputs_of(task, context_length), of prompts of its inputs"
            )
        return LinearAttention(len(task.covariance), width, seed=seed)
    if not isinstance(task, Dimensioned):
        raise _unsuited(kind, task, "give a Task, or make the network yourself")
    if kind == "diagonal":
        return DiagonalLinear(task.input_dimension)
    return TwoLayer(task.input_dimension, width, task.output_dimension, activation=kind, seed=seed)


def _unsuited(kind: NetworkKind, task: Learnable, remedy: str) -> InputError:
    name = type(task).__name__
    problem = f"a network of the kind {kind!r} cannot be sized for the task {name}"
    return InputError(problem, argument="task", value=name, remedy=remedy)

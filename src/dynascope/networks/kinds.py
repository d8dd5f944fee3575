"""Construction of networks from the name of a kind and the dimensions of a task."""

from __future__ import annotations

import typing
from typing import Any, Literal

from dynascope.errors import InputError
from dynascope.networks.diagonal_linear import DiagonalLinear
from dynascope.networks.linear_attention import LinearAttention
from dynascope.networks.two_layer import TwoLayer
from dynascope.protocols import Dimensioned, Learnable
from dynascope.tasks.in_context import InContextRegression
from dynascope.validation import require_choice
from dynascope.validation.bounded import PositiveInt, Seed

__all__ = ["KINDS", "NETWORKS", "NetworkKind", "is_specification", "network_for"]

NetworkKind = Literal["linear", "diagonal", "relu", "quadratic", "attention"]
KINDS: tuple[NetworkKind, ...] = typing.get_args(NetworkKind)
#: Accepted types of networks, for messages.
NETWORKS = (
    "a torch.nn.Module, an equinox module, a network of dynascope.networks, or the name of a kind "
    f"({', '.join(map(repr, KINDS[:-1]))} or {KINDS[-1]!r})"
)


def is_specification(network: Any) -> bool:
    """Whether a network is only a name or has no dimensions, so its weights can be drawn only for a task."""
    return isinstance(network, str) or (isinstance(network, TwoLayer) and network.is_specification)


def network_for(
    kind: NetworkKind | TwoLayer, task: Learnable, *, width: PositiveInt = 50, seed: Seed = 0
) -> TwoLayer | DiagonalLinear | LinearAttention:
    """Make a network of the named kind, with the dimensions of a task and with weights at unit scale.

    Args:
        kind: "linear", "relu" or "quadratic" (two layers), "diagonal", or "attention" (linear, rank-one heads); or a
            `TwoLayer` without dimensions.
        task: The task that determines the dimensions.
        width: Number of hidden neurons or heads; ignored for "diagonal" and for a `TwoLayer`, which specifies its
            width.
        seed: Seed of the random initial weights.

    Raises:
        InputError: If the kind is unknown, or if the task does not have the dimensions that the kind requires.

    Example:
        >>> from dynascope.tasks.task import Task
        >>> task = Task([[1.0, 0.0], [0.0, 1.0]], [[2.0], [0.0]])
        >>> network_for("linear", task, width=7).first.shape
        (2, 7)
        >>> network_for(TwoLayer(width=9, activation="relu"), task).first.shape
        (2, 9)
    """
    if isinstance(kind, TwoLayer):
        width, activation = kind.first.shape[1], kind.activation.name
    else:
        require_choice("network", kind, KINDS)
        activation = kind
    if kind == "attention":
        if not isinstance(task, InContextRegression):
            raise _unsuited(kind, task, "use InContextRegression.on_inputs_of(task, context_length) as the task")
        return LinearAttention(len(task.covariance), width, seed=seed)
    if not isinstance(task, Dimensioned):
        raise _unsuited(kind, task, "give a Task, or construct the network explicitly")
    if kind == "diagonal":
        return DiagonalLinear(task.input_dimension)
    return TwoLayer(task.input_dimension, width, task.output_dimension, activation=activation, seed=seed)


def _unsuited(kind: NetworkKind | TwoLayer, task: Learnable, remedy: str) -> InputError:
    name = type(task).__name__
    description = f"of the kind {kind!r}" if isinstance(kind, str) else "without dimensions"
    problem = f"a network {description} cannot be constructed for a task of type {name}"
    return InputError(problem, argument="task", value=name, remedy=remedy)

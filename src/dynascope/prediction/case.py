"""The input of a theory: data, a network and its training."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Any

import equinox as eqx
import jax
import numpy as np
from annotated_types import Interval
from jaxtyping import Float

from dynascope.networks.biased_two_layer import BiasedTwoLayer
from dynascope.networks.deep_diagonal import DeepDiagonal
from dynascope.networks.deep_linear import DeepLinear, linear_layers, product_layers
from dynascope.networks.diagonal_linear import DiagonalLinear
from dynascope.networks.mlp import MLP
from dynascope.networks.two_layer import TwoLayer
from dynascope.prediction.alternating_flow import MAX_STEPS
from dynascope.prediction.network_parts import Rows
from dynascope.prediction.ntk_modes import is_linear_in_weights
from dynascope.tasks.task import Task
from dynascope.validation import checked, require
from dynascope.validation.bounded_scalars import PositiveFloat, PositiveInt

__all__ = ["Case", "without_biases"]

_ROWS = 4  # inputs for the test of linearity in the weights
_LARGEST = 1e50  # largest scale for which products over layers do not overflow


@checked
@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """A case: the data, the network and the training to which a theory is applied.

    Attributes:
        task: The data, or an expectation in closed form.
        network: A module with its weights at unit scale.
        scale: Factor on the initial weights.
        normalised: Whether the flow is homogeneity-normalised.
        jumps: Maximum number of jumps; None for all.
        max_steps: Maximum number of steps in one phase of alternating gradient flow.
        learning_rate: Learning rate of gradient descent, or one per layer; None for gradient flow.
        batch_size: Batch size; None for all samples.
        omits_biases: Whether the layers have biases, which `network` omits; see `without_biases`.
    """

    task: Any
    network: Any
    scale: Annotated[float, Interval(gt=0, le=_LARGEST)] = 1.0
    normalised: bool = False
    jumps: PositiveInt | None = None
    max_steps: PositiveInt = MAX_STEPS
    learning_rate: PositiveFloat | Sequence[PositiveFloat] | None = None
    batch_size: PositiveInt | None = None
    omits_biases: bool = False

    def __post_init__(self) -> None:
        if len(self.rates) == 1 or self.learning_rate is None:
            return
        layers = 2 if isinstance(self.network, TwoLayer) else len(self.layers or self.rates)
        require(
            len(self.rates) == layers,
            f"learning_rate has length {len(self.rates)}, but the network has {layers} layer{'s' * (layers != 1)}",
            argument="learning_rate",
            value=len(self.rates),
            remedy="give one number, or one for each layer",
        )

    @property
    def rates(self) -> tuple[float, ...]:
        """The learning rates of the layers, or the one rate that they share; empty for gradient flow."""
        if self.learning_rate is None:
            return ()
        return tuple(np.atleast_1d(np.asarray(self.learning_rate)).tolist())

    @property
    def samples(self) -> Task | None:
        """The task if it consists of samples; otherwise None."""
        return self.task if isinstance(self.task, Task) else None

    @cached_property
    def start(self) -> Any:
        """The network with its initial weights, in float64."""

        def scaled(leaf: Any) -> Any:
            return self.scale * np.asarray(leaf, np.float64) if eqx.is_inexact_array(leaf) else leaf

        return jax.tree.map(scaled, self.network)

    @cached_property
    def linear_in_weights(self) -> bool:
        """Whether the function is linear in the weights; tested numerically for a user's module."""
        if isinstance(self.network, Rows) and self.samples is not None:
            return is_linear_in_weights(self.start, self.task.inputs[:_ROWS])
        if isinstance(self.network, MLP):
            return len(self.network.weights) == 1
        return self.layers is not None and len(self.layers) == 1

    @cached_property
    def layers(self) -> tuple[Float[np.ndarray, "_ _"], ...] | None:
        """The initial W₁, …, W_L in float64 if the network is f(x) = x W₁ ⋯ W_L; otherwise None."""
        found = linear_layers(self.network) or product_layers(self.network)
        return None if found is None else tuple(self.scale * layer for layer in found)

    @property
    def two_layers(self) -> tuple[Float[np.ndarray, "d width"], Float[np.ndarray, "width c"]] | None:
        """The initial W₁ and W₂ if the network is f(x) = x W₁ W₂; otherwise None."""
        return None if self.layers is None or len(self.layers) != 2 else (self.layers[0], self.layers[1])

    @property
    def activation(self) -> str | None:
        """Name of the activation of a `TwoLayer`; None for other networks."""
        return self.network.activation.name if isinstance(self.network, TwoLayer) else None

    @cached_property
    def equal_parts(self) -> Float[np.ndarray, " weights"] | None:
        """The weights of a diagonal network that theories assume to be equal."""
        if isinstance(self.network, DiagonalLinear):
            return np.abs(np.asarray(self.network.u, np.float64))
        if isinstance(self.network, DeepDiagonal):
            return np.abs(np.concatenate([np.asarray(each, np.float64) for each in (self.network.u, self.network.v)]))
        return None

    @cached_property
    def input_power(self) -> Float[np.ndarray, " d"]:
        """Eigenvalues of E[x xᵀ], in decreasing order."""
        return np.maximum(np.linalg.eigvalsh(self.task.input_moment)[::-1], 0)

    @cached_property
    def white_power(self) -> float:
        """The mean eigenvalue of E[x xᵀ]; it is s for inputs with E[x xᵀ] = s I."""
        return float(self.input_power.mean())

    @cached_property
    def best_map(self) -> Float[np.ndarray, "d c"]:
        """The least-norm map β that minimises E‖y − xᵀβ‖²."""
        return np.linalg.pinv(self.task.input_moment, rcond=1e-12, hermitian=True) @ self.task.cross_moment.T

    @cached_property
    def floor(self) -> float:
        """The minimum of ½ E‖f − y‖² over linear maps whose rank the hidden layers allow."""
        task = self.task
        root = np.linalg.pinv(_root(task.input_moment))
        gains = np.linalg.svd(task.cross_moment @ root, compute_uv=False) ** 2
        if self.layers is not None and len(self.layers) > 1:
            gains = gains[: min(layer.shape[1] for layer in self.layers[:-1])]
        return max(task.target_power - float(gains.sum()), 0.0) / 2

    @property
    def kind(self) -> str:
        """The kind of network: "linear", "diagonal", "deep linear", …."""
        if self.activation is not None:
            return self.activation
        known = {DiagonalLinear: "diagonal", DeepDiagonal: "deep diagonal", DeepLinear: "deep linear"}
        return known.get(type(self.network), "linear" if self.layers is not None else type(self.network).__name__)

    @property
    def name(self) -> str:
        """The description of the network."""
        if self.activation is not None:
            return f"two-layer {self.activation} network"
        if isinstance(self.network, MLP) and self.network.activation == "linear" and len(self.network.weights) == 1:
            return "linear model with a bias"
        if isinstance(self.network, BiasedTwoLayer):
            return f"two-layer {self.network.activation.name} network with biases"
        if self.layers is not None:
            biases = " with biases" if self.omits_biases else ""
            return f"linear network of {len(self.layers)} layer{'s' * (len(self.layers) > 1)}{biases}"
        if isinstance(self.network, DiagonalLinear | DeepDiagonal):
            return f"{self.kind} linear network"
        return type(self.network.module if isinstance(self.network, Rows) else self.network).__name__

    @cached_property
    def maps_rows(self) -> bool:
        """Whether the network accepts the samples in rows and has one output per target."""
        if self.samples is None or not callable(self.network):
            return False
        rows = jax.ShapeDtypeStruct((1, self.task.input_dimension), np.float64)
        try:
            found: Any = eqx.filter_eval_shape(self.network, rows)
        except Exception:  # a user's function may raise any error for inputs of the wrong shape
            return False
        return getattr(found, "shape", None) == (1, self.task.output_dimension)

    def require_fitting(self) -> None:
        """Reject a network whose dimensions do not match the samples."""
        if self.samples is None:
            return
        if isinstance(self.network, DiagonalLinear | DeepDiagonal):
            inputs, wanted = len(self.network.u), self.task.input_dimension  # the theories check that it has one output
            require(
                inputs == wanted,
                f"the network has input dimension {inputs}, but the task has input dimension {wanted}",
                argument="network",
                value=inputs,
                remedy="give a network and a task with the same input dimension",
            )
        if isinstance(self.network, BiasedTwoLayer):
            self.require_dimensions(self.network.input_dimension, self.network.second.shape[1])
        if isinstance(self.network, TwoLayer | DeepLinear | MLP):
            layers = [leaf for leaf in jax.tree.leaves(self.network) if np.ndim(leaf) == 2]
            self.require_dimensions(layers[0].shape[0], layers[-1].shape[1])

    def require_dimensions(self, inputs: int, outputs: int) -> None:
        """Reject a network whose dimensions do not match the data."""
        task = self.task
        require(
            (inputs, outputs) == (task.input_dimension, task.output_dimension),
            f"the network has input and output dimensions ({inputs}, {outputs}), but the task has dimensions "
            f"({task.input_dimension}, {task.output_dimension})",
            argument="network",
            value=(inputs, outputs),
            remedy="give a network and a task with the same dimensions",
        )


def without_biases(network: Any) -> tuple[Any, bool]:
    """Omit the biases of a linear network of two or more layers, and return whether there were any.

    On centred data, the gradient with respect to the biases is zero if the biases are zero, and small biases decay. The
    other weights then follow the gradient flow of a network without biases.
    """
    if not (isinstance(network, MLP) and network.biases and len(network.weights) > 1):
        return network, False
    if network.activation != "linear" or network.parametrisation != "standard":
        return network, False
    return eqx.tree_at(lambda each: each.biases, network, ()), True


def _root(moment: Float[np.ndarray, "d d"]) -> Float[np.ndarray, "d d"]:
    values, axes = np.linalg.eigh(moment)
    return (axes * np.sqrt(np.maximum(values, 0))) @ axes.T

"""What flows and theories need of a task and of a network, whatever class it is of."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

__all__ = ["Average", "Dimensioned", "Learnable", "Network", "OneHiddenLayer", "SumOfNeurons"]


@runtime_checkable
class Network(Protocol):
    """A function of a batch (n, d) with outputs (n, c); its weights are the floating-point arrays in it.

    Every module of `networks` is one, and so is any equinox module that can be called.
    """

    def __call__(self, x: Any, /) -> Any:
        """Outputs for a batch."""
        ...


@runtime_checkable
class SumOfNeurons(Network, Protocol):
    """What a network offers whose output is a sum over neurons, each homogeneous of degree κ in its own weights.

    `TwoLayer`, `DiagonalLinear`, `LinearAttention`, `MergedAttention` and `NeuronSum` do.
    """

    @property
    def degree(self) -> int:
        """κ: f_i(x; s·θ_i) = s^κ f_i(x; θ_i) for s > 0."""
        ...

    @property
    def neurons(self) -> Any:
        """Θ, shape (neurons, weights): in each row all weights of one neuron."""
        ...

    def with_neurons(self, rows: Any) -> SumOfNeurons:
        """The same network with other weights, or with another number of neurons."""
        ...

    def weighted(self, coefficients: Any) -> SumOfNeurons:
        """Σ_i c_i f_i, the network with the output of its neuron i multiplied by c_i."""
        ...


@runtime_checkable
class OneHiddenLayer(Network, Protocol):
    """What losses in closed form read of a network f(x) = σ(x W₁) W₂ with homogeneous σ, such as `TwoLayer`."""

    @property
    def first(self) -> Any:
        """W₁, shape (d, width)."""
        ...

    @property
    def second(self) -> Any:
        """W₂, shape (width, c)."""
        ...

    @property
    def activation(self) -> Any:
        """σ(z) = positive · max(z, 0)^degree + negative · max(−z, 0)^degree, with these three numbers as attributes."""
        ...


@runtime_checkable
class Average(Protocol):
    """A loss that is averaged over data or over a distribution."""

    def loss(self, network: Network, /) -> Any:
        """L = ½ E‖f(x) − y‖² of a network, or of the kind of networks that the average is known for."""
        ...


@runtime_checkable
class Learnable(Average, Protocol):
    """What a network can learn: samples, an expectation in closed form, or a stream of samples.

    `Task`, `Labelled`, `Expectation`, `InContextRegression`, `MultiIndex`, `ModularAddition` and every `Stream` are.
    """

    def attributes(self) -> dict[str, Any]:
        """What a record says of the task it belongs to; `task` is its short name."""
        ...


@runtime_checkable
class Dimensioned(Protocol):
    """A task that says how many inputs and outputs a network for it has."""

    @property
    def input_dimension(self) -> int:
        """Number of inputs d."""
        ...

    @property
    def output_dimension(self) -> int:
        """Number of outputs c."""
        ...

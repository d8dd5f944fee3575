"""Interfaces of tasks and networks."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

__all__ = ["Average", "Dimensioned", "Learnable", "Network", "OneHiddenLayer", "SampledNetwork", "SumOfNeurons"]


@runtime_checkable
class Network(Protocol):
    """A function that maps a batch (n, d) to outputs (n, c); its floating-point arrays are its weights.

    All modules in `networks` and all callable equinox modules implement this protocol.
    """

    def __call__(self, x: Any, /) -> Any:
        """Compute the outputs for a batch."""
        ...


@runtime_checkable
class SampledNetwork(Network, Protocol):
    """A network with random parts that are not weights, such as a `Transformer` with resampled biases.

    Training computes the outputs of a step by `sampled_outputs`; everything recorded is computed by calls.
    """

    def sampled_outputs(self, x: Any, key: Any, /) -> Any:
        """Compute the outputs for a batch, with random parts drawn from a JAX random key."""
        ...


@runtime_checkable
class SumOfNeurons(Network, Protocol):
    """A network whose output is a sum over neurons, each homogeneous of degree κ in its weights.

    `TwoLayer`, `DiagonalLinear`, `LinearAttention`, `MergedAttention` and `NeuronSum` implement this protocol.
    """

    @property
    def degree(self) -> int:
        """Degree of homogeneity κ of a neuron: f_i(x; s·θ_i) = s^κ f_i(x; θ_i) for s > 0."""
        ...

    @property
    def neurons(self) -> Any:
        """Θ, shape (neurons, weights): each row contains all weights of one neuron."""
        ...

    def with_neurons(self, rows: Any) -> SumOfNeurons:
        """Replace the weights; the number of neurons can change."""
        ...

    def weighted(self, coefficients: Any) -> SumOfNeurons:
        """Multiply the output of each neuron i by c_i: Σ_i c_i f_i."""
        ...


@runtime_checkable
class OneHiddenLayer(Network, Protocol):
    """A network f(x) = σ(x W₁) W₂ with homogeneous σ, such as `TwoLayer`, for losses in closed form."""

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
    """A loss averaged over samples or over a distribution."""

    def loss(self, network: Network, /) -> Any:
        """Compute L = ½ E‖f(x) − y‖²; expectations in closed form accept only certain networks."""
        ...


@runtime_checkable
class Learnable(Average, Protocol):
    """A learning task: samples, an expectation in closed form, or a stream of samples.

    `Task`, `Labelled`, `Expectation`, `InContextRegression`, `MultiIndex`, `ModularAddition` and every `Stream`
    implement this protocol.
    """

    def attributes(self) -> dict[str, Any]:
        """Attributes that describe the task in records; `task` is its short name."""
        ...


@runtime_checkable
class Dimensioned(Protocol):
    """A task with a defined number of inputs and outputs."""

    @property
    def input_dimension(self) -> int:
        """Number of inputs d."""
        ...

    @property
    def output_dimension(self) -> int:
        """Number of outputs c."""
        ...

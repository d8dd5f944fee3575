"""Two-layer networks with a positively homogeneous activation."""

from __future__ import annotations

import contextlib

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.errors import InputError
from dynascope.validation import array_namespace, checked, require, require_room
from dynascope.validation.bounded import FiniteFloat, PositiveFloat, PositiveInt, Seed

__all__ = ["HomogeneousActivation", "TwoLayer", "homogeneous_activation"]


class HomogeneousActivation(eqx.Module):
    """A positively homogeneous activation, σ(s·z) = s^k · σ(z) for every s > 0.

    Every such function of one variable has the form

        σ(z) = p·max(z, 0)^k + q·max(−z, 0)^k.

    Attributes:
        degree: The exponent k ≥ 1.
        positive: p, the value at z = 1.
        negative: q, the value at z = −1.
        name: Name of the activation.

    Example:
        >>> homogeneous_activation("relu")(np.array([-2.0, 3.0])).tolist(), homogeneous_activation("power-3").degree
        ([0.0, 3.0], 3)
    """

    degree: int = eqx.field(static=True)
    positive: float = eqx.field(static=True)
    negative: float = eqx.field(static=True)
    name: str = eqx.field(static=True)

    @property
    def linear(self) -> bool:
        """Whether the function is a multiple of z."""
        return self.degree == 1 and self.positive == -self.negative

    def __call__(self, z: Array | np.ndarray) -> Array | np.ndarray:
        """Apply the activation elementwise."""
        if self.linear:
            return self.positive * z
        slopes = self.positive, self.negative * (-1) ** self.degree
        if slopes[0] == slopes[1] and isinstance(z, Array):
            return slopes[0] * z**self.degree
        if isinstance(z, np.ndarray | np.generic):
            # Keep the floating-point precision, as JAX does; convert integers to float64.
            dtype = z.dtype if np.issubdtype(z.dtype, np.floating) else np.float64
            return np.where(z > 0, *slopes).astype(dtype) * z**self.degree
        return jnp.where(z > 0, *slopes) * z**self.degree


def homogeneous_activation(kind: str) -> HomogeneousActivation:
    """Look up an activation by name.

    Args:
        kind: "linear", "relu", "leaky-relu" or "leaky-relu-SLOPE" (SLOPE is the slope for z < 0, by default 0.01),
            "quadratic", "power-K" for z^K, or "relu-power-K" for max(z, 0)^K, with an integer K ≥ 1.

    Raises:
        InputError: If the name is unknown.

    Example:
        >>> leaky = homogeneous_activation("leaky-relu")
        >>> leaky.degree, leaky.positive, leaky.negative
        (1, 1.0, -0.01)
    """
    parts = kind.rsplit("-", 1)
    exponent = int(parts[1]) if len(parts) == 2 and parts[1].isdecimal() else 0
    if kind == "linear":
        return HomogeneousActivation(1, 1.0, -1.0, kind)
    if kind == "relu":
        return HomogeneousActivation(1, 1.0, 0.0, kind)
    if kind == "quadratic":
        return HomogeneousActivation(2, 1.0, 1.0, kind)
    if kind == "leaky-relu":
        return HomogeneousActivation(1, 1.0, -0.01, kind)
    if kind.startswith("leaky-relu-"):
        with contextlib.suppress(ValueError):
            slope = float(kind.removeprefix("leaky-relu-"))
            if np.isfinite(slope):
                return HomogeneousActivation(1, 1.0, -slope, kind)
    if parts[0] == "power" and exponent >= 1:
        return HomogeneousActivation(exponent, 1.0, float((-1) ** exponent), kind)
    if parts[0] == "relu-power" and exponent >= 1:
        return HomogeneousActivation(exponent, 1.0, 0.0, kind)
    raise InputError(
        f"activation is {kind!r}",
        argument="activation",
        value=kind,
        remedy="choose linear, relu, leaky-relu, leaky-relu-SLOPE, quadratic, power-K or relu-power-K",
    )


class TwoLayer(eqx.Module):
    """A two-layer network f(x) = σ(x W₁) W₂, whose neurons are homogeneous of degree k + 1 in their weights.

    The weights are Gaussian; the standard deviation is scale·exp(−balance/2)/√width in the first layer and
    scale·exp(balance/2)/√width in the second. At unit scale and zero balance, the sum of squared weights of each input
    or output coordinate is one in expectation, for every width.

    Without dimensions, `TwoLayer(width=50, activation="relu")` is a specification: `predict`, `observe` and `which`
    draw its weights with the dimensions of the task.

    Attributes:
        first: W₁, shape (d, width).
        second: W₂, shape (width, c).
        activation: The positively homogeneous activation σ.

    Args:
        input_dimension: Number d of inputs; None, together with `output_dimension`, for a specification.
        width: Number of hidden neurons.
        output_dimension: Number c of outputs.
        activation: Name of an activation (see `homogeneous_activation`).
        scale: Factor on every weight.
        balance: Logarithm of the ratio of the scales of the second and the first layer; zero for equal scales.
        seed: Seed of the draw.

    Raises:
        InputError: If a dimension or the scale is not positive, if the balance is not finite, if the activation is
            unknown, if only one dimension is given, or if a specification has a scale, balance or seed.

    Example:
        >>> network = TwoLayer(3, 5, 2, activation="relu", seed=1)
        >>> network(jnp.ones((4, 3))).shape, network.degree
        ((4, 2), 2)
    """

    first: Float[Array | np.ndarray, "d width"]
    second: Float[Array | np.ndarray, "width c"]
    activation: HomogeneousActivation

    @checked
    def __init__(
        self,
        input_dimension: PositiveInt | None = None,
        width: PositiveInt = 50,
        output_dimension: PositiveInt | None = None,
        *,
        activation: str = "linear",
        scale: PositiveFloat = 1.0,
        balance: FiniteFloat = 0.0,
        seed: Seed = 0,
    ):
        self.activation = homogeneous_activation(activation)
        if input_dimension is None or output_dimension is None:
            _require_no_draw(input_dimension, output_dimension, scale=scale, balance=balance, seed=seed)
            self.first, self.second = np.empty((0, width)), np.empty((width, 0))
            return
        sizes = {"input_dimension": input_dimension, "width": width, "output_dimension": output_dimension}
        require_room((input_dimension + output_dimension) * width, **sizes)
        draw = np.random.default_rng(seed)
        ratio = np.exp(balance / 2)
        deviation = scale / np.sqrt(width)
        self.first = draw.normal(size=(input_dimension, width)) * (deviation / ratio)
        self.second = draw.normal(size=(width, output_dimension)) * (deviation * ratio)

    @property
    def is_specification(self) -> bool:
        """Whether the network has no dimensions."""
        return self.first.shape[0] == 0

    @property
    def degree(self) -> int:
        """Degree of homogeneity κ of the network in its weights."""
        return self.activation.degree + 1

    @property
    def neurons(self) -> Float[Array | np.ndarray, "width weights"]:
        """Θ, shape (width, d + c): each row contains the input weights, then the output weights of one neuron."""
        return array_namespace(self.first).concatenate([self.first.T, self.second], axis=1)

    def with_neurons(self, rows: Float[Array | np.ndarray, "neurons weights"]) -> TwoLayer:
        """Replace the weights; the number of neurons can change."""
        d = self.first.shape[0]
        return eqx.tree_at(lambda network: (network.first, network.second), self, (rows[:, :d].T, rows[:, d:]))

    def weighted(self, coefficients: Float[Array | np.ndarray, " width"]) -> TwoLayer:
        """Multiply the output of each neuron i by c_i: Σ_i c_i f_i."""
        return eqx.tree_at(lambda network: network.second, self, coefficients[:, None] * self.second)

    def __call__(self, x: Float[Array | np.ndarray, "... d"]) -> Float[Array | np.ndarray, "... c"]:
        """Compute the outputs for one sample or a batch."""
        require(
            not self.is_specification,
            "the network has no dimensions and therefore no weights",
            argument="network",
            remedy="pass the dimensions to TwoLayer, or draw weights with networks.network_for(network, task)",
        )
        return self.activation(x @ self.first) @ self.second


def _require_no_draw(inputs: int | None, outputs: int | None, **drawing: float) -> None:
    """Raise `InputError` if only one dimension is given, or if arguments of the draw are given without dimensions."""
    for name, value in {"input_dimension": inputs, "output_dimension": outputs}.items():
        require(
            value is None, f"only {name} is given", argument=name, value=value, remedy="give both dimensions or neither"
        )
    for name, value in drawing.items():
        require(
            value == {"scale": 1.0, "balance": 0.0, "seed": 0}[name],
            f"{name} is {value}, but a network without dimensions has no weights",
            argument=name,
            value=value,
            remedy="give both dimensions, or pass scale and seed to predict or observe instead",
        )

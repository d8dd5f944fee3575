"""Loss Hessians of sums of neurons, in closed form for two-layer networks and rank-one attention heads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.flows.exact.head_curvature import head_curvatures, head_slopes
from dynascope.flows.objective import Samples
from dynascope.networks.linear_attention import LinearAttention
from dynascope.networks.two_layer import TwoLayer
from dynascope.protocols import Average, SumOfNeurons

__all__ = [
    "in_closed_form",
    "loss_curvature",
    "moments_of",
    "own_curvatures",
    "shared_slopes",
    "slopes_of",
    "slopes_of_curvature",
    "work_of_own_curvatures",
]

_QUICK = 5.0  # columns of a closed-form Hessian that cost as much as a gradient


def in_closed_form(network: SumOfNeurons, average: Average) -> bool:
    """Whether the second derivatives reduce to a few matrix products.

    Args:
        network: The network.
        average: The samples or expectation of the loss.

    Example:
        >>> in_closed_form(TwoLayer(2, 1, 1), Samples(np.ones((1, 2)), np.ones((1, 1))))
        True
    """
    return isinstance(network, TwoLayer | LinearAttention) and isinstance(average, Samples)


def loss_curvature(
    network: SumOfNeurons, average: Average, rows: Float[Array, "neurons weights"]
) -> Float[Array, "m m"]:
    """Compute the Hessian of the loss with respect to the weights of all neurons.

    On samples, the block of neurons i and j is E[D_iᵀ D_j] − δ_ij H_i (see `shared_slopes` and `own_curvatures`).

    Args:
        network: The network that defines the neurons.
        average: The samples or expectation of the loss.
        rows: Weights Θ, one row per neuron.

    Example:
        >>> network = TwoLayer(2, 1, 1, activation="quadratic")
        >>> samples = Samples(np.ones((1, 2)), np.ones((1, 1)))
        >>> curvature = jax.jit(lambda rows: loss_curvature(network, samples, rows))(np.ones((1, 3)))
        >>> np.asarray(curvature).astype(int).tolist()  # of ½ (a (u + v)² − 1)² at one
        [[22, 22, 28], [22, 22, 28], [28, 28, 16]]
    """
    if not in_closed_form(network, average):
        hessian = jax.hessian(lambda vector: average.loss(network.with_neurons(vector.reshape(rows.shape))))
        return hessian(rows.ravel())
    inputs, targets = average.inputs, average.targets  # type: ignore[attr-defined]
    error = targets - network.with_neurons(rows)(inputs)
    own = own_curvatures(network, inputs, error, rows)
    return shared_slopes(network, inputs, rows) - jax.scipy.linalg.block_diag(*own)


def slopes_of(
    network: SumOfNeurons, inputs: Float[Array | np.ndarray, "n d"], rows: Float[Array, "neurons weights"]
) -> Float[Array, "neurons numbers weights"]:
    """Compute the Jacobians D_i of the outputs of each neuron, with samples and outputs flattened into one axis.

    Args:
        network: The network that defines the neurons.
        inputs: Inputs x, shape (n, d).
        rows: Weights Θ, one row per neuron.

    Example:
        >>> network = TwoLayer(1, 1, 1, activation="quadratic")
        >>> slopes = jax.jit(lambda rows: slopes_of(network, np.array([[3.0]]), rows))
        >>> slopes(np.array([[1.0, 2.0]])).tolist()  # of 2 (3 w)² at w = 1
        [[[36.0, 9.0]]]
    """
    if isinstance(network, LinearAttention):
        return head_slopes(inputs, rows).swapaxes(0, 1)
    slopes = jax.vmap(jax.jacfwd(lambda row: network.with_neurons(row[None])(inputs)))(rows)
    return slopes.reshape(len(rows), -1, rows.shape[1])


def shared_slopes(
    network: SumOfNeurons, inputs: Float[Array | np.ndarray, "n d"], rows: Float[Array, "neurons weights"]
) -> Float[Array, "m m"]:
    """Compute the Gauss–Newton matrix E[D_iᵀ D_j] for all pairs of neurons.

    For two-layer networks with z_i = w_i·x, the blocks (w_i, w_j), (w_i, a_j) and (a_i, a_j) are

        (a_i·a_j) E[σ'(z_i) σ'(z_j) x xᵀ],    E[σ'(z_i) σ(z_j) x] a_iᵀ,    E[σ(z_i) σ(z_j)] I,

    which require a single matrix product for any number of outputs.

    Args:
        network: The network that defines the neurons.
        inputs: Inputs x, shape (n, d).
        rows: Weights Θ, one row per neuron.
    """
    neurons, weights = rows.shape
    if not isinstance(network, TwoLayer):
        slopes = slopes_of(network, inputs, rows).swapaxes(0, 1).reshape(-1, rows.size)
        return slopes.T @ slopes / len(inputs)
    samples, inside = np.shape(inputs)
    second = rows[:, inside:]
    height, slope, _ = _activations(network, inputs, rows)
    # Samples are on the last axis, over which CPUs multiply matrices fastest.
    gradients = (slope.T[:, None, :] * jnp.asarray(inputs).T).reshape(-1, samples)
    first = (gradients @ gradients.T / samples).reshape(neurons, inside, neurons, inside)
    first *= (second @ second.T)[:, None, :, None]
    mixed = (gradients @ height / samples).reshape(neurons, inside, neurons, 1) * second[:, None, None, :]
    identity = jnp.eye(weights - inside)
    last = (height.T @ height / samples)[:, None, :, None] * identity[:, None, :]
    upper = jnp.concatenate([first, mixed], axis=3)
    lower = jnp.concatenate([mixed.transpose(2, 3, 0, 1), last], axis=3)
    return jnp.concatenate([upper, lower], axis=1).reshape(rows.size, rows.size)


def own_curvatures(
    network: SumOfNeurons,
    inputs: Float[Array | np.ndarray, "n d"],
    error: Float[Array, "n c"],
    rows: Float[Array, "neurons weights"],
) -> Float[Array, "neurons weights weights"]:
    """Compute the Hessian H_i of E⟨f_i(x), r(x)⟩ with respect to the weights of each neuron at a fixed error r.

    For two-layer networks, the blocks (w_i, w_i), (w_i, a_i) and (a_i, a_i) are

        E[(a_i·r) σ''(z_i) x xᵀ],    E[σ'(z_i) x rᵀ],    0.

    For attention heads, see `head_curvatures`.

    Args:
        network: The network that defines the neurons.
        inputs: Inputs x, shape (n, d).
        error: Error r, shape (n, c).
        rows: Weights Θ, one row per neuron.
    """
    if isinstance(network, LinearAttention):
        return head_curvatures(inputs, error, rows)
    if not isinstance(network, TwoLayer):
        return jax.vmap(jax.hessian(lambda row: jnp.vdot(network.with_neurons(row[None])(inputs), error)))(rows) / len(
            inputs
        )
    samples, inside = np.shape(inputs)
    second = rows[:, inside:]
    _, slope, bend = _activations(network, inputs, rows)
    x, error = jnp.asarray(inputs), error / samples
    if _constant_second_derivative(network, len(rows), error.shape[1]):
        # σ' is linear, so the moments of the samples are sufficient.
        moments = 2 * network.activation.positive * moments_of(x, error)
        first = jnp.tensordot(second, moments, 1)
        mixed = jnp.tensordot(rows[:, :inside], moments, ((1,), (1,))).transpose(0, 2, 1)
    else:
        first = moments_of(x, (error @ second.T) * bend)
        mixed = jnp.einsum("nd,ni,nc->idc", x, slope, error)
    zero = jnp.zeros((len(rows), error.shape[1], error.shape[1]))
    upper = jnp.concatenate([first, mixed], axis=2)
    return jnp.concatenate([upper, jnp.concatenate([mixed.transpose(0, 2, 1), zero], axis=2)], axis=1)


def slopes_of_curvature(network: SumOfNeurons, average: Average, rows: Float[Array, "neurons weights"]) -> float:
    """Estimate the cost of the Hessian in units of gradients, to within a factor of about two.

    Args:
        network: The network that defines the neurons.
        average: The samples or expectation of the loss.
        rows: Weights Θ, one row per neuron.

    Example:
        >>> average = Samples(np.ones((1, 2)), np.ones((1, 1)))
        >>> slopes_of_curvature(TwoLayer(2, 1, 1), average, jnp.ones((10, 3)))
        6.0
    """
    # Otherwise, each weight needs a Hessian-vector product, which costs two gradients; batching halves the time.
    return rows.size / (_QUICK if in_closed_form(network, average) else 1)


def work_of_own_curvatures(network: SumOfNeurons, samples: int, outputs: int) -> float:
    """Estimate the floating-point operations of `own_curvatures`, to within a factor of about two.

    Args:
        network: The network.
        samples: Number n of samples.
        outputs: Number c of outputs.

    Example:
        >>> work_of_own_curvatures(TwoLayer(10, 50, 1, activation="quadratic"), 100, 1)
        20000.0
    """
    neurons, weights = np.shape(network.neurons)
    if isinstance(network, LinearAttention):
        return (2.0 * samples + 4.0 * neurons) * network.k.shape[1] ** 2
    if not isinstance(network, TwoLayer):
        return 4.0 * neurons * weights**2 * samples
    products = outputs if _constant_second_derivative(network, neurons, outputs) else neurons
    return 2.0 * products * samples * np.shape(network.first)[0] ** 2


def _constant_second_derivative(network: TwoLayer, neurons: int, outputs: int) -> bool:
    """Whether σ'' is the same constant for all neurons, so that one moment matrix per output suffices."""
    activation = network.activation
    return activation.degree == 2 and activation.positive == activation.negative and outputs <= neurons


def moments_of(x: Array, columns: Array) -> Array:
    """Compute Σ_n c_n x_n x_nᵀ for each column c in a single matrix product."""
    weighted = (columns.T[:, None, :] * x.T).reshape(-1, len(x))
    return (weighted @ x).reshape(columns.shape[1], x.shape[1], x.shape[1])


def _activations(network: TwoLayer, inputs: Any, rows: Array) -> tuple[Array, Array, Array]:
    """Compute σ(z), σ'(z) and σ''(z) for all samples and neurons."""

    def slope_of(function: Callable[[Array], Any]) -> Callable[[Array], Array]:
        return lambda z: jax.jvp(function, (z,), (jnp.ones_like(z),))[1]

    z = jnp.asarray(inputs) @ rows[:, : np.shape(inputs)[1]].T
    slope = slope_of(network.activation)
    return jnp.asarray(network.activation(z)), slope(z), slope_of(slope)(z)

"""Implicit steps for sums of neurons of any degree whose outputs are dominated by a few large neurons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.compilation import filter_jit
from dynascope.flows.exact.neuron_curvature import own_curvatures, shared_slopes, slopes_of, work_of_own_curvatures
from dynascope.flows.solvers.adaptive import StiffFlow
from dynascope.networks.two_layer import TwoLayer
from dynascope.protocols import SumOfNeurons
from dynascope.tasks.task import Task

__all__ = ["Neurons", "StiffNeurons", "work_of_a_step"]

_RELEVANT = 1e-4  # of the targets: contribution to the outputs above which a neuron counts as large
_AHEAD = 10.0  # factor by which a small neuron can exceed this contribution before neurons are sorted again
_FIRST = 12  # solving jointly for this many neurons is faster than compiling for fewer,
_EXPENSIVE = 5e8  # unless it takes more operations than this
_COARSE = tuple(_FIRST * 4**power for power in range(16))  # possible numbers of large neurons if solving is fast
_CLOSE = tuple(sorted(each for power in range(2, 31) for each in (2**power, 3 * 2 ** (power - 1))))  # otherwise

_VELOCITIES, _EACH = 8, 6.0  # velocities per step, and operations of a velocity per weight and sample


class Neurons(NamedTuple):
    """Neurons θ_i = e^{l_i} u_i, sorted from large to small.

    Attributes:
        directions: Unit directions u_i, one row per neuron.
        log_norms: Log-norms l_i.
        order: Position of each neuron in the network; None if it is not needed.
    """

    directions: Float[Array, "neurons weights"]
    log_norms: Float[Array, " neurons"]
    order: Any = None


class StiffNeurons(StiffFlow):
    """Gradient flow of neurons θ_i = e^{l_i} v_i of degree κ.

    During a step, v_i starts at a unit direction, and l_i is constant. With the output f_i of a neuron and the gradient
    g_i of E⟨f_i(v_i), y − f⟩,

        v_i' = e^{(κ−2) l_i} g_i,    ∂v_i'/∂v_j = e^{(κ−2) l_i} (δ_ij H_i − e^{κ l_j} E[D_iᵀ D_j]),

    where D_i is the derivative of f_i, and H_i the derivative of g_i at a fixed residual. The influence of neuron j on
    the others is proportional to e^{κ l_j}. A step therefore solves one linear system for the large neurons only, or
    for the samples if there are few. Each remaining neuron has a separate small system.

    Attributes:
        frame: The network, a sum of neurons.
        inputs: Inputs x.
        targets: Targets y.
        large: Number of large neurons.
    """

    frame: Any
    inputs: Float[Array | np.ndarray, "n d"]
    targets: Float[Array | np.ndarray, "n c"]
    large: int = eqx.field(static=True, default=0)

    def start(self, state: Neurons) -> Array:
        """Return the unit directions."""
        return state.directions

    def velocity(self, moving: Array, state: Neurons) -> Array:
        """Compute e^{(κ−2) l_i} g_i."""
        return self._rates(state)[:, None] * self._pulled(moving, self._residual(moving, state))

    def inverse(self, shift: Array, state: Neurons) -> Callable[[Array], Array]:
        """Factorise s − J by means of a system for the samples or for the large neurons."""
        rates, residual = self._rates(state), self._residual(state.directions, state)
        curvature = own_curvatures(self.frame, self.inputs, residual, state.directions)
        own = shift * jnp.eye(state.directions.shape[1]) - rates[:, None, None] * curvature
        method = self._by_samples if _few_samples(state.directions.shape, self.targets) else self._by_large_neurons
        return method(state, rates, own)

    def _by_samples(self, state: Neurons, rates: Array, own: Array) -> Callable[[Array], Array]:
        """Factorise s − J; the unknowns are the total output change Σ_j e^{κ l_j} D_j x_j on each sample."""
        samples, shape = len(self.targets), state.directions.shape
        amplitudes = jnp.exp(self.frame.degree * state.log_norms)[:, None]
        slopes = slopes_of(self.frame, self.inputs, state.directions)
        # For many right-hand sides, products with the inverse are faster than linear solves.
        inverses = jnp.linalg.inv(own)
        answers = jnp.einsum("ipq,iaq->ipa", (rates / samples)[:, None, None] * inverses, slopes)
        answers = answers.reshape(state.directions.size, -1)
        across = (amplitudes[..., None] * slopes).transpose(1, 0, 2).reshape(slopes.shape[1], -1)
        together = jax.scipy.linalg.lu_factor(jnp.eye(len(across)) + across @ answers)

        def solve(right: Array) -> Array:
            alone = jnp.einsum("ipq,iq->ip", inverses, right)
            change = jax.scipy.linalg.lu_solve(together, across @ alone.ravel())
            return alone - (answers @ change).reshape(shape)

        return solve

    def _by_large_neurons(self, state: Neurons, rates: Array, own: Array) -> Callable[[Array], Array]:
        """Factorise s − J; the unknowns are the changes of the large neurons, which determine all others."""
        weights, large = own.shape[1], self.large
        amplitudes, front = jnp.exp(self.frame.degree * state.log_norms[:large]), state.directions[:large]
        feedback = shared_slopes(self.frame, self.inputs, front)
        feedback *= jnp.repeat(rates[:large], weights)[:, None] * jnp.repeat(amplitudes, weights)
        together = jax.scipy.linalg.lu_factor(jax.scipy.linalg.block_diag(*own[:large]) + feedback)
        separate = jax.scipy.linalg.lu_factor(own[large:])

        def solve(right: Array) -> Array:
            first = jax.scipy.linalg.lu_solve(together, right[:large].ravel()).reshape(large, weights)
            _, change = jax.jvp(self._together, (front,), (amplitudes[:, None] * first,))
            others = right[large:] - (rates[:, None] * self._pulled(state.directions, change))[large:]
            return jnp.concatenate([first, jax.scipy.linalg.lu_solve(separate, others[..., None])[..., 0]])

        return solve

    def size(self, change: Array, state: Neurons) -> Array:
        """Return the larger of the root mean square change in a neuron and the relative change in the outputs."""
        _, outputs = jax.jvp(lambda rows: self._outputs(rows, state), (state.directions,), (change,))
        outputs = jnp.sqrt(jnp.sum(outputs**2) / jnp.sum(self.targets**2))
        return jnp.maximum(jnp.sqrt(jnp.mean(jnp.sum(change**2, axis=1))), outputs)

    def moved(self, moving: Array, state: Neurons) -> Neurons:
        """Normalise the directions, and add the logarithms of their norms to the log-norms."""
        norms = jnp.linalg.norm(moving, axis=1)
        return Neurons(moving / norms[:, None], state.log_norms + jnp.log(norms), state.order)

    def statistics(self, state: Neurons) -> dict[str, Array]:
        """Compute the loss and the descent rate."""
        residual = self._residual(state.directions, state)
        gradient = self._pulled(state.directions, residual)
        degree = self.frame.degree
        return {
            "loss": jnp.sum(residual**2) / (2 * len(residual)),
            "descent_rate": jnp.sum(jnp.exp(2 * (degree - 1) * state.log_norms) * jnp.sum(gradient**2, axis=1)),
        }

    def needs_refresh(self, state: Neurons) -> Array:
        """Whether a small neuron has become large since the neurons were last sorted."""
        if _few_samples(state.directions.shape, self.targets):
            return jnp.zeros((), bool)
        return jnp.any(self._contributions(state)[self.large :] > _AHEAD * _RELEVANT)

    def refreshed(self, state: Neurons) -> tuple[StiffNeurons, Neurons]:
        """Sort the neurons by size, and choose the number of large neurons."""
        if _few_samples(state.directions.shape, self.targets):
            return self, state
        contributions = np.asarray(_contributions(self, state))
        order = np.argsort(-contributions)
        count, least = len(contributions), int(np.sum(contributions > _RELEVANT))
        least = max(least, self.large)
        weights = state.directions.shape[1]
        sizes = _sizes(self.frame, weights, self.inputs, self.targets)
        large = min(next(size for size in sizes if size >= least), count)
        flow = StiffNeurons(self.frame, self.inputs, self.targets, large)
        return flow, jax.device_put(jax.tree.map(lambda leaf: np.asarray(leaf)[order], state))

    def _output(self, row: Array) -> Array:
        return self.frame.with_neurons(row[None])(self.inputs)

    def _together(self, rows: Array) -> Array:
        return self.frame.with_neurons(rows)(self.inputs)

    def _outputs(self, rows: Array, state: Neurons) -> Array:
        return self.frame.with_neurons(rows).weighted(jnp.exp(self.frame.degree * state.log_norms))(self.inputs)

    def _residual(self, rows: Array, state: Neurons) -> Array:
        return jnp.asarray(self.targets) - self._outputs(rows, state)

    def _pulled(self, rows: Array, residual: Array) -> Array:
        """Compute g_i."""
        _, pull = jax.vjp(self._together, rows)
        return pull(residual / len(residual))[0]

    def _rates(self, state: Neurons) -> Array:
        return jnp.exp((self.frame.degree - 2) * state.log_norms)

    def _contributions(self, state: Neurons) -> Array:
        """Root mean square output of each neuron, relative to that of the targets."""
        outputs = jax.vmap(self._output)(state.directions)
        spread = jnp.sqrt(jnp.sum(outputs**2, axis=(1, 2)) / jnp.sum(self.targets**2))
        return jnp.exp(self.frame.degree * state.log_norms) * spread


def work_of_a_step(task: Task, network: SumOfNeurons) -> float:
    """Estimate the floating-point operations of an implicit step, to within a factor of about two.

    Example:
        >>> from dynascope.networks.two_layer import TwoLayer
        >>> f"{work_of_a_step(Task(np.eye(3), np.ones((3, 1))), TwoLayer(3, 20, 1, activation='quadratic')):.0e}"
        '1e+04'
    """
    neurons, weights = np.shape(network.neurons)
    samples, numbers = len(task.inputs), task.targets.size
    if _few_samples((neurons, weights), task.targets):
        together = 2.0 * numbers**2 * neurons * weights
    else:
        large = min(_sizes(network, weights, task.inputs, task.targets)[0], neurons)
        together = _together(network, weights, samples, numbers, large)
    velocities = _VELOCITIES * _EACH * neurons * weights * samples
    return together + work_of_own_curvatures(network, samples, task.targets.shape[1]) + velocities


def _sizes(network: Any, weights: int, inputs: Any, targets: Any) -> tuple[int, ...]:
    """Possible choices of the number of large neurons."""
    return _CLOSE if _together(network, weights, len(inputs), targets.size, _FIRST) > _EXPENSIVE else _COARSE


def _together(network: Any, weights: int, samples: int, numbers: int, large: int) -> float:
    """Floating-point operations to assemble the shared matrix of the large neurons and to factorise it."""
    # All outputs of a two-layer network share the derivatives of the hidden neurons.
    rows, columns = (samples, network.first.shape[0]) if isinstance(network, TwoLayer) else (numbers, weights)
    return 2.0 * rows * (large * columns) ** 2 + (large * weights) ** 3


@filter_jit
def _contributions(flow: StiffNeurons, state: Neurons) -> Array:
    return flow._contributions(state)


def _few_samples(neurons: tuple[int, ...], targets: Any) -> bool:
    """Whether the system for the samples is quick to solve and smaller than the system for the large neurons."""
    number, weights = neurons
    return targets.size <= _FIRST * weights and 2.0 * targets.size**2 * number * weights <= _EXPENSIVE

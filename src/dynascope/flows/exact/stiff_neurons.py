"""A sum of neurons of any degree as a stiff flow, in which few neurons are large and the others hardly felt."""

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

_FELT = 1e-4  # of the targets: what a neuron adds to the outputs before the others are told how it changes
_AHEAD = 10.0  # by how much a neuron may outgrow that until neurons are sorted again
_FIRST = 12  # weights of so many neurons that are solved for at once cost less than to compile for fewer,
_DEAR = 5e8  # up to so many operations
_COARSE = tuple(_FIRST * 4**power for power in range(16))  # how many neurons may be taken to be large, then
_CLOSE = tuple(sorted(each for power in range(2, 31) for each in (2**power, 3 * 2 ** (power - 1))))  # and otherwise

_VELOCITIES, _EACH = 8, 6.0  # in a step, and operations of one for each weight and sample


class Neurons(NamedTuple):
    """Neurons θ_i = e^{l_i} u_i, the largest in front.

    Attributes:
        directions: Unit rows u_i.
        log_norms: l_i.
    """

    directions: Float[Array, "neurons weights"]
    log_norms: Float[Array, " neurons"]


class StiffNeurons(StiffFlow):
    """Neurons θ_i = e^{l_i} v_i of degree κ, of which v_i moves from a unit direction while l_i rests.

    With f_i the output of a neuron and g_i the gradient of E⟨f_i(v_i), y − f⟩,

        v_i' = e^{(κ−2) l_i} g_i,    ∂v_i'/∂v_j = e^{(κ−2) l_i} (δ_ij H_i − e^{κ l_j} E[D_iᵀ D_j]),

    where D_i is the derivative of f_i and H_i that of g_i at a fixed residual. What others feel of a small neuron is
    e^{κ l_j}, so that (s − J)⁻¹ needs a system of equations for the large neurons only, or one for the samples where
    these are few; then each neuron has its own.

    Attributes:
        frame: A sum of neurons.
        inputs: x.
        targets: y.
        large: How many neurons are large.
    """

    frame: Any
    inputs: Float[Array | np.ndarray, "n d"]
    targets: Float[Array | np.ndarray, "n c"]
    large: int = eqx.field(static=True, default=0)

    def start(self, state: Neurons) -> Array:
        """Unit directions."""
        return state.directions

    def velocity(self, moving: Array, state: Neurons) -> Array:
        """e^{(κ−2) l_i} g_i."""
        return self._rates(state)[:, None] * self._pulled(moving, self._residual(moving, state))

    def inverse(self, shift: Array, state: Neurons) -> Callable[[Array], Array]:
        """By way of the samples, or of the large neurons."""
        rates, residual = self._rates(state), self._residual(state.directions, state)
        curvature = own_curvatures(self.frame, self.inputs, residual, state.directions)
        own = shift * jnp.eye(state.directions.shape[1]) - rates[:, None, None] * curvature
        way = self._by_samples if _few_samples(state.directions.shape, self.targets) else self._by_large_neurons
        return way(state, rates, own)

    def _by_samples(self, state: Neurons, rates: Array, own: Array) -> Callable[[Array], Array]:
        """With D_j x_j on the samples for unknowns, by what they are of all neurons together."""
        samples, shape = len(self.targets), state.directions.shape
        felt = jnp.exp(self.frame.degree * state.log_norms)[:, None]
        slopes = slopes_of(self.frame, self.inputs, state.directions)
        # For so many right-hand sides a product is quicker than to solve for each.
        apart = jnp.linalg.inv(own)
        answers = jnp.einsum("ipq,iaq->ipa", (rates / samples)[:, None, None] * apart, slopes)
        answers = answers.reshape(state.directions.size, -1)
        across = (felt[..., None] * slopes).transpose(1, 0, 2).reshape(slopes.shape[1], -1)
        together = jax.scipy.linalg.lu_factor(jnp.eye(len(across)) + across @ answers)

        def solve(right: Array) -> Array:
            alone = jnp.einsum("ipq,iq->ip", apart, right)
            change = jax.scipy.linalg.lu_solve(together, across @ alone.ravel())
            return alone - (answers @ change).reshape(shape)

        return solve

    def _by_large_neurons(self, state: Neurons, rates: Array, own: Array) -> Callable[[Array], Array]:
        """With what the large neurons do for unknowns, which the small ones follow."""
        weights, large = own.shape[1], self.large
        felt, front = jnp.exp(self.frame.degree * state.log_norms[:large]), state.directions[:large]
        feedback = shared_slopes(self.frame, self.inputs, front)
        feedback *= jnp.repeat(rates[:large], weights)[:, None] * jnp.repeat(felt, weights)
        together = jax.scipy.linalg.lu_factor(jax.scipy.linalg.block_diag(*own[:large]) + feedback)
        apart = jax.scipy.linalg.lu_factor(own[large:])

        def solve(right: Array) -> Array:
            first = jax.scipy.linalg.lu_solve(together, right[:large].ravel()).reshape(large, weights)
            _, change = jax.jvp(self._together, (front,), (felt[:, None] * first,))
            others = right[large:] - (rates[:, None] * self._pulled(state.directions, change))[large:]
            return jnp.concatenate([first, jax.scipy.linalg.lu_solve(apart, others[..., None])[..., 0]])

        return solve

    def size(self, change: Array, state: Neurons) -> Array:
        """The root mean square change of a neuron, or that of the outputs beside the targets."""
        _, outputs = jax.jvp(lambda rows: self._outputs(rows, state), (state.directions,), (change,))
        outputs = jnp.sqrt(jnp.sum(outputs**2) / jnp.sum(self.targets**2))
        return jnp.maximum(jnp.sqrt(jnp.mean(jnp.sum(change**2, axis=1))), outputs)

    def moved(self, moving: Array, state: Neurons) -> Neurons:
        """Unit directions again."""
        norms = jnp.linalg.norm(moving, axis=1)
        return Neurons(moving / norms[:, None], state.log_norms + jnp.log(norms))

    def statistics(self, state: Neurons) -> dict[str, Array]:
        """Loss and descent rate."""
        residual = self._residual(state.directions, state)
        gradient = self._pulled(state.directions, residual)
        degree = self.frame.degree
        return {
            "loss": jnp.sum(residual**2) / (2 * len(residual)),
            "descent_rate": jnp.sum(jnp.exp(2 * (degree - 1) * state.log_norms) * jnp.sum(gradient**2, axis=1)),
        }

    def outgrown(self, state: Neurons) -> Array:
        """Whether a neuron has become large since they were sorted."""
        if _few_samples(state.directions.shape, self.targets):
            return jnp.zeros((), bool)
        return jnp.any(self._felt(state)[self.large :] > _AHEAD * _FELT)

    def renewed(self, state: Neurons) -> tuple[StiffNeurons, Neurons]:
        """The largest neurons in front."""
        if _few_samples(state.directions.shape, self.targets):
            return self, state
        felt = np.asarray(_felt(self, state))
        order = np.argsort(-felt)
        count, least = len(felt), int(np.sum(felt > _FELT))
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
        """g_i."""
        _, pull = jax.vjp(self._together, rows)
        return pull(residual / len(residual))[0]

    def _rates(self, state: Neurons) -> Array:
        return jnp.exp((self.frame.degree - 2) * state.log_norms)

    def _felt(self, state: Neurons) -> Array:
        outputs = jax.vmap(self._output)(state.directions)
        spread = jnp.sqrt(jnp.sum(outputs**2, axis=(1, 2)) / jnp.sum(self.targets**2))
        return jnp.exp(self.frame.degree * state.log_norms) * spread


def work_of_a_step(task: Task, network: SumOfNeurons) -> float:
    """Floating-point operations of an implicit step, to within a factor of two or so.

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
    """How many neurons may be taken to be large."""
    return _CLOSE if _together(network, weights, len(inputs), targets.size, _FIRST) > _DEAR else _COARSE


def _together(network: Any, weights: int, samples: int, numbers: int, large: int) -> float:
    """Operations of the system of large neurons: what they share, and its factors."""
    # The outputs of two layers share their slopes.
    rows, columns = (samples, network.first.shape[0]) if isinstance(network, TwoLayer) else (numbers, weights)
    return 2.0 * rows * (large * columns) ** 2 + (large * weights) ** 3


@filter_jit
def _felt(flow: StiffNeurons, state: Neurons) -> Array:
    return flow._felt(state)


def _few_samples(neurons: tuple[int, ...], targets: Any) -> bool:
    """Whether there are fewer numbers to fit than weights in a few neurons, and so few that all neurons are cheap."""
    number, weights = neurons
    return targets.size <= _FIRST * weights and 2.0 * targets.size**2 * number * weights <= _DEAR

"""Measured displacement of the weights of networks under SGD, and the curvature and noise spectra that predict it."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Float

from dynascope.compilation import filter_jit
from dynascope.networks.batch_normalisation import trained_weights
from dynascope.probes.diffusion import NoiseSpectrum
from dynascope.probes.diffusion.hessian import gauss_newton_product, require_lanczos
from dynascope.probes.diffusion.noise_spectrum import quadrature_nodes
from dynascope.protocols import Network
from dynascope.tasks import Labelled, Task
from dynascope.training.batches import Batches
from dynascope.training.descend import Descent, descend
from dynascope.training.optimizers import decayed
from dynascope.training.statistics import StepStatistic
from dynascope.training.step import Step
from dynascope.training.step_time import outputs_in_training

__all__ = ["SquaredDisplacement", "noise_modes", "squared_displacements", "warmed_up"]

_SETTLE = 10  # steps, in units of 1/(1 − β), that momentum takes to forget its initial value


@functools.partial(jax.tree_util.register_dataclass, data_fields=["period", "settle"], meta_fields=["dimensions"])
@dataclasses.dataclass(frozen=True, eq=False)
class SquaredDisplacement(StepStatistic):
    """Squared distance ‖θ_k − θ_j‖² of the weights from the most recent origin j < k.

    Origins are placed at step `settle` and every `period` steps after it.

    Attributes:
        period: Number of steps between origins, an array so that all periods share one compiled program.
        settle: Step of the first origin, an array; earlier steps are not measured.
        dimensions: Empty, because the statistic is a scalar.
    """

    period: Any
    settle: Any
    dimensions: Sequence[str] = ()

    def initial(self, weights: Any, trial: Callable[[Callable[[Step], Any]], Any]) -> Any:
        """The origin and the squared distance from it."""
        origin = jax.tree.map(jnp.asarray, weights)
        return origin, jnp.zeros((), jnp.result_type(*jax.tree.leaves(origin)))

    def advance(self, state: Any, step: Step) -> Any:
        """Place a new origin if one is due at this step, and update the squared distance."""
        since = step.index - self.settle
        begins = (since <= 0) | (since % self.period == 0)
        origin = jax.tree.map(lambda old, now: jnp.where(begins, now, old), state[0], step.weights)
        moved = jax.tree.map(lambda now, move, old: now - old + move, step.weights, step.update, origin)
        return origin, sum(jnp.sum(each**2) for each in jax.tree.leaves(moved))

    def value(self, state: Any) -> Any:
        """The squared distance."""
        return state[1]


def warmed_up(
    task: Task | Labelled, networks: Sequence[Network], steps: int, **training: Any
) -> tuple[list[Any], Float[np.ndarray, "networks 2"]]:
    """Train each network on different minibatches; also return the losses halfway and at the end.

    Args:
        networks: Two or more networks of equal sizes.
        task: The training samples.
        steps: Number of steps.
        **training: `learning_rate`, `momentum`, `weight_decay`, `batch_size`, `loss` and `seed`.
    """
    halves = [steps // 2, steps]
    run, ends = _descended(task, networks, steps=steps, save=halves, **training)
    resting = [
        jax.tree.map(lambda leaf, place=place: np.asarray(leaf)[place] if eqx.is_array(leaf) else leaf, ends)
        for place in range(len(networks))
    ]
    return resting, run["loss"].transpose("seed", "step").to_numpy()


def squared_displacements(
    task: Task | Labelled,
    networks: Sequence[Network],
    recorded: np.ndarray,
    *,
    legs: int = 1,
    momentum: float = 0.0,
    **training: Any,
) -> Float[np.ndarray, "networks recorded"]:
    """‖θ_{j+k} − θ_j‖² of each network under SGD, averaged over consecutive origins j.

    SGD continues from the given weights with an empty momentum buffer, so the first origin is placed after 10/(1 − β)
    steps.

    Args:
        networks: Two or more networks of equal sizes.
        task: The training samples.
        recorded: The steps k ≥ 1, increasing.
        legs: Number of origins; the distance between successive origins is the last recorded step.
        momentum: β (heavy ball).
        **training: `learning_rate`, `weight_decay`, `batch_size`, `loss` and `seed`.

    Example:
        >>> from dynascope.networks import DeepLinear
        >>> task, networks = Task(np.eye(2), np.ones((2, 1))), [DeepLinear((2, 1), seed=seed) for seed in range(2)]
        >>> squared_displacements(task, networks, np.array([1, 5]), legs=3, learning_rate=0.1, batch_size=1).shape
        (2, 2)
    """
    period, settle = int(recorded[-1]), round(_SETTLE / (1 - momentum)) if momentum else 0
    run, _ = _descended(
        task,
        networks,
        steps=settle + legs * period,
        save=np.concatenate([settle + leg * period + recorded for leg in range(legs)]),
        statistics={"squared_displacements": SquaredDisplacement(np.int32(period), np.int32(settle))},
        momentum=momentum,
        **training,
    )
    path = run["squared_displacements"].transpose("seed", "step").to_numpy()
    return path.reshape(len(networks), legs, len(recorded)).mean(axis=1)


def noise_modes(
    task: Labelled, networks: Sequence[Network], *, batch_size: int, batches: int, products: int, seed: int
) -> list[NoiseSpectrum]:
    """Curvatures of the cross-entropy loss of classifiers, with the gradient noise along each curvature direction.

    Minibatches are drawn with replacement and normalised separately, as in training. The noise is the variance of the
    minibatch gradients. The curvatures are those of the Gauss-Newton matrix of the mean minibatch loss, which is
    positive semidefinite.

    Args:
        networks: Networks of one architecture, at the weights to analyse.
        task: The training samples.
        batch_size: S.
        batches: Number of minibatches; all networks use the same ones.
        products: Number of matrix-vector products per minibatch.
        seed: Seed of the minibatches.

    Example:
        >>> from dynascope.networks import MLP
        >>> task = Labelled(np.eye(4), np.array([0, 1, 0, 1]))
        >>> [found] = noise_modes(task, [MLP((4, 3, 2))], batch_size=2, batches=3, products=5, seed=0)
        >>> found.curvature.shape, bool(found.noise.sum() > 0)
        ((15,), True)
    """
    chosen = np.random.default_rng(seed).integers(len(task.inputs), size=(batches, batch_size))
    samples = task.inputs[chosen], task.one_hot()[chosen]
    spectra = []
    for network in networks:
        weights = trained_weights(network)
        require_lanczos(products, sum(leaf.size for leaf in jax.tree.leaves(weights)))
        found = _spectrum(weights, networks[0], samples, products)
        spectra.append(NoiseSpectrum(*(np.asarray(each).reshape(-1) for each in found)))
    return spectra


@filter_jit
def _spectrum(weights: Any, rest: Any, samples: Any, products: int) -> tuple[Any, Any]:
    """Curvature and noise of a network with the given weights and the other leaves of `rest`."""
    point, unravel = ravel_pytree(weights)
    x, y = map(jnp.asarray, samples)
    batches, batch_size = x.shape[:2]
    in_training = outputs_in_training(rest)

    def outputs(theta: Any, inputs: Any) -> Any:
        return in_training(unravel(theta), inputs)

    slope = jax.grad(lambda theta, inputs, targets: _entropy(outputs(theta, inputs), targets))
    gradients = jax.lax.map(lambda each: slope(point, *each), (x, y))
    noise = (gradients - gradients.mean(axis=0)) * math.sqrt(batch_size * batches / (batches - 1))

    def product(v: Any) -> Any:
        every = jax.vmap(outputs, in_axes=(None, 0))
        return gauss_newton_product(lambda z: _entropy(z, y), lambda theta: every(theta, x), point, v)

    curvature, variance = quadrature_nodes(product, noise, products)
    return curvature, variance / batches


def _entropy(z: Any, targets: Any) -> Any:
    return -jnp.mean(jnp.sum(targets * jax.nn.log_softmax(z), axis=-1))


def _descended(
    task: Task | Labelled,
    networks: Sequence[Network],
    *,
    learning_rate: float,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    batch_size: int | None = None,
    seed: int = 0,
    **options: Any,
) -> Any:
    """The record and the final networks."""
    precision = jax.tree.leaves(trained_weights(networks[0]))[0].dtype.type
    return descend(
        task,
        list(networks),
        Descent(
            decayed(optax.sgd, precision(weight_decay), momentum=precision(momentum)),
            learning_rate=learning_rate,
            batches=Batches(batch_size, replacement=True, independent=True),
            **options,
        ),
        seed=seed,
        return_networks=True,
    )

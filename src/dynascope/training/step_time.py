"""Time of a training step on this machine, for estimates of long runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from dynascope.compilation import jit
from dynascope.networks.batch_normalisation import trained_weights
from dynascope.protocols import Network
from dynascope.tasks import Labelled

__all__ = ["formatted_duration", "outputs_in_training", "seconds_of_step"]

_UNITS = ((3600, "hours"), (60, "minutes"), (1, "seconds"))


def seconds_of_step(task: Labelled, network: Network, batch_size: int) -> float:
    """Measure how many seconds one compiled training step takes on this machine.

    Args:
        task: The training samples.
        network: The network.
        batch_size: S.
    """
    x, y, outputs = task.inputs[:batch_size], task.one_hot()[:batch_size], outputs_in_training(network)
    slope = jax.grad(lambda theta: jnp.mean(optax.softmax_cross_entropy(outputs(theta, x), y)))

    @jit
    def trained(weights: Any, steps: Any) -> Any:
        return jax.lax.fori_loop(0, steps, lambda _, theta: jax.tree.map(jnp.subtract, theta, slope(theta)), weights)

    weights = trained_weights(network)
    jax.block_until_ready(trained(weights, np.int32(0)))
    begun = time.perf_counter()
    jax.block_until_ready(trained(weights, np.int32(1)))
    return time.perf_counter() - begun


def outputs_in_training(network: Network) -> Callable[[Any, Any], Any]:
    """The outputs as a function of the weights, with batch normalisation by batch statistics."""

    def outputs(theta: Any, inputs: Any) -> Any:
        whole = eqx.combine(theta, network)
        return whole.train_step_outputs(inputs)[0] if hasattr(whole, "train_step_outputs") else whole(inputs)

    return outputs


def formatted_duration(seconds: float) -> str:
    """Format a duration with a unit.

    Example:
        >>> formatted_duration(90), formatted_duration(150), formatted_duration(10_000)
        ('90 seconds', '2.5 minutes', '2.78 hours')
    """
    size, unit = next((size, unit) for size, unit in _UNITS if seconds >= 2 * size or size == 1)
    return f"{seconds / size:.3g} {unit}"

"""The rate of the fastest mode of a linearised network, which sets the unit of time."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dynascope.compilation import jit

__all__ = ["fastest_rate"]

_ITERATIONS = 30


def fastest_rate(network: Any, inputs: np.ndarray) -> float:
    """Estimate the largest eigenvalue of the NTK divided by n, by power iteration.

    Args:
        network: A network with an attribute `classifier_bias`, one entry for each output.
        inputs: Inputs, shape (n, ...).
    """

    def iterate(outputs: Any, _: None) -> tuple[Any, Any]:
        value, gradient = jax.vjp(lambda network: network(inputs), network)
        moved = jax.jvp(lambda network: network(inputs), (network,), gradient(outputs))[1] / len(value)
        size = jnp.linalg.norm(moved)
        return moved / size, size

    with jax.enable_x64(True):
        network = jax.tree.map(jnp.asarray, network)
        start = jnp.ones((len(inputs), len(network.classifier_bias)))
        sizes = jit(lambda start: jax.lax.scan(iterate, start / jnp.linalg.norm(start), None, _ITERATIONS)[1])
        return float(sizes(start)[-1])

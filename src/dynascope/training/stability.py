"""The largest learning rate at which gradient descent converges."""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from dynascope.errors import DivergenceError
from dynascope.probes.diffusion import top_curvatures
from dynascope.protocols import Learnable, Network
from dynascope.training.descend import Descent, descend
from dynascope.validation.bounded_scalars import PositiveFloat, PositiveInt

__all__ = ["stable_rate"]

_DIVISORS = (4, 16, 64)
_MULTIPLICATIONS = 3e10  # limit for a run, about ten seconds; unlike a time limit, it is the same on every machine
_LEAST = 2e3  # multiplications that take as long as the overhead of a step


def stable_rate(
    task: Learnable, network: Network, *, scale: PositiveFloat, learning_rate: PositiveFloat, steps: PositiveInt
) -> float | None:
    """Return the largest stable learning rate of gradient descent, 2/λ.

    λ is the largest curvature at the minimum that gradient descent reaches at smaller learning rates.

    Args:
        task: The task to learn.
        network: An equinox module.
        scale: Factor on the initial weights.
        learning_rate: A learning rate that diverged. The search tries this rate divided by 4, 16 and 64.
        steps: Number of steps of the diverged run. At smaller rates, the search takes more steps, so that all runs
            cover the same time.

    Returns:
        The rate; None if no tried rate converges, or if a run would take more than about ten seconds, as estimated from
        its number of multiplications.

    Example:
        >>> import numpy as np
        >>> from dynascope.networks.diagonal_linear import DiagonalLinear
        >>> from dynascope.tasks import Task
        >>> task = Task(np.eye(2) * 2**0.5, [[2.0], [0.0]])
        >>> round(stable_rate(task, DiagonalLinear(2), scale=0.1, learning_rate=4.0, steps=20), 2)
        0.71
    """
    each = max(float(_weights(network)) * getattr(task, "samples", 1), _LEAST)
    for divisor in _DIVISORS:
        smaller = Descent(learning_rate=learning_rate / divisor, steps=math.ceil(steps * divisor), save=[0])
        if math.ceil(steps * divisor) * each > _MULTIPLICATIONS:
            return None
        try:
            _, end = descend(task, network, smaller, scale=scale, return_networks=True)
        except DivergenceError:
            continue
        curvature = _largest_curvature(task, end)
        # Closer to the limit of 2, the run may not have converged.
        if 0 < learning_rate / divisor * curvature < 1:
            return 2 / curvature
    return None


def _weights(network: Any) -> int:
    """Return the number of weights."""
    return sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(network, eqx.is_inexact_array)))


def _largest_curvature(task: Learnable, network: Network) -> float:
    """Return λ with respect to all floating-point weights, in double precision."""
    with jax.enable_x64(True):
        network = jax.tree.map(lambda leaf: jnp.asarray(leaf, float) if eqx.is_inexact_array(leaf) else leaf, network)
        weights, frame = eqx.partition(network, lambda leaf: eqx.is_inexact_array(leaf) and leaf.size > 0)
        found = top_curvatures(lambda moved: task.loss(eqx.combine(moved, frame)), weights, 1)
    return float(found.curvature[0])

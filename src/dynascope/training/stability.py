"""The largest learning rate at which gradient descent comes to rest."""

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
_MULTIPLICATIONS = 3e10  # of a run that looks for rest: ten seconds or so, and the same rate on every machine
_LEAST = 2e3  # that take as long as what a step does besides


def stable_rate(
    task: Learnable, network: Network, *, scale: PositiveFloat, learning_rate: PositiveFloat, steps: PositiveInt
) -> float | None:
    """2/λ, above which plain steps leave the minimum that smaller ones find, with λ the curvature there.

    Args:
        network: An equinox module.
        task: What it learns.
        scale: Factor on the weights at the start.
        learning_rate: One that diverged; a quarter of it is tried, and so on.
        steps: In which it was to get there.

    Returns:
        The rate, or None if what was tried diverged too, or would take more than ten seconds or so, which are counted
        in multiplications.

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
        # Nearer to 2 it may not rest.
        if 0 < learning_rate / divisor * curvature < 1:
            return 2 / curvature
    return None


def _weights(network: Any) -> int:
    """How many weights it has."""
    return sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(network, eqx.is_inexact_array)))


def _largest_curvature(task: Learnable, network: Network) -> float:
    """λ in 64 bits, of all weights that are floating-point numbers."""
    with jax.enable_x64(True):
        network = jax.tree.map(lambda leaf: jnp.asarray(leaf, float) if eqx.is_inexact_array(leaf) else leaf, network)
        weights, frame = eqx.partition(network, lambda leaf: eqx.is_inexact_array(leaf) and leaf.size > 0)
        found = top_curvatures(lambda moved: task.loss(eqx.combine(moved, frame)), weights, 1)
    return float(found.curvature[0])

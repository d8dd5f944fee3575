"""Weights and learning rates that decay, as `descend` takes them: numbers may be arrays, and then share a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import jax.numpy as jnp
import optax
from jax.tree_util import Partial

__all__ = ["annealed", "decayed", "falling"]


def decayed(optimizer: Callable[..., Any], weight_decay: Any, **options: Any) -> Partial:
    """An optimiser of the loss and ½ λ‖θ‖²: λθ is added to gradients, as SGD and Adam of PyTorch do.

    Args:
        optimizer: A function of optax from a learning rate to a transformation.
        weight_decay: λ.
        **options: Of that function.

    Example:
        >>> import jax
        >>> made = decayed(optax.sgd, 0.5)(0.1)
        >>> round(float(jax.jit(made.update)(1.0, made.init(4.0), 4.0)[0]), 6)
        -0.3
    """
    return Partial(_decayed, optimizer, weight_decay, **options)


def annealed(
    name: Literal["sgd", "adam"], steps: int, *, largest_gradient: float | None = None, weight_decay: float = 0.0
) -> Partial:
    """An optimiser whose learning rate falls to zero as a cosine.

    Args:
        name: That of the optimiser of optax.
        steps: Number of steps until the rate is zero.
        largest_gradient: Norm to which gradients are shortened.
        weight_decay: Share of the weights that is added to their gradients.
    """
    return Partial(_annealed, name, steps, largest_gradient, weight_decay)


def falling(learning_rate: Any, updates: Any, factor: float = 0.2) -> Partial:
    """A learning rate that is multiplied by a factor after each of these numbers of updates.

    Example:
        >>> import jax
        >>> import numpy as np
        >>> rate = jax.jit(falling(0.5, np.array([3, 6])))
        >>> [round(float(rate(update)), 3) for update in (2, 3, 6)]
        [0.5, 0.1, 0.02]
    """
    return Partial(_fallen, learning_rate, updates, factor)


def _decayed(
    optimizer: Callable[..., Any], weight_decay: Any, learning_rate: Any, **options: Any
) -> optax.GradientTransformation:
    return optax.chain(optax.add_decayed_weights(weight_decay), optimizer(learning_rate, **options))


def _annealed(
    name: str, steps: int, largest_gradient: float | None, weight_decay: float, learning_rate: Any
) -> optax.GradientTransformation:
    return optax.chain(
        optax.identity() if largest_gradient is None else optax.clip_by_global_norm(largest_gradient),
        optax.add_decayed_weights(weight_decay) if weight_decay else optax.identity(),
        getattr(optax, name)(optax.cosine_decay_schedule(1.0, steps)),
        optax.scale(learning_rate),
    )


def _fallen(first: Any, after: Any, factor: float, updates: Any) -> Any:
    return first * factor ** jnp.sum(updates >= after)

"""Descent with a learning rate that falls to zero as a cosine."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal

import optax

__all__ = ["annealed"]


@functools.cache
def annealed(
    name: Literal["sgd", "adam"], steps: int, *, largest_gradient: float | None = None, weight_decay: float = 0.0
) -> Callable[[Any], optax.GradientTransformation]:
    """An optimiser of that many steps, as `descend` takes it; one object, so that one program serves all its runs.

    Args:
        name: That of the optimiser of optax.
        steps: Number of steps until the rate is zero.
        largest_gradient: Norm to which gradients are shortened.
        weight_decay: Share of the weights that is added to their gradients.
    """

    def made(learning_rate: Any) -> optax.GradientTransformation:
        return optax.chain(
            optax.identity() if largest_gradient is None else optax.clip_by_global_norm(largest_gradient),
            optax.add_decayed_weights(weight_decay) if weight_decay else optax.identity(),
            getattr(optax, name)(optax.cosine_decay_schedule(1.0, steps)),
            optax.scale(learning_rate),
        )

    made.__name__ = f"annealed_{name}"
    return made

"""Descent on the loss and a decay of the weights."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import optax

__all__ = ["decayed_adam"]


@functools.cache
def decayed_adam(weight_decay: float) -> Callable[[Any], optax.GradientTransformation]:
    """Adam on the loss with ½ λ‖θ‖² added, which is what PyTorch's Adam does with its weight decay.

    One object for each λ, by which a compiled program is found again.
    """

    def adam_with_decay(learning_rate: Any) -> optax.GradientTransformation:
        return optax.chain(optax.add_decayed_weights(weight_decay), optax.adam(learning_rate))

    return adam_with_decay

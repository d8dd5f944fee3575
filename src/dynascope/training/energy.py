"""Operations shared by the energy-conserving optimisers: excess loss, initial momentum and random rotations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

from dynascope.errors import InputError
from dynascope.validation import is_traced, require

__all__ = [
    "dot",
    "energy_conserving",
    "excess_loss",
    "gaussian",
    "number_of_parameters",
    "rate_of",
    "require_excess",
    "rotated",
    "scaled",
    "squared_norm",
    "started",
    "with_weight_decay",
]


def energy_conserving(
    initial: Callable[[Any], Any], update: Callable[..., Any], *, target_loss: float, weight_decay: float
) -> optax.GradientTransformationExtraArgs:
    """Make an optax transformation from its functions `init` and `update`.

    `update` gets the attribute `excess`, the function (loss, params) → F + ½ λ‖θ‖² − F₀, with which `descend` checks
    the initial loss before compilation.
    """

    def excess(loss: Any, params: Any) -> Any:
        return loss + weight_decay / 2 * squared_norm(params) - target_loss

    update.excess = excess  # type: ignore[attr-defined]
    # The type of `init` in optax names its argument.
    return optax.GradientTransformationExtraArgs(initial, update)  # type: ignore[arg-type]


def dot(one: Any, other: Any) -> Any:
    """Inner product of two trees."""
    return optax.tree_utils.tree_vdot(one, other)


def squared_norm(tree: Any) -> Any:
    """Squared norm of a tree."""
    return optax.tree_utils.tree_norm(tree, squared=True)


def scaled(factor: Any, tree: Any) -> Any:
    """Multiply a tree by a number."""
    return jax.tree.map(lambda leaf: factor * leaf, tree)


def with_weight_decay(loss: Any, gradient: Any, params: Any, weight_decay: float) -> tuple[Any, Any]:
    """Return the loss and the gradient of F + ½ λ‖θ‖²."""
    if params is None:
        raise InputError(
            "params is missing", argument="params", remedy="call update(gradients, state, params, value=loss)"
        )
    if loss is None:
        raise InputError(
            "value is missing, but the step depends on the loss",
            argument="value",
            remedy="call update(gradients, state, params, value=loss)",
        )
    loss = loss + weight_decay / 2 * squared_norm(params)
    return loss, jax.tree.map(lambda slope, leaf: slope + weight_decay * leaf, gradient, params)


def excess_loss(loss: Any, target_loss: Any, count: Any) -> tuple[Any, Any]:
    """Return V = F − F₀, and whether F > F₀. If F ≤ F₀, parameters do not move, and V is one to keep quotients finite.

    Raises:
        InputError: If the loss of the first step is not above F₀. For traced values, V is NaN instead.
    """
    excess = loss - target_loss
    first = count == 0
    if not (is_traced(excess) or is_traced(first)) and first:
        require_excess(excess)
    moves = ~(excess <= 0) | first
    return jnp.where(first & (excess <= 0), jnp.nan, jnp.where(moves, excess, 1.0)), moves


def require_excess(excess: Any) -> None:
    """Raise `InputError` if the initial loss is not above F₀."""
    lowest = float(jnp.min(excess))
    require(
        not lowest <= 0,
        f"target_loss is above the initial loss by {-lowest:.6g}" if lowest else "target_loss is the initial loss",
        argument="target_loss",
        value=lowest,
        remedy="choose a target_loss below the initial loss",
    )


def started(gradient: Any, squared_length: Any) -> Any:
    """Return the initial momentum: the descent direction with the given squared norm.

    At a critical point there is no direction of descent, so the momentum is zero.
    """
    square = squared_norm(gradient)
    return scaled(-jnp.sqrt(squared_length / jnp.where(square > 0, square, 1.0)), gradient)


def rotated(momentum: Any, noise: float, key: Any, count: Any) -> Any:
    """Turn a momentum Π in a random direction, and keep its norm.

    Π ← ‖Π‖ (Π/‖Π‖ + ν z/√d)/‖Π/‖Π‖ + ν z/√d‖,   z ∼ N(0, I) in d dimensions
    """
    if noise == 0:
        return momentum
    norm, size = jnp.sqrt(squared_norm(momentum)), number_of_parameters(momentum)
    draws = gaussian(momentum, key, count)
    turned = jax.tree.map(lambda leaf, draw: leaf / norm + noise / size**0.5 * draw, momentum, draws)
    return scaled(norm / jnp.sqrt(squared_norm(turned)), turned)


def gaussian(tree: Any, key: Any, count: Any) -> Any:
    """Draw Gaussian numbers in the shape of a tree; the draw depends on the number of completed steps."""
    return optax.tree_utils.tree_random_like(jax.random.fold_in(key, count), tree, jax.random.normal)


def number_of_parameters(tree: Any) -> int:
    """Number d of entries of all arrays."""
    return sum(leaf.size for leaf in jax.tree.leaves(tree))


def rate_of(learning_rate: Any, count: Any) -> Any:
    """Return the learning rate of a step, given a number or a schedule."""
    return learning_rate(count) if callable(learning_rate) else learning_rate

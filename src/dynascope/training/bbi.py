"""Born–Infeld descent with bounces (BBI), an optimiser that conserves a relativistic energy."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from dynascope.training.energy import (
    energy_conserving,
    excess_loss,
    gaussian,
    rate_of,
    scaled,
    squared_norm,
    started,
    with_weight_decay,
)
from dynascope.validation import checked
from dynascope.validation.bounded_scalars import FiniteFloat, NonNegativeFloat, NonNegativeInt, PositiveInt, Seed

__all__ = ["BBIState", "bbi"]


class BBIState(NamedTuple):
    """State of `bbi`.

    Attributes:
        count: Number of completed steps.
        momentum: Π, a tree with the structure of the parameters.
        energy: ℋ, set at the first step and conserved by rescaling Π.
        lowest_loss: The lowest loss so far.
        waited: Number of steps since the lowest loss or the latest bounce.
        key: Random key of the bounces; members of an ensemble share it unless it is replaced.
    """

    count: Any
    momentum: Any
    energy: Any
    lowest_loss: Any
    waited: Any
    key: Any


@checked
def bbi(
    learning_rate: Any,
    *,
    target_loss: FiniteFloat = 0.0,
    weight_decay: NonNegativeFloat = 0.0,
    excess_energy: NonNegativeFloat = 0.0,
    fixed_bounces: NonNegativeInt = 1,
    bounce_interval: PositiveInt = 100,
    patience: PositiveInt = 3000,
    seed: Seed = 0,
) -> optax.GradientTransformationExtraArgs:
    """Born–Infeld descent with bounces (BBI), as an optax transformation.

        ℋ = √(V (V + ‖Π‖²)),   V = F − F₀

    E is the initial value of ℋ. A step with the learning rate ε first rescales Π to ‖Π‖² = V ((E/V)² − 1), unless this
    value is negative, and then moves the momentum and the parameters:

        Π ← Π − ½ ε (V/E + E/V) ∇F,   θ ← θ + ε (V/E) Π

    A bounce redraws the direction of Π and keeps its norm. There are `fixed_bounces` bounces at multiples of
    `bounce_interval` steps, and later bounces whenever the loss has had no new minimum for `patience` steps. Without
    bounces, the steps commute with rotations of the parameters that do not change the loss. Parameters are not updated
    at losses F ≤ F₀.

    Args:
        learning_rate: ε > 0, or a JAX function of the number of completed steps.
        target_loss: F₀, below the initial loss.
        weight_decay: λ ≥ 0; F becomes F + ½ λ‖θ‖².
        excess_energy: δE, which is added to the initial V to obtain E; the initial momentum has the direction of
            steepest descent, and vanishes for δE = 0.
        fixed_bounces: Number of bounces at fixed steps.
        bounce_interval: Number of steps between these bounces.
        patience: Number of steps without a new minimum of the loss before a bounce.
        seed: Seed of the bounces.

    Returns:
        An optax transformation with a `BBIState`. Its `update` requires the parameters and `value`, the loss.

    Raises:
        InputError: If an argument is outside its domain; in `update`, if the loss or the parameters are missing, or if
            the initial loss is not above F₀. For traced values, the updates are NaN instead in the last case.

    References:
        G. B. De Luca, E. Silverstein, Born-Infeld (BI) for AI: Energy-Conserving Descent (ECD) for Optimization,
        arXiv:2201.11137.

    Example:
        >>> import jax
        >>> def step(carry, _):
        ...     params, state = carry
        ...     loss, gradient = jax.value_and_grad(lambda w: ((w - 1) ** 2).sum())(params)
        ...     updates, state = descent.update(gradient, state, params, value=loss)
        ...     return (params + updates, state), loss
        >>> descent, params = bbi(0.05), jnp.array([2.0, 0.0])
        >>> losses = jax.lax.scan(step, (params, descent.init(params)), None, length=100)[1]
        >>> bool(losses.min() < 0.05)
        True
    """

    def initial(params: Any) -> BBIState:
        zero = jnp.zeros((), jnp.result_type(*jax.tree.leaves(params)))
        count, momentum = jnp.zeros((), jnp.int32), jax.tree.map(jnp.zeros_like, params)
        return BBIState(count, momentum, zero, zero + jnp.inf, count, jax.random.PRNGKey(seed))

    def update(
        gradient: Any, state: BBIState, params: Any = None, *, value: Any = None, **_: Any
    ) -> tuple[Any, BBIState]:
        loss, gradient = with_weight_decay(value, gradient, params, weight_decay)
        excess, moves = excess_loss(loss, target_loss, state.count)
        first, rate = state.count == 0, rate_of(learning_rate, state.count)
        energy = jnp.where(first, excess + excess_energy, state.energy)
        conserved = excess * ((energy / excess) ** 2 - 1)
        momentum = jax.tree.map(
            lambda new, old: jnp.where(first, new, old), started(gradient, jnp.maximum(conserved, 0)), state.momentum
        )
        square = squared_norm(momentum)
        ratio = jnp.where((conserved >= 0) & (square > 0), conserved / jnp.where(square > 0, square, 1), 1)
        push = rate / 2 * (excess / energy + energy / excess)
        kicked = jax.tree.map(lambda leaf, slope: jnp.sqrt(ratio) * leaf - push * slope, momentum, gradient)
        moved = scaled(rate * excess / energy, kicked)
        improved = loss < state.lowest_loss
        waited = jnp.where(improved, 0, state.waited + 1)
        done = state.count + 1
        # The bounces at fixed steps come first; only then does a lack of progress count.
        fixed = (done % bounce_interval == 0) & (done <= fixed_bounces * bounce_interval)
        bounces = fixed | ((done > fixed_bounces * bounce_interval) & (waited >= patience))
        kicked = jax.lax.cond(bounces, lambda: _bounced(kicked, state.key, state.count), lambda: kicked)
        kept = jax.tree.map(lambda new, old: jnp.where(moves, new, old), kicked, momentum)
        return (
            jax.tree.map(lambda leaf: jnp.where(moves, leaf, 0), moved),
            BBIState(
                done,
                kept,
                energy,
                jnp.minimum(loss, state.lowest_loss),
                jnp.where(bounces, 0, waited),
                state.key,
            ),
        )

    return energy_conserving(initial, update, target_loss=target_loss, weight_decay=weight_decay)


def _bounced(momentum: Any, key: Any, count: Any) -> Any:
    """Draw a uniformly random direction, and keep the norm of the momentum."""
    draw = gaussian(momentum, key, count)
    return scaled(jnp.sqrt(squared_norm(momentum) / squared_norm(draw)), draw)

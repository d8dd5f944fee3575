"""Energy-conserving descent with a separable Hamiltonian (ECDSep)."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from annotated_types import Gt

from dynascope.training.energy import (
    energy_conserving,
    excess_loss,
    rate_of,
    rotated,
    scaled,
    squared_norm,
    started,
    with_weight_decay,
)
from dynascope.validation import checked
from dynascope.validation.bounded_scalars import FiniteFloat, NonNegativeFloat, PositiveFloat, Seed

__all__ = ["ECDSepState", "ecdsep"]


class ECDSepState(NamedTuple):
    """State of `ecdsep`.

    Attributes:
        count: Number of completed steps.
        momentum: Π, a tree with the structure of the parameters.
        energy: ℋ, set at the first step and conserved by rescaling Π.
        key: Random key of the rotations; members of an ensemble share it unless it is replaced.
    """

    count: Any
    momentum: Any
    energy: Any
    key: Any


@checked
def ecdsep(
    learning_rate: Any,
    *,
    eta: Annotated[float, Gt(0)] = 1.0,
    target_loss: FiniteFloat = 0.0,
    noise: NonNegativeFloat = 0.0,
    weight_decay: NonNegativeFloat = 0.0,
    softening: PositiveFloat = 1.0,
    excess_energy: NonNegativeFloat = 0.0,
    seed: Seed = 0,
) -> optax.GradientTransformationExtraArgs:
    """Energy-conserving descent with a separable Hamiltonian (ECDSep), as an optax transformation.

        ℋ = log(s + ‖Π‖²) + η log(F − F₀)

    A step with the learning rate ε first rescales Π so that ℋ has its initial value, unless ‖Π‖² would be negative or
    overflow, and then moves the momentum and the parameters:

        Π ← Π − ε η ∇F/(F − F₀),   θ ← θ + 2ε Π/(s + ‖Π‖²)

    The steps commute with rotations of the parameters that do not change the loss. Parameters are not updated at losses
    F ≤ F₀.

    Args:
        learning_rate: ε > 0, or a JAX function of the number of completed steps.
        eta: η.
        target_loss: F₀, below the initial loss.
        noise: ν ≥ 0, the size of a random rotation of Π after each step, as in `ecd`.
        weight_decay: λ ≥ 0; F becomes F + ½ λ‖θ‖².
        softening: s.
        excess_energy: δE, the squared norm of the initial momentum, which has the direction of steepest descent.
        seed: Seed of the random rotations.

    Returns:
        An optax transformation with an `ECDSepState`. Its `update` requires the parameters and `value`, the loss.

    Raises:
        InputError: If an argument is outside its domain; in `update`, if the loss or the parameters are missing, or if
            the initial loss is not above F₀. For traced values, the updates are NaN instead in the last case.

    References:
        G. B. De Luca, A. Gatti, E. Silverstein, Improving Energy Conserving Descent for Machine Learning: Theory and
        Practice, arXiv:2306.00352.

    Example:
        >>> import jax
        >>> def step(carry, _):
        ...     params, state = carry
        ...     loss, gradient = jax.value_and_grad(lambda w: ((w - 1) ** 2).sum())(params)
        ...     updates, state = descent.update(gradient, state, params, value=loss)
        ...     return (params + updates, state), loss
        >>> descent, params = ecdsep(0.1), jnp.array([2.0, 0.0])
        >>> losses = jax.lax.scan(step, (params, descent.init(params)), None, length=100)[1]
        >>> bool(losses.min() < 0.05)
        True
    """

    def initial(params: Any) -> ECDSepState:
        zero = jnp.zeros((), jnp.result_type(*jax.tree.leaves(params)))
        momentum = jax.tree.map(jnp.zeros_like, params)
        return ECDSepState(jnp.zeros((), jnp.int32), momentum, zero, jax.random.PRNGKey(seed))

    def update(
        gradient: Any, state: ECDSepState, params: Any = None, *, value: Any = None, **_: Any
    ) -> tuple[Any, ECDSepState]:
        loss, gradient = with_weight_decay(value, gradient, params, weight_decay)
        excess, moves = excess_loss(loss, target_loss, state.count)
        first, rate = state.count == 0, rate_of(learning_rate, state.count)
        energy = jnp.where(first, jnp.log(softening + excess_energy) + eta * jnp.log(excess), state.energy)
        momentum = jax.tree.map(
            lambda new, old: jnp.where(first, new, old), started(gradient, excess_energy), state.momentum
        )
        square = squared_norm(momentum)
        conserved = jnp.exp(energy - eta * jnp.log(excess)) - softening
        ratio = jnp.where(
            (conserved >= 0) & jnp.isfinite(conserved) & (square > 0), conserved / jnp.where(square > 0, square, 1), 1
        )
        kicked = jax.tree.map(
            lambda leaf, slope: jnp.sqrt(ratio) * leaf - rate * eta / excess * slope, momentum, gradient
        )
        moved = scaled(2 * rate / (softening + squared_norm(kicked)), kicked)
        kicked = rotated(kicked, noise, state.key, state.count)
        kept = jax.tree.map(lambda new, old: jnp.where(moves, new, old), kicked, momentum)
        return (
            jax.tree.map(lambda leaf: jnp.where(moves, leaf, 0), moved),
            ECDSepState(state.count + 1, kept, energy, state.key),
        )

    return energy_conserving(initial, update, target_loss=target_loss, weight_decay=weight_decay)

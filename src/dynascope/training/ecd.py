"""Energy-conserving descent (ECD): motion with a speed that depends on the loss only."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax
from annotated_types import Gt

from dynascope.training.energy import (
    dot,
    energy_conserving,
    excess_loss,
    number_of_parameters,
    rate_of,
    rotated,
    scaled,
    squared_norm,
    started,
    with_weight_decay,
)
from dynascope.validation import checked, require
from dynascope.validation.bounded_scalars import FiniteFloat, NonNegativeFloat, Seed

__all__ = ["ECDState", "ecd"]


class ECDState(NamedTuple):
    """State of `ecd`.

    Attributes:
        count: Number of completed steps.
        direction: u, a tree with the structure of the parameters.
        log_momentum: log ‖Π‖, initially zero.
        energy: log ℋ = log ‖Π‖ + log V at the latest loss; constant up to the error of the steps.
        initial_energy: log ℋ at the first step.
        key: Random key of the rotations; members of an ensemble share it unless it is replaced.
    """

    count: Any
    direction: Any
    log_momentum: Any
    energy: Any
    initial_energy: Any
    key: Any


@checked
def ecd(
    learning_rate: Any,
    *,
    eta: Annotated[float, Gt(0)] = 100.0,
    target_loss: FiniteFloat = 0.0,
    noise: NonNegativeFloat = 0.0,
    weight_decay: NonNegativeFloat = 0.0,
    kick: Literal["measure-preserving", "euler"] = "measure-preserving",
    inner_product: Literal["global", "per-tensor"] = "global",
    seed: Seed = 0,
) -> optax.GradientTransformationExtraArgs:
    """Energy-conserving descent with a Hamiltonian linear in ‖Π‖ (q = 1), as an optax transformation.

    The parameters θ, d numbers in total, follow the Hamiltonian

        ℋ = ‖Π‖ V(θ),   V = (F − F₀)^{ηd/(2(d − 1))}

    of the loss F. In arc length, with the unit vector u = Π/‖Π‖ and the step Δ = learning rate/√η,

        θ̇ = u,   u̇ = −(I − u uᵀ) w,   w = ηd/(2(d − 1)) ∇F/(F − F₀).

    A step is a kick of u with constant w, followed by θ ← θ + Δu. With e = w/‖w‖ and δ = ‖w‖Δ, the measure-preserving
    kick solves the equation of u exactly:

        u ← (u + e[(u·e)(cosh δ − 1) − sinh δ])/(cosh δ − (u·e) sinh δ)

    If the motion is ergodic, the steps then sample θ with a density proportional to (F − F₀)^{−ηd/2}. The published
    Euler kick u ← u − Δ(w − u(u·w)) changes this density: on a two-dimensional quadratic loss, a coarse step shifts the
    median loss by 14 %. Rotations of the parameters that do not change the loss commute with the steps, unless inner
    products are computed per tensor.

    The first direction is that of steepest descent. Parameters are not updated at losses F ≤ F₀.

    Args:
        learning_rate: √η times the arc length Δ of a step, > 0; or a JAX function of the number of completed steps.
        eta: η; larger values concentrate the samples at low losses.
        target_loss: F₀, below the initial loss.
        noise: ν ≥ 0, the size of a random rotation of u after each step; u/‖u‖ + νz/√d is rescaled to the norm of u.
        weight_decay: λ ≥ 0; F becomes F + ½ λ‖θ‖².
        kick: "measure-preserving", or "euler" for the published kick. After the Euler kick, θ moves by the
            unnormalised u; u is normalised before the next kick.
        inner_product: "global" for u·w over all parameters; "per-tensor" for a separate u·w of each array, as in the
            published code, with the Euler kick.
        seed: Seed of the random rotations.

    Returns:
        An optax transformation with an `ECDState`. Its `update` requires the parameters and `value`, the loss.

    Raises:
        InputError: If an argument is outside its domain; in `update`, if the loss or the parameters are missing, if
            there is a single parameter, or if the initial loss is not above F₀. For traced values, the updates are NaN
            instead in the last case.

    References:
        G. B. De Luca, A. Gatti, E. Silverstein, Improving Energy Conserving Descent for Machine Learning,
        arXiv:2306.00352.

    Example:
        >>> import numpy as np
        >>> from dynascope import observe
        >>> from dynascope.networks import TwoLayer
        >>> from dynascope.tasks import Task
        >>> from dynascope.training import Descent
        >>> task = Task(np.eye(2), np.diag([2.0, 1.0]), name="two modes")
        >>> method = Descent(ecd(0.1, eta=20.0), steps=400, save=[0, 400])
        >>> run = observe(task, TwoLayer(2, 4, 2), scale=0.1, method=method)
        >>> bool(run["loss"][-1] < 0.05 * run["loss"][0])
        True
    """
    require(
        inner_product == "global" or kick == "euler",
        "inner_product is 'per-tensor', but kick is 'measure-preserving'",
        argument="inner_product",
        value=inner_product,
        remedy='choose kick="euler", or a global inner product',
    )

    def initial(params: Any) -> ECDState:
        zero = jnp.zeros((), jnp.result_type(*jax.tree.leaves(params)))
        return ECDState(
            jnp.zeros((), jnp.int32), jax.tree.map(jnp.zeros_like, params), zero, zero, zero, jax.random.PRNGKey(seed)
        )

    def update(
        gradient: Any, state: ECDState, params: Any = None, *, value: Any = None, **_: Any
    ) -> tuple[Any, ECDState]:
        loss, gradient = with_weight_decay(value, gradient, params, weight_decay)
        excess, moves = excess_loss(loss, target_loss, state.count)
        power, first = _power(eta, params), state.count == 0
        unit = jax.tree.map(lambda new, old: jnp.where(first, new, old), started(gradient, 1.0), state.direction)
        norm = jnp.sqrt(squared_norm(unit))
        unit = scaled(1 / jnp.where(norm > 0, norm, 1), unit)
        length = rate_of(learning_rate, state.count) / eta**0.5
        force = scaled(power / excess, gradient)
        if kick == "euler":
            kicked, growth = _euler_kick(unit, force, length, inner_product)
        else:
            kicked, growth = _exact_kick(unit, force, length)
        energy = state.log_momentum + power * jnp.log(excess)
        after = ECDState(
            state.count + 1,
            rotated(kicked, noise, state.key, state.count),
            state.log_momentum + growth,
            energy,
            jnp.where(first, energy, state.initial_energy),
            state.key,
        )
        unmoved = state._replace(count=state.count + 1)
        return (
            jax.tree.map(lambda leaf: jnp.where(moves, length * leaf, 0), kicked),
            jax.tree.map(lambda new, old: jnp.where(moves, new, old), after, unmoved),
        )

    return energy_conserving(initial, update, target_loss=target_loss, weight_decay=weight_decay)


def _power(eta: float, params: Any) -> float:
    """Exponent ηd/(2(d − 1)) of V."""
    size = number_of_parameters(params)
    require(
        size > 1,
        "params has a single number",
        argument="params",
        value=size,
        remedy="use ecd for at least two parameters, because the direction of a single one is fixed",
    )
    return eta * size / (2 * (size - 1))


def _exact_kick(unit: Any, force: Any, length: Any) -> tuple[Any, Any]:
    """Solve u̇ = −(I − u uᵀ) w over an arc length; return u and the growth of log ‖Π‖."""
    strength = jnp.sqrt(squared_norm(force))
    axis = scaled(1 / jnp.where(strength > 0, strength, 1), force)
    turn = length * strength
    # A direction of exact ascent is unstable; the smallest deviation keeps the growth positive.
    along = jnp.clip(dot(unit, axis), -1, 1 - jnp.finfo(strength.dtype).eps)
    # Factors are divided by exp(δ), so that long steps do not overflow.
    rising, falling = (1 - along) / 2, (1 + along) / 2 * jnp.exp(-2 * turn)
    growth = rising + falling
    unit_part, axis_part = jnp.exp(-turn), falling - rising - along * jnp.exp(-turn)
    kicked = jax.tree.map(lambda u, e: (unit_part * u + axis_part * e) / growth, unit, axis)
    return kicked, turn + jnp.log(growth)


def _euler_kick(unit: Any, force: Any, length: Any, inner_product: str) -> tuple[Any, Any]:
    """Make one Euler step of u̇ = −(I − u uᵀ) w; return u and the growth of log ‖Π‖."""
    products = jax.tree.map(jnp.vdot, unit, force)
    total = sum(jax.tree.leaves(products))
    if inner_product == "global":
        products = jax.tree.map(lambda _: total, products)
    kicked = jax.tree.map(lambda u, w, product: u - length * (w - u * product), unit, force, products)
    return kicked, -length * total

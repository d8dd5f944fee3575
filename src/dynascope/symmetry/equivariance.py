"""Tests whether an optimiser commutes with a symmetry of the loss, by training from two equivalent points."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import scipy.linalg
from jaxtyping import Float

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.results.named_tuples import short_repr
from dynascope.symmetry.charge import Charge
from dynascope.symmetry.residual_charge import AffineCharge
from dynascope.validation import calling, require, require_finite_values, require_jax_arrays, shown, shown_error
from dynascope.validation.bounded_scalars import PositiveFloat, PositiveInt, Seed

__all__ = ["Equivariance", "equivariance"]

_SAME = 1e-9  # rounding error of the loss at an equivalent point, relative to the loss
_NEAR = 0.1  # distance of the second point at which the loss is compared, relative to the parameters


@dataclasses.dataclass(frozen=True, eq=False)
class Equivariance:
    """Distance between a transformed run and the run from the transformed initial parameters.

    Attributes:
        distance: ‖Rθ_k − θ'_k‖/m_k after each step k = 1, 2, …, where m_k is the larger one of ‖θ_k − θ_0‖ and
            ‖θ'_k − θ'_0‖; zero as long as neither run has moved.
        losses: The losses L(θ_k) and L(θ'_k) before each step, shape (2, steps).
        tolerance: Largest distance that counts as rounding.
    """

    distance: Float[np.ndarray, " steps"]
    losses: Float[np.ndarray, "2 steps"]
    tolerance: float

    __repr__ = short_repr

    @property
    def holds(self) -> bool:
        """Whether the optimiser commutes with the symmetry, up to rounding errors, in all steps."""
        return bool(self.distance.max() <= self.tolerance)


def equivariance(
    optimizer: optax.GradientTransformation,
    loss: Callable[[Any], Any],
    params: Any,
    symmetry: Charge | AffineCharge | Callable[[Any], Any],
    *,
    steps: PositiveInt = 50,
    tolerance: PositiveFloat = 1e-6,
    seed: Seed = 0,
) -> Equivariance:
    """Measure whether an optimiser commutes with a symmetry R of the loss.

        distance_k = ‖Rθ_k − θ'_k‖/‖θ_k − θ_0‖,   θ'_0 = Rθ_0

    The optimiser makes the same number of steps from θ_0 and from Rθ_0, in float64. If R is orthogonal, the gradient at
    Rθ is R times the gradient at θ. An optimiser commutes with R if it combines gradients by inner products only.
    Gradient descent, the heavy-ball method and energy-conserving descent commute with every rotation, such as the
    rotations of the coordinates of queries and keys, or of values and outputs. They therefore conserve the angular
    momentum of these rotations up to friction. SOAP commutes if the second moments of the gradients are not degenerate.
    Adam rescales each coordinate separately, so it commutes with permutations and changes of sign only.

    Rounding errors grow from step to step if the motion is chaotic, so long runs need a larger tolerance. Adaptive
    optimisers divide by the size of small gradients plus ε, which amplifies rounding errors: SOAP in exact arithmetic
    commutes, but its distance is about 1e-7 for ε = 1e-8.

    Args:
        optimizer: An optax transformation, e.g. `optax.sgd(0.1, momentum=0.9)` or `dynascope.training.ecd(0.1)`.
            Transformations that require the loss receive `value`, `grad` and `value_fn`.
        loss: params → one number, a JAX function.
        params: θ_0, a tree of floating-point arrays.
        symmetry: A symmetry that `find_symmetries` found: for matrix symmetries, R rotates the units of each block at
            random; for translations, R shifts each unit at random. Alternatively, a JAX function θ → Rθ.
        steps: Number of steps.
        tolerance: Largest distance that counts as rounding.
        seed: Seed of the random transformation.

    Raises:
        InputError: If the symmetry contains no rotation or translation, if it changes the loss, if the loss is not one
            finite number, or if a run diverges.

    References:
        Symmetry Breaking in Transformers, arXiv:2601.22257; Noether's Learning Dynamics, arXiv:2105.02716.

    Example:
        >>> import jax.numpy as jnp
        >>> import numpy as np
        >>> import optax
        >>> turn = np.array([[0.6, -0.8], [0.8, 0.6]])
        >>> given = lambda w: jnp.sum((w.T @ w - 1) ** 2), np.array([[1.0, 0.5], [0.2, -1.0]]), lambda w: turn @ w
        >>> equivariance(optax.sgd(0.01, momentum=0.9), *given).holds, equivariance(optax.adam(0.01), *given).holds
        (True, False)
    """
    require_jax_arrays(params=params)
    transform = _transformation(symmetry, seed)
    with jax.enable_x64(True):
        start = jax.tree.map(_wide, params)
        _require_symmetry(loss, transform, start, seed)
        run = jit(functools.partial(_run, optax.with_extra_args_support(optimizer), loss, transform, steps))
        distance, losses = map(np.asarray, run(start))
    finite = np.isfinite(distance) & np.isfinite(losses).all(0)
    require(
        finite.all(),
        f"the run is not finite after step {int(finite.argmin()) + 1}",
        argument="optimizer",
        remedy="choose a lower learning rate; for energy-conserving descent, a target_loss below the initial loss",
    )
    return Equivariance(distance, losses, tolerance)


def _run(optimizer: Any, loss: Any, transform: Any, steps: int, start: Any) -> tuple[Any, Any]:
    """Return the distances after each step, and both losses before it."""
    other = transform(start)

    def step(state: Any) -> Any:
        theta, memory = state
        value, gradient = jax.value_and_grad(loss)(theta)
        update, memory = optimizer.update(gradient, memory, theta, value=value, grad=gradient, value_fn=loss)
        return (optax.apply_updates(theta, update), memory), value

    def both(states: Any, _: Any) -> Any:
        (one, first), (two, second) = map(step, states)
        moved = jnp.maximum(_distance(one[0], start), _distance(two[0], other))
        apart = _distance(transform(one[0]), two[0])
        return (one, two), (
            jnp.where(moved == 0, 0, apart / jnp.where(moved == 0, 1, moved)),
            jnp.stack([first, second]),
        )

    states = tuple((theta, optimizer.init(theta)) for theta in (start, other))
    distance, losses = jax.lax.scan(both, states, None, length=steps)[1]
    return distance, losses.T


def _distance(one: Any, other: Any) -> Any:
    return optax.tree_utils.tree_norm(jax.tree.map(jnp.subtract, one, other))


def _transformation(symmetry: Any, seed: int) -> Any:
    """Return the function θ → Rθ, with a random element of the group if a charge is given."""
    charge = symmetry.charge if isinstance(symmetry, AffineCharge) else symmetry
    if not isinstance(charge, Charge):
        return symmetry
    random, turns = np.random.default_rng(seed), charge.kind == "matrix" and charge.mixed > 1
    require(
        turns or charge.kind == "translation",
        f"symmetry is of kind {charge.kind!r} with the group {charge.group}, which contains no rotation",
        argument="symmetry",
        value=charge.kind,
        remedy="give a matrix symmetry of at least two units, a translation, or a function of the parameters",
    )
    if charge.kind == "translation":
        element = random.normal(size=charge.units)
    else:
        entries = random.normal(size=(charge.units // charge.block, charge.mixed, charge.mixed))
        element = np.stack([scipy.linalg.expm(each - each.T) for each in entries])
    return lambda theta: symmetry.transformed(theta, element)


def _require_symmetry(loss: Any, transform: Any, start: Any, seed: int) -> None:
    """Raise `InputError` if the transformation changes the loss, at the given point or at a random one near it."""
    random = np.random.default_rng(seed)

    def near(leaf: Any) -> Any:
        return leaf + _NEAR * float(jnp.sqrt(jnp.mean(leaf**2))) * random.normal(size=leaf.shape)

    for point in (start, jax.tree.map(near, start)):
        with calling("symmetry", "", "give a JAX function of the parameters that returns a tree of the same shapes"):
            moved = transform(point)
            same = jax.tree.map(jnp.shape, moved) == jax.tree.map(jnp.shape, point)
        require(
            same,
            "symmetry returns parameters of other shapes",
            argument="symmetry",
            remedy="give a function that returns a tree of the shapes of params",
        )
        before, after = (_number(loss, each) for each in (point, moved))
        change = abs(after - before)
        require(
            change <= _SAME * max(abs(before), abs(after)),
            f"symmetry changes the loss from {before:.6g} to {after:.6g}, a difference of {change:.3g}",
            argument="symmetry",
            value=change,
            remedy="give a symmetry of this loss, with float64 numbers; find_symmetries finds those of a network",
        )


def _number(loss: Any, params: Any) -> float:
    try:
        value = jnp.asarray(loss(params))
    except InputError:
        raise
    except Exception as error:  # a user's loss can raise anything
        raise InputError(
            f"loss(params) fails ({type(error).__name__}: {shown_error(error)})",
            argument="loss",
            value=type(loss).__name__,
            remedy="give a JAX function of the parameters that returns one number",
        ) from None
    require(
        value.shape == () and jnp.issubdtype(value.dtype, jnp.floating),
        f"loss returns an array of shape {value.shape}",
        argument="loss",
        value=value.shape,
        remedy="give a function that returns one real number",
    )
    require_finite_values("loss", value, remedy="give a loss that is finite at the given parameters")
    return float(value)


def _wide(leaf: Any) -> Any:
    require(
        isinstance(leaf, np.ndarray | jax.Array) and jnp.issubdtype(leaf.dtype, jnp.floating),
        f"params contains {shown(leaf)}",
        argument="params",
        value=type(leaf).__name__,
        remedy="give a tree of floating-point arrays, e.g. by equinox.partition(network, equinox.is_inexact_array)",
    )
    require_finite_values("params", leaf)
    return jnp.asarray(leaf, jnp.float64)

"""Identities of gradients and Hessians that a symmetry implies at every point and for every loss."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from dynascope.compilation import filter_jit
from dynascope.errors import InputError
from dynascope.results.named_tuples import short_repr
from dynascope.symmetry.charge import Charge, checked_charge
from dynascope.symmetry.parameters import arrays_by_path
from dynascope.symmetry.symmetry_defects import lengths
from dynascope.validation import require, require_finite_values, shown, shown_error
from dynascope.validation.bounded_scalars import Seed

__all__ = ["Identities", "check_identities", "orbit_directions"]

_ROUNDINGS = 1e4  # allowed error, in rounding units, of a sum over a unit's elements and of a derivative


@dataclasses.dataclass(frozen=True, eq=False)
class Identities:
    """The identities of one symmetry, evaluated at one point.

    Attributes:
        charge: The symmetry ξ.
        gradient: ⟨g, ξ⟩ for each unit, or for matrices an array of shape (blocks, block, block); zero in exact
            arithmetic.
        gradient_size: ‖g‖ ‖ξ‖ for each unit, to which `gradient` is compared.
        hessian: Largest element of Hξ + (∂ξ)ᵀg for one random direction ξ of the symmetry; zero in exact arithmetic.
        hessian_size: Largest element of the two summands.
        holds: Whether both identities hold up to rounding errors.
    """

    charge: Charge
    gradient: np.ndarray
    gradient_size: np.ndarray
    hessian: float
    hessian_size: float
    holds: bool

    __repr__ = short_repr


def check_identities(
    loss: Callable[[Any], Any], params: Any, symmetries: Sequence[Charge], *, seed: Seed = 0
) -> list[Identities]:
    """Check whether the gradient and Hessian of a loss satisfy the identities of its symmetries.

    The check applies to any training code. For a field ξ along which the loss is constant, at every point

        ⟨g, ξ⟩ = 0 and Hξ + (∂ξ)ᵀg = 0.

    For a translation, the gradient sums to zero. For a scale, the gradient is orthogonal to the weights, and H
    θ_A = −g_A. For a rescaling, ⟨g₁, θ₁⟩ = ⟨g₂, θ₂⟩. The check requires one gradient, and one Hessian-vector product
    per symmetry, in the precision of the parameters.

    Args:
        loss: params → one number; the function must be twice differentiable.
        params: A tree whose floating-point arrays are the parameters.
        symmetries: The symmetries that `find_symmetries` found, or `Charge` objects that you construct.
        seed: Seed of the random directions ξ.

    Raises:
        InputError: If the loss is not a finite number, or if the parameters do not match the symmetries.

    References:
        Neural Mechanics, arXiv:2012.04728, §3.

    Example:
        >>> import jax
        >>> import numpy as np
        >>> from dynascope.symmetry import find_symmetries
        >>> params = {"in": np.ones((3, 2)), "out": np.ones((2, 1))}
        >>> apply = lambda p, x: jax.nn.relu(x @ p["in"]) @ p["out"]
        >>> found = find_symmetries(apply, params, np.ones((4, 3)))
        >>> [checked] = check_identities(lambda p: (apply(p, np.eye(3)) ** 2).sum(), params, found.symmetries)
        >>> checked.holds
        True
    """
    symmetries = list(symmetries)
    for each in symmetries:
        checked_charge(each)
    wide = any(np.dtype(leaf.dtype) == np.float64 for leaf in arrays_by_path(params).values())
    with jax.enable_x64(wide):
        theta, g, curvatures = _derivatives(loss, params, symmetries, seed)
    for each in jax.tree.leaves(g):
        require_finite_values("loss", each, remedy="give a loss whose gradient is finite at the given parameters")
    return [_checked(charge, theta, g, *each) for charge, each in zip(symmetries, curvatures, strict=True)]


def orbit_directions(
    params: Any, symmetries: Sequence[Charge], *, at: Literal["minimum", "anywhere"] = "minimum"
) -> np.ndarray:
    """Compute the directions along symmetry orbits, in which the loss is flat to second order.

    The minima of a loss with symmetries form orbits of these symmetries: Hξ = −(∂ξ)ᵀg is zero for every ξ if g is zero.
    For translations, Hξ is zero everywhere. The result is an orthonormal basis in the space of flattened parameters.
    The memory of the basis is the number of parameters times the number of symmetry directions.

    Args:
        params: The tree of parameters.
        symmetries: The symmetries that `find_symmetries` found.
        at: "minimum" for all symmetries, including rotations of units; "anywhere" for translations only.

    Returns:
        Directions, shape (n, D).

    Raises:
        InputError: If the parameters do not match the symmetries, or if `at` has another value.

    References:
        Neural Mechanics, arXiv:2012.04728, §3.

    Example:
        >>> import numpy as np
        >>> from dynascope.symmetry import Part
        >>> shift = Charge("translation", (Part("['b']", np.array([0, 0]), 1.0),), 1)
        >>> np.abs(orbit_directions({"b": np.zeros(2)}, [shift], at="anywhere")).round(3).tolist()
        [[0.707, 0.707]]
    """
    rows = []
    for charge in symmetries:
        checked_charge(charge)
        if charge.kind != "translation" and at == "anywhere":
            continue
        units = np.eye(charge.units)
        if charge.kind == "matrix":
            blocks = charge.units // charge.block
            units = np.eye(blocks * charge.mixed**2).reshape(-1, blocks, charge.mixed, charge.mixed)
        for weights in units:
            along = arrays_by_path(charge.direction(params, weights))
            rows.append(np.concatenate([np.ravel(np.asarray(along[path])) for path in arrays_by_path(params)]))
    size = sum(each.size for each in arrays_by_path(params).values())
    if not rows:
        return np.zeros((0, size))
    _, values, right = np.linalg.svd(np.array(rows, np.float64), full_matrices=False)
    return right[values > 1e-10 * max(values[0], np.finfo(float).tiny)]


def _derivatives(loss: Callable[[Any], Any], params: Any, symmetries: Sequence[Charge], seed: int) -> Any:
    """Compute the gradient and, for each symmetry, Hξ and (∂ξ)ᵀg for a random direction ξ."""
    trained, fixed = eqx.partition(params, eqx.is_inexact_array)
    random = np.random.default_rng(seed)
    shapes = [(each.units // each.block, *([each.mixed] * 2 if each.kind == "matrix" else [])) for each in symmetries]
    weights = [random.normal(size=shape) for shape in shapes]

    def gradient(theta: Any) -> Any:
        return jax.grad(lambda each: _number(loss(eqx.combine(each, fixed))))(theta)

    def curvature(charge: Charge, theta: Any, g: Any, each: Any) -> Any:
        curved = jax.jvp(gradient, (theta,), (charge.direction(theta, each),))[1]
        # For a linear field, (∂ξ)ᵀ g is the transposed field evaluated at g.
        _, pull = jax.vjp(lambda at: charge.direction(at, each), theta)
        return curved, pull(g)[0]

    def derivatives(theta: Any) -> Any:
        g = gradient(theta)
        return g, [curvature(charge, theta, g, each) for charge, each in zip(symmetries, weights, strict=True)]

    try:
        return jax.tree.map(np.asarray, (trained, *filter_jit(derivatives)(trained)))
    except InputError:
        raise
    except Exception as error:  # a user's loss can raise anything
        raise InputError(
            f"loss(params) fails ({type(error).__name__}: {shown_error(error)})",
            argument="loss",
            value=type(loss).__name__,
            remedy="give a JAX function of the parameters that returns one number",
        ) from None


def _checked(charge: Charge, theta: Any, g: Any, curved: Any, turned: Any) -> Identities:
    values = np.asarray(charge.identity(theta, g))
    norm = float(np.sqrt(sum(np.vdot(each, each) for each in jax.tree.leaves(g))))
    sizes = norm * lengths(charge, theta)
    rest = [np.abs(a + b).max(initial=0.0) for a, b in zip(*map(jax.tree.leaves, (curved, turned)), strict=True)]
    parts = [np.abs(each).max(initial=0.0) for each in (*jax.tree.leaves(curved), *jax.tree.leaves(turned))]
    rounding = _ROUNDINGS * max(float(jnp.finfo(each.dtype).eps) for each in jax.tree.leaves(theta))
    largest = np.abs(values).reshape(charge.units // charge.block, -1).max(1)
    small = largest <= rounding * sizes.reshape(len(largest), -1).max(1)
    hessian, size = float(max(rest, default=0.0)), float(max(parts, default=0.0))
    holds = bool(small.all()) and hessian <= rounding * max(size, norm)
    return Identities(charge, values, sizes, hessian, size, holds)


def _number(value: Any) -> Any:
    require(
        jnp.shape(value) == () and jnp.issubdtype(jnp.result_type(value), jnp.floating),
        f"loss returns {shown(value)}",
        argument="loss",
        value=jnp.shape(value),
        remedy="give a function that returns one real number",
    )
    return value

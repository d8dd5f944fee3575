"""Transfer with a frozen first layer: how fast a new readout learns from the features of an old task, and how far."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
from annotated_types import Gt, IsFinite
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Real

from dynascope.compilation import AnyArray, float64_jit
from dynascope.results.named_tuples import short_repr
from dynascope.theory.assumptions import BALANCED_LAYERS, ENOUGH_SAMPLES, WHITE_INPUTS
from dynascope.theory.domain import covers
from dynascope.theory.kernels import broadcast, nan_outside
from dynascope.theory.layer_rates import positive
from dynascope.validation import require, require_shape
from dynascope.validation.bounded import FiniteArray, NonNegativeArray

__all__ = ["TransferError", "speed_along", "transfer_error", "transfer_speed"]

_CLOSE = 1e-8  # differences of the decays below which their divided difference is a derivative


class TransferError(NamedTuple):
    """The loss of a new readout on frozen features.

    Attributes:
        error: ½ E‖f(x) − x c‖² at each time, shape (times,).
        floor: Its limit, what the features cannot express, shape ().
    """

    error: Float[AnyArray, " times"]
    floor: Float[AnyArray, ""]

    __repr__ = short_repr


@covers(
    network="two-layer linear, any widths",
    data="whitened inputs, any old targets",
    start="λ-balanced, converged on the old targets",
    gives="the speed at which a new readout learns along each input direction",
    reference="arXiv:2409.14623",
    assumes=(ENOUGH_SAMPLES, WHITE_INPUTS, BALANCED_LAYERS),
)
def transfer_speed(strength: FiniteArray, balance: FiniteArray) -> Float[AnyArray, ...]:
    """The speed at which a new readout learns along an input direction of the old task: √(s² + λ²/4) − λ/2.

    It is the eigenvalue of W₁ W₁ᵀ along a left singular vector of the old target map (d, c), where W₁ (d, h) is the
    frozen first layer of f(x) = x W₁ W₂ after convergence; the error along it falls as exp(−speed · t). Strongly
    negative λ gives task-agnostic features, with the speed |λ| in all directions; λ = 0 the speed s; strongly positive
    λ the speed s²/λ.

    Both arguments broadcast; the result can be compiled and differentiated, and nothing cancels in it.

    Args:
        strength: s, singular value of the old target map; 0 for a direction that the old task did not use, if the
            network is as wide as it has inputs.
        balance: λ in W₂ W₂ᵀ − W₁ᵀ W₁ = λ I.

    Raises:
        InputError: A value that is not finite. Where JAX traces them, such values give NaN.

    References:
        Dominé et al., arXiv:2409.14623, for the features; the protocol of a frozen first layer is ours.

    Example:
        >>> import numpy as np
        >>> transfer_speed(np.array([2.0, 0.0]), -3.0).tolist(), transfer_speed(np.array([2.0, 0.0]), 3.0).tolist()
        ([4.0, 3.0], [1.0, 0.0])
    """
    return _speed(*broadcast(strength=strength, balance=balance))


@covers(
    network="linear readout of fixed linear features",
    data="whitened inputs, any new targets",
    start="any features, readout from zero",
    gives="the loss on the new targets over time, and its floor",
    reference="arXiv:2409.14623",
    assumes=(
        ENOUGH_SAMPLES,
        WHITE_INPUTS,
    ),
)
def transfer_error(
    first: IsFinite[Real[ArrayLike, "inputs width"]],
    new_map: IsFinite[Real[ArrayLike, "inputs outputs"]],
    times: NonNegativeArray,
    *,
    second_rate: Annotated[Real[ArrayLike, ""], Gt(0)] = 1.0,
) -> TransferError:
    """The loss of a new readout that starts at zero on top of a frozen first layer: ½‖exp(−W₁ W₁ᵀ η t) c‖².

    The readout v of f(x) = x W₁ v follows v' = −η W₁ᵀ (W₁ v − c). Along a left singular vector of W₁ the error falls
    at the squared singular value; what is orthogonal to the columns of W₁ remains, floor = ½‖(I − Π) c‖².

    It can be compiled and differentiated with respect to all but the rank of W₁, also where its singular values are
    equal.

    Args:
        first: W₁, shape (d, h), such as that of a network that has converged on another task.
        new_map: c, shape (d, k): the new targets are y = x c, for inputs with E[x xᵀ] = I.
        times: Gradient-flow times t ≥ 0, shape (times,).
        second_rate: η > 0, learning rate of the readout.

    Returns:
        `TransferError`; singular values up to rounding count as zero in its floor.

    Raises:
        InputError: A value that is not finite, t < 0, shapes that do not fit, or a rate that is not positive. Where JAX
            traces them, such values give NaN.

    References:
        The setting is that of Dominé et al., arXiv:2409.14623; the protocol and the solution are ours.

    Example:
        >>> import numpy as np
        >>> solution = transfer_error(np.diag([2.0, 1.0, 0.0]), np.ones((3, 1)), np.array([0.0, 100.0]))
        >>> solution.error.tolist(), float(solution.floor)
        ([1.5, 0.5], 0.5)
    """
    given: dict[str, Any] = {"first": first, "new_map": new_map}
    for name, each in given.items():
        require_shape(name, each, (..., None, None))
    features, targets = given.values()
    require(
        len(features) == len(targets),
        f"new_map has shape {targets.shape} and first {features.shape}",
        argument="new_map",
        value=targets.shape,
        remedy="give both a row for each input",
    )
    require_shape("times", times, (), (None,))
    return _readout_error(features, targets, times, second_rate)


@float64_jit
def _speed(strength: Array, balance: Array) -> Array:
    return nan_outside(jnp.isfinite(strength) & jnp.isfinite(balance), speed_along(strength, balance), leading=True)


def speed_along(strength: Array, balance: Array) -> Array:
    """√(s² + λ²/4) − λ/2."""
    half = balance / 2
    # The square root has no derivative where both vanish, and its subtraction would cancel where λ is positive.
    nothing = (strength == 0) & (half == 0)
    omega = jnp.hypot(jnp.where(nothing, 1, strength), half)
    # Divided before multiplied, so that the square of s does not leave the floating-point range; chosen between, as a
    # maximum has another derivative at λ = 0.
    ahead, behind = jnp.where(half > 0, half, 0), jnp.where(half > 0, 0, half)
    speed = jnp.where(half > 0, strength * (strength / (omega + ahead)), omega - behind)
    return jnp.where(nothing, jnp.abs(strength), speed)


@float64_jit
def _readout_error(first: Array, new_map: Array, times: Array, rate: Array) -> TransferError:
    known = jnp.all(jnp.isfinite(first)) & jnp.all(jnp.isfinite(new_map)) & positive(rate)
    timely = jnp.isfinite(times) & (times >= 0)
    times, timely = jnp.ravel(rate * times), jnp.ravel(timely)
    error, floor = _remaining(first, new_map, times)
    return TransferError(nan_outside(known & timely, error, leading=True), nan_outside(known, floor, leading=True))


@jax.custom_jvp
def _remaining(first: Array, new_map: Array, times: Array) -> tuple[Array, Array]:
    """½‖exp(−W₁ W₁ᵀ t) c‖² at each time, and its limit."""
    along, _, rates, used = _directions(first, new_map)
    powers = jnp.sum(along**2, axis=1)
    floor = jnp.sum(jnp.where(used, 0, powers)) / 2
    return floor + jnp.exp(-2 * times[:, None] * rates) @ jnp.where(used, powers, 0) / 2, floor


@_remaining.defjvp
def _(primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    # Singular vectors have no derivative where singular values are equal; a function of W₁ W₁ᵀ has the divided
    # differences of its values. The number of directions in use does not change.
    (first, new_map, times), (first_dot, new_map_dot, times_dot) = primals, tangents
    along, left, rates, used = _directions(first, new_map)
    decayed = jnp.exp(-2 * times[:, None] * rates)
    moved = left.T @ (first_dot @ first.T + first @ first_dot.T) @ left
    apart = 2 * times[:, None, None] * jnp.abs(rates[:, None] - rates)
    close = apart < _CLOSE
    share = jnp.where(close, 1 - apart / 2, -jnp.expm1(-apart) / jnp.where(close, 1, apart))
    differences = -2 * times[:, None, None] * jnp.maximum(decayed[:, :, None], decayed[:, None, :]) * share
    turned = left.T @ new_map_dot
    error_dot = jnp.einsum("tij,ij,ic,jc->t", differences, moved, along, along) / 2
    error_dot += decayed @ jnp.sum(along * turned, axis=1)
    error_dot -= times_dot * (decayed @ (rates * jnp.sum(along**2, axis=1)))
    # What is not used sees only how the directions in use turn into it.
    mixed = jnp.where(~used[:, None] & used, moved / jnp.where(used, rates, 1), 0) @ along
    unused = jnp.where(used[:, None], 0, along)
    return _remaining(*primals), (error_dot, jnp.sum(unused * turned) - jnp.sum(unused * mixed))


def _directions(first: Array, new_map: Array) -> tuple[Array, Array, Array, Array]:
    """The target along all left singular vectors, these, the rates along them, and which of them W₁ uses."""
    left, sizes, _ = jnp.linalg.svd(first, full_matrices=True)
    used = sizes > max(first.shape) * jnp.finfo(sizes.dtype).eps * jnp.max(sizes, initial=0)
    missing = len(first) - len(sizes)
    rates = jnp.pad(jnp.where(used, sizes, 0) ** 2, (0, missing))
    return left.T @ new_map, left, rates, jnp.pad(used, (0, missing))

"""Transfer with a frozen first layer: learning speed and final error of a new readout on old features."""

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

_CLOSE = 1e-8  # difference of two decays, below which their divided difference is replaced by the derivative


class TransferError(NamedTuple):
    """Loss of a new readout on frozen features.

    Attributes:
        error: ½ E‖f(x) − x c‖² over time, shape (times,).
        floor: Limit of the error, the part of the target that the features cannot express, shape ().
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
    """Compute the speed at which a new readout learns along an input direction of the old task.

    √(s² + λ²/4) − λ/2

    The speed is the eigenvalue of W₁ W₁ᵀ along a left singular vector of the old target map (d, c). W₁ (d, h) is the
    frozen first layer of f(x) = x W₁ W₂ after convergence. The residual along this direction decays as exp(−speed · t).
    For strongly negative λ the features are task-agnostic, with speed |λ| in all directions. The speed is s for λ = 0,
    and s²/λ for strongly positive λ.

    Both arguments broadcast. The function avoids cancellation, and can be compiled and differentiated.

    Args:
        strength: s, singular value of the old target map. Use 0 for a direction that the old task does not use,
            provided that the network has at least as many hidden neurons as inputs.
        balance: λ in W₂ W₂ᵀ − W₁ᵀ W₁ = λ I.

    Raises:
        InputError: If a value is not finite. Inside `jit`, values outside this domain give NaN.

    References:
        Dominé et al., arXiv:2409.14623, for the features; the protocol with a frozen first layer is ours.

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
    """Compute the loss of a new readout, initialised at zero, on top of a frozen first layer.

    ½‖exp(−W₁ W₁ᵀ η t) c‖²

    The readout v of f(x) = x W₁ v obeys v' = −η W₁ᵀ (W₁ v − c). Along each left singular vector of W₁, the residual
    decays at the rate η times the squared singular value. The component of c orthogonal to the columns of W₁ cannot be
    learned; its loss is the floor ½‖(I − Π) c‖², where Π is the projection onto the columns.

    The function can be compiled. It is differentiable as long as the rank of W₁ does not change, even if singular
    values of W₁ are equal.

    Args:
        first: W₁, shape (d, h), for example from a network that has converged on another task.
        new_map: c, shape (d, k). The new targets are y = x c, for inputs with E[x xᵀ] = I.
        times: Gradient-flow times t ≥ 0, shape (times,).
        second_rate: η > 0, the learning rate of the readout.

    Returns:
        The error over time and its floor; singular values of W₁ below the rounding error count as zero.

    Raises:
        InputError: If a value is not finite, t < 0, shapes do not match, or the rate is not positive. Inside `jit`,
            values outside this domain give NaN.

    References:
        The setting is from Dominé et al., arXiv:2409.14623; the protocol and the solution are ours.

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
        f"new_map has shape {targets.shape}, but first has shape {features.shape}",
        argument="new_map",
        value=targets.shape,
        remedy="give new_map and first one row per input",
    )
    require_shape("times", times, (), (None,))
    return _readout_error(features, targets, times, second_rate)


@float64_jit
def _speed(strength: Array, balance: Array) -> Array:
    return nan_outside(jnp.isfinite(strength) & jnp.isfinite(balance), speed_along(strength, balance), leading=True)


def speed_along(strength: Array, balance: Array) -> Array:
    """Return √(s² + λ²/4) − λ/2 without cancellation."""
    half = balance / 2
    # The square root has no derivative if both vanish, and the subtraction would cancel if λ is positive.
    nothing = (strength == 0) & (half == 0)
    omega = jnp.hypot(jnp.where(nothing, 1, strength), half)
    # The division before the multiplication avoids overflow and underflow of s². `where` instead of `maximum` gives the
    # correct derivative at λ = 0.
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
    """Return ½‖exp(−W₁ W₁ᵀ t) c‖² at each time, and its limit."""
    along, _, rates, used = _directions(first, new_map)
    powers = jnp.sum(along**2, axis=1)
    floor = jnp.sum(jnp.where(used, 0, powers)) / 2
    return floor + jnp.exp(-2 * times[:, None] * rates) @ jnp.where(used, powers, 0) / 2, floor


@_remaining.defjvp
def _(primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    # Singular vectors have no derivative if singular values are equal. A function of W₁ W₁ᵀ has one, which consists of
    # divided differences of its values. The number of directions in use is constant.
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
    # The unused directions change only because the directions in use rotate into them.
    mixed = jnp.where(~used[:, None] & used, moved / jnp.where(used, rates, 1), 0) @ along
    unused = jnp.where(used[:, None], 0, along)
    return _remaining(*primals), (error_dot, jnp.sum(unused * turned) - jnp.sum(unused * mixed))


def _directions(first: Array, new_map: Array) -> tuple[Array, Array, Array, Array]:
    """Return the components of the target along all left singular vectors, and these vectors.

    Also return the decay rates along the vectors, and a mask of the vectors in the range of W₁.
    """
    left, sizes, _ = jnp.linalg.svd(first, full_matrices=True)
    used = sizes > max(first.shape) * jnp.finfo(sizes.dtype).eps * jnp.max(sizes, initial=0)
    missing = len(first) - len(sizes)
    rates = jnp.pad(jnp.where(used, sizes, 0) ** 2, (0, missing))
    return left.T @ new_map, left, rates, jnp.pad(used, (0, missing))

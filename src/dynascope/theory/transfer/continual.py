"""Continual learning: how a two-layer linear network forgets an old task while it learns a new one."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, TypeAlias

import jax.numpy as jnp
from annotated_types import IsFinite
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Real

from dynascope.compilation import AnyArray, float64_jit
from dynascope.results.named_tuples import short_repr
from dynascope.theory.assumptions import BALANCED_LAYERS, ENOUGH_SAMPLES, WHITE_INPUTS
from dynascope.theory.balanced.balance import FirstLayer, MapTimes, SecondLayer
from dynascope.theory.balanced.solution import layers_and_map, solve_gram
from dynascope.theory.domain import covers
from dynascope.theory.kernels import nan_outside
from dynascope.theory.layer_rates import LayerRates
from dynascope.validation import require, require_shape
from dynascope.validation.bounded import NonNegativeArray, PositiveInt

__all__ = ["Forgetting", "forgetting", "lazy_forgetting"]


_Map: TypeAlias = IsFinite[Real[ArrayLike, "inputs outputs"]]
_covers = functools.partial(
    covers,
    data="whitened inputs, any old and new targets",
    gives="the error on the old targets during training on the new ones",
    reference="arXiv:2409.14623",
    assumes=(ENOUGH_SAMPLES, WHITE_INPUTS, BALANCED_LAYERS),
)


class Forgetting(NamedTuple):
    """Errors on both tasks while a network trains on the second task.

    Attributes:
        old_error: F(t) = ½‖W₁W₂ − A‖², the error on the old map, shape (..., times).
        new_error: ½‖W₁W₂ − B‖², the error on the new map, shape (..., times).
        end: ½‖B − A‖², the limit of F if the network reaches the new map; a number.
    """

    old_error: Float[AnyArray, "*members times"]
    new_error: Float[AnyArray, "*members times"]
    end: Float[AnyArray, ""]

    __repr__ = short_repr


@_covers(network="two-layer linear, any widths", start="λ-balanced, for example converged on the old targets")
def forgetting(
    first: FirstLayer,
    second: SecondLayer,
    old_map: _Map,
    new_map: _Map,
    times: MapTimes,
    *,
    rates: LayerRates = LayerRates(),
    approximate: bool = False,
    steps: PositiveInt | None = None,
) -> Forgetting:
    """Compute the error of a λ-balanced network on an old map A while it trains on a new map B.

    F(t) = ½‖W₁W₂(t) − A‖²

    The product W₁W₂ follows the exact solution of `balanced.product` from the given weights. For a network that has
    learned A, `converged_layers` returns these weights. If the network reaches B, F converges to ½‖B − A‖² for any λ:
    the balance of the layers affects the time course of forgetting, but not the final amount. Two kinds of network do
    not reach B: a network with fewer hidden neurons than the rank of B, and a square network with λ = 0 if the
    determinants of A and B differ in sign; see `balanced.balanced_limit`.

    Args:
        first: W₁ at the switch of tasks, shape (..., d, h), with f(x) = x W₁ W₂.
        second: W₂ at the switch, shape (..., h, c), with W₂ W₂ᵀ − W₁ᵀ W₁ = λ I. Ensemble members may have different λ.
        old_map: A = E[x yᵀ] of the old task, shape (d, c); inputs have E[x xᵀ] = I.
        new_map: B of the new task, shape (d, c).
        times: Gradient-flow times t ≥ 0 since the switch, shape (times,).
        rates: η₁ and η₂, each a number or one value per member.
        approximate: As in `balanced.gram`.
        steps: As in `balanced.gram`.

    Raises:
        InputError: If the maps have different shapes, or as for `balanced.product`. Inside `jit`, values outside this
            domain give NaN.

    References:
        Dominé, Anguita, Proca, Braun, Kunin, Mediano & Saxe, arXiv:2409.14623.

    Example:
        >>> import jax, numpy as np
        >>> from dynascope.theory.transfer import converged_layers
        >>> old, new = np.diag([2.0, 1.0]), np.diag([1.0, 2.0])
        >>> with jax.enable_x64(True):
        ...     solution = forgetting(*converged_layers(old, balance=0.5, width=2), old, new, np.array([0.0, 9.0]))
        ...     print(solution.old_error.round(6), solution.end)
        [0. 1.] 1.0
    """
    _require_one_shape(old_map, new_map)
    network, target_map = layers_and_map(first, second, new_map, rates)
    return _errors(solve_gram(network, target_map, times, approximate, steps).product, old_map, new_map)


@_covers(
    network="two-layer linear, width = outputs for λ > 0, = inputs for λ < 0",
    start="λ-balanced with |λ| → ∞, converged on the old targets",
    exact=False,
)
def lazy_forgetting(
    old_map: _Map,
    new_map: _Map,
    times: NonNegativeArray,
    balance: IsFinite[Real[ArrayLike, ""]],
) -> Float[AnyArray, " times"]:
    """Compute the lazy limit of `forgetting`, for |λ| much larger than the singular values of both maps.

    F(t) = ½‖B − A‖² (1 − e^(−|λ|t))²

    Args:
        old_map: A, shape (d, c).
        new_map: B, shape (d, c).
        times: Gradient-flow times t ≥ 0 since the switch, shape (times,).
        balance: λ. The width of the network equals the number of outputs for λ > 0, and the number of inputs for λ < 0.

    Returns:
        The error on the old map, shape (times,).

    Raises:
        InputError: If the maps have different shapes, a value is not finite, or t < 0. Inside `jit`, values outside
            this domain give NaN.

    References:
        Dominé et al., arXiv:2409.14623.

    Example:
        >>> import numpy as np
        >>> lazy_forgetting(np.eye(2), -np.eye(2), np.array([0.0, 9.0]), balance=-40.0).tolist()
        [0.0, 4.0]
    """
    _require_one_shape(old_map, new_map)
    require_shape("times", times, (), (None,))
    return _lazy(old_map, new_map, times, balance)


@float64_jit
def _errors(path: Array, old: Array, new: Array) -> Forgetting:
    end = nan_outside(jnp.all(jnp.isfinite(old)) & jnp.all(jnp.isfinite(new)), _half_square(new - old), leading=True)
    return Forgetting(_half_square(path - old), _half_square(path - new), end)


@float64_jit
def _lazy(old: Array, new: Array, times: Array, balance: Array) -> Array:
    learned = -jnp.expm1(-jnp.abs(balance) * times)
    valid = jnp.all(jnp.isfinite(old)) & jnp.all(jnp.isfinite(new)) & jnp.isfinite(balance)
    return nan_outside(valid & jnp.isfinite(times) & (times >= 0), _half_square(new - old) * learned**2, leading=True)


def _require_one_shape(old_map: Any, new_map: Any) -> None:
    require_shape("old_map", old_map, (..., None, None))
    require(
        old_map.shape == new_map.shape,
        f"new_map has shape {new_map.shape}, but old_map has shape {old_map.shape}",
        argument="new_map",
        value=new_map.shape,
        remedy="give two maps of the same shape",
    )


def _half_square(matrices: Array) -> Array:
    return jnp.sum(matrices**2, axis=(-2, -1)) / 2

"""Exact solution of a λ-balanced network: its function and representations at any time."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.compilation import AnyArray, float64_jit
from dynascope.results.named_tuples import short_repr
from dynascope.theory.assumptions import BALANCED_LAYERS, ENOUGH_SAMPLES, WHITE_INPUTS
from dynascope.theory.balanced.balance import (
    Balance,
    FirstLayer,
    MapTimes,
    SecondLayer,
    TargetMap,
    TwoLayers,
    balance_of,
    balance_rounding,
    require_balanced,
)
from dynascope.theory.balanced.determinants import warn_of_opposite_determinants
from dynascope.theory.balanced.propagation import Steps, drift_matrix, fixed_steps, plan_steps, propagate
from dynascope.theory.domain import covers
from dynascope.theory.kernels import nan_outside
from dynascope.theory.layer_rates import LayerRates, clock_of
from dynascope.validation import is_traced, require, require_shape
from dynascope.validation.bounded import PositiveInt

__all__ = ["BalancedGram", "covers_balanced", "gram", "product", "solve_gram", "unit_rate_layers"]

covers_balanced = functools.partial(
    covers,
    network="two-layer linear, any widths",
    data="whitened inputs, any targets",
    start="λ-balanced (W₂ W₂ᵀ − W₁ᵀ W₁ = λ I)",
    reference="arXiv:2409.14623",
    assumes=(ENOUGH_SAMPLES, WHITE_INPUTS, BALANCED_LAYERS),
)


class BalancedGram(NamedTuple):
    """Function and representations over time, which determine the weights up to a rotation of the hidden layer.

    Attributes:
        first: W₁ W₁ᵀ, the representation of the inputs, shape (..., times, d, d).
        product: W₁ W₂, the function, shape (..., times, d, c).
        second: W₂ᵀ W₂, the representation of the outputs, shape (..., times, c, c).
        balance: λ and the deviation of the initial weights from λ-balance; the solution is exact if the deviation is
            zero.
    """

    first: Float[AnyArray, "*members times inputs inputs"]
    product: Float[AnyArray, "*members times inputs outputs"]
    second: Float[AnyArray, "*members times outputs outputs"]
    balance: Balance

    __repr__ = short_repr


@covers_balanced(gives="the function and both representations at any time")
def gram(
    first: FirstLayer,
    second: SecondLayer,
    target_map: TargetMap,
    times: MapTimes,
    *,
    rates: LayerRates = LayerRates(),
    approximate: bool = False,
    steps: PositiveInt | None = None,
) -> BalancedGram:
    """Compute W₁ W₁ᵀ, W₁ W₂ and W₂ᵀ W₂ of f(x) = x W₁ W₂ under gradient flow on whitened inputs, E[x xᵀ] = I.

    Let Q = (U₁; U₂ᵀ) and F = [[−λ/2 I, Σ], [Σᵀ, λ/2 I]], where Σ = E[x yᵀ]. For the loss ½‖W₁W₂ − Σ‖² + constant,
    gradient flow is Q' = F Q − ½ Q Qᵀ Q, so P = Q Qᵀ obeys P' = F P + P F − P² and

        P(t) = exp(Ft) Q₀ [I + Q₀ᵀ ∫₀ᵗ exp(2Fs) ds Q₀]⁻¹ Q₀ᵀ exp(Ft).

    The solution is evaluated in steps that propagate a factor of P. For equal rates, U₁ = W₁ and U₂ = W₂. Unequal rates
    are absorbed into U₁ = (η₂/η₁)^¼ W₁, U₂ = (η₁/η₂)^¼ W₂ and the rescaled time √(η₁ η₂) t. The solution covers all
    widths, including bottlenecks and wide layers (λ = 0), and also rank-deficient maps and singular F. The result is
    differentiable with respect to all arguments. Second derivatives are available only with respect to the times; all
    others raise `InputError`.

    If λ = 0, the determinant of a square map W₁W₂ of full rank keeps its sign. If the initial sign differs from that of
    Σ, the function warns, and the flow stops at a saddle with ½‖W₁W₂ − Σ‖² ≥ ½ s², where s is the smallest singular
    value of Σ. In floating-point arithmetic, rounding errors excite the missing direction at about t = 37/s, both in
    this function and in training. `balanced_limit` computes the saddle itself.

    Args:
        first: Initial W₁, shape (..., d, h).
        second: Initial W₂, shape (..., h, c).
        target_map: Σ, shape (d, c), or (..., d, c) with one map per member.
        times: Gradient-flow times t ≥ 0, shape (times,), common to all members.
        rates: Learning rates η₁ and η₂ of the layers, each a number or one value per member.
        approximate: Whether to accept weights that are not λ-balanced and use the mean λ. The function then warns, and
            `balance.error` of the result is the deviation.
        steps: Number of steps between neighbouring times, which must then increase. For steps of length Δ,
            max|f|·√(η₁η₂)·Δ should be below 4 and must not exceed 16, where f are the eigenvalues of F. By default, the
            number is computed from the values of the arguments. It is required if JAX traces these values.

    Raises:
        InputError: If shapes do not match, a value is not finite, t < 0, a rate is not positive, the weights are not
            λ-balanced, the times do not increase although `steps` is given, the times require more than a million
            steps, or `steps` is too small. Inside `jit`, values outside this domain give NaN.

    References:
        Dominé, Anguita, Proca, Braun, Kunin, Mediano, Saxe, From Lazy to Rich, arXiv:2409.14623; our derivation does
        not require their assumptions on widths and invertibility.

    Example:
        >>> with jax.enable_x64(True):
        ...     found = gram([[1.0], [0.0]], [[1.0]], [[2.0], [1.0]], np.array([0.0, 1.0, 50.0]))
        ...     print(found.product[:, :, 0].round(3))
        [[1.    0.   ]
         [2.005 0.879]
         [2.    1.   ]]
        >>> end, y = lambda y: gram([[0.1]], [[0.2]], y, [1.0], steps=8).product.sum(), np.array([[2.0]])
        >>> with jax.enable_x64(True):
        ...     print(f"{end(y):.4f} {jax.jit(jax.grad(end))(y).item():.4f}")
        0.7669 1.0899
    """
    return solve_gram(*layers_and_map(first, second, target_map, rates), times, approximate, steps)


@covers_balanced(gives="the function at any time")
def product(
    first: FirstLayer,
    second: SecondLayer,
    target_map: TargetMap,
    times: MapTimes,
    *,
    rates: LayerRates = LayerRates(),
    approximate: bool = False,
    steps: PositiveInt | None = None,
) -> Float[AnyArray, "*members times inputs outputs"]:
    """Compute the map W₁ W₂ at each time, the same as `gram(...).product`.

    If λ = 0 and det W₁W₂ and det Σ differ in sign, the flow stops at a saddle, and the function warns (see `gram`).

    Args:
        first: See `gram`.
        second: See `gram`.
        target_map: See `gram`.
        times: See `gram`.
        rates: See `gram`.
        approximate: See `gram`.
        steps: See `gram`.

    Returns:
        W₁ W₂, shape (..., times, d, c).

    Raises:
        InputError: As for `gram`. Inside `jit`, values outside this domain give NaN.

    Example:
        >>> with jax.enable_x64(True):
        ...     print(product([[0.1]], [[0.1]], [[2.0]], np.array([1.0, 3.0])).ravel().round(4))
        [0.4306 1.9976]
    """
    return solve_gram(*layers_and_map(first, second, target_map, rates), times, approximate, steps).product


def layers_and_map(first: Any, second: Any, target_map: Any, rates: LayerRates) -> tuple[TwoLayers, Any]:
    """Check that the layers and the target map fit together."""
    network = TwoLayers.checked(first, second, rates, target_map=target_map)
    require_shape("target_map", target_map, (..., first.shape[-2], second.shape[-1]))
    return network, target_map


def solve_gram(network: TwoLayers, target_map: Any, times: Any, approximate: bool, steps: int | None) -> BalancedGram:
    """Return the solution of `gram` for validated layers and a validated map."""
    require_shape("times", times, (..., None))
    known = not any(map(is_traced, jax.tree.leaves(network)))
    balance = require_balanced(network, approximate) if known else None
    speed, stuck = None, np.asarray(False)
    if balance is not None and not is_traced(target_map):
        stuck = warn_of_opposite_determinants(network, target_map, balance)
        drift, (one, other) = drift_matrix(np.asarray(target_map), balance.value, np), map(np.sqrt, network.rates)
        speeds = np.abs(np.linalg.eigvalsh(drift)).max(axis=-1) * one * other
        speed = float(np.max(speeds))
    if steps is None:
        require(
            speed is not None and not is_traced(times),
            "steps is None, but the number of steps cannot be computed from traced values",
            argument="steps",
            remedy="give the number of steps between consecutive times",
        )
        assert speed is not None
        plan = plan_steps(speed, np.asarray(times))
    else:
        plan = fixed_steps(speed, times, steps)
    # In the precision of the given weights: weights trained in 32 bits are balanced up to 32-bit rounding.
    rounding = np.inf if approximate else balance_rounding(np.result_type(network.first.dtype, network.second.dtype))
    return _solve(network, target_map, times, plan, rounding, stuck, same=steps)


def unit_rate_layers(network: TwoLayers) -> tuple[Array, Array]:
    """Return U₁ = (η₂/η₁)^¼ W₁ and U₂ = (η₁/η₂)^¼ W₂, which obey the flow at unit rates in the time √(η₁η₂) t."""
    ratio = (jnp.divide(network.rates.second, network.rates.first) ** 0.25)[..., None, None]
    return ratio * network.first, network.second / ratio


@functools.partial(float64_jit, static_argnames="same")
def _solve(
    network: TwoLayers, target_map: Array, times: Array, plan: Steps, rounding: Array, stuck: Array, *, same: int | None
) -> BalancedGram:
    def solve(inner, outer, clock, ratio, target_map, balance, stuck):
        start, drift = jnp.concatenate([inner, outer.T]), drift_matrix(target_map, balance)
        counts = plan.counts if same is None else same
        factors = propagate(start, drift, clock * plan.lengths, counts, stuck)[plan.ranks]
        inner, outer = factors[:, : len(inner)], factors[:, len(inner) :]

        def products(one, other):
            return jnp.einsum("tih,tjh->tij", one, other)

        return products(inner, inner) * ratio, products(inner, outer), products(outer, outer) / ratio

    network = jax.tree.map(jnp.asarray, network)
    balance, rates = balance_of(network), network.rates
    found = jnp.vectorize(solve, signature="(d,h),(h,c),(),(),(d,c),(),()->(t,d,d),(t,d,c),(t,c,c)")(
        *unit_rate_layers(network),
        clock_of(rates),
        jnp.sqrt(jnp.divide(*rates)),
        target_map,
        balance.value,
        stuck,
    )
    valid = network.valid & jnp.all(jnp.isfinite(target_map), axis=(-2, -1)) & (balance.error <= rounding)
    ordered = jnp.cumsum(~(plan.lengths >= 0))[plan.ranks] == 0
    inside = valid[..., None] & jnp.isfinite(times) & (times >= 0) & ordered
    first, product, second = nan_outside(inside, found, leading=True)
    return BalancedGram(first, product, second, balance)

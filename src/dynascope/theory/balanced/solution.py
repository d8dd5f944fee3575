"""The exact solution: function, representations, kernel and loss of a λ-balanced network at any time."""

from __future__ import annotations

import functools
import warnings
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer
from jaxtyping import Float
from numpy.typing import ArrayLike

from dynascope.arguments import require
from dynascope.theory.balanced.balance import Balance, layer_balance, layers
from dynascope.theory.balanced.propagation import plan_steps, propagate
from dynascope.theory.domain import covers
from dynascope.theory.modes.growth import real_array

__all__ = ["BalancedGram", "drift_matrix", "gram", "loss", "ntk", "product", "unit_rate_layers"]

_BALANCED = 1e-8  # error of balance that is rounding
_covers = functools.partial(
    covers,
    network="two-layer linear, any widths",
    data="whitened inputs, any targets",
    start="λ-balanced (W₂ W₂ᵀ − W₁ᵀ W₁ = λ I)",
    reference="arXiv:2409.14623",
)


class BalancedGram(NamedTuple):
    """What the weights of a network are up to a rotation of its hidden layer, over time.

    Attributes:
        first: W₁ W₁ᵀ, the representation of the inputs, shape (..., times, d, d).
        product: W₁ W₂, the function, shape (..., times, d, c).
        second: W₂ᵀ W₂, the representation of the outputs, shape (..., times, c, c).
        balance: λ and how far the start is from balance; the solution is exact where that is zero.
    """

    first: Float[Array, "*members times inputs inputs"]
    product: Float[Array, "*members times inputs outputs"]
    second: Float[Array, "*members times outputs outputs"]
    balance: Balance


@_covers(gives="function and both representations at any time")
def gram(
    first: ArrayLike,
    second: ArrayLike,
    target_map: ArrayLike,
    times: ArrayLike,
    *,
    first_rate: ArrayLike = 1.0,
    second_rate: ArrayLike = 1.0,
    approximate: bool = False,
    steps: int | None = None,
) -> BalancedGram:
    """W₁ W₁ᵀ, W₁ W₂ and W₂ᵀ W₂ of f(x) = x W₁ W₂ under gradient flow, for whitened inputs, E[x xᵀ] = I.

    With Q = (U₁; U₂ᵀ) and F = [[−λ/2 I, Σ], [Σᵀ, λ/2 I]], where Σ = E[x yᵀ], the loss ½‖W₁W₂ − Σ‖² + constant gives
    Q' = F Q − ½ Q Qᵀ Q, so that P = Q Qᵀ obeys P' = F P + P F − P² and

        P(t) = exp(Ft) Q₀ [I + Q₀ᵀ ∫₀ᵗ exp(2Fs) ds Q₀]⁻¹ Q₀ᵀ exp(Ft).

    It is evaluated in steps that keep a factor of P (see `propagation`). Unequal rates are absorbed: U₁ = (η₂/η₁)^¼ W₁,
    U₂ = (η₁/η₂)^¼ W₂, in the time √(η₁ η₂) t. Any widths are covered: bottlenecks, wide layers (λ = 0), maps without
    full rank, singular F. The result can be differentiated in all arguments.

    Args:
        first: W₁ at the start, shape (..., d, h).
        second: W₂ at the start, shape (..., h, c).
        target_map: Σ, shape (d, c), or one for each member.
        times: Gradient-flow times t ≥ 0, shape (times,), common to all members.
        first_rate: η₁ > 0, or one for each member.
        second_rate: η₂ > 0, or one for each member.
        approximate: Whether to take weights that are not λ-balanced as if they were, with the mean λ; `balance.error`
            of the result says how far they are, and so does a warning.
        steps: Number of steps from each time to the next, in each of which max|f|·√(η₁η₂)·Δ should stay below 4, f
            being the eigenvalues of F. Found from the values if not given; needed where they are traced by JAX (then
            times must increase).

    Raises:
        InputError: Shapes that do not fit, values that are not finite, t < 0, a rate that is not positive, weights that
            are not λ-balanced, or times that would need more than a million steps.

    References:
        Dominé, Anguita, Proca, Braun, Kunin, Mediano, Saxe, From Lazy to Rich, arXiv:2409.14623; derived anew without
        their assumptions on widths and invertibility.

    Example:
        >>> with jax.enable_x64(True):
        ...     found = gram([[1.0], [0.0]], [[1.0]], [[2.0], [1.0]], np.array([0.0, 1.0, 50.0]))
        ...     print(found.product[:, :, 0].round(3))
        [[1.    0.   ]
         [2.005 0.879]
         [2.    1.   ]]
    """
    first, second = layers(first, second)
    target_map = _map(target_map, first, second)
    times = real_array("times", times, minimum=0)
    require(
        times.ndim == 1 and times.size > 0,
        f"times has shape {times.shape}",
        argument="times",
        value=times.shape,
        remedy="give a list of one time or more",
    )
    rates = real_array("first_rate", first_rate, above=0), real_array("second_rate", second_rate, above=0)
    balance = layer_balance(first, second, first_rate=rates[0], second_rate=rates[1])
    if not isinstance(balance.error, Tracer):
        worst = float(jnp.max(balance.error))
        balanced = worst <= max(_BALANCED, 100 * float(jnp.finfo(first.dtype).eps))
        problem = f"W₂ W₂ᵀ − W₁ᵀ W₁ differs from λ I by {worst:.3g} of the size of the layers"
        require(
            balanced or approximate,
            problem,
            argument="second",
            value=worst,
            remedy="start λ-balanced (networks.balanced_linear), or pass approximate=True",
        )
        if not balanced:
            warnings.warn(f"{problem}; the solution is that of a λ-balanced start", stacklevel=2)
    known = not any(isinstance(each, Tracer) for each in (first, second, target_map, times, *rates))
    if steps is None:
        require(
            known,
            "the number of steps cannot be found from values that are traced",
            argument="steps",
            remedy="give the number of steps from each time to the next",
        )
        drift = np.asarray(drift_matrix(target_map, balance.value))
        speed = np.abs(np.linalg.eigvalsh(drift)).max(axis=-1) * np.sqrt(np.asarray(rates[0] * rates[1]))
        durations, places = plan_steps(float(np.max(speed)), np.asarray(times))
    else:
        gaps = jnp.diff(times, prepend=0.0)
        durations, places = jnp.repeat(gaps / steps, steps), steps * np.arange(1, len(times) + 1)
    found = _solve(first, second, target_map, *rates, balance.value, durations, places)
    return BalancedGram(found[0], found[1], found[2], balance)


@_covers(gives="the function at any time")
def product(
    first: ArrayLike,
    second: ArrayLike,
    target_map: ArrayLike,
    times: ArrayLike,
    **options: Any,
) -> Float[Array, "*members times inputs outputs"]:
    """W₁ W₂ over time: `gram(...).product`, with its arguments.

    Example:
        >>> with jax.enable_x64(True):
        ...     print(product([[0.1]], [[0.1]], [[2.0]], np.array([1.0, 3.0])).ravel().round(4))
        [0.4306 1.9976]
    """
    return gram(first, second, target_map, times, **options).product


@_covers(gives="the loss at any time")
def loss(
    first: ArrayLike,
    second: ArrayLike,
    target_map: ArrayLike,
    times: ArrayLike,
    *,
    target_power: float | None = None,
    **options: Any,
) -> Float[Array, "*members times"]:
    """L = ½‖W₁W₂ − Σ‖² + ½(E‖y‖² − ‖Σ‖²) over time.

    Args:
        first: As in `gram`.
        second: As in `gram`.
        target_map: As in `gram`.
        times: As in `gram`.
        target_power: E‖y‖²; without it the second term, the loss that no linear map avoids, is left out.
        options: Further arguments of `gram`.

    Raises:
        InputError: E‖y‖² below ‖Σ‖², or as `gram`.

    Example:
        >>> with jax.enable_x64(True):
        ...     print(loss([[0.1]], [[0.1]], [[2.0]], np.array([0.0, 3.0]), target_power=4.5).round(4))
        [2.2301 0.25  ]
    """
    found = product(first, second, target_map, times, **options)
    target = real_array("target_map", target_map)
    excess = jnp.sum((found - target[..., None, :, :]) ** 2, axis=(-2, -1)) / 2
    if target_power is None:
        return excess
    explained = jnp.sum(target**2, axis=(-2, -1))
    power = real_array("target_power", target_power)
    if not isinstance(explained, Tracer) and not isinstance(power, Tracer):
        least = float(jnp.max(explained))
        require(
            float(jnp.min(power)) >= least * (1 - 1e-6),
            f"target_power is {float(jnp.min(power)):g}, and the map alone explains {least:g}",
            argument="target_power",
            value=float(jnp.min(power)),
            remedy="give the mean of ‖y‖² of targets whose whitened inputs have that map",
        )
    return excess + (jnp.maximum(power - explained, 0) / 2)[..., None]


@_covers(gives="the neural tangent kernel at any time")
def ntk(
    first: ArrayLike,
    second: ArrayLike,
    target_map: ArrayLike,
    times: ArrayLike,
    inputs: ArrayLike,
    *,
    first_rate: ArrayLike = 1.0,
    second_rate: ArrayLike = 1.0,
    **options: Any,
) -> Float[Array, "*members times nc nc"]:
    """The neural tangent kernel K = η₂ I ⊗ X W₁W₁ᵀ Xᵀ + η₁ W₂ᵀW₂ ⊗ X Xᵀ over time.

    Args:
        first: As in `gram`.
        second: As in `gram`.
        target_map: As in `gram`.
        times: As in `gram`.
        inputs: X, shape (n, d), of any points.
        first_rate: As in `gram`.
        second_rate: As in `gram`.
        options: Further arguments of `gram`.

    Returns:
        K between all outputs at all points; row o·n + i is output o at point i.

    Example:
        >>> with jax.enable_x64(True):
        ...     print(ntk([[0.1]], [[0.1]], [[2.0]], np.array([0.0, 9.0]), [[1.0]]).ravel().round(4))
        [0.02 4.  ]
    """
    rates = {"first_rate": first_rate, "second_rate": second_rate}
    found = gram(first, second, target_map, times, **rates, **options)
    x = real_array("inputs", inputs)
    require(
        x.ndim == 2 and x.shape[1] == found.first.shape[-1],
        f"inputs has shape {x.shape}",
        argument="inputs",
        value=x.shape,
        remedy=f"give points of {found.first.shape[-1]} coordinates, one a row",
    )
    members = (..., None, None, None)
    inner = jnp.asarray(second_rate)[members] * (x @ found.first @ x.T)
    outer = jnp.asarray(first_rate)[members] * found.second
    points, outputs = len(x), outer.shape[-1]
    kernel = jnp.einsum("ab,...ij->...aibj", jnp.eye(outputs, dtype=x.dtype), inner)
    kernel += jnp.einsum("...ab,ij->...aibj", outer, x @ x.T)
    return kernel.reshape(*kernel.shape[:-4], points * outputs, points * outputs)


def unit_rate_layers(first: Array, second: Array, first_rate: Array, second_rate: Array) -> tuple[Array, Array]:
    """U₁ = (η₂/η₁)^¼ W₁ and U₂ = (η₁/η₂)^¼ W₂, which follow the flow of unit rates in the time √(η₁η₂) t."""
    ratio = ((second_rate / first_rate) ** 0.25)[..., None, None]
    return ratio * first, second / ratio


def drift_matrix(target_map: Array, balance: Array) -> Array:
    """F = [[−λ/2 I, Σ], [Σᵀ, λ/2 I]]."""
    inputs, outputs = target_map.shape[-2:]
    diagonal = jnp.concatenate([-jnp.ones(inputs), jnp.ones(outputs)]).astype(target_map.dtype) / 2
    size = inputs + outputs
    leading = jnp.broadcast_shapes(target_map.shape[:-2], jnp.shape(balance))
    target_map = jnp.broadcast_to(target_map, (*leading, inputs, outputs))
    drift = jnp.zeros((*leading, size, size), target_map.dtype)
    drift = drift.at[..., :inputs, inputs:].set(target_map)
    drift = drift.at[..., inputs:, :inputs].set(jnp.swapaxes(target_map, -1, -2))
    return drift + jnp.asarray(balance)[..., None, None] * jnp.diag(diagonal)


@jax.jit
def _solve(
    first: Array,
    second: Array,
    target_map: Array,
    first_rate: Array,
    second_rate: Array,
    balance: Array,
    durations: Array,
    places: Array,
) -> tuple[Array, Array, Array]:
    def solve(first, second, target_map, first_rate, second_rate, balance, durations, places):
        inner, outer = unit_rate_layers(first, second, first_rate, second_rate)
        start = jnp.concatenate([inner, outer.T])
        clock = jnp.sqrt(first_rate * second_rate)
        factors = propagate(start, drift_matrix(target_map, balance), clock * durations)[places]
        inner, outer = factors[:, : len(first)], factors[:, len(first) :]
        ratio = jnp.sqrt(first_rate / second_rate)

        def products(one, other):
            return jnp.einsum("tih,tjh->tij", one, other)

        return products(inner, inner) * ratio, products(inner, outer), products(outer, outer) / ratio

    signature = "(d,h),(h,c),(d,c),(),(),(),(s),(t)->(t,d,d),(t,d,c),(t,c,c)"
    return jnp.vectorize(solve, signature=signature)(
        first, second, target_map, first_rate, second_rate, balance, durations, places
    )


def _map(target_map: ArrayLike, first: Array, second: Array) -> Array:
    target_map = real_array("target_map", target_map)
    shape = (first.shape[-2], second.shape[-1])
    require(
        target_map.ndim >= 2 and target_map.shape[-2:] == shape,
        f"target_map has shape {target_map.shape}",
        argument="target_map",
        value=target_map.shape,
        remedy=f"give E[x yᵀ] of shape {shape}",
    )
    return target_map.astype(first.dtype)

"""Reversal learning: a two-layer linear network that has learned a map is trained on the negative map."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float

from dynascope.compilation import AnyArray, float64_jit
from dynascope.results.named_tuples import short_repr
from dynascope.theory.assumptions import BALANCED_LAYERS, ENOUGH_SAMPLES, WHITE_INPUTS
from dynascope.theory.domain import covers
from dynascope.theory.kernels import broadcast, nan_outside
from dynascope.theory.layer_rates import LayerRates, clock_of, positive_rates
from dynascope.validation import is_traced, require
from dynascope.validation.bounded import FiniteArray, NonNegativeArray

__all__ = ["Reversal", "reversal_time", "reversal_trajectory"]

_DOMAIN: dict[str, Any] = {
    "network": "two-layer linear, any widths",
    "data": "whitened inputs, any targets, then their negative",
    "start": "λ-balanced, converged on the first targets",
    "reference": "arXiv:2409.14623",
    "assumes": (ENOUGH_SAMPLES, WHITE_INPUTS, BALANCED_LAYERS),
}


class Reversal(NamedTuple):
    """Trajectory of a mode from s to −s; both arrays have the broadcast shape.

    Attributes:
        strength: θ, from s at t = 0 to −s (to 0 for λ = 0).
        residual: −s − θ, the remaining error, computed without cancellation. The loss of the mode is residual²/2.
    """

    strength: Float[AnyArray, ...]
    residual: Float[AnyArray, ...]

    __repr__ = short_repr


@covers(**_DOMAIN, gives="the strength of each mode during the reversal")
def reversal_trajectory(
    times: NonNegativeArray, strength: FiniteArray, balance: FiniteArray, *, rates: LayerRates = LayerRates()
) -> Reversal:
    """Compute the strength of a mode after its target has changed from s to −s.

        θ(t) = −s + 2 s ω² e / [λ²/4 + s² e (2 − e)],  ω = √(s² + λ²/4),  e = exp(−2ωt).

    In a converged network, the singular modes of the target map evolve independently. The strength is computed as an
    average of the rich solution s e/(2 − e) and the lazy solution s (2e − 1) with the weights s² (2 − e) and (λ²/4)/e,
    without cancellation or overflow. For λ = 0, only the rich solution remains: the mode is unlearned but not
    relearned, because exactly balanced layers converge to the saddle at zero. For |λ| ≫ s only the lazy solution
    remains, with e = exp(−|λ|t).

    All arguments broadcast. The function can be compiled and differentiated, and the result has the dtype of the
    arguments.

    Args:
        times: Gradient-flow times t ≥ 0 since the reversal.
        strength: s, singular value of the target map, or −s for a mode that has learned the negative map.
        balance: λ of either sign, with W₂ W₂ᵀ − W₁ᵀ W₁ = λ I for f(x) = x W₁ W₂. With rates, the condition is
            η₁ W₂ W₂ᵀ − η₂ W₁ᵀ W₁ = √(η₁ η₂) λ I.
        rates: η₁ and η₂. Time is rescaled by √(η₁ η₂).

    Raises:
        InputError: If a value is not finite, t < 0, or a rate is not positive. Inside `jit`, values outside this domain
            give NaN.

    References:
        Dominé, Anguita, Proca, Braun, Kunin, Mediano & Saxe, arXiv:2409.14623; the closed form of a mode is ours.

    Example:
        >>> import jax
        >>> with jax.enable_x64(True):
        ...     print(f"{reversal_trajectory(1.0, 1.5, 0.2).strength:.8f}")
        -0.02317182
    """
    times, *mode = _broadcast_mode(strength, balance, rates, times=times)
    return _reversed(times, _Mode(*mode))


@covers(**_DOMAIN, gives="the time at which each mode changes sign", infinite=True)
def reversal_time(
    strength: FiniteArray, balance: FiniteArray, *, rates: LayerRates = LayerRates()
) -> Float[AnyArray, ...]:
    """Compute the time at which a mode passes through zero on its way from s to −s.

    t₀ = ln(1 + 2ω/|λ|)/(2ω), ω = √(s² + λ²/4)

    For small |λ|, the time grows only logarithmically, t₀ ≈ ln(2s/|λ|)/(2s). Exactly balanced layers never escape from
    the saddle, t₀ = ∞. (In practice, finite learning rates break the balance, and the mode escapes late.) In lazy
    networks, |λ| ≫ s, all modes have t₀ = ln 2/|λ|.

    All arguments broadcast. The function can be compiled and differentiated.

    Args:
        strength: s ≠ 0, of either sign.
        balance: λ, as in `reversal_trajectory`.
        rates: η₁ and η₂.

    Returns:
        Gradient-flow times since the reversal, ∞ for λ = 0.

    Raises:
        InputError: If s = 0, or as for `reversal_trajectory`. Inside `jit`, values outside this domain give NaN.

    References:
        Dominé et al., arXiv:2409.14623, for the setting; the closed form is ours.

    Example:
        >>> import jax
        >>> with jax.enable_x64(True):
        ...     print(f"{reversal_time(1.5, 0.2):.9f} {reversal_time(1.5, 0.0)}")
        0.922840711 inf
    """
    mode = _Mode(*_broadcast_mode(strength, balance, rates))
    require(
        is_traced(mode.strength) or bool(np.all(np.asarray(mode.strength) != 0)),
        "strength is zero",
        argument="strength",
        value=0.0,
        remedy="omit modes of zero strength",
    )
    return _crossing(mode)


class _Mode(NamedTuple):
    """Modes whose targets are reversed; untraced values are NumPy arrays.

    Attributes:
        strength: s.
        balance: λ.
        rates: η₁ and η₂. All attributes broadcast.
    """

    strength: Float[Array, ...]
    balance: Float[Array, ...]
    rates: LayerRates

    @property
    def valid(self) -> Bool[Array, ...]:
        """Whether all values are finite and the rates are positive."""
        return jnp.isfinite(self.strength) & jnp.isfinite(self.balance) & positive_rates(self.rates)


def _broadcast_mode(strength: Any, balance: Any, rates: LayerRates, **before: Any) -> list[Any]:
    """Broadcast all arguments to their common shape."""
    numbers = {"strength": strength, "balance": balance, "rates.first": rates.first, "rates.second": rates.second}
    *found, first, second = broadcast(**before, **numbers)
    return [*found, LayerRates(first, second)]


@float64_jit
def _reversed(times: Array, mode: _Mode) -> Reversal:
    target, balance, rate = mode.strength, mode.balance, clock_of(mode.rates)
    # Zeros are replaced in unused branches to keep the derivatives finite.
    empty, balanced = target == 0, balance == 0
    size, half = jnp.abs(jnp.where(empty, 1, target)), jnp.abs(jnp.where(balanced, 1, balance)) / 2
    unbalanced = jnp.where(empty, half, jnp.hypot(size, half))
    omega = jnp.where(balanced, jnp.where(empty, 0, size), unbalanced)
    phase = 2 * omega * rate * times
    decayed = jnp.exp(-phase)
    odds = 2 * (jnp.log(half) - jnp.log(size)) + phase - jnp.log(2 - decayed)
    lazy = jnp.where(balanced, 0, jnp.where(empty, 1, jax.nn.sigmoid(odds)))
    rich = jnp.where(balanced, 1, jnp.where(empty, 0, jax.nn.sigmoid(-odds)))
    path = Reversal(
        strength=target * (rich * decayed / (2 - decayed) + lazy * (2 * decayed - 1)),
        residual=-2 * target * (rich / (2 - decayed) + lazy * decayed),
    )
    return nan_outside(mode.valid & jnp.isfinite(times) & (times >= 0), path, leading=True)


@float64_jit
def _crossing(mode: _Mode) -> Array:
    target, balance, rate = mode.strength, mode.balance, clock_of(mode.rates)
    trapped, size, gap = balance == 0, jnp.abs(target), jnp.abs(balance)
    twice_omega = 2 * jnp.hypot(jnp.where(trapped, 1, size), gap / 2)
    share = jnp.where(trapped, 1, gap) / twice_omega
    time = (jnp.log1p(share) - jnp.log(share)) / (twice_omega * rate)
    return nan_outside(mode.valid & (target != 0), jnp.where(trapped, jnp.inf, time), leading=True)

"""Reversal learning: a two-layer linear network that has learned a map, and is then given its negative."""

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
    """A mode on its way from s to −s, each number of the broadcast shape.

    Attributes:
        strength: θ, from s at the start to −s (to 0 for λ = 0).
        residual: −s − θ, what is still to be learned, computed without cancellation; the loss of the mode is
            residual²/2.
    """

    strength: Float[AnyArray, ...]
    residual: Float[AnyArray, ...]

    __repr__ = short_repr


@covers(**_DOMAIN, gives="the strength of each mode while it is reversed")
def reversal_trajectory(
    times: NonNegativeArray, strength: FiniteArray, balance: FiniteArray, *, rates: LayerRates = LayerRates()
) -> Reversal:
    """The strength of a mode after its target has turned from s to −s.

    From convergence the singular modes of the target map stay decoupled, and each has, with ω = √(s² + λ²/4) and
    e = exp(−2ωt),

        θ(t) = −s + 2 s ω² e / [λ²/4 + s² e (2 − e)].

    It is evaluated as an average of the rich path s e/(2 − e) and the lazy path s (2e − 1) with the weights
    s² (2 − e) and (λ²/4)/e, in which nothing cancels and nothing overflows. For λ = 0 the rich path alone is left: the
    mode is unlearned and never relearned, since exactly balanced layers shrink together into the saddle at zero. For
    |λ| ≫ s the lazy one is left, with e = exp(−|λ|t).

    All arguments broadcast. The result has the dtype of the arguments, can be compiled and differentiated.

    Args:
        times: Gradient-flow times t ≥ 0 since the reversal.
        strength: s, singular value of the target map, or −s for a mode that has learned the negative.
        balance: λ in W₂ W₂ᵀ − W₁ᵀ W₁ = λ I, of either sign, for f(x) = x W₁ W₂; with rates,
            η₁ W₂ W₂ᵀ − η₂ W₁ᵀ W₁ = √(η₁ η₂) λ I.
        rates: η₁ and η₂, which together make everything √(η₁ η₂) times as fast.

    Raises:
        InputError: A value that is not finite, t < 0, or a rate that is not positive. Where JAX traces them, such
            values give NaN.

    References:
        Dominé, Anguita, Proca, Braun, Kunin, Mediano & Saxe, arXiv:2409.14623; the closed form of a mode is ours.

    Example:
        >>> import jax
        >>> with jax.enable_x64(True):
        ...     print(f"{reversal_trajectory(1.0, 1.5, 0.2).strength:.8f}")
        -0.02317182
    """
    times, *mode = _fitting(strength, balance, rates, times=times)
    return _reversed(times, _Mode(*mode))


@covers(**_DOMAIN, gives="the time at which each mode changes sign", infinite=True)
def reversal_time(
    strength: FiniteArray, balance: FiniteArray, *, rates: LayerRates = LayerRates()
) -> Float[AnyArray, ...]:
    """When a mode passes zero on its way from s to −s: t₀ = ln(1 + 2ω/|λ|)/(2ω), ω = √(s² + λ²/4).

    A small imbalance costs little: t₀ ≈ ln(2s/|λ|)/(2s). Exactly balanced layers never come out of the saddle,
    t₀ = ∞ (steps of a finite size break the balance, and escape late). Lazy networks, |λ| ≫ s, need t₀ = ln 2/|λ|
    whatever the mode.

    All arguments broadcast; the result can be compiled and differentiated.

    Args:
        strength: s ≠ 0, of either sign.
        balance: λ, as in `reversal_trajectory`.
        rates: η₁ and η₂.

    Returns:
        Gradient-flow times since the reversal, ∞ for λ = 0.

    Raises:
        InputError: s = 0, or as `reversal_trajectory`. Where JAX traces them, such values give NaN.

    References:
        Dominé et al., arXiv:2409.14623, for the setting; the closed form is ours.

    Example:
        >>> import jax
        >>> with jax.enable_x64(True):
        ...     print(f"{reversal_time(1.5, 0.2):.9f} {reversal_time(1.5, 0.0)}")
        0.922840711 inf
    """
    mode = _Mode(*_fitting(strength, balance, rates))
    require(
        is_traced(mode.strength) or bool(np.all(np.asarray(mode.strength) != 0)),
        "a strength is zero",
        argument="strength",
        value=0.0,
        remedy="leave out modes that have nothing to reverse",
    )
    return _crossing(mode)


class _Mode(NamedTuple):
    """Modes that are to be reversed; still in NumPy where they are known.

    Attributes:
        strength: s.
        balance: λ.
        rates: η₁ and η₂; all broadcast.
    """

    strength: Float[Array, ...]
    balance: Float[Array, ...]
    rates: LayerRates

    @property
    def valid(self) -> Bool[Array, ...]:
        """Whether all is finite and the rates positive."""
        return jnp.isfinite(self.strength) & jnp.isfinite(self.balance) & positive_rates(self.rates)


def _fitting(strength: Any, balance: Any, rates: LayerRates, **before: Any) -> list[Any]:
    """All in their common shape."""
    numbers = {"strength": strength, "balance": balance, "rates.first": rates.first, "rates.second": rates.second}
    *found, first, second = broadcast(**before, **numbers)
    return [*found, LayerRates(first, second)]


@float64_jit
def _reversed(times: Array, mode: _Mode) -> Reversal:
    target, balance, rate = mode.strength, mode.balance, clock_of(mode.rates)
    # Zeros are replaced where their logarithms and roots are not used, or the derivatives would not be finite.
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

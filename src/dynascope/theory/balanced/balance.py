"""Balance of the two layers of a linear network, and their deviation from λ-balance."""

from __future__ import annotations

import warnings
from typing import Annotated, Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from annotated_types import Ge, IsFinite
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Bool, Float, Real

from dynascope.compilation import AnyArray, float64_jit
from dynascope.results.named_tuples import short_repr
from dynascope.symmetry.layer_charges import layer_charges
from dynascope.theory.assumptions import BALANCED_LAYERS
from dynascope.theory.finite_answers import finite_answers
from dynascope.theory.kernels import broadcast_known, nan_outside
from dynascope.theory.layer_rates import LayerRates, positive_rates, rate_shapes
from dynascope.validation import require, require_broadcast, require_shape

__all__ = [
    "LAYER_UNITS",
    "STANDARDS",
    "UNITS",
    "Balance",
    "FirstLayer",
    "MapTimes",
    "SecondLayer",
    "TargetMap",
    "TwoLayers",
    "balance_of",
    "balance_rounding",
    "layer_balance",
    "require_balanced",
]

# The units of the layers, rates and target map; those listed first are scaled to order one.
RATE_UNITS = {"first": "a^-2 t^-1", "second": "w^-2 t^-1"}
LAYER_UNITS: dict[str, Any] = {"first": "w", "second": "a", "rates": RATE_UNITS}
UNITS: dict[str, Any] = LAYER_UNITS | {"target_map": "w a"}
STANDARDS = ("rates.first", "rates.second", "target_map|first|second")

FirstLayer: TypeAlias = IsFinite[Real[ArrayLike, "... inputs width"]]
SecondLayer: TypeAlias = IsFinite[Real[ArrayLike, "... width outputs"]]
TargetMap: TypeAlias = IsFinite[Real[ArrayLike, "... inputs outputs"]]
MapTimes: TypeAlias = Annotated[Real[ArrayLike, " times"], Ge(0)]


class TwoLayers(NamedTuple):
    """Layers and learning rates of a network f(x) = x W₁ W₂ or an ensemble; concrete values remain NumPy arrays.

    Attributes:
        first: W₁, shape (..., d, h).
        second: W₂, shape (..., h, c).
        rates: Learning rates η₁ and η₂ of the layers, each a number or one value per member.
    """

    first: Float[Array, "*members inputs width"]
    second: Float[Array, "*members width outputs"]
    rates: LayerRates

    __repr__ = short_repr

    @classmethod
    def checked(cls, first: Any, second: Any, rates: LayerRates, **further: Any) -> TwoLayers:
        """Check that the shapes of the two layers match, and that all leading axes broadcast."""
        for name, layer in (("first", first), ("second", second)):
            require_shape(name, layer, (..., None, None))
        require(
            first.shape[-1] == second.shape[-2],
            f"first has shape {first.shape} and second has shape {second.shape}",
            argument="second",
            value=second.shape,
            remedy="give layers with the same number of hidden neurons",
        )
        require_broadcast(
            first=first.shape[:-2],
            second=second.shape[:-2],
            **rate_shapes(rates),
            **{name: np.shape(each)[:-2] for name, each in further.items()},
        )
        return cls(first, second, LayerRates._make(broadcast_known(*rates)))

    @property
    def valid(self) -> Bool[Array, "*members"]:
        """Whether the layers are finite and the rates are finite and positive."""
        finite = (jnp.all(jnp.isfinite(layer), axis=(-2, -1)) for layer in (self.first, self.second))
        return next(finite) & next(finite) & positive_rates(self.rates)


class Balance(NamedTuple):
    """The conserved balance λ of two layers, and their deviation from λ-balance (Δ = λ I, see `layer_balance`).

    Attributes:
        value: λ, the mean eigenvalue of the conserved matrix Δ; positive if the second layer is larger.
        error: ‖Δ − λ I‖/(‖U₁‖² + ‖U₂‖²), zero for a λ-balanced network.
    """

    value: Float[AnyArray, ...]
    error: Float[AnyArray, ...]

    __repr__ = short_repr


@finite_answers()
def layer_balance(first: FirstLayer, second: SecondLayer, *, rates: LayerRates = LayerRates()) -> Balance:
    """Compute the balance λ of two linear layers, and the deviation of the conserved matrix Δ from λ I.

    Δ = U₂ U₂ᵀ − U₁ᵀ U₁

    Gradient flow conserves Δ. For equal rates, U₁ and U₂ are the layers W₁ and W₂. In general, U₁ = (η₂/η₁)^¼ W₁ and
    U₂ = (η₁/η₂)^¼ W₂, which obey gradient flow at unit rates in the rescaled time √(η₁ η₂) t. Exact balance with λ > 0
    requires at least as many outputs as hidden neurons. For λ < 0, it requires at least as many inputs as hidden
    neurons.

    Args:
        first: W₁, shape (..., d, h), with f(x) = x W₁ W₂.
        second: W₂, shape (..., h, c).
        rates: Learning rates η₁ and η₂ of the layers, each a number or one value per member.

    Raises:
        InputError: If the shapes of the layers do not match, a value is not finite, or a rate is not positive. Inside
            `jit`, values outside this domain give NaN.

    References:
        Dominé et al., arXiv:2409.14623.

    Example:
        >>> balance = layer_balance([[1.0, 0.0], [0.0, 2.0]], [[2.0, 0.0], [0.0, 3.0]])
        >>> print(f"{balance.value:.3f} {balance.error:.3f}")
        4.000 0.079
    """
    return _balance(TwoLayers.checked(first, second, rates))


@float64_jit
def _balance(network: TwoLayers) -> Balance:
    return nan_outside(network.valid, balance_of(network), leading=True)


def balance_of(network: TwoLayers, numbers: Any = jnp) -> Balance:
    """Return the balance of validated layers, using `numpy` or `jax.numpy`."""
    first, second, rates = network
    ratio = numbers.sqrt(numbers.divide(*rates))
    charges, width = layer_charges(first, second, (1 / ratio, ratio)), first.shape[-1]
    value, size = charges.total / width, charges.size
    rest = charges.matrix - value[..., None, None] * numbers.eye(width, dtype=first.dtype)
    # In units of the size; at exact balance, where the norm is not differentiable, the derivative is set to zero.
    squares = numbers.sum((rest / numbers.where(size > 0, size, 1)[..., None, None]) ** 2, axis=(-2, -1))
    some = squares > 0
    return Balance(value, numbers.where(some, numbers.sqrt(numbers.where(some, squares, 1)), 0))


def require_balanced(network: TwoLayers, approximate: bool) -> Balance:
    """Return the balance of layers with concrete values, in NumPy.

    Raise `InputError` if the layers are not λ-balanced; only warn if `approximate` is set.
    """
    # In NumPy, because JAX may be tracing the times.
    known = jax.tree.map(np.asarray, network)
    with np.errstate(over="ignore", invalid="ignore"):
        balance = balance_of(known, np)
    worst = float(np.max(balance.error, initial=0.0))
    balanced = worst <= balance_rounding(np.result_type(known.first, known.second))
    problem = f"W₂ W₂ᵀ − W₁ᵀ W₁ differs from λ I by {worst:.3g}, relative to the size of the layers"
    require(
        balanced or approximate,
        problem,
        argument="second",
        value=worst,
        remedy="use λ-balanced initial weights (networks.balanced_linear), or pass approximate=True",
    )
    if not balanced:
        warnings.warn(f"{problem}; the solution assumes λ-balanced initial weights", stacklevel=3)
    return balance


def balance_rounding(dtype: Any) -> float:
    """Return the largest balance error that counts as rounding error."""
    return max(BALANCED_LAYERS.limit, 100 * float(jnp.finfo(dtype).eps))

"""Conserved matrices of linear networks, and preconditioners of gradient flow in function space."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from annotated_types import IsFinite
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Real

from dynascope.compilation import AnyArray, float64_jit
from dynascope.symmetry.layer_charges import layer_charges
from dynascope.theory.assumptions import ONE_OUTPUT
from dynascope.theory.balanced.balance import FirstLayer, SecondLayer, TwoLayers
from dynascope.theory.domain import covers
from dynascope.theory.kernels import broadcast_known, nan_outside
from dynascope.theory.layer_rates import LayerRates, clock_of, rate_shapes
from dynascope.theory.neuron.function_space import MapStart, preconditioner_of
from dynascope.validation import is_traced, require, require_broadcast, require_shape
from dynascope.validation.bounded import FiniteArray, PositiveArray

__all__ = ["conserved_matrices", "conserved_matrix", "preconditioner_matrix", "single_output_preconditioner"]

_covers = functools.partial(covers, data="any", reference="arXiv:2406.06158")


@_covers(network="two-layer linear, any widths", start="any", gives="the matrix that gradient flow conserves")
def conserved_matrix(
    first: FirstLayer, second: SecondLayer, *, rates: LayerRates = LayerRates()
) -> Float[AnyArray, "*members width width"]:
    """Compute the matrix Δ of f(x) = x W₁ W₂ that gradient flow conserves for any loss.

    Δ = η₁ W₂ W₂ᵀ − η₂ W₁ᵀ W₁

    The transformation W₁ → W₁ G⁻¹, W₂ → G W₂ leaves f unchanged, so W₂ ∂L/∂W₂ᵀ = ∂L/∂W₁ᵀ W₁. At equal rates, the
    entries of Δ are the charges that `symmetry.find_symmetries` finds. Gradient descent with finite steps breaks the
    conservation at first order in the learning rate.

    Args:
        first: W₁, shape (..., d, h).
        second: W₂, shape (..., h, c).
        rates: Learning rates η₁ and η₂ of the layers, each a number or one value per member.

    Returns:
        Δ, shape (..., h, h).

    Raises:
        InputError: If the shapes of the layers do not match, a value is not finite, or a rate is not positive. Inside
            `jit`, values outside this domain give NaN.

    References:
        Kunin, Raventós, Dominé, Chen, Klindt, Saxe, Ganguli, arXiv:2406.06158, section 4.

    Example:
        >>> conserved_matrix([[1.0, 0.0]], [[2.0], [1.0]]).tolist()
        [[3.0, 2.0], [2.0, 1.0]]
    """
    return _conserved([TwoLayers.checked(first, second, rates)])[0]


@_covers(
    network="deep linear, any widths",
    start="any",
    gives="the matrices that gradient flow conserves, one per pair of neighbouring layers",
)
def conserved_matrices(
    weights: Sequence[IsFinite[Real[ArrayLike, "_ _"]]] | IsFinite[Real[ArrayLike, "layers _ _"]],
    rates: Sequence[PositiveArray] | None = None,
) -> list[Float[AnyArray, "_ _"]]:
    """Compute the matrices of f(x) = x W₁ ⋯ W_L that gradient flow conserves.

    Δ_ℓ = η_ℓ W_ℓ₊₁ W_ℓ₊₁ᵀ − η_ℓ₊₁ W_ℓᵀ W_ℓ, ℓ = 1 … L − 1

    Args:
        weights: W₁, …, W_L, each of shape (input width, output width).
        rates: Learning rates η₁, …, η_L of the layers; all equal to one by default.

    Returns:
        Δ_ℓ, each of shape (h, h), where h is the number of neurons between layers ℓ and ℓ + 1.

    Raises:
        InputError: If there are fewer than two layers, or the number of rates differs from the number of layers;
            otherwise as for `conserved_matrix`.

    References:
        Kunin et al., arXiv:2406.06158, section 4.

    Example:
        >>> [matrix.tolist() for matrix in conserved_matrices([[[1.0]], [[2.0]], [[2.0]]])]
        [[[3.0]], [[0.0]]]
    """
    layers: list[Any] = list(weights)  # pyright: ignore[reportArgumentType]
    count = len(layers)
    require(
        count >= 2,
        f"weights has only {count} {'layer' if count == 1 else 'layers'}",
        argument="weights",
        value=count,
        remedy="give two or more layers",
    )
    chosen = [1.0] * count if rates is None else list(rates)
    require(
        len(chosen) == count,
        f"rates has length {len(chosen)}, but there are {count} layers",
        argument="rates",
        value=len(chosen),
        remedy="give one rate per layer",
    )
    for layer in layers:
        require_shape("weights", layer, (..., None, None))
    pairs = []
    for first, second, *each in zip(layers, layers[1:], chosen, chosen[1:], strict=False):
        require(
            first.shape[1] == second.shape[0],
            f"weights has consecutive layers of shapes {first.shape} and {second.shape}, which do not match",
            argument="weights",
            value=second.shape,
            remedy="give layers whose consecutive widths match",
        )
        pairs.append(TwoLayers(first, second, LayerRates(*each)))
    return _conserved(pairs)


@_covers(
    network="two-layer linear, any widths",
    start="any",
    gives="the preconditioner of the flow in function space, from the weights",
)
def preconditioner_matrix(
    first: FirstLayer, second: SecondLayer, *, rates: LayerRates = LayerRates()
) -> Float[AnyArray, "*members dc dc"]:
    """Compute the preconditioner M of the function-space flow of the map β = W₁ W₂.

    vec(β)' = −M vec(∂L/∂β), M = η₁ W₂ᵀW₂ ⊗ I + η₂ I ⊗ W₁W₁ᵀ

    The tangent kernel at inputs X (n, d) is (I ⊗ X) M (I ⊗ Xᵀ).

    Args:
        first: W₁, shape (..., d, h).
        second: W₂, shape (..., h, c).
        rates: Learning rates η₁ and η₂ of the layers.

    Returns:
        M, shape (..., d c, d c). Row o·d + i belongs to β[i, o]: vec stacks the columns of β.

    Raises:
        InputError: As for `conserved_matrix`.

    References:
        Kunin et al., arXiv:2406.06158, section 4.

    Example:
        >>> preconditioner_matrix([[1.0], [2.0]], [[3.0]]).tolist()
        [[10.0, 2.0], [2.0, 13.0]]
    """
    return _preconditioner(TwoLayers.checked(first, second, rates))


@_covers(
    network="two-layer linear, one output",
    start="any, no neuron at zero unless its imbalance is positive",
    gives="the preconditioner of the flow in function space, from the maps of the neurons",
    assumes=(ONE_OUTPUT,),
)
def single_output_preconditioner(
    coefficients: IsFinite[Real[ArrayLike, "... neurons inputs"]],
    imbalances: FiniteArray,
    *,
    rates: LayerRates = LayerRates(),
) -> Float[AnyArray, "*members d d"]:
    """Compute the preconditioner of a network with one output from the maps β_i = w_i a_i of its neurons.

    M = Σ_i M_{δ_i}(β_i)

    The β_i obey a closed differential equation, but their sum β does not. Each neuron conserves its imbalance δ_i = η₁
    a_i² − η₂ ‖w_i‖². A neuron with β_i = 0 and δ_i = 0 is dead: all its weights are zero and remain zero.

    Args:
        coefficients: β_i, shape (..., h, d).
        imbalances: δ_i, shape (..., h).
        rates: Learning rates η₁ of the weights w_i and η₂ of the output weights a_i.

    Returns:
        M, shape (..., d, d).

    Raises:
        InputError: As for `neuron.preconditioner`, except that dead neurons are allowed. Inside `jit`, values outside
            this domain give NaN.

    References:
        Kunin et al., arXiv:2406.06158, section 4.

    Example:
        >>> single_output_preconditioner([[1.0, 0.0], [0.0, 1.0]], [1.5, -1.5]).round().tolist()
        [[3.0, 0.0], [0.0, 4.0]]
    """
    beta: Any = coefficients
    delta: Any = imbalances
    require_shape("coefficients", beta, (..., None, None))
    require(
        np.shape(delta) == beta.shape[:-1],
        f"coefficients has shape {beta.shape}, but imbalances has shape {np.shape(delta)}",
        argument="imbalances",
        value=np.shape(delta),
        remedy="give one imbalance for each row of coefficients",
    )
    if not is_traced(beta) and not is_traced(delta):
        require(
            not np.any((np.asarray(beta) == 0).all(axis=-1) & (np.asarray(delta) < 0)),
            "coefficients is zero for a neuron with a negative imbalance",
            argument="coefficients",
            value=0.0,
            remedy="give nonzero coefficients, to determine the direction of the weights",
        )
    require_broadcast(coefficients=beta.shape[:-1], **rate_shapes(rates))
    return _single_output(MapStart(beta, delta, LayerRates._make(broadcast_known(*rates))))


@float64_jit
def _conserved(pairs: list[TwoLayers]) -> list[Array]:
    def matrix(pair: TwoLayers) -> Array:
        first, second, (one, other) = pair
        charges = layer_charges(first, second, (jnp.asarray(other), jnp.asarray(one)))
        return nan_outside(pair.valid, charges.matrix, leading=True)

    return [matrix(pair) for pair in pairs]


@float64_jit
def _preconditioner(network: TwoLayers) -> Array:
    first, second, rates = network
    one, other = (jnp.asarray(rate)[..., None, None] for rate in rates)
    outer = one * jnp.swapaxes(second, -1, -2) @ second
    inner = other * first @ jnp.swapaxes(first, -1, -2)
    return nan_outside(network.valid, kronecker_sum(outer, inner), leading=True)


@float64_jit
def _single_output(neurons: MapStart) -> Array:
    beta, delta, rates = neurons
    dead = jnp.all(beta == 0, axis=-1) & (delta == 0)
    alive = MapStart(beta, jnp.where(dead, 1, delta), rates)
    each = preconditioner_of(beta, alive.imbalance, clock_of(rates))
    total = jnp.sum(jnp.where(dead[..., None, None], 0, each), axis=-3)
    return nan_outside(jnp.all(alive.valid, axis=-1), total, leading=True)


def kronecker_sum(outer: Array, inner: Array) -> Array:
    """Return A ⊗ I + I ⊗ B."""
    outputs, inputs = outer.shape[-1], inner.shape[-1]
    total = jnp.einsum("...ab,ij->...aibj", outer, jnp.eye(inputs, dtype=inner.dtype))
    total += jnp.einsum("ab,...ij->...aibj", jnp.eye(outputs, dtype=outer.dtype), inner)
    return total.reshape(*total.shape[:-4], outputs * inputs, outputs * inputs)

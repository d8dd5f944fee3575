"""The neural tangent kernel of a stack of dense layers from its weight arrays, forward and backward written out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import scipy.special

from dynascope.probes.kernel.conventions import Contraction, NeuralTangentKernel
from dynascope.probes.kernel.layers import check_rates, dense_layer_kernel, structured_kernel
from dynascope.validation import array_namespace, require, require_finite_values
from dynascope.validation.bounded_scalars import NonNegativeFloat

__all__ = ["dense_stack_kernel"]

_Activation = Literal["relu", "tanh", "erf", "linear"]


def dense_stack_kernel(
    inputs: Any,
    weights: Sequence[Any],
    biases: Sequence[Any] = (),
    other_inputs: Any = None,
    *,
    activation: _Activation = "relu",
    parametrisation: Literal["standard", "ntk"] = "standard",
    rates: Sequence[NonNegativeFloat] | None = None,
    contraction: Contraction = "full",
) -> NeuralTangentKernel:
    """The neural tangent kernel of h_1 = x, z_l = g_l h_l W_l + b_l, h_{l+1} = σ(z_l), f = z_L.

    The signals are D_L = I and D_l = (D_{l+1} g_{l+1} W_{l+1}ᵀ) ⊙ σ'(z_l); `structured_kernel` has the rest and the
    cost, to which the passes add 2n(1 + c)P operations for P weights. ReLU has the derivative zero at zero.

    Args:
        inputs: x, shape (n, d). All arrays are of one library: NumPy, JAX or PyTorch.
        weights: W_l, shapes (input width, output width).
        biases: b_l, shapes (output width,), or none.
        other_inputs: A second set of inputs, shape (n', d); the same if absent.
        activation: σ, "relu", "tanh", "erf" or "linear".
        parametrisation: "standard" for g = 1, "ntk" for g_l = 1/√(input width).
        rates: η_l, one number from zero for each layer, for its weights and its bias; one by default.
        contraction: "full", "diagonal" or "trace", see `NeuralTangentKernel`.

    Raises:
        InputError: Shapes that do not fit, a name that is not known, or values that are not finite.

    Example:
        >>> import numpy as np
        >>> kernel = dense_stack_kernel(np.eye(2), [np.ones((2, 3)), np.ones((3, 1))], contraction="trace")
        >>> kernel.values
        array([[6., 3.],
               [3., 6.]])
    """
    weights, biases = list(weights), list(biases)
    _check_stack(inputs, weights, biases)
    passes = [_passes(x, weights, biases, activation, parametrisation) for x in _inputs(inputs, other_inputs)]
    h, d = passes[0]
    h_other, d_other = passes[-1]
    found = structured_kernel(h, d, h_other, d_other, rates=rates, contraction=contraction)
    values = found.values
    if biases:
        for rate, one, two in zip(check_rates(rates, len(weights)), d, d_other, strict=True):
            ones = [array_namespace(each).zeros_like(each[:, 0, :1]) for each in (one, two)]
            values = values + dense_layer_kernel(ones[0], one, ones[1], two, contraction, bias_rate=rate)
    words = f"{parametrisation}, weights" + (" and biases" if biases else "")
    return found._replace(values=values, parametrisation=words + (", with rates" if rates is not None else ""))


def _inputs(inputs: Any, other_inputs: Any) -> list[Any]:
    if other_inputs is None:
        return [inputs]
    array_namespace(inputs, other_inputs)
    require(
        len(other_inputs.shape) == 2 and other_inputs.shape[0] > 0 and other_inputs.shape[1] == inputs.shape[1],
        f"other_inputs has shape {tuple(other_inputs.shape)}",
        argument="other_inputs",
        value=tuple(other_inputs.shape),
        remedy="give rows as wide as those of the inputs",
    )
    return [inputs, other_inputs]


def _passes(
    x: Any, weights: list[Any], biases: list[Any], activation: str, parametrisation: str
) -> tuple[list[Any], list[Any]]:
    """Activations times g, and signals, of every layer."""
    xp = array_namespace(x)
    gains = [1.0 if parametrisation == "standard" else 1 / math.sqrt(each.shape[0]) for each in weights]
    activations, slopes, h = [], [], x
    for layer, (weight, gain) in enumerate(zip(weights, gains, strict=True)):
        activations.append(gain * h)
        z = activations[-1] @ weight
        z = z + biases[layer] if biases else z
        if layer < len(weights) - 1:
            h, slope = _activate(z, activation)
            slopes.append(slope)
    (n, _), c = x.shape, weights[-1].shape[1]
    # The identity as products of arrays at hand, which keeps their dtype and device.
    rows = xp.cumulative_sum(xp.ones_like(weights[-1][0, :]))
    identity = xp.astype(rows[:, None] == rows[None, :], x.dtype)
    d = xp.zeros_like(x[:, :1])[:, :, None] + identity[None, :, :]
    signals = [d]
    for weight, gain, slope in zip(weights[:0:-1], gains[:0:-1], slopes[::-1], strict=True):
        d = xp.reshape(xp.reshape(d, (n * c, -1)) @ (gain * weight).T, (n, c, -1)) * slope[:, None, :]
        signals.append(d)
    return activations, signals[::-1]


def _activate(z: Any, activation: str) -> tuple[Any, Any]:
    """σ(z) and σ'(z)."""
    xp = array_namespace(z)
    if activation == "relu":
        slope = xp.astype(z > 0, z.dtype)
        return z * slope, slope
    if activation == "tanh":
        h = xp.tanh(z)
        return h, 1 - h * h
    if activation == "erf":
        return _erf(z), 2 / math.sqrt(math.pi) * xp.exp(-z * z)
    return z, xp.ones_like(z)


def _erf(z: Any) -> Any:
    """The error function, which the array-API standard lacks, of the library at hand."""
    xp = array_namespace(z)
    if hasattr(xp, "erf"):
        return xp.erf(z)
    if xp.__name__.startswith("jax"):
        from jax.scipy.special import erf  # those who work on NumPy's arrays do without JAX

        return erf(z)
    return scipy.special.erf(z)


def _check_stack(inputs: Any, weights: list[Any], biases: list[Any]) -> None:
    array_namespace(inputs, *weights, *biases)
    shapes = [tuple(each.shape) for each in weights]
    chain = len(inputs.shape) == 2 and inputs.shape[0] > 0 and all(len(each) == 2 and min(each) > 0 for each in shapes)
    entering = [inputs.shape[-1], *(each[-1] for each in shapes[:-1])]
    require(
        chain and shapes and [each[0] for each in shapes] == entering,
        f"inputs {tuple(inputs.shape)} and weights {shapes} do not fit together",
        argument="weights",
        value=shapes,
        remedy="give inputs (n, d) and weights (input width, output width) that chain",
    )
    require(
        not biases or [tuple(each.shape) for each in biases] == [each[1:] for each in shapes],
        f"biases have shapes {[tuple(each.shape) for each in biases]}",
        argument="biases",
        value=[tuple(each.shape) for each in biases],
        remedy="give one (output width,) for each weight, or none",
    )
    for name, arrays in {"inputs": [inputs], "weights": weights, "biases": biases}.items():
        for each in arrays:
            require_finite_values(name, each)

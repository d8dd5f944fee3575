"""The kernel of dense layers from what flows forward and what flows backward, without one gradient of a weight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dynascope.probes.kernel.conventions import CONTRACTIONS, Contraction, NeuralTangentKernel
from dynascope.validation import array_namespace, holds, require, require_finite_values, shown
from dynascope.validation.bounded_scalars import NonNegativeFloat

__all__ = ["check_rates", "contract_signals", "dense_layer_kernel", "rate_weighted_kernel", "structured_kernel"]


def structured_kernel(
    activations: Sequence[Any],
    signals: Sequence[Any],
    other_activations: Sequence[Any] | None = None,
    other_signals: Sequence[Any] | None = None,
    *,
    bias: bool = False,
    rates: Sequence[NonNegativeFloat] | None = None,
    contraction: Contraction = "full",
) -> NeuralTangentKernel:
    """The neural tangent kernel of dense layers z_l = h_l W_l (+ b_l) from activations and signals.

        Θ_{ia,jb} = Σ_l η_l (⟨h_l(x_i), h_l(x_j)⟩ + [bias]) ⟨D_l(x_i)_a, D_l(x_j)_b⟩,  D_l(x)_a = ∂f_a(x)/∂z_l.

    For layers z = g·hW give activations g·h (without bias), so that "ntk" layers with g = 1/√(input width) fit too.
    No weight gradient is formed: a layer of k inputs and m outputs costs 2nn'(k + c²m) operations (c in place of c²
    if contracted) and memory for two kernels, against 2nn'c²km and nckm numbers through Jacobians.

    Args:
        activations: h_l of each layer, shapes (n, k_l). All arrays are of one library: NumPy, JAX or PyTorch.
        signals: D_l of each layer, shapes (n, c, m_l).
        other_activations: Those of a second set of n' examples; the same set if absent.
        other_signals: Those of the second set.
        bias: Whether every layer has a bias that learns at the rate of its layer.
        rates: η_l, one number from zero for each layer; one by default.
        contraction: "full", "diagonal" or "trace", see `NeuralTangentKernel`.

    Raises:
        InputError: Shapes that do not fit, values that are not finite, or rates that are negative.

    References:
        Fast Finite Width Neural Tangent Kernel, arXiv:2206.08720.

    Example:
        >>> import numpy as np
        >>> h, d = np.array([[1.0, 2.0], [0.0, 1.0]]), np.ones((2, 1, 1))
        >>> structured_kernel([h], [d], contraction="trace").values
        array([[5., 2.],
               [2., 1.]])
    """
    same = other_activations is None and other_signals is None
    layers = list(activations), list(signals)
    others = layers if same else (list(other_activations or ()), list(other_signals or ()))
    count = len(layers[0])
    require(
        count > 0 and all(len(each) == count for each in (*layers, *others)),
        f"there are {count} activations and {len(layers[1])} signals",
        argument="signals",
        value=len(layers[1]),
        remedy="give one array of each for every layer, and as many of the second set",
    )
    for h, d, h_other, d_other in zip(*layers, *others, strict=True):
        _check_layer(h, d, h_other, d_other)
        named = {"activations": h, "signals": d, "other_activations": h_other, "other_signals": d_other}
        for name, each in named.items():
            require_finite_values(name, each, remedy="check the network that they come from")
    eta = check_rates(rates, count)
    total = None
    for rate, h, d, h_other, d_other in zip(eta, *layers, *others, strict=True):
        part = dense_layer_kernel(h, d, h_other, d_other, contraction, rate=rate, bias_rate=rate if bias else 0.0)
        total = part if total is None else total + part
    xp = array_namespace(total)
    require(
        holds(xp.all(xp.isfinite(total))),
        "the kernel is too large for the number format",
        argument="signals",
        remedy="give activations and signals in smaller units",
    )
    return NeuralTangentKernel(
        values=total,
        dimensions=CONTRACTIONS[contraction],
        contraction=contraction,
        algorithm="structured",
        normalisation="mean over outputs" if contraction == "trace" else "none",
        parametrisation="dense layers h W as the activations are given" + (", with rates" if rates is not None else ""),
    )


def rate_weighted_kernel(layer_kernels: Sequence[Any], rates: Sequence[NonNegativeFloat]) -> Any:
    """The kernel Σ_l η_l Θ_l = J diag(η) Jᵀ of training with one learning rate for each layer.

    Cost: 2 operations for each entry of each kernel, and memory for two more kernels.

    Args:
        layer_kernels: Θ_l, the kernel of the parameters of each layer alone, all of one shape.
        rates: η_l, from zero.

    Raises:
        InputError: Numbers or shapes that differ, a rate that is negative, or kernels that are not finite.

    Example:
        >>> import numpy as np
        >>> rate_weighted_kernel([np.eye(2), np.ones((2, 2))], [1.0, 0.5])
        array([[1.5, 0.5],
               [0.5, 1.5]])
    """
    kernels = list(layer_kernels)
    eta = check_rates(rates, len(kernels))
    array_namespace(*kernels)
    shapes = {tuple(each.shape) for each in kernels}
    require(
        len(shapes) == 1,
        f"the layer kernels have shapes {sorted(shapes)}",
        argument="layer_kernels",
        value=sorted(shapes),
        remedy="give kernels of the same examples and outputs",
    )
    total = eta[0] * kernels[0]
    for rate, each in zip(eta[1:], kernels[1:], strict=True):
        total = total + rate * each
    require_finite_values("layer_kernels", total, remedy="check the activations and the signals for such values")
    return total


def dense_layer_kernel(
    h: Any, d: Any, h_other: Any, d_other: Any, contraction: Contraction, *, rate: Any = 1.0, bias_rate: Any = 0.0
) -> Any:
    """(rate ⟨h_i, h_j⟩ + bias_rate) ⟨D_ia, D_jb⟩, contracted."""
    gram = rate * (h @ h_other.T) + bias_rate
    products = contract_signals(d, d_other, contraction)
    if contraction == "full":
        return gram[:, None, :, None] * products
    return gram[:, :, None] * products if contraction == "diagonal" else gram * products


def contract_signals(d: Any, d_other: Any, contraction: Contraction) -> Any:
    """⟨D_ia, D_jb⟩ over the last axis of arrays (n, c, m), contracted over outputs."""
    xp = array_namespace(d)
    (n, c, m), (n_other, _, _) = d.shape, d_other.shape
    if contraction == "full":
        products = xp.reshape(d, (n * c, m)) @ xp.reshape(d_other, (n_other * c, m)).T
        return xp.reshape(products, (n, c, n_other, c))
    if contraction == "diagonal":
        products = xp.permute_dims(d, (1, 0, 2)) @ xp.permute_dims(d_other, (1, 2, 0))
        return xp.permute_dims(products, (1, 2, 0))
    return xp.reshape(d, (n, c * m)) @ xp.reshape(d_other, (n_other, c * m)).T / c


def check_rates(rates: Sequence[float] | None, layers: int) -> list[float]:
    """One rate for each layer, ones by default."""
    eta = [1.0] * layers if rates is None else list(rates)
    require(
        len(eta) == layers and layers > 0,
        f"rates is {shown(rates)} for {layers} layers",
        argument="rates",
        value=shown(rates),
        remedy="give one number for each layer",
    )
    return eta


def _check_layer(h: Any, d: Any, h_other: Any, d_other: Any) -> None:
    array_namespace(h, d, h_other, d_other)
    shapes = [tuple(each.shape) for each in (h, d, h_other, d_other)]
    fits = [len(each) for each in shapes] == [2, 3, 2, 3]
    fits = fits and shapes[0][0] == shapes[1][0] and shapes[2][0] == shapes[3][0]
    require(
        fits and shapes[0][1] == shapes[2][1] and shapes[1][1:] == shapes[3][1:] and min(min(each) for each in shapes),
        f"a layer has activations {shapes[0]} and {shapes[2]} and signals {shapes[1]} and {shapes[3]}",
        argument="activations",
        value=shapes,
        remedy="give activations of shape (n, k) and signals of shape (n, c, m), none of them empty",
    )

"""The kernel between two blocks of examples: from Jacobians, or from what flows forward and backward through layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dynascope.probes.kernel.conventions import Contraction
from dynascope.validation import array_namespace

__all__ = ["contract_jacobians", "contract_layers", "contract_signals", "forms_gradients"]

# (What the next layer needs, the sum so far) → the same, where a compiler would otherwise begin all layers at once.
InTurn = Callable[[Any, Any], tuple[Any, Any]]
# Beyond this many pairs of positions the program would become long for little gain.
_POSITION_PAIRS = 16


def _as_given(needed: Any, total: Any) -> tuple[Any, Any]:
    return needed, total


def contract_jacobians(
    jacobians: Callable[[Sequence[int], Any], Any],
    parameters: Sequence[Any],
    rates: Sequence[Any] | None,
    x: Any,
    other: Any,
    contraction: Contraction,
    *,
    together: bool,
    in_turn: InTurn = _as_given,
) -> Any:
    """J diag(η) J'ᵀ from Jacobians of all parameters together, or of one after the other, which holds fewer numbers.

    Args:
        jacobians: (Places of parameters, examples) → ∂f_a(x_i)/∂θ of these parameters, shape (n, c, p).
        parameters: θ.
        rates: η, a number or an array of its shape for each parameter.
        x: Examples.
        other: Other examples; None for the same.
        contraction: What to do with the outputs.
        together: Whether all parameters are taken together.
        in_turn: Makes a layer wait for the last one.
    """
    count = len(parameters)
    total: Any = 0.0
    for places in [range(count)] if together else [[place] for place in range(count)]:
        (first, second), total = in_turn((x, other), total)
        one = jacobians(places, first)
        two = one if second is None else jacobians(places, second)
        total = total + contract_signals(one, _weighted(two, parameters, rates, places), contraction)
    return total


def contract_layers(
    one: Any,
    two: Any,
    parameters: Sequence[Any],
    rates: Sequence[Any] | None,
    contraction: Contraction,
    in_turn: InTurn = _as_given,
) -> Any:
    """The same from the signals of dense weights, whose gradients are not formed, and Jacobians of the others.

    Args:
        one: ({place: (h (n, p, g, k), D (n, c, p, g, m))} of dense weights, {place: Jacobian (n, c, size)} of others).
        two: Of the other examples; None for the same.
        parameters: As `contract_jacobians` takes them, and so the others.
        rates: η.
        contraction: What to do with the outputs.
        in_turn: Makes a layer wait for the last one.
    """
    (layers, rest), (other_layers, other_rest) = one, one if two is None else two
    total: Any = 0.0
    for place in list(layers):
        # What a layer held is not needed for the next.
        layer = layers.pop(place)
        (layer, other), total = in_turn((layer, None if two is None else other_layers.pop(place)), total)
        part = _layer_kernel(*layer, *(other or layer), contraction)
        total = total + (part if rates is None else rates[place] * part)
    for place, jacobian in rest.items():
        total = total + contract_signals(
            jacobian, _weighted(other_rest[place], parameters, rates, [place]), contraction
        )
    return total


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


def forms_gradients(positions: int, inputs: int, outputs: int, classes: int, contraction: Contraction) -> bool:
    """Whether gradients are cheaper than pairs of positions for a weight of inputs × outputs."""
    products = classes**2 if contraction == "full" else classes
    pairs = positions**2
    return pairs > _POSITION_PAIRS or pairs * (inputs + products * outputs) > products * inputs * outputs


def _layer_kernel(h: Any, d: Any, h_other: Any, d_other: Any, contraction: Contraction) -> Any:
    """The kernel of one weight from h (n, p, g, k) and D (n, c, p, g, m)."""
    (_, positions, groups, inputs), (_, classes, *_, outputs) = h.shape, d.shape
    if groups > 1 or forms_gradients(positions, inputs, outputs, classes, contraction):
        one = _gradients(h, d)
        return contract_signals(one, one if h is h_other else _gradients(h_other, d_other), contraction)
    total: Any = 0.0
    for p in range(positions):
        for q in range(positions):
            gram = h[:, p, 0] @ h_other[:, q, 0].T
            products = contract_signals(d[:, :, p, 0], d_other[:, :, q, 0], contraction)
            if contraction == "full":
                gram = gram[:, None, :, None]
            elif contraction == "diagonal":
                gram = gram[:, :, None]
            total = total + gram * products
    return total


def _gradients(h: Any, d: Any) -> Any:
    found = array_namespace(h).einsum("npgk,ncpgm->ncgkm", h, d)
    return found.reshape(*found.shape[:2], -1)


def _weighted(jacobian: Any, parameters: Sequence[Any], rates: Sequence[Any] | None, places: Sequence[int]) -> Any:
    """J diag(η) of the parameters at these places."""
    if rates is None:
        return jacobian
    xp = array_namespace(jacobian)
    spread = [xp.broadcast_to(rates[place], parameters[place].shape).reshape(-1) for place in places]
    return jacobian * xp.concat(spread)

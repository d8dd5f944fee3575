"""Synaptic flow of dense networks: the scores of SynFlow in closed form, as logarithms."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from dynascope.theory.domain import covers
from dynascope.validation import require, require_finite_values
from dynascope.validation.bounded import FiniteNumbers

__all__ = ["chain_log_scores", "log_synaptic_flow", "synflow_log_scores"]

_FEW = 10  # numbers per positive number, from which skipping zeros is faster than their logarithms
_covers = functools.partial(
    covers,
    network="dense, without biases",
    data="any",
    start="any",
    reference="arXiv:2006.05467, eq. (2)",
    infinite=True,  # the logarithm of zero
)


@_covers(gives="the synaptic flow")
def log_synaptic_flow(weights: Sequence[FiniteNumbers]) -> float:
    """Logarithm of the synaptic flow of a dense network without biases.

        R = 1ᵀ |W_1| |W_2| ⋯ |W_L| 1

    R is a sum over all paths from an input to an output; each path contributes the product of its absolute weights. The
    SynFlow scores of each layer sum to R. The computation rescales the signal after every layer and adds the logarithms
    of the scales, so R may exceed the largest floating-point number.

    Args:
        weights: W_l, shape (width of layer l − 1, width of layer l), from the inputs to the outputs.

    Returns:
        log R, or −∞ if no path with nonzero weights exists.

    Raises:
        InputError: If there are no weights, or if the shapes of consecutive layers do not match.

    References:
        H. Tanaka, D. Kunin, D. Yamins, S. Ganguli, Pruning neural networks without any data by iteratively conserving
        synaptic flow, arXiv:2006.05467, eq. (2).

    Example:
        >>> print(round(log_synaptic_flow([np.full((300, 300), 1e3)] * 200), 6))
        2528.011333
    """
    layers = _chain(weights)
    flow, scale = _forward(layers)[-1]
    with np.errstate(divide="ignore"):
        return float(np.log(flow.sum()) + scale)


@_covers(gives="the SynFlow score of every weight")
def synflow_log_scores(weights: Sequence[FiniteNumbers]) -> list[Float[np.ndarray, "entering leaving"]]:
    """Logarithms of the SynFlow scores of a dense network without biases.

        S(W_l)_ij = (1ᵀ |W_1| ⋯ |W_{l−1}|)_i |W_l|_ij (|W_{l+1}| ⋯ |W_L| 1)_j

    The score of a weight is the part of the synaptic flow R on paths through this weight, so the scores of each layer
    sum to R. The result remains finite for any depth.

    Args:
        weights: W_l, shape (width of layer l − 1, width of layer l), from the inputs to the outputs.

    Returns:
        log S for each layer, with the shape of its weights; −∞ for weights on no path with nonzero weights.

    Raises:
        InputError: If there are no weights, or if the shapes of consecutive layers do not match.

    References:
        H. Tanaka, D. Kunin, D. Yamins, S. Ganguli, Pruning neural networks without any data by iteratively conserving
        synaptic flow, arXiv:2006.05467, eq. (2).

    Example:
        >>> first, second = synflow_log_scores([[[1.0, -2.0]], [[3.0], [0.5]]])
        >>> np.exp(first).round(9).tolist(), np.exp(second).round(9).ravel().tolist()  # R = 1 · 3 + 2 · 0.5
        ([[3.0, 1.0]], [3.0, 1.0])
    """
    return chain_log_scores(_chain(weights))


def chain_log_scores(layers: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Compute `synflow_log_scores` of finite nonnegative weights whose shapes form a chain, without checks."""
    entering = _forward(layers)
    leaving = _forward([layer.T for layer in reversed(layers)])[::-1]
    scores = []
    with np.errstate(divide="ignore"):
        for (before, low), layer, (after, high) in zip(entering[:-1], layers, leaving[1:], strict=True):
            found = logarithms(layer)
            found += (np.log(before) + (low + high))[:, None]
            found += np.log(after)
            scores.append(found)
    return scores


def logarithms(values: np.ndarray) -> np.ndarray:
    """Logarithms of nonnegative numbers; −∞ for zero. Fast also if most numbers are zero, as in pruned networks."""
    if np.count_nonzero(values) * _FEW < values.size:
        return np.log(values, where=values > 0, out=np.full(values.shape, -np.inf))
    with np.errstate(divide="ignore"):
        return np.log(values)


def _chain(weights: Sequence[FiniteNumbers]) -> list[np.ndarray]:
    """Return the absolute weights, after checking that the shapes of consecutive layers match."""
    layers = [np.abs(np.asarray(each, np.float64)) for each in weights]
    shapes = [each.shape for each in layers]
    fits = bool(shapes) and all(len(shape) == 2 and min(shape) > 0 for shape in shapes)
    fits = fits and all(one[1] == other[0] for one, other in itertools.pairwise(shapes))
    require(
        fits,
        f"weights has layers of shapes {shapes}",
        argument="weights",
        value=shapes,
        remedy="give matrices of shape (input width, output width), such that consecutive widths match",
    )
    for each in layers:
        require_finite_values("weights", each)
    return layers


def _forward(layers: Sequence[np.ndarray]) -> list[tuple[np.ndarray, float]]:
    """Return the signal v exp(scale) before each layer and after the last one, for an input of ones; max v = 1."""
    flow, scale = np.ones(layers[0].shape[0]), 0.0
    found = [(flow, scale)]
    for layer in layers:
        # Dividing the weights first prevents overflow of sums of extreme values.
        largest = layer.max() or 1.0
        flow = flow @ (layer / largest)
        top = flow.max() or 1.0
        flow, scale = flow / top, scale + float(np.log(largest) + np.log(top))
        found.append((flow, scale))
    return found

"""Sample complexity, and the sensitivity of features to the exchange of synonyms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from dynascope.tasks import RandomHierarchy

__all__ = ["crossing", "input_sensitivity", "sensitivity"]


def crossing(sizes: Sequence[int], values: Sequence[float] | np.ndarray, threshold: float) -> float:
    """The smallest sample size at which values fall to the threshold, interpolated in the logarithm of the size.

    NaN if the values are above the threshold at all sizes, or at or below the threshold at the smallest size.

    Example:
        >>> crossing([100, 400], [1.0, 0.0], 0.5)
        200.0
    """
    below = np.flatnonzero(np.asarray(values) <= threshold)
    if len(below) == 0 or below[0] == 0:
        return np.nan
    k = below[0]
    fraction = (values[k - 1] - threshold) / (values[k - 1] - values[k])
    return float(np.round(sizes[k - 1] * (sizes[k] / sizes[k - 1]) ** fraction, 9))


def sensitivity(features: Float[np.ndarray, "n p"], exchanged: Float[np.ndarray, "n p"]) -> float:
    """Mean squared change E‖h(x) − h(P x)‖² of features, divided by their mean squared distance E‖h(x) − h(x')‖².

    The denominator is the mean over all pairs of different samples, which is twice the trace of the sample covariance.
    NaN for constant features.

    Args:
        features: Features h(x).
        exchanged: Features h(P x) of the same strings with exchanged synonyms.

    Example:
        >>> sensitivity(np.array([[0.0], [2.0]]), np.array([[0.0], [0.0]]))
        0.5
    """
    change, variance = np.mean(np.sum((features - exchanged) ** 2, axis=1)), np.sum(np.var(features, axis=0, ddof=1))
    return float(change / (2 * variance)) if variance > 0 else np.nan


def input_sensitivity(hierarchy: RandomHierarchy) -> Float[np.ndarray, " level"]:
    """Exact sensitivity of the one-hot inputs to the exchange of synonyms at each level, as a mean over all strings.

    A position changes if the two derivations of its symbol differ. The number of changed positions below two symbols
    with the same choices at all nodes follows by recursion over levels, and the distribution of the symbols at each
    node follows from the label downwards.
    """
    productions, v = hierarchy.productions, hierarchy.symbols
    # Distribution of the symbols of the nodes of each level, from the label to the string, shape (nodes, symbols).
    nodes = [np.full((1, hierarchy.classes), 1 / hierarchy.classes)]
    for rule in productions:
        children = np.mean(rule[..., None] == np.arange(v), axis=1)  # (parent, place, symbol)
        nodes.append(np.einsum("na,asv->nsv", nodes[-1], children).reshape(-1, v))
    # All strings of different numbers: two independent strings are equal with probability 1/P_max.
    total = hierarchy.number_of_strings
    distance = np.sum(1 - np.sum(nodes[-1] ** 2, axis=1)) * total / (total - 1)
    changed, found = 1.0 - np.eye(v), []
    for level, rule in enumerate(reversed(productions), start=1):
        pairs = changed[rule[:, :, None], rule[:, None]].sum(axis=-1)  # two choices at the same node: (parent, m, m)
        found.append(np.sum(nodes[-1 - level] @ pairs.mean(axis=(1, 2))) / distance)
        changed = changed[rule[:, None], rule].sum(axis=-1).mean(axis=-1)  # two parents, the same choice
    return np.array(found)

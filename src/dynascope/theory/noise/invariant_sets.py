"""Sets that no step of descent leaves: units that vanish, and units that are equal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np
from annotated_types import Interval
from jaxtyping import Float

from dynascope.results.named_tuples import short_repr
from dynascope.theory.domain import covers
from dynascope.validation import require, require_array, require_kind, require_room
from dynascope.validation.bounded import FiniteNumbers, PositiveInt

__all__ = ["InvariantSet", "permutation_set", "sign_set"]

_NETWORK, _DATA, _REFERENCE = "any with equivalent units", "any, in any batches", "arXiv:2306.04251"


class InvariantSet(NamedTuple):
    """The weights θ = Pθ that steps never leave; of all weights of a layer, one unit after another in a row.

    Attributes:
        normal: Orthonormal directions normal to the set, shape (normal directions, units · weights of a unit).
        dimension: Of the set.
    """

    normal: Float[np.ndarray, "normal weights"]
    dimension: int

    __repr__ = short_repr

    def projected(self, units: FiniteNumbers) -> Float[np.ndarray, "units weights"]:
        """The point of the set nearest to the weights of the units, shape (units, weights of a unit)."""
        rows = self._rows(units)
        return (rows.ravel() - self.normal.T @ (self.normal @ rows.ravel())).reshape(rows.shape)

    def reflected(self, units: FiniteNumbers) -> Float[np.ndarray, "units weights"]:
        """The weights on the other side of the set, by the reflection that keeps it."""
        return 2 * self.projected(units) - self._rows(units)

    def distance(self, units: FiniteNumbers) -> float:
        """From the weights to the set."""
        return float(np.linalg.norm(self.normal @ self._rows(units).ravel()))

    def _rows(self, units: FiniteNumbers) -> np.ndarray:
        rows = require_array("units", units, (None, None))
        require(
            rows.size == self.normal.shape[1],
            f"units has shape {rows.shape}",
            argument="units",
            value=rows.shape,
            remedy=f"give {self.normal.shape[1]} weights, one row for each unit",
        )
        return rows


@covers(network=_NETWORK, data=_DATA, start="any", gives="the set of vanishing units", reference=_REFERENCE)
def sign_set(
    vanishing: list[int], *, units: PositiveInt, weights: PositiveInt, activation: Callable[[Any], Any] | None = None
) -> InvariantSet:
    """The set w_i = 0, b_i = 0, a_i = 0 of units i that vanish, in and out, which steps keep where σ(0) = 0.

    Nothing then comes out of unit i, and nothing of the error comes back to it. Momentum and decay keep the set too, if
    momentum starts in it; noise of batches and of labels does as well.

    Args:
        vanishing: Numbers of the units, from zero.
        units: h ≥ 1, how many there are.
        weights: How many weights a unit has, incoming and outgoing, biases too, at least one.
        activation: σ, of which σ(0) = 0 is checked; ReLU, tanh and GELU have it.

    Returns:
        The set, of dimension (h − number of vanishing units) · weights.

    Raises:
        InputError: Units that there are not, or an activation that is not zero at zero, for which the set is none.

    References:
        Chen, Kunin, Yamamura, Ganguli, arXiv:2306.04251.

    Example:
        >>> kept = sign_set([1], units=3, weights=2, activation=np.tanh)
        >>> kept.dimension, kept.distance([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        (4, 5.0)
    """
    chosen = _chosen("vanishing", vanishing, units, fewest=1)
    if activation is not None:
        at_zero = float(np.asarray(activation(np.zeros(()))))
        require(
            at_zero == 0,
            f"the activation is {at_zero:g} at zero, so that a unit of vanishing weights is none",
            argument="activation",
            value=at_zero,
            remedy="take permutation_set, which is invariant whatever the activation",
        )
    require_room((units * weights) ** 2, units=units, weights=weights)
    normal = np.eye(units * weights).reshape(units, weights, -1)[chosen].reshape(len(chosen) * weights, -1)
    return InvariantSet(normal, (units - len(chosen)) * weights)


@covers(network=_NETWORK, data=_DATA, start="any", gives="the set of equal units", reference=_REFERENCE)
def permutation_set(clusters: list[list[int]], *, units: PositiveInt, weights: PositiveInt) -> InvariantSet:
    """The set w_i = w_j, b_i = b_j, a_i = a_j of the units i, j of each cluster, which steps keep in any architecture.

    Channels and attention heads are units as neurons are. Equal units get equal gradients.

    Args:
        clusters: For each cluster the numbers of its units, from zero; a unit is in one of them at most.
        units: h ≥ 1, how many there are.
        weights: How many weights a unit has, incoming and outgoing, biases too, at least one.

    Returns:
        The set, of as many dimensions as there are clusters and single units, times the weights of one.

    Raises:
        InputError: Units that there are not, or that are in two clusters.

    References:
        Chen, Kunin, Yamamura, Ganguli, arXiv:2306.04251.

    Example:
        >>> kept = permutation_set([[0, 2]], units=3, weights=1)
        >>> kept.dimension, kept.projected([[1.0], [7.0], [5.0]]).ravel().round(12).tolist()
        (2, [3.0, 7.0, 3.0])
    """
    require_room(sum(map(len, clusters)) * units * weights**2, units=units, weights=weights)
    rows: list[np.ndarray] = []
    seen: list[int] = []
    for cluster in clusters:
        chosen = _chosen("clusters", cluster, units, fewest=2)
        seen += chosen
        for k in range(1, len(chosen)):
            row = np.zeros(units)
            # The k-th unit against the mean of those before it.
            row[chosen[:k]], row[chosen[k]] = -1 / k, 1
            rows.append(row / np.linalg.norm(row))
    require(
        len(set(seen)) == len(seen) > 0,
        "clusters is empty or has a unit twice",
        argument="clusters",
        value=clusters,
        remedy="put each unit into one cluster at most",
    )
    return InvariantSet(np.kron(np.stack(rows), np.eye(weights)), (units - len(rows)) * weights)


def _chosen(name: str, numbers: list[int], units: int, *, fewest: int) -> list[int]:
    """The numbers of units, checked."""
    found = list(numbers)
    for each in found:
        require_kind(Annotated[int, Interval(ge=0, le=units - 1)], **{name: each})
    require(
        len(set(found)) == len(found) >= fewest,
        f"{name} has {found}",
        argument=name,
        value=found,
        remedy=f"give {fewest} different units or more",
    )
    return found

"""Invariant sets of gradient descent: networks with units whose weights are zero, or with groups of equal units."""

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

_NETWORK, _DATA, _REFERENCE = "any with interchangeable units", "any, in any batches", "arXiv:2306.04251"


class InvariantSet(NamedTuple):
    """A linear subspace of weights θ = Pθ that gradient descent never leaves.

    The weights of a layer are flattened unit by unit.

    Attributes:
        normal: Orthonormal directions normal to the set, shape (normal directions, units · weights per unit).
        dimension: Dimension of the set.
    """

    normal: Float[np.ndarray, "normal weights"]
    dimension: int

    __repr__ = short_repr

    def projected(self, units: FiniteNumbers) -> Float[np.ndarray, "units weights"]:
        """Project the weights, shape (units, weights per unit), onto the nearest point of the set."""
        rows = self._rows(units)
        return (rows.ravel() - self.normal.T @ (self.normal @ rows.ravel())).reshape(rows.shape)

    def reflected(self, units: FiniteNumbers) -> Float[np.ndarray, "units weights"]:
        """Reflect the weights, shape (units, weights per unit), across the set."""
        return 2 * self.projected(units) - self._rows(units)

    def distance(self, units: FiniteNumbers) -> float:
        """Euclidean distance of the weights, shape (units, weights per unit), from the set."""
        return float(np.linalg.norm(self.normal @ self._rows(units).ravel()))

    def _rows(self, units: FiniteNumbers) -> np.ndarray:
        rows = require_array("units", units, (None, None))
        require(
            rows.size == self.normal.shape[1],
            f"units has shape {rows.shape}, but the set requires {self.normal.shape[1]} weights",
            argument="units",
            value=rows.shape,
            remedy="give the weights of all units, one row per unit",
        )
        return rows


@covers(
    network=_NETWORK,
    data=_DATA,
    start="any",
    gives="the invariant set of units with zero weights",
    reference=_REFERENCE,
)
def sign_set(
    vanishing: list[int], *, units: PositiveInt, weights: PositiveInt, activation: Callable[[Any], Any] | None = None
) -> InvariantSet:
    """Invariant set of networks in which some units have zero incoming and outgoing weights.

        w_i = 0, b_i = 0, a_i = 0 for each vanishing unit i; invariant if σ(0) = 0

    The output and the gradient of unit i are then zero. The set is also invariant under weight decay, batch noise,
    label noise and momentum, if the initial velocity lies in the set.

    Args:
        vanishing: Indices of the vanishing units, counted from zero.
        units: h ≥ 1, the number of units.
        weights: Number of weights per unit, incoming and outgoing, including biases, at least one.
        activation: σ, to check that σ(0) = 0, which holds for ReLU, tanh and GELU. None skips the check.

    Returns:
        The set, of dimension (h − number of vanishing units) · weights.

    Raises:
        InputError: If a unit does not exist, or the activation is not zero at zero; the set is then not invariant.

    References:
        Chen, Kunin, Yamamura, Ganguli, arXiv:2306.04251.

    Example:
        >>> kept = sign_set([1], units=3, weights=2, activation=np.tanh)
        >>> kept.dimension, kept.distance([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        (4, 5.0)
    """
    chosen = _checked_units("vanishing", vanishing, units, fewest=1)
    if activation is not None:
        at_zero = float(np.asarray(activation(np.zeros(()))))
        require(
            at_zero == 0,
            f"the activation is {at_zero:g} at zero, so the set of units with zero weights is not invariant",
            argument="activation",
            value=at_zero,
            remedy="use permutation_set, which is invariant for every activation",
        )
    require_room((units * weights) ** 2, units=units, weights=weights)
    normal = np.eye(units * weights).reshape(units, weights, -1)[chosen].reshape(len(chosen) * weights, -1)
    return InvariantSet(normal, (units - len(chosen)) * weights)


@covers(network=_NETWORK, data=_DATA, start="any", gives="the invariant set of equal units", reference=_REFERENCE)
def permutation_set(clusters: list[list[int]], *, units: PositiveInt, weights: PositiveInt) -> InvariantSet:
    """Invariant set of networks in which the units of each cluster have equal weights.

        w_i = w_j, b_i = b_j, a_i = a_j for units i, j in the same cluster; invariant for every architecture

    Units are neurons, channels or attention heads. Equal units receive equal gradients.

    Args:
        clusters: Unit indices of each cluster, counted from zero; a unit belongs to at most one cluster.
        units: h ≥ 1, the number of units.
        weights: Number of weights per unit, incoming and outgoing, including biases, at least one.

    Returns:
        The set, of dimension (number of clusters + number of units outside clusters) · weights.

    Raises:
        InputError: If a unit does not exist or belongs to two clusters.

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
        chosen = _checked_units("clusters", cluster, units, fewest=2)
        seen += chosen
        for k in range(1, len(chosen)):
            row = np.zeros(units)
            # Difference between unit k and the mean of units 0 to k − 1.
            row[chosen[:k]], row[chosen[k]] = -1 / k, 1
            rows.append(row / np.linalg.norm(row))
    require(
        len(set(seen)) == len(seen) > 0,
        "clusters is empty or contains a unit twice",
        argument="clusters",
        value=clusters,
        remedy="put each unit into at most one cluster",
    )
    return InvariantSet(np.kron(np.stack(rows), np.eye(weights)), (units - len(rows)) * weights)


def _checked_units(name: str, numbers: list[int], units: int, *, fewest: int) -> list[int]:
    """Check the unit indices."""
    found = list(numbers)
    for each in found:
        require_kind(Annotated[int, Interval(ge=0, le=units - 1)], **{name: each})
    require(
        len(set(found)) == len(found) >= fewest,
        f"{name} contains {found}",
        argument=name,
        value=found,
        remedy=f"give at least {fewest} distinct units",
    )
    return found

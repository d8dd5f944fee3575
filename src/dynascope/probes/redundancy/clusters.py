"""Vanishing and duplicate units of a layer, and the number of independent units."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import scipy.cluster.hierarchy
import scipy.spatial.distance

from dynascope.errors import InputError
from dynascope.results.named_tuples import short_repr
from dynascope.validation import array_namespace, checked, is_traced, require, require_axes, require_finite_values
from dynascope.validation.bounded_scalars import NonNegativeFloat

__all__ = ["RedundantUnits", "redundant_units"]


class RedundantUnits(NamedTuple):
    """Vanishing and duplicate units of a layer, with a leading `time` axis for checkpoints; fractions are of all units.

    Attributes:
        vanishing: Whether each `neuron` vanishes.
        cluster: For each `neuron`, the index of the first unit of its cluster; −1 for units outside clusters.
        independent_units: Number of clusters.
        independent_fraction: Number of clusters divided by the number of units.
        vanishing_fraction: Fraction of units that vanish.
        duplicate_fraction: Fraction of units that are in a cluster but are not its first unit.
        dead_fraction: Fraction of units that are active on no sample; None unless `active` is given.
    """

    vanishing: Annotated[Any, "time neuron"]
    cluster: Annotated[Any, "time neuron"]
    independent_units: Annotated[Any, "time"]
    independent_fraction: Annotated[Any, "time"]
    vanishing_fraction: Annotated[Any, "time"]
    duplicate_fraction: Annotated[Any, "time"]
    dead_fraction: Annotated[Any, "time"]

    __repr__ = short_repr


@checked
def redundant_units(
    incoming: Any,
    outgoing: Any,
    *,
    vanishing: NonNegativeFloat = 1e-3,
    duplicate: NonNegativeFloat = 1e-2,
    compare: Literal["weights", "directions", "incoming directions"] = "weights",
    linkage: Literal["single", "complete"] = "single",
    active: Any = None,
) -> RedundantUnits:
    """Find units p_i = (w_i; a_i) that vanish, and clusters of duplicates among the others.

    A unit vanishes if ‖p_i‖ ≤ τ₀ max_j ‖p_j‖. Two units are duplicates if ‖w_i − w_j‖² ≤ τ (‖w_i‖² + ‖w_j‖²) and their
    outgoing weights a satisfy the same inequality. Both incoming and outgoing weights must match, as in the invariant
    sets to which noise drives SGD. With single linkage, a cluster contains all units linked by chains of duplicate
    pairs; with complete linkage, all pairs in a cluster are duplicates.

    Two units with a positively homogeneous activation and equal directions compute the same function up to a factor.
    The pair is redundant but does not form an invariant set: training can separate the two units.

    Cost: 2 units² · (weights of a unit + log₂ units · units) operations, and memory for a few arrays of units² numbers.

    Args:
        incoming: w_i, including biases, shape (units, weights), or (times, units, weights) for checkpoints.
        outgoing: a_i, with the same leading axes.
        vanishing: τ₀ ≥ 0, relative to the largest norm.
        duplicate: τ ≥ 0.
        compare: "weights"; "directions" of w and a; or "incoming directions" of w alone, which suffice to merge two
            units into one. If directions are compared, the norm of a unit is √(‖w_i‖ ‖a_i‖), which does not depend on
            the balance between w and a.
        linkage: "single", or the stricter "complete", which is not available under JAX tracing.
        active: Number of samples on which each unit is active, from `count_active`, with one entry per unit. Units that
            are active on no sample are dead and excluded from the clusters. All arrays must come from one library.

    Raises:
        InputError: If arrays do not match or are not finite, a threshold is negative, or an option is unknown.

    Example:
        >>> import numpy as np
        >>> w, a = np.array([[1, 2], [1.001, 2], [0, 0], [2, -1], [1, 2]]), np.array([[0.5], [0.5], [0], [1], [-0.5]])
        >>> found = redundant_units(w, a)
        >>> found.cluster, int(found.independent_units), float(found.vanishing_fraction)
        (array([ 0,  0, -1,  3,  4]), 3, 0.2)
    """
    w, a = _checked("incoming", incoming), _checked("outgoing", outgoing)
    require(
        tuple(w.shape[:-1]) == tuple(a.shape[:-1]),
        f"outgoing has shape {tuple(a.shape)}, but incoming has {tuple(w.shape)}",
        argument="outgoing",
        value=tuple(a.shape),
        remedy="give one row of weights for each unit",
    )
    xp = array_namespace(w, a)
    # Rescale to order one, so that squares do not underflow.
    w, a = (
        (each / _positive(xp, xp.max(xp.abs(each))) for each in (w, a))
        if compare != "weights"
        else _rescaled_jointly(xp, w, a)
    )
    lengths = [xp.sqrt(xp.sum(each * each, axis=-1)) for each in (w, a)]
    both = lengths[0] ** 2 + lengths[1] ** 2 if compare == "weights" else lengths[0] * lengths[1]
    norms = xp.sqrt(both)
    gone = norms <= vanishing * xp.max(norms, axis=-1, keepdims=True)
    if compare != "weights":
        w, a = (each / _positive(xp, length)[..., None] for each, length in zip((w, a), lengths, strict=True))
    parts = [w] if compare == "incoming directions" else [w, a]
    apart = _largest_distance(xp, parts)
    out, dead = gone, None
    if active is not None:
        array_namespace(w, active)
        require(
            tuple(active.shape) == tuple(gone.shape),
            f"active has shape {tuple(active.shape)}",
            argument="active",
            value=tuple(active.shape),
            remedy=f"give one count per unit, in an array of shape {tuple(gone.shape)}",
        )
        dead = active <= 0
        out = gone | dead
    kept = ~out
    pairs = (apart <= duplicate) & kept[..., :, None] & kept[..., None, :]
    labels = _single_linkage(xp, pairs) if linkage == "single" else _complete_linkage(xp, apart, kept, duplicate)
    numbers = xp.arange(labels.shape[-1])
    cluster = xp.where(kept, labels, -1)
    first = kept & (labels == numbers)
    units = labels.shape[-1]

    def count(found: Any) -> Any:
        return xp.sum(xp.astype(found, w.dtype), axis=-1)

    return RedundantUnits(
        vanishing=gone,
        cluster=cluster,
        independent_units=xp.astype(count(first), numbers.dtype),
        independent_fraction=count(first) / units,
        vanishing_fraction=count(gone) / units,
        duplicate_fraction=count(kept & ~first) / units,
        dead_fraction=None if dead is None else count(dead) / units,
    )


def _checked(name: str, values: Any) -> Any:
    array_namespace(values)
    require_axes(name, values, 3 if len(values.shape) == 3 else 2)
    require_finite_values(name, values, floating=True)
    return values


def _positive(xp: Any, values: Any) -> Any:
    """Replace zeros with one, for use as a divisor."""
    return xp.where(values > 0, values, xp.ones_like(values))


def _rescaled_jointly(xp: Any, w: Any, a: Any) -> tuple[Any, Any]:
    """Divide both arrays by the largest absolute value in either."""
    largest = _positive(xp, xp.maximum(xp.max(xp.abs(w)), xp.max(xp.abs(a))))
    return w / largest, a / largest


def _largest_distance(xp: Any, parts: list[Any]) -> Any:
    """Return, for each pair of units, the largest distance over the parts."""
    found = [_relative_distance(xp, each) for each in parts]
    return found[0] if len(found) == 1 else xp.maximum(*found)


def _relative_distance(xp: Any, rows: Any) -> Any:
    """Compute ‖x_i − x_j‖² / (‖x_i‖² + ‖x_j‖²); zero if both vectors are zero."""
    inner = rows @ xp.matrix_transpose(rows)
    squares = xp.sum(rows * rows, axis=-1)
    both = squares[..., :, None] + squares[..., None, :]
    return xp.clip(1 - 2 * inner / _positive(xp, both), 0.0, None) * xp.astype(both > 0, rows.dtype)


def _single_linkage(xp: Any, pairs: Any) -> Any:
    """Return, for each unit, the first unit linked to it by a chain of pairs."""
    units = pairs.shape[-1]
    numbers = xp.arange(units)
    linked = pairs | (numbers[:, None] == numbers)
    for _ in range(math.ceil(math.log2(units)) if units > 1 else 0):
        # Each product doubles the length of the chains; the counts are small integers.
        step = xp.astype(linked, xp.float32)
        linked = step @ step > 0
    return xp.min(xp.where(linked, numbers, units), axis=-1)


def _complete_linkage(xp: Any, apart: Any, kept: Any, duplicate: float) -> Any:
    """Return, for each unit, the first unit of its cluster under complete linkage."""
    if is_traced(apart):
        raise InputError(
            "complete linkage is not available under JAX tracing",
            argument="linkage",
            value="complete",
            remedy='choose "single", or call this function outside jax.jit',
        )
    distances, keeps = (np.asarray(each.detach().cpu() if hasattr(each, "detach") else each) for each in (apart, kept))
    units = distances.shape[-1]
    labels = np.tile(np.arange(units), (*distances.shape[:-2], 1))
    for place in np.ndindex(distances.shape[:-2]):
        chosen = np.flatnonzero(keeps[place])
        if len(chosen) < 2:
            continue
        between = distances[place][np.ix_(chosen, chosen)]
        np.fill_diagonal(between, 0.0)
        tree = scipy.cluster.hierarchy.linkage(
            scipy.spatial.distance.squareform((between + between.T) / 2, checks=False), "complete"
        )
        found = scipy.cluster.hierarchy.fcluster(tree, duplicate, "distance")
        for cluster in np.unique(found):
            members = chosen[found == cluster]
            labels[place][members] = members.min()
    return xp.asarray(labels)

"""The share of units whose incoming weights are parallel to those of another unit."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynascope.diagnosis.measurements.weights import matrices
from dynascope.diagnosis.probe import Probe, ProbeCost
from dynascope.diagnosis.schedule import LogSpaced
from dynascope.diagnosis.snapshot import Snapshot
from dynascope.validation import array_namespace

__all__ = ["DUPLICATES", "measure_duplicates"]

_PARALLEL = 0.99
_MOST_UNITS = 2048


def measure_duplicates(snapshot: Snapshot) -> dict[str, tuple[list[str], Any]]:
    """Measure the share of duplicate units of each weight matrix.

    A unit is a duplicate if the cosine of its incoming weights and those of another unit of the matrix is at least
    0.99. Biases do not count, and units without incoming weights are never duplicates. Of matrices with more than 2048
    units, a random subset of 2048 units is compared, which underestimates the share.

    Units with few inputs are parallel by chance: compare the share with that of the first row. It is NaN for units with
    one input, whose weights are always parallel.
    """
    found = matrices(snapshot.weights)
    if not found:
        return {}
    xp = array_namespace(*found.values())
    shares = [_duplicate_share(each, units_last=snapshot.units_last) for each in found.values()]
    return {"duplicate_fraction": (["matrix"], xp.stack(shares))}


def _duplicate_share(matrix: Any, *, units_last: bool) -> Any:
    xp = array_namespace(matrix)
    wide = matrix if xp.finfo(matrix.dtype).bits >= 32 else xp.astype(matrix, xp.float32)
    units = xp.moveaxis(wide, -1, 0) if units_last else wide
    units = xp.reshape(units, (units.shape[0], -1))
    if units.shape[1] < 2:
        return xp.sum(units) * float("nan")
    if len(units) > _MOST_UNITS:
        units = units[np.sort(np.random.default_rng(0).choice(len(units), _MOST_UNITS, replace=False))]
    norms = xp.linalg.vector_norm(units, axis=1, keepdims=True)
    directions = units / xp.where(norms > 0, norms, xp.ones_like(norms))
    alike = xp.sum(xp.astype(directions @ directions.T >= _PARALLEL, norms.dtype), axis=1)
    itself = xp.astype(norms[:, 0] > 0, norms.dtype)
    return xp.mean(xp.astype(alike > itself, norms.dtype))


DUPLICATES = Probe(
    name="duplicates",
    description="Share of units whose incoming weights are parallel to those of another unit.",
    needs=("weights",),
    measure=measure_duplicates,
    cost=lambda sizes: ProbeCost(
        2.0 * min(_MOST_UNITS, sizes.parameters) * sizes.parameters, 16.0 * min(_MOST_UNITS, sizes.parameters) ** 2
    ),
    names={"duplicate_fraction": ("share of units parallel to another unit", "1")},
    schedule=LogSpaced(4),
)

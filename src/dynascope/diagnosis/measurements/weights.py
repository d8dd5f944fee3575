"""Norms of weights, updates and gradients, displacement from initialisation, and balance of the layers."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

from dynascope.diagnosis.probe import Probe, ProbeCost
from dynascope.diagnosis.snapshot import Snapshot
from dynascope.validation import array_namespace

__all__ = ["BALANCE", "WEIGHTS", "matrices", "measure_balance", "measure_weights"]

_VANISHING = 0.01


def measure_weights(snapshot: Snapshot) -> dict[str, tuple[list[str], Any]]:
    """Measure the norms of each parameter tensor, of its last update and gradient, and its displacement.

    Norms are Euclidean, ‖W‖ = √(Σ W²). The displacement is ‖W − W₀‖, where W₀ is the initial value. Updates and
    gradients that are not available are NaN.
    """
    weights = snapshot.weights
    initial = weights if snapshot.initial is None else snapshot.initial.weights
    xp = array_namespace(*weights.values())
    norms = _norms(weights.values())
    nothing = xp.full_like(norms, float("nan"))  # in the same precision, which becomes that of the record
    moved = _norms(weights[name] - initial[name] for name in weights)
    updates = nothing if snapshot.before is None else _norms(weights[each] - snapshot.before[each] for each in weights)
    gradients = nothing if snapshot.gradients is None else _norms(snapshot.gradients[each] for each in weights)
    total, distance = (xp.sqrt(xp.sum(each**2)) for each in (norms, moved))
    start = xp.sqrt(xp.sum(_norms(initial.values()) ** 2))
    return {
        "weight_norm": (["parameter"], norms),
        "update_norm": (["parameter"], updates),
        "gradient_norm": (["parameter"], gradients),
        "displacement": (["parameter"], moved),
        "total_weight_norm": ([], total),
        "total_update_norm": ([], xp.sqrt(xp.sum(updates**2))),
        "total_gradient_norm": ([], xp.sqrt(xp.sum(gradients**2))),
        "relative_displacement": ([], distance / xp.where(start > 0, start, xp.ones_like(start))),
    }


def measure_balance(snapshot: Snapshot) -> dict[str, tuple[list[str], Any]]:
    """Measure the balance of consecutive weight matrices, and the share of vanishing units.

    The balance of two matrices is (‖W_{ℓ+1}‖² − ‖W_ℓ‖²)/(‖W_{ℓ+1}‖² + ‖W_ℓ‖²), between −1 and 1. A unit vanishes if the
    norm of its incoming weights is below 1 % of the largest such norm in the same matrix.
    """
    found = matrices(snapshot.weights)
    if not found:
        return {}
    xp = array_namespace(*found.values())
    squares = _norms(found.values()) ** 2
    vanishing = [_vanishing_share(each, units_last=snapshot.units_last) for each in found.values()]
    values: dict[str, tuple[list[str], Any]] = {"vanishing_fraction": (["matrix"], xp.stack(vanishing))}
    if len(found) > 1:
        pairs = [
            (after - before) / xp.where(after + before > 0, after + before, xp.ones_like(after))
            for before, after in itertools.pairwise(squares)
        ]
        values["layer_balance"] = (["pair"], xp.stack(pairs))
    return values


def matrices(weights: Mapping[str, Any]) -> dict[str, Any]:
    """Return the weights with two or more axes, such as matrices and convolution kernels, in their original order."""
    return {name: each for name, each in weights.items() if len(each.shape) > 1}


def _norms(arrays: Iterable[Any]) -> Any:
    """Return the norm of each array, in at least single precision."""
    found = []
    for each in arrays:
        xp = array_namespace(each)
        wide = each if xp.finfo(each.dtype).bits >= 32 else xp.astype(each, xp.float32)
        found.append(xp.linalg.vector_norm(xp.reshape(wide, (-1,))))
    return xp.stack(found)


def _vanishing_share(matrix: Any, *, units_last: bool) -> Any:
    """Return the share of output units whose incoming weights have a norm below 1 % of the largest such norm."""
    xp = array_namespace(matrix)
    wide = matrix if xp.finfo(matrix.dtype).bits >= 32 else xp.astype(matrix, xp.float32)
    rows = xp.moveaxis(wide, -1, 0) if units_last else wide
    norms = xp.linalg.vector_norm(xp.reshape(rows, (rows.shape[0], -1)), axis=1)
    return xp.mean(xp.astype(norms < _VANISHING * xp.max(norms), norms.dtype))


WEIGHTS = Probe(
    name="weights",
    description="Norms of weights, updates and gradients, and the displacement from initialisation.",
    needs=("weights", "update", "gradients"),
    measure=measure_weights,
    cost=lambda sizes: ProbeCost(10.0 * sizes.parameters, 2.0 * sizes.parameters * sizes.itemsize),
    names={
        "weight_norm": ("norm of the weights", "1"),
        "update_norm": ("norm of the update", "1"),
        "gradient_norm": ("norm of the gradient", "1"),
        "displacement": ("distance of the weights from their initial values", "1"),
        "total_weight_norm": ("norm of all weights", "1"),
        "total_update_norm": ("norm of the update of all weights", "1"),
        "total_gradient_norm": ("norm of the gradient of all weights", "1"),
        "relative_displacement": ("distance of all weights from initialisation / initial norm", "1"),
    },
)
BALANCE = Probe(
    name="balance",
    description="Balance of consecutive weight matrices, and the share of vanishing units.",
    needs=("weights",),
    measure=measure_balance,
    cost=lambda sizes: ProbeCost(4.0 * sizes.parameters, 1.0 * sizes.parameters * sizes.itemsize),
    names={
        "layer_balance": ("balance of consecutive weight matrices", "1"),
        "vanishing_fraction": ("share of units with vanishing weights", "1"),
    },
)

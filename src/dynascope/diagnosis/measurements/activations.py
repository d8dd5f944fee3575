"""Dead units, and the share of activations that have flipped since initialisation."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynascope.diagnosis.measurements.weights import matrices
from dynascope.diagnosis.probe import Probe, ProbeCost
from dynascope.diagnosis.rows import thinned
from dynascope.diagnosis.snapshot import Snapshot
from dynascope.probes.activation_patterns import activity, count_active, count_flips, hamming_distance
from dynascope.validation import array_namespace

__all__ = ["ACTIVITY", "FLIPS", "measure_activity", "measure_flips"]

_NOT_FOUND = (
    "dead units and activation patterns are not measured, because no activation function such as ReLU or GELU was found"
)


def measure_activity(snapshot: Snapshot) -> dict[str, tuple[list[str], Any]]:
    """Measure, for each activation, the shares of units that are active on no sample and on all samples."""
    found = [activity(count_active(z)) for z in snapshot.forward.preactivations.values()]
    if not found:
        _note_missing(snapshot)
        return {}
    xp = array_namespace(found[0].dead_fraction)
    return {
        "dead_fraction": (["activation"], xp.concat([each.dead_fraction for each in found])),
        "always_on_fraction": (["activation"], xp.concat([each.always_on_fraction for each in found])),
    }


def measure_flips(snapshot: Snapshot) -> dict[str, tuple[list[str], Any]]:
    """Measure the share of (sample, unit) pairs whose state (active or inactive) differs from initialisation."""
    layers = snapshot.forward.preactivations
    if not layers:
        _note_missing(snapshot)
        return {}
    shares, units = [], []
    for name, z in layers.items():
        now = thinned(z)
        before = now if snapshot.initial is None else _signs(snapshot.initial.active[name], now)
        shares.append(hamming_distance(count_flips(before, now)).hamming_distance)
        units.append(z.shape[0] * z.shape[1])
    xp = array_namespace(shares[0])
    by_layer = xp.stack(shares)
    total = sum(share * (count / sum(units)) for share, count in zip(shares, units, strict=True))
    return {"layer_hamming_distance": (["activation"], by_layer), "hamming_distance": ([], total)}


def _note_missing(snapshot: Snapshot) -> None:
    if len(matrices(snapshot.weights)) > 1:  # A single matrix has no hidden units.
        snapshot.note(_NOT_FOUND)


def _signs(active: np.ndarray, like: Any) -> Any:
    """Return pre-activations of +1 for active and −1 for inactive units, in the library and on the device of `like`."""
    xp = array_namespace(like)
    signs = np.where(active, 1.0, -1.0).astype(np.float32)
    if hasattr(like, "new_tensor"):  # PyTorch
        return like.new_tensor(signs)
    return xp.asarray(signs, dtype=like.dtype)


ACTIVITY = Probe(
    name="activity",
    description="Share of units in each activation that are dead, and that are always active.",
    needs=("activations",),
    measure=measure_activity,
    cost=lambda sizes: ProbeCost(
        sizes.examples * (sizes.forward + 4.0 * sizes.activations),
        2.0 * sizes.examples * sizes.activations * sizes.itemsize,
    ),
    names={
        "dead_fraction": ("share of dead units", "1"),
        "always_on_fraction": ("share of units that are always active", "1"),
    },
)
FLIPS = Probe(
    name="flips",
    description="Share of activations that have flipped since initialisation (Hamming distance of the patterns).",
    needs=("activations",),
    measure=measure_flips,
    cost=lambda sizes: ProbeCost(
        sizes.examples * (sizes.forward + 4.0 * sizes.activations),
        3.0 * sizes.examples * sizes.activations * sizes.itemsize,
    ),
    names={
        "hamming_distance": ("share of flipped activations", "1"),
        "layer_hamming_distance": ("share of flipped activations in a layer", "1"),
    },
)

"""Presets: the probes that a recorder runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from dynascope.diagnosis.measurements.activations import ACTIVITY, FLIPS
from dynascope.diagnosis.measurements.curvature import BATCHES, CURVATURE, EXACT_KERNEL
from dynascope.diagnosis.measurements.duplicates import DUPLICATES
from dynascope.diagnosis.measurements.features import ALIGNMENT, COLLAPSE, FEATURES
from dynascope.diagnosis.measurements.fit import FIT
from dynascope.diagnosis.measurements.gradient_noise import NOISE_SCALE
from dynascope.diagnosis.measurements.kernel import KERNEL
from dynascope.diagnosis.measurements.weights import BALANCE, WEIGHTS
from dynascope.diagnosis.probe import Probe
from dynascope.validation import require

__all__ = ["PRESETS", "Preset", "probes_of"]

Preset = Literal["light", "standard", "full"]

_LIGHT = (WEIGHTS, BALANCE)  # no forward pass, which would exceed 3 % of a run of 1000 steps
_STANDARD = (*_LIGHT, DUPLICATES, ACTIVITY, FLIPS, FEATURES, ALIGNMENT, COLLAPSE, FIT, KERNEL, NOISE_SCALE)
PRESETS: dict[str, tuple[Probe, ...]] = {
    "light": _LIGHT,
    "standard": _STANDARD,
    "full": (*_STANDARD, EXACT_KERNEL, CURVATURE, BATCHES),
}


def probes_of(preset: str | Sequence[str | Probe]) -> tuple[Probe, ...]:
    """Return the probes of a preset, or of a list of preset names, probe names and probes.

    Raises:
        InputError: If a name is unknown.

    Example:
        >>> [probe.name for probe in probes_of(["light", "kernel"])]
        ['weights', 'balance', 'kernel']
    """
    by_name = {probe.name: probe for probes in PRESETS.values() for probe in probes}
    found: dict[str, Probe] = {}
    for each in [preset] if isinstance(preset, str) else preset:
        if isinstance(each, Probe):
            found[each.name] = each
            continue
        require(
            each in PRESETS or each in by_name,
            f"preset contains {each!r}, which is neither a preset nor a probe",
            argument="preset",
            value=each,
            remedy=f"choose from the presets {', '.join(PRESETS)} and the probes {', '.join(by_name)}",
        )
        found |= {probe.name: probe for probe in PRESETS.get(each, (by_name.get(each),)) if probe is not None}
    return tuple(found.values())

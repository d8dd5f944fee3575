"""A probe of the conserved charges of a PyTorch training loop, which runs at every step."""
# pyright: reportMissingImports=false

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from dynascope.diagnosis.probe import Probe, ProbeCost
from dynascope.diagnosis.probe_runner import RecorderWarning
from dynascope.errors import InputError
from dynascope.symmetry import Charge, find_symmetries
from dynascope.symmetry.audit import CAUSE_PREFIX
from dynascope.symmetry.charge_encoding import encode_charges
from dynascope.torch.symmetry.watch_charges import WatchedCharges, watch_charges
from dynascope.validation import require

__all__ = ["charge_attributes", "charge_probe", "watched_charges"]

# Between rows, only the statistics of the laws are updated.
_NEVER = 2**62
_LAW = "measured_charge", "predicted_charge", "charge_bound", "charge_warning"


def watched_charges(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer | None,
    charges: bool | Sequence[Charge],
    inputs: Any,
    *,
    causes: bool,
) -> WatchedCharges:
    """Track the given charges of a training loop, or of all symmetries found on the reference batch.

    Args:
        model: The module, without wrappers.
        optimizer: The optimiser, which must have a known law.
        charges: True to find the symmetries; or the symmetries.
        inputs: The inputs of the reference batch.
        causes: Whether to record the statistics from which `symmetry.audit` names causes.
    """
    require(
        optimizer is not None,
        "charges are requested, but optimizer is missing",
        argument="optimizer",
        remedy="pass the optimizer whose law the charges obey",
    )
    assert optimizer is not None
    symmetries = find_symmetries(model, None, inputs).symmetries if isinstance(charges, bool) else charges
    return watch_charges(model, optimizer, symmetries, causes=causes, every=_NEVER)


def charge_attributes(watched: WatchedCharges) -> dict[str, Any]:
    """Return the attributes of a record of charges: the settings of their laws, and the encoded symmetries."""
    settings = watched.settings
    found = {"update_rule": settings.pop("optimizer"), **settings}
    try:
        return {**found, "symmetries": encode_charges(watched.symmetries)}
    except InputError as error:  # a subclass of Charge from the user
        warnings.warn(f"the symmetries are not stored in the record, because {error}", RecorderWarning, stacklevel=4)
        return found


def charge_probe(watched: WatchedCharges) -> Probe:
    """Return the probe that reads tracked charges."""
    return Probe(
        name="charges",
        description="Charges of the symmetries of the model, and the values that their laws predict.",
        needs=("weights",),
        measure=lambda snapshot: _renamed(watched.values()),
        cost=lambda sizes: ProbeCost(0.0, float(sizes.parameters * sizes.itemsize)),
        names={},
        limited=False,  # Only tracking is expensive, and it runs at every step.
    )


def _renamed(values: dict[str, tuple[list[str], np.ndarray]]) -> dict[str, tuple[list[str], np.ndarray]]:
    """Rename statistics and dimensions whose names other probes use for other quantities."""
    return {
        name if name in _LAW else f"{CAUSE_PREFIX}{name}": (
            ["cause_parameter" if each == "layer" else each for each in dimensions],
            array,
        )
        for name, (dimensions, array) in values.items()
    }

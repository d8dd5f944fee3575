"""Records of training runs, written without a framework."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dynascope.results import GrowingRecord

STEPS = np.array([0, 1, 2, 3, 6, 10, 18, 32, 56, 100])


def write_run(path: Path, *, parameters: int = 2, groups: int = 1, **changed: Any) -> Path:
    """Write the record of a run of ten rows, with some variables changed or added as pairs of dimensions and values."""
    rows = len(STEPS)
    falling = np.where(STEPS > 0, 2.0 / np.maximum(STEPS, 1), np.nan)
    growth = np.linspace(0, 1, rows)
    kernel = np.where(np.isin(STEPS, [0, 1, 10, 100]), 0.3 * growth, np.nan)
    variables = {
        "step": (["step"], STEPS),
        "loss": (["step"], falling),
        "mean_loss": (["step"], falling),
        "max_loss": (["step"], 2 * falling),
        "learning_rate": (["step", "group"], np.full((rows, groups), 0.1)),
        "epoch": (["step"], np.zeros(rows)),
        "seconds": (["step"], 0.5 * STEPS),
        "measured": (["step", "probe"], np.stack([np.ones(rows, bool), np.isfinite(kernel)], axis=1)),
        "probe_seconds": (["step", "probe"], np.full((rows, 2), 0.1)),
        "weight_norm": (["step", "parameter"], 1 + np.outer(growth, np.arange(parameters))),
        "displacement": (["step", "parameter"], np.outer(growth, np.arange(parameters))),
        "total_weight_norm": (["step"], 1 + growth),
        "relative_displacement": (["step"], growth),
        "kernel_distance": (["step"], kernel),
        "hamming_distance": (["step"], 0.2 * growth),
        "nc1": (["step"], np.full(rows, np.nan)),
        **changed,
    }
    labels = {
        "group": list(range(groups)),
        "probe": ["weights", "kernel"],
        "parameter": [f"layers.{k}.weight" for k in range(parameters)],
    }
    declared = {name: (dimensions, np.asarray(values).dtype) for name, (dimensions, values) in variables.items()}
    attributes = {"model": "Sequential", "loss_function": "loss of the training loop"}
    with GrowingRecord.create(path, declared, axis="step", coords=labels, attrs=attributes) as record:
        record.append({name: np.asarray(values) for name, (_, values) in variables.items()})
    return path

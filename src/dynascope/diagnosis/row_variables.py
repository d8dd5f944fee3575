"""The variables in each row of a recorded run that no probe measures."""

from __future__ import annotations

__all__ = ["DIMENSIONS", "NAMES"]

NAMES = {
    "loss": ("loss", "1"),
    "mean_loss": ("mean loss since the previous row", "1"),
    "max_loss": ("largest loss since the previous row", "1"),
    "loss_count": ("number of losses since the previous row", "1"),
    "learning_rate": ("learning rate", "1"),
    "epoch": ("number of finished epochs", "1"),
    "seconds": ("time since the start of the run", "s"),
    "measured": ("whether the probe ran", "1"),
    "probe_seconds": ("duration of the probe", "s"),
    "parameter_group": ("parameter group of the optimiser", "1"),
}
DIMENSIONS = {
    "loss": [],
    "mean_loss": [],
    "max_loss": [],
    "loss_count": [],
    "learning_rate": ["group"],
    "epoch": [],
    "seconds": [],
    "measured": ["probe"],
    "probe_seconds": ["probe"],
}

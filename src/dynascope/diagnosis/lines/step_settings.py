"""The settings of the optimiser steps of a run, for the theories of these steps."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import xarray as xr

from dynascope.diagnosis.run_facts import RunFacts

__all__ = ["StepSettings", "learning_rates", "step_settings"]


@dataclasses.dataclass(frozen=True)
class StepSettings:
    """The settings that all parameter groups of an optimiser share.

    Attributes:
        optimizer: "SGD", "SGDW" (with decoupled weight decay), "Adam" or "AdamW".
        momentum: β of SGD, or β₁ of Adam.
        weight_decay: The largest weight decay of all groups.
        dampening: The dampening c of the momentum of SGD.
        nesterov: Whether the momentum is Nesterov's.
    """

    optimizer: str
    momentum: float = 0.0
    weight_decay: float = 0.0
    dampening: float = 0.0
    nesterov: bool = False

    @property
    def is_sgd(self) -> bool:
        """Whether the optimiser is SGD."""
        return self.optimizer in ("SGD", "SGDW")


def step_settings(run: RunFacts) -> StepSettings | str:
    """Return the settings of the steps of a run, or the reason why no theory of steps covers them.

    Example:
        >>> run = RunFacts(xr.Dataset(), optimizer="SGD", groups=[{"momentum": 0.9, "weight_decay": 1e-4}])
        >>> step_settings(run).momentum
        0.9
        >>> step_settings(RunFacts(xr.Dataset(), optimizer="Adagrad", groups=[{}]))
        'no stability limit of Adagrad is known'
    """
    if run.optimizer not in ("SGD", "SGDW", "Adam", "AdamW"):
        return f"no stability limit of {run.optimizer} is known"
    shared = []
    for group in run.groups or [{}]:
        betas = group.get("betas", (0.9,))
        momentum = group.get("momentum", 0.0) if run.optimizer.startswith("SGD") else betas[0]
        # PyTorch uses neither setting without momentum.
        dampening = group.get("dampening", 0.0) if momentum else 0.0
        nesterov = bool(group.get("nesterov", False)) and momentum > 0
        shared.append((float(momentum), float(dampening), nesterov, bool(group.get("maximize", False))))
    if len(set(shared)) > 1:
        return "the momentum differs between the parameter groups"
    momentum, dampening, nesterov, maximize = shared[0]
    if maximize:
        return "the optimizer maximizes the loss"
    decay = max(float(group.get("weight_decay", 0.0)) for group in run.groups or [{}])
    return StepSettings(run.optimizer, momentum, decay, dampening, nesterov)


def learning_rates(run: RunFacts, rows: xr.DataArray) -> np.ndarray:
    """Return the largest learning rate of all groups in the rows of a variable; NaN where it is unknown."""
    rates = run.known("learning_rate")
    if rates is None:
        return np.full(rows.sizes["step"], math.nan)
    return rates.max("group").reindex(step=rows["step"]).to_numpy().astype(float)

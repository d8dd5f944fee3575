"""The settings of the optimiser steps of a run, for the theories of these steps."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import xarray as xr

from dynascope.diagnosis.run_facts import RunFacts

__all__ = [
    "StepSettings",
    "has_one_batch_per_epoch",
    "learning_rates",
    "rates_differ",
    "step_settings",
    "total_learning_rate",
]


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
        'the theories of steps cover SGD and Adam, not Adagrad'
    """
    if run.optimizer not in ("SGD", "SGDW", "Adam", "AdamW"):
        return f"the theories of steps cover SGD and Adam, not {run.optimizer}"
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


def has_one_batch_per_epoch(run: RunFacts) -> bool:
    """Return whether every step used all samples: it is known, or the epochs that were counted had one step each."""
    if run.full_batch:
        return True
    epochs = run.known("epoch")
    if epochs is None or float(epochs[-1]) < 1:
        return False
    steps = run.record["step"].to_numpy()
    return int(steps[-1] - steps[0]) <= int(epochs[-1])


def rates_differ(run: RunFacts) -> bool:
    """Return whether the learning rates of the groups differed in any row."""
    rates = run.known("learning_rate")
    if rates is None or rates.sizes["group"] < 2:
        return False
    values = rates.to_numpy()
    return bool((np.nanmax(values, axis=1) > 1.01 * np.nanmin(values, axis=1)).any())


def total_learning_rate(run: RunFacts) -> np.ndarray:
    """Return the learning rate of each group, summed over the steps of the record by the trapezoidal rule.

    Example:
        >>> rates = xr.DataArray([[0.1], [0.3]], dims=("step", "group"), coords={"step": [0, 10]})
        >>> total_learning_rate(RunFacts(xr.Dataset({"learning_rate": rates})))
        array([2.])
    """
    rates = run.known("learning_rate")
    if rates is None:
        return np.zeros(0)
    steps = rates["step"].to_numpy().astype(float)
    return np.trapezoid(np.nan_to_num(rates.to_numpy()), steps, axis=0)

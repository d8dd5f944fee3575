"""Which law of stability holds for a run: that of full batches, of small batches, or of Adam."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Literal

import numpy as np
import xarray as xr

from dynascope.diagnosis.lines.step_settings import (
    StepSettings,
    has_one_batch_per_epoch,
    learning_rates,
    rates_differ,
    step_settings,
)
from dynascope.diagnosis.run_facts import RunFacts
from dynascope.results.numbers import rounded
from dynascope.theory import SGD
from dynascope.theory.noise import batch_sharpness_limit, preconditioned_sharpness_limit, sharpness_limit

__all__ = ["NoLaw", "StabilityLaw", "stability_law"]

_FULL = 'Pass criterion, and preset="full" or ["standard", "curvature", "batches"], to the Recorder to compare it.'
_FULL_BATCH = "gradient descent with momentum in full or large batches, near a minimum (Cohen et al., arXiv:2103.00065)"
_SMALL_BATCH = "edge of stochastic stability, for SGD with small batches ({})"
_ADAM = "Adam in full or large batches, with a slowly changing preconditioner (Cohen et al., arXiv:2207.14484)"
_LATEST = 3  # measurements, because the noise scale of one measurement is noisy


@dataclasses.dataclass(frozen=True)
class StabilityLaw:
    """A law of stability, and the measured curvature to which it applies.

    Attributes:
        values: The measured curvature, over `step`.
        limit: Returns its limit at a positive learning rate.
        quantity: The name of the curvature.
        formula: The formula of the limit.
        reason: Why this law is used.
        theory: The theory with its domain and source.
    """

    values: xr.DataArray
    limit: Callable[[float], float]
    quantity: str
    formula: str
    reason: str
    theory: str


@dataclasses.dataclass(frozen=True)
class NoLaw:
    """Why the curvature of a run cannot be compared with a limit.

    Attributes:
        state: "loss" if the loss alone decides, else the state of the line unless the loss diverged.
        sentence: The reason, and what to pass to the recorder.
    """

    state: Literal["loss", "not measured", "does not apply"]
    sentence: str


def stability_law(run: RunFacts) -> StabilityLaw | NoLaw:
    """Return the law of stability that holds for a run.

    Adam has the law of its preconditioner. For SGD, batches are large if there is one batch per epoch, or if they have
    at least as many examples as the gradient noise scale tr Σ/‖∇L‖² on the reference batch. Batches of unknown size
    count as large.
    """
    if not run.optimizer:
        return NoLaw("not measured", "The optimizer is unknown. Pass optimizer to the Recorder.")
    settings = step_settings(run)
    if isinstance(settings, str):
        return NoLaw("does not apply", f"{settings[:1].upper()}{settings[1:]}.")
    if run.known("learning_rate") is None:
        return NoLaw("not measured", "The learning rate is unknown. Pass optimizer to the Recorder.")
    law = _of_sgd(run, settings) if settings.is_sgd else _of_adam(run, settings)
    if isinstance(law, StabilityLaw) and np.isnan(learning_rates(run, law.values)).all():
        return NoLaw("not measured", "The learning rate is unknown where the curvature was measured.")
    return law


def _of_adam(run: RunFacts, settings: StepSettings) -> StabilityLaw | NoLaw:
    values = run.known("preconditioned_sharpness")
    if values is None:
        return NoLaw(
            "does not apply",
            f"The sharpness limit of SGD does not hold for {settings.optimizer}, whose limit is that of the "
            'preconditioned sharpness. Pass optimizer, criterion and preset="full" to the PyTorch Recorder to '
            "measure it.",
        )
    return StabilityLaw(
        values,
        lambda rate: preconditioned_sharpness_limit(rate, settings.momentum),
        "preconditioned sharpness",
        "2(1 + β₁)/((1 − β₁)η)",
        f"the optimizer is {settings.optimizer}, whose steps are stable up to this curvature",
        _ADAM,
    )


def _of_sgd(run: RunFacts, settings: StepSettings) -> StabilityLaw | NoLaw:
    if rates_differ(run):
        return NoLaw("does not apply", "The learning rate differs between the parameter groups.")
    large, reason = _batches(run)
    if large:
        return _of_large_batches(run, settings, reason)
    if settings.nesterov:
        return NoLaw("does not apply", f"No limit is known for Nesterov momentum in small batches; {reason}.")
    values, beta = run.known("batch_sharpness"), settings.momentum
    assert values is not None  # the noise scale is measured with it
    source = "Andreyev et al., arXiv:2604.14108" if beta else "Andreyev, Beneventano, arXiv:2412.20553"
    return StabilityLaw(
        values,
        lambda rate: batch_sharpness_limit(rate * (1 - settings.dampening), beta),
        "batch sharpness",
        "2(1 − β)/η" if beta else "2/η",
        reason,
        _SMALL_BATCH.format(source),
    )


def _of_large_batches(run: RunFacts, settings: StepSettings, reason: str) -> StabilityLaw | NoLaw:
    values, beta = run.known("sharpness"), settings.momentum
    if values is None:
        return NoLaw("loss", f"The curvature was not measured. {_FULL}")
    # Decoupled decay moves the root −1 of the steps by λ(1 + β) instead of λ; Nesterov steps have no such exact form.
    decay = settings.weight_decay
    if settings.optimizer == "SGDW":
        decay = 0.0 if settings.nesterov else decay * (1 + beta)

    def limit(rate: float) -> float:
        steps = SGD(rate * (1 - settings.dampening), momentum=beta, weight_decay=decay)
        return sharpness_limit(steps, nesterov=settings.nesterov)

    formula = "2(1 + β)/(η(1 + 2β))" if settings.nesterov else "2(1 + β)/η" if beta else "2/η"
    formula += " − λ" if decay else ""
    return StabilityLaw(values, limit, "sharpness", formula, reason, _FULL_BATCH)


def _batches(run: RunFacts) -> tuple[bool, str]:
    """Return whether the law of large batches is used, and why."""
    size = run.batch_size
    if has_one_batch_per_epoch(run):
        return True, "this is the limit of full batches, because each epoch is one batch"
    if size is None:
        return True, "this is the limit of full batches, because the batch size is unknown (pass batch_size)"
    noise, signal = run.known("reference_noise"), run.known("reference_signal")
    if noise is None or signal is None:
        return True, 'this is the limit of full batches, because batches were not measured (add the probe "batches")'
    trace, square = (float(each[-_LATEST:].mean()) for each in (noise, signal))
    if square <= 0:
        return True, "this is the limit of full batches, because the mean gradient is below the noise of the batches"
    scale = trace / square
    large = size >= scale
    kind, relation = ("full", "at least") if large else ("small", "below")
    reason = (
        f"this is the limit of {kind} batches, because the batch size {size} is {relation} the gradient noise scale "
        f"{rounded(scale, 2)}"
    )
    return large, reason

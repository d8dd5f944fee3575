"""The line on conservation laws: whether the optimiser and the gradients are as declared, and the cause if not."""

from __future__ import annotations

import numpy as np
import xarray as xr

from dynascope.diagnosis.line import Line
from dynascope.diagnosis.run_facts import RunFacts
from dynascope.results.numbers import rounded
from dynascope.symmetry import Audit, audit

__all__ = ["conservation"]

_LAW = "measured_charge", "predicted_charge", "charge_bound"
_LISTED = 3  # parameters named in a sentence
_THEORY = (
    "Each symmetry of the network has a charge that SGD changes by a known law at every step; a residual above the "
    "rounding bound proves that the optimiser or the gradients are not as declared. Domain: SGD with momentum and "
    "weight decay. Source: Kunin et al., arXiv:2012.04728."
)
_ACTIONS = {
    "frozen layer": "Check that these parameters require gradients, are in the optimiser and receive a gradient.",
    "different momentum rule": "Check the options `nesterov` and `momentum` of the optimiser.",
    "different weight decay": "Check the weight decay of these parameters: it differs from that of the optimiser.",
    "clipping by tensor": (
        "Clip the gradients of all parameters together, with one call of `clip_grad_norm_(model.parameters(), …)`."
    ),
    "different learning rate": "Check for a schedule or a factor that changes the steps of these parameters.",
    "gradient multiplied": "Remove the factor on the gradients of these parameters, or declare it as a learning rate.",
    "clipping by value": "Clip by the norm of all gradients: clipping by value changes their direction.",
    "different momentum": "Check the momentum of these parameters, and whether the optimiser state was reset.",
    "undeclared L1 decay": "Remove the L1 decay of these parameters, or declare it.",
    "preconditioner or another rule": "Check which optimiser updates these parameters.",
    "weights changed between steps": "Find the code that writes to these weights outside `optimizer.step()`.",
    "wrong backward pass": "Check the custom backward passes between these parameters, e.g. with `gradcheck`.",
    "elementwise operation inside": "Check for an operation such as dropout between these parameters.",
    "L2 penalty in the loss": "Remove the L2 penalty from the loss if the optimiser already has weight decay.",
    "L1 penalty in the loss": "Check that the L1 penalty in the loss is intended.",
    "gradients not zeroed": "Call `optimizer.zero_grad()` before each backward pass.",
    "norm: its ε, statistics or backward pass": "Check the ε and the statistics of the normalisation layer.",
    "lower precision": "Train in full precision if rounding errors of the gradients matter.",
    "dropout": "No action is needed if dropout is intended.",
}


def conservation(run: RunFacts) -> Line:
    """Report how many conservation laws the run broke, since which step, and the probable cause."""
    topic = "conservation"
    if not run.symmetries or not {*_LAW} <= {*map(str, run.record.variables)}:
        return _unmeasured(run)
    found = audit(_finite_rows(run.record), run.symmetries) if len(_kept(run.record)) else None
    if found is None or not (found.clean or found.findings):
        return Line(
            topic, "not measured", "No step with finite charges was recorded, so no law was tested.", theory=_THEORY
        )
    if found.clean:
        sentence = (
            f"All {found.checked} conservation laws hold at {found.steps} recorded steps, with residuals up to "
            f"{rounded(found.times, 2)} times the rounding bound."
        )
        return Line(topic, "laws hold", sentence, found.times, 1.0, _THEORY)
    return Line(topic, "laws broken", _broken(found), found.times, 1.0, _THEORY, _action(found), weight=3)


def _unmeasured(run: RunFacts) -> Line:
    if run.optimizer not in ("", "SGD"):
        sentence = f"The conservation laws hold for SGD, but the optimiser is {run.optimizer}."
        return Line("conservation", "does not apply", sentence, theory=_THEORY, weight=0)
    sentence = "Conservation laws were not tested: pass charges=True to the PyTorch Recorder."
    return Line("conservation", "not measured", sentence, theory=_THEORY, weight=0)


def _kept(record: xr.Dataset) -> np.ndarray:
    """Return the indices of rows with finite charges; rows after divergence, and rows that were skipped, have none."""
    rows = np.ones(record.sizes["step"], bool)
    for name, values in record.items():
        if {"charge", "cause_parameter"} & {*values.dims}:
            finite = np.isfinite(values.to_numpy().astype(float)).reshape(len(rows), -1).all(axis=1)
            # No update precedes step 0, so the causes are unknown there.
            rows &= finite | ((record["step"].to_numpy() == 0) & (name not in _LAW))
    return rows.nonzero()[0]


def _finite_rows(record: xr.Dataset) -> xr.Dataset:
    return record.isel(step=_kept(record))


def _broken(found: Audit) -> str:
    broken = sum(int(each.broken.sum()) for each in found.findings)
    earliest = min(found.findings, key=lambda each: each.first_broken)
    sentence = (
        f"{broken} of {found.checked} conservation laws are broken by step {earliest.first_broken}, by up to "
        f"{rounded(found.times, 2)} times the rounding bound"
    )
    cause = found.cause
    if cause is None:
        return f"{sentence}; {_without_cause(found)}."
    more = "" if len(cause.paths) <= _LISTED else f" and {len(cause.paths) - _LISTED} more"
    named = " or ".join((cause.name, *cause.rivals))
    return f"{sentence}. The probable cause is {named}, in {', '.join(cause.paths[:_LISTED])}{more}."


def _without_cause(found: Audit) -> str:
    tested = any(each.causes for each in found.findings)
    return "no tested cause fits" if tested else "causes were not recorded"


def _action(found: Audit) -> str:
    if found.cause is not None:
        return _ACTIONS.get(found.cause.name, "Compare the training loop with the settings of its optimiser.")
    if any(each.causes for each in found.findings):
        return "Compare the training loop with the settings of its optimiser."
    return "Record a short run with causes=True, which tests the causes."

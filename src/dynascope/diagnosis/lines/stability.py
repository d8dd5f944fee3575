"""Stability: the measured curvature of the loss against the largest curvature at which the steps are stable."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from dynascope.diagnosis.line import Line
from dynascope.diagnosis.lines.loss_growth import LossGrowth, loss_growth
from dynascope.diagnosis.lines.stability_law import StabilityLaw, stability_law
from dynascope.diagnosis.lines.step_settings import learning_rates
from dynascope.diagnosis.run_facts import RunFacts
from dynascope.prediction.lazy_or_rich.labels import UNSTABLE
from dynascope.results.numbers import percent, rounded

__all__ = ["stability"]

# Measurements on one reference batch scatter by about a quarter around the limit in stable training at the edge.
EDGE, EXCEEDED = 0.8, 1.3
# Momentum and a large gradient can prevent a decrease of the loss already below the limit.
SUSPECT = 0.5
RISEN = 2.0  # times the initial loss, at the end of a run that is judged by its loss alone

_LOSS = f"largest loss of the run, against {UNSTABLE:g} times the initial loss (any network and optimizer)"


def stability(run: RunFacts) -> Line:
    """Compare the curvature of the loss with the limit of stable steps, and the loss with its initial value.

    The limits are those of `theory.noise`: `sharpness_limit` for full and large batches, `batch_sharpness_limit` for
    small ones, and `preconditioned_sharpness_limit` for Adam. The run is "unstable" if the loss diverged, or if it
    failed to fall while the curvature was at its limit; before training, if the curvature is above its limit. The run
    is otherwise "at the edge" or "stable" according to the last measurement. Without a curvature, the loss alone
    decides for SGD.

    Example:
        >>> from dynascope.results import make_record
        >>> values = {"sharpness": 5.0, "learning_rate": [0.1], "mean_loss": 1.0}
        >>> dims = {"learning_rate": ["step", "group"]}
        >>> record = make_record(
        ...     {name: (dims.get(name, ["step"]), [value]) for name, value in values.items()},
        ...     {"step": [1], "group": [0]},
        ... )
        >>> line = stability(RunFacts(record, optimizer="SGD", groups=[{"momentum": 0.9}]))
        >>> line.state, line.number, round(line.threshold, 6)
        ('stable', 5.0, 38.0)
    """
    growth, law = loss_growth(run), stability_law(run)
    if isinstance(law, StabilityLaw):
        return _compared(run, growth, law)
    if growth.diverged or growth.final > RISEN:
        action = "Reduce the learning rate by a factor of ten, or warm it up, and clip gradients by their global norm."
        sentence = f"{_risen(growth)} This is judged by the loss alone. {law.sentence}"
        return Line("stability", "unstable", sentence, growth.largest, UNSTABLE, _LOSS, action, weight=3)
    if math.isnan(growth.largest) and law.state == "loss":
        sentence = f"No loss was recorded; pass it to Recorder.step. {law.sentence}"
        return Line("stability", "not measured", sentence, weight=0)
    if law.state != "loss":
        return Line("stability", law.state, f"{law.sentence} {_calm(growth)}".strip(), weight=0)
    sentence = f"{_calm(growth)} This is judged by the loss alone. {law.sentence}"
    return Line("stability", "stable", sentence, growth.largest, UNSTABLE, _LOSS)


def _compared(run: RunFacts, growth: LossGrowth, law: StabilityLaw) -> Line:
    ratios, values, limits = _ratios(run, law)
    if growth.diverged or (growth.failed and np.nanmax(ratios) > SUSPECT):
        return _unstable(run, growth, law)
    number, limit, ratio = float(values[-1]), float(limits[-1]), float(ratios[-1])
    sentence = f"{_measured(law, -1, number, limit)}; {law.reason}."
    if ratio > EXCEEDED and math.isnan(growth.largest):
        sentence += " Steps of this size are unstable."
        action = f"Divide the learning rate by at least {rounded(ratio, 2)}."
        return Line("stability", "unstable", sentence, number, limit, law.theory, action, weight=3)
    if ratio < EDGE:
        return Line("stability", "stable", sentence, number, limit, law.theory)
    if ratio <= EXCEEDED:
        sentence += " Curvature tends to rise to the limit and to stay there, which does no harm while the loss falls."
        return Line("stability", "at the edge", sentence, number, limit, law.theory, weight=2)
    sentence += " This is above the limit, but the loss did not diverge."
    action = f"If the loss stops falling, divide the learning rate by {rounded(ratio, 2)}."
    return Line("stability", "at the edge", sentence, number, limit, law.theory, action, weight=2)


def _unstable(run: RunFacts, growth: LossGrowth, law: StabilityLaw) -> Line:
    """Name the first curvature above its limit, or the one closest to its limit, until the loss was largest.

    After an instability, the curvature can be orders of magnitude larger or smaller.
    """
    until = run.record["step"] <= growth.step
    early = dataclasses.replace(run, record=run.record.isel(step=until.to_numpy()))
    found = stability_law(early)
    law, run = (found, early) if isinstance(found, StabilityLaw) else (law, run)
    ratios, values, limits = _ratios(run, law)
    above = ratios > 1
    place = int(np.argmax(above) if above.any() else np.nanargmax(ratios))
    # A quarter of the largest stable rate, because the curvature rises during training. Unstable steps can make the
    # curvature orders of magnitude larger than it is along a stable run, so later values count at most tenfold.
    ratio = float(ratios[place])
    excess = ratio if int(law.values["step"][place]) == 0 else min(ratio, 10.0)
    rate = float(learning_rates(run, law.values)[place]) / max(excess, 1.0) / 4
    number, limit = float(values[place]), float(limits[place])
    return Line(
        *("stability", "unstable"),
        f"{_risen(growth)} {_measured(law, place, number, limit)}; {law.reason}.",
        *(number, limit, law.theory),
        f"Use a learning rate of at most {rounded(rate, 2)}, or warm it up to the current one.",
        weight=3,
    )


def _ratios(run: RunFacts, law: StabilityLaw) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the ratios of the measured curvatures to their limits, the curvatures, and the limits."""
    values = law.values.to_numpy().astype(float)
    limits = np.array([law.limit(rate) if rate > 0 else math.inf for rate in learning_rates(run, law.values)])
    return values / limits, values, limits


def _measured(law: StabilityLaw, place: int, number: float, limit: float) -> str:
    return (
        f"The {law.quantity} at step {int(law.values['step'][place])} is {rounded(number)}, "
        f"{rounded(number / limit, 2)} times the limit {law.formula} = {rounded(limit)}"
    )


def _risen(growth: LossGrowth) -> str:
    if math.isinf(growth.largest):
        return f"The loss was not finite by step {growth.step}."
    ended = f", and ended at {percent(growth.final, 2)} of it" if growth.final > 0.9 else ""
    where = " on the reference batch" if growth.on_reference else ""
    return f"The loss{where} rose to {rounded(growth.largest, 2)} times its initial value by step {growth.step}{ended}."


def _calm(growth: LossGrowth) -> str:
    if math.isnan(growth.largest):
        return ""
    where = " on the reference batch" if growth.on_reference else ""
    times = f"{rounded(growth.largest, 2)} times its initial value"
    return f"The loss{where} did not diverge: its largest value was {times}."

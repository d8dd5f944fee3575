"""Stability: the measured curvature of the loss against the largest curvature at which the steps are stable."""

from __future__ import annotations

import math

import numpy as np

from dynascope.diagnosis.line import Line
from dynascope.diagnosis.lines.loss_growth import LossGrowth, loss_growth
from dynascope.diagnosis.lines.stability_law import StabilityLaw, stability_law
from dynascope.diagnosis.lines.step_settings import learning_rates
from dynascope.diagnosis.run_facts import RunFacts
from dynascope.prediction.lazy_or_rich.labels import UNSTABLE
from dynascope.results.numbers import rounded

__all__ = ["stability"]

# Measurements on one reference batch scatter by about a quarter around the limit in stable training at the edge.
EDGE, EXCEEDED = 0.8, 1.3

_LOSS = f"largest loss of the run, against {UNSTABLE:g} times the initial loss (any network and optimizer)"


def stability(run: RunFacts) -> Line:
    """Compare the curvature of the loss with the limit of stable steps, and the loss with its initial value.

    The limits are those of `theory.noise`: `sharpness_limit` for full and large batches, `batch_sharpness_limit` for
    small ones, and `preconditioned_sharpness_limit` for Adam. The run is "unstable" if the loss diverged, or if it
    failed to fall while the curvature was at its limit. The run is otherwise "at the edge" or "stable" according to the
    last measurement. Without a curvature, the loss alone decides for SGD.

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
    if growth.diverged or growth.final > 1.5:
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
    values, rates = law.values.to_numpy().astype(float), learning_rates(run, law.values)
    limits = np.array([law.limit(rate) for rate in rates])
    ratios = values / limits
    number, limit, ratio, step = (each[-1] for each in (values, limits, ratios, law.values["step"].to_numpy()))
    measured = (
        f"{law.quantity} at step {step} is {rounded(number)}, {rounded(ratio, 2)} times the limit {law.formula} = "
        f"{rounded(limit)}"
    )
    if growth.diverged or (growth.failed and np.max(ratios) > EDGE):
        rate = _stable_rate(values, rates, ratios, law.values["step"].to_numpy() <= growth.step)
        return Line(
            *("stability", "unstable"),
            f"{_risen(growth)} {_capital(measured)}; {law.reason}.",
            *(number, limit, law.theory),
            f"Use a learning rate below {rounded(rate, 2)}, or warm it up to the current one.",
            weight=3,
        )
    if ratio < EDGE:
        return Line("stability", "stable", f"{_capital(measured)}; {law.reason}.", number, limit, law.theory)
    ending = (
        "Curvature tends to rise to the limit and to stay there, which does no harm while the loss falls."
        if ratio <= EXCEEDED
        else "This is above the limit, but the loss did not diverge."
    )
    action = (
        "" if ratio <= EXCEEDED else f"If the loss stops falling, reduce the learning rate {rounded(ratio, 2)}-fold."
    )
    sentence = f"{_capital(measured)}; {law.reason}. {ending}"
    return Line("stability", "at the edge", sentence, number, limit, law.theory, action, weight=2)


def _stable_rate(values: np.ndarray, rates: np.ndarray, ratios: np.ndarray, before: np.ndarray) -> float:
    """Return the learning rate whose limit is the largest curvature that was measured before the loss was largest.

    The curvature after an instability may be far lower. If it never reached the limit, half of the current rate.
    """
    place = int(np.argmax(np.where(before, ratios, -np.inf)))
    return float(rates[place] / max(ratios[place], 2.0))


def _risen(growth: LossGrowth) -> str:
    if math.isinf(growth.largest):
        return f"The loss was not finite by step {growth.step}."
    ended = f", and ended at {rounded(growth.final, 2)} times" if growth.final > 0.9 else ""
    return f"The loss rose to {rounded(growth.largest, 2)} times its initial value by step {growth.step}{ended}."


def _calm(growth: LossGrowth) -> str:
    if math.isnan(growth.largest):
        return ""
    return f"The loss did not diverge: its largest value was {rounded(growth.largest, 2)} times its initial value."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]

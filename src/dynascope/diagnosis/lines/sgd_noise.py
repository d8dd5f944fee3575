"""The noise of SGD: whether the weights have reached their stationary distribution around a minimum."""

from __future__ import annotations

import math

import numpy as np

from dynascope.diagnosis.line import Line
from dynascope.diagnosis.lines.step_settings import (
    StepSettings,
    has_one_batch_per_epoch,
    learning_rates,
    rates_differ,
    step_settings,
    total_learning_rate,
)
from dynascope.diagnosis.run_facts import RunFacts
from dynascope.results.numbers import percent, rounded
from dynascope.theory import SGD
from dynascope.theory.noise import thermometer

__all__ = ["sgd_noise"]

_TOPIC = "noise of SGD"
TIMES = 3.0  # relaxation times after which 5 % of a deviation remain
FALL = 0.1  # relative decrease of the mean loss between the second and the last quarters: training has not ended
_LANGEVIN = (
    "stationary noise of SGD with heavy-ball momentum near a minimum, in independent batches (Kunin et al., "
    "arXiv:2107.09133)"
)
_AVERAGE = "weights of AdamW as a running mean of their updates, exact (Wang, Aitchison, arXiv:2405.13698)"


def sgd_noise(run: RunFacts) -> Line:
    """Compare the length of a run with the relaxation times of the noise of SGD, by `theory.noise.thermometer`.

    The run is "stationary" if the learning rate was within a factor of two of its final value for three relaxation
    times of the sharpest directions, and the mean loss of the last half of the run is at most 10 % below that of the
    quarter before. The line states the excess loss ½ E[aᵀHa] that stationary noise causes. For AdamW with weight decay,
    the line compares the run with the memory 1/(ηλ) of the initial weights.

    Example:
        >>> from dynascope.results import make_record
        >>> values = {"curvature": [[2.0]], "learning_rate": [[0.1]], "reference_noise": [4.0], "mean_loss": [1.0]}
        >>> dims = {"curvature": ["step", "direction"], "learning_rate": ["step", "group"]}
        >>> record = make_record(
        ...     {name: (dims.get(name, ["step"]), each) for name, each in values.items()},
        ...     {"step": [10], "direction": [0], "group": [0]},
        ... )
        >>> line = sgd_noise(RunFacts(record, optimizer="SGD", groups=[{}], batch_size=8))
        >>> line.state, line.threshold
        ('not stationary yet', 3.0)
    """
    if not run.optimizer:
        return _absent("not measured", "The optimizer is unknown. Pass optimizer to the Recorder.")
    if int(run.record["step"][-1]) == 0:
        return _absent("not measured", "The noise of SGD is judged by a record of training.")
    settings = step_settings(run)
    if isinstance(settings, str):
        return _absent("does not apply", f"{settings[:1].upper()}{settings[1:]}.")
    if not settings.is_sgd:
        return _of_adam(run, settings)
    reason = _not_covered(run, settings)
    if reason:
        return _absent("does not apply", reason)
    missing = _missing(run)
    return _absent("not measured", missing) if missing else _of_sgd(run, settings)


def _not_covered(run: RunFacts, settings: StepSettings) -> str:
    """Return why the theory does not cover a run of SGD; empty if it does."""
    if settings.nesterov:
        return "The theory of stationary noise covers heavy-ball momentum, not Nesterov's."
    if has_one_batch_per_epoch(run):
        return "Each epoch is one batch, so the gradients have no noise."
    if rates_differ(run):
        return "The learning rate differs between the parameter groups."
    return "The learning rate ended at zero, where the noise vanishes." if run.learning_rate == 0 else ""


def _missing(run: RunFacts) -> str:
    """Return what to pass to the recorder to measure the noise; empty if it was measured."""
    if math.isnan(run.learning_rate):
        return "The learning rate is unknown. Pass optimizer to the Recorder."
    if run.batch_size is None:
        return "The batch size is unknown. Pass batch_size to the Recorder."
    if run.known("curvature") is None or run.known("reference_noise") is None:
        return 'Curvature and noise were not measured. Pass criterion and preset="full" to the Recorder.'
    return ""


def _of_sgd(run: RunFacts, settings: StepSettings) -> Line:
    curvature, noise = run.known("curvature"), max(run.last("reference_noise"), 0.0)
    assert curvature is not None
    assert run.batch_size is not None
    # Decoupled decay is not amplified by the momentum.
    decay = settings.weight_decay * (1 - settings.momentum if settings.optimizer == "SGDW" else 1)
    rate = run.learning_rate * (1 - settings.dampening)
    sgd = SGD(rate, settings.momentum, decay, run.batch_size)
    directions = curvature[-1].to_numpy().astype(float)
    # The noise of all directions, as if it were along each: an upper bound.
    found = thermometer(directions[np.isfinite(directions)], noise, sgd)
    if not found.stationary.any():
        return _absent("does not apply", "The loss has no stable minimum along its sharpest directions.")
    if rate * (directions[0] + decay) >= 2 * (1 + settings.momentum):
        return _absent("does not apply", "The steps are unstable along the sharpest direction, so noise grows.")
    relaxation = float(found.relaxation_steps[found.stationary].max())
    steps, fall = _steps_at_final_rate(run), _late_fall(run)
    times, excess = steps / relaxation, float(found.temperature[0]) / 2
    sentence = (
        f"SGD noise along the sharpest directions relaxes in {rounded(relaxation, 2)} steps, and the learning rate was "
        f"near its final value for {steps} steps"
    )
    raised = f"Stationary noise raises the loss by at most {rounded(excess, 2)}"
    if times < TIMES:
        text = f"{sentence}, fewer than three relaxation times."
        return Line(_TOPIC, "not stationary yet", text, times, TIMES, _LANGEVIN)
    if fall > FALL:
        text = f"{sentence}, but the mean loss still fell by {percent(fall, 2)} in the last half of the run. {raised}."
        return Line(_TOPIC, "not stationary yet", text, fall, FALL, _LANGEVIN)
    return Line(
        *(
            _TOPIC,
            "stationary",
            f"{sentence}, and the mean loss fell by less than {percent(FALL)} in the last half of the run. {raised}.",
            times,
            TIMES,
            _LANGEVIN,
        ),
        action="To lower the loss further, reduce the learning rate or increase the batch size.",
        weight=2,
    )


def _of_adam(run: RunFacts, settings: StepSettings) -> Line:
    decays = [float(group.get("weight_decay", 0.0)) for group in run.groups]
    if settings.optimizer != "AdamW" or not any(decays) or run.known("learning_rate") is None:
        return _absent("does not apply", f"The theory of stationary noise covers SGD, not {settings.optimizer}.")
    forgotten = max(decay * total for decay, total in zip(decays, total_learning_rate(run), strict=False))
    steps = run.record["step"].to_numpy()
    length = int(steps[-1] - steps[0])
    sentence = (
        f"AdamW weights are running means of their updates; the {length} steps last {rounded(forgotten, 2)} times the "
        f"memory 1/(ηλ), so {percent(math.exp(-forgotten), 2)} of the initial weights remain"
    )
    if forgotten >= TIMES:
        text = f"{sentence}. No theory here describes the stationary noise of AdamW."
        return _absent("does not apply", text)
    return Line(_TOPIC, "not stationary yet", f"{sentence}.", forgotten, TIMES, _AVERAGE)


def _steps_at_final_rate(run: RunFacts) -> int:
    """Return the number of steps since the learning rate was last outside a factor of two of its final value."""
    steps = run.record["step"].to_numpy()
    ratios = learning_rates(run, run.record["step"]) / run.learning_rate
    outside = np.flatnonzero((ratios < 0.5) | (ratios > 2))
    return int(steps[-1] - steps[outside[-1] if len(outside) else 0])


def _late_fall(run: RunFacts) -> float:
    """Return the relative decrease of the mean loss from the second quarter to the last half of the run."""
    loss = run.known("mean_loss")
    if loss is None:
        return 0.0
    steps, end = loss["step"].to_numpy(), int(run.record["step"][-1])
    counts = run.record["loss_count"].sel(step=steps).to_numpy() if "loss_count" in run.record else np.ones(len(steps))
    early, late = (steps > end / 4) & (steps <= end / 2), steps > end / 2
    if not counts[early].sum() or not counts[late].sum():
        return 0.0
    before, after = (float(np.average(loss.to_numpy()[each], weights=counts[each])) for each in (early, late))
    return 1 - after / before if before > 0 else 0.0


def _absent(state: str, sentence: str) -> Line:
    return Line(_TOPIC, state, sentence, weight=0)

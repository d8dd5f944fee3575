"""The findings of a recorded training run, as sentences computed from its measurements."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr

from dynascope.diagnosis.known_values import known_values
from dynascope.diagnosis.lines.regime import run_regime
from dynascope.diagnosis.preset import PRESETS
from dynascope.results.numbers import percent, rounded

__all__ = ["run_findings"]

_SAME = 0.01  # relative difference below which a value is reported as unchanged
_OWN_SCHEDULES = {each.name: each.schedule for probes in PRESETS.values() for each in probes if each.schedule}


def run_findings(record: xr.Dataset) -> list[str]:
    """Return the main results of a recorded run, one sentence each; variables that were not measured are omitted.

    Args:
        record: The record of a run, over `step`.

    Example:
        >>> from dynascope.results import make_record
        >>> loss = "mean_loss", (["step"], [np.nan, 2.3, 0.5])
        >>> run_findings(make_record(dict([loss]), {"step": [0, 1, 100]}))[0].replace("\N{NO-BREAK SPACE}", " ")
        'The loss fell from 2.3 (step 1) to 0.5 (step 100).'
    """
    if not record.sizes["step"]:
        return ["No step has been recorded yet."]
    parts = _loss, _units, _weights, _kernel_and_patterns, _features, _collapse, _charges, _extent, _thinned, _overhead
    return [sentence for part in parts for sentence in part(record)]


def _extent(record: xr.Dataset) -> Iterator[str]:
    steps = record["step"].to_numpy()
    epochs = known_values(record, "epoch")
    finished = int(epochs[-1]) if epochs is not None else 0
    during = f" ({_counted(finished, 'epoch')})" if finished else ""
    seconds = known_values(record, "seconds")
    lasted = "" if seconds is None else f" and {_duration(float(seconds[-1]))}"
    yield f"The record covers {_counted(int(steps[-1]), 'step')}{during}{lasted}, in {_counted(len(steps), 'row')}."


def _loss(record: xr.Dataset) -> Iterator[str]:
    loss = known_values(record, "mean_loss")
    if loss is None:
        if record.sizes["step"] > 1:
            yield "No finite loss was recorded."
        return
    yield _change("The loss", loss, at_steps=True)
    lowest = loss[int(np.argmin(loss.to_numpy()))]
    if loss[-1] > 1.5 * lowest > 0:
        yield f"The lowest mean loss between two rows, {rounded(lowest)}, was reached at step {int(lowest['step'])}."
    broken = record["step"].to_numpy()[_not_finite(record)]
    final = broken[broken > loss["step"].to_numpy()[-1]]
    if len(final):
        yield f"The loss is not finite from step {final[0]} on (or slightly earlier), and nothing is measured there."
    elif len(broken):
        yield f"The loss was not finite at or shortly before step {broken[0]}, where nothing is measured."
    elif "max_loss" in record and np.isinf(record["max_loss"]).any():
        yield f"The loss was infinite before step {int(record['step'][np.isinf(record['max_loss'])][0])}."


def _weights(record: xr.Dataset) -> Iterator[str]:
    moved, norm = known_values(record, "relative_displacement"), known_values(record, "total_weight_norm")
    if moved is not None:
        grown = "" if norm is None else f" {_change('Their norm', norm, at_steps=bool(_when(record, norm)))}"
        yield (
            f"The weights moved from initialisation by {percent(moved[-1], 2)} of their initial norm"
            f"{_when(record, moved)}.{grown}"
        )
    distance, start = known_values(record, "displacement"), known_values(record, "weight_norm")
    if distance is not None and start is not None and record.sizes["parameter"] > 1:
        relative = (distance[-1] / start[0].where(start[0] > 0)).to_numpy()
        if np.isfinite(relative).any():
            most = int(np.nanargmax(relative))
            name = record["parameter"].to_numpy()[most]
            if relative[most] > 0:
                yield f"The parameter {name} moved most, by {percent(relative[most], 2)} of its initial norm."


def _kernel_and_patterns(record: xr.Dataset) -> Iterator[str]:
    kernel, exact = known_values(record, "kernel_distance"), known_values(record, "exact_kernel_distance")
    if exact is not None and len(exact) > 1:
        yield (
            f"The neural tangent kernel, averaged over outputs, is at distance {rounded(exact[-1], 2)} from its "
            f"initial value{_when(record, exact)} (0: unchanged, 1: orthogonal)."
        )
    elif kernel is not None and len(kernel) > 1:
        yield (
            f"The pseudo-kernel is at distance {rounded(kernel[-1], 2)} from its initial value{_when(record, kernel)} "
            "(0: unchanged, 1: orthogonal). The pseudo-kernel is the neural tangent kernel of the sum of the "
            "outputs; the kernel of all outputs can change more."
        )
    regime = run_regime(record)
    if regime is not None:
        yield regime.sentence
    flips, layers = known_values(record, "hamming_distance"), known_values(record, "layer_hamming_distance")
    if flips is not None and len(flips) > 1:
        most = ""
        if layers is not None and record.sizes["activation"] > 1:
            place = int(np.nanargmax(layers[-1]))
            most = f", the largest share in {_name(record, 'activation', place)} ({percent(layers[-1, place], 2)})"
        yield f"{percent(flips[-1], 2)} of the activations flipped since initialisation{_when(record, flips)}{most}."


def _units(record: xr.Dataset) -> Iterator[str]:
    dead = known_values(record, "dead_fraction")
    if dead is None:
        return
    last = dead[-1].to_numpy()
    if np.nanmax(last) == 0:
        yield f"No unit is dead{_when(record, dead)}: each is active on at least one reference example."
        return
    place = int(np.nanargmax(last))
    yield (
        f"In {_name(record, 'activation', place)}, {percent(last[place], 2)} of the units are dead"
        f"{_when(record, dead)}, against {percent(dead[0, place], 2)} at initialisation; a dead unit is active on no "
        "reference example."
    )


def _features(record: xr.Dataset) -> Iterator[str]:
    for name, words in (
        ("effective_dimension", "the effective number of features"),
        ("feature_alignment", "the alignment of the features with the targets"),
    ):
        values = known_values(record, name)
        if values is not None and len(values) > 1 and np.isfinite(values[[0, -1], -1]).all():
            late = bool(_when(record, values))
            yield f"In the {_name(record, 'layer', -1)}, {_change(words, values[:, -1], at_steps=late)}"


def _collapse(record: xr.Dataset) -> Iterator[str]:
    within = known_values(record, "nc1")
    if within is not None and len(within) > 1:
        words = "NC1, the variation of the features within classes relative to that between classes,"
        yield _change(words, within, at_steps=bool(_when(record, within)))
    differing = known_values(record, "nc4")
    if differing is not None and len(differing) > 1:
        yield (
            f"{percent(differing[-1], 2)} of the predictions differ from the class with the nearest mean"
            f"{_when(record, differing)}."
        )


def _charges(record: xr.Dataset) -> Iterator[str]:
    """Count the conserved charges that deviated from their laws by more than the bounds."""
    names = "measured_charge", "predicted_charge", "charge_bound"
    if not {*names} <= {*map(str, record.variables)}:
        return
    charge, predicted, bound = (record[name].transpose("step", "charge").to_numpy() for name in names)
    broken, count = int((np.abs(charge - predicted) > bound).any(axis=0).sum()), charge.shape[1]
    if broken:
        yield f"{broken} of {count} conserved charges left the bounds of their laws; `symmetry.audit` names the cause."
    else:
        yield f"All {count} conserved charges follow their laws."


def _thinned(record: xr.Dataset) -> Iterator[str]:
    """Name the probes that were skipped to stay within the time budget."""
    if "measured" not in record:
        return
    steps = record["step"].to_numpy()
    ran = {str(name): record["measured"].sel(probe=name).to_numpy() for name in record["probe"].to_numpy()}
    common = [each for name, each in ran.items() if name not in _OWN_SCHEDULES]
    row_due = np.any(common, axis=0) if common else np.ones(len(steps), bool)
    row_due &= ~_not_finite(record)
    skipped = []
    for name, measured in ran.items():
        schedule = _OWN_SCHEDULES.get(name)
        due = row_due if schedule is None else np.array([schedule.due(int(step), None) for step in steps], bool)
        due = due & ~_not_finite(record)
        if (due & ~measured).any():
            skipped.append(f"{name} at {(due & measured).sum()} of {due.sum()} rows")
    if skipped:
        yield f"To stay within its time budget, the recorder measured {_listed(skipped)}."


def _overhead(record: xr.Dataset) -> Iterator[str]:
    if "probe_seconds" in record and "seconds" in record and record.sizes["step"] > 1:
        spent, total = float(record["probe_seconds"][1:].sum()), float(record["seconds"][-1])
        if total > 0:
            yield f"Measurements took {percent(spent / total, 2)} of the time."


def _not_finite(record: xr.Dataset) -> np.ndarray:
    """Return whether each row has a loss that is not finite; False for rows without a loss."""
    if "loss_count" not in record or "mean_loss" not in record:
        return np.zeros(record.sizes["step"], bool)
    return (record["loss_count"].to_numpy() > 0) & ~np.isfinite(record["mean_loss"].to_numpy())


def _when(record: xr.Dataset, values: xr.DataArray) -> str:
    """Name the step of the last value if it is not that of the last row."""
    last = int(values["step"][-1])
    return "" if last == int(record["step"][-1]) else f" at step {last}"


def _change(subject: str, values: xr.DataArray, *, at_steps: bool = False) -> str:
    """State how a quantity changed from its first to its last value."""
    first, last = (float(values[place]) for place in (0, -1))
    start, end = (f" (step {int(values['step'][place])})" if at_steps else "" for place in (0, -1))
    if len(values) == 1:
        return f"{subject} was {rounded(first)}{start}."
    if abs(last - first) <= _SAME * max(abs(first), abs(last)):
        return f"{subject} hardly changed, from {rounded(first)}{start} to {rounded(last)}{end}."
    verb = "rose" if last > first else "fell"
    return f"{subject} {verb} from {rounded(first)}{start} to {rounded(last)}{end}."


def _name(record: xr.Dataset, dimension: str, place: int) -> str:
    """Return the name of a layer or an activation; a name that is a number, as in containers, gets a prefix."""
    name = str(record[dimension].to_numpy()[place])
    input_of, of, layer = name.rpartition("input of ")
    kind = "activation" if dimension == "activation" else "layer"
    return f"{input_of}{of}{kind} {layer}" if layer.isdigit() else name


def _counted(count: int, unit: str) -> str:
    return f"{count}\N{NO-BREAK SPACE}{unit}{'' if count == 1 else 's'}"


def _duration(seconds: float) -> str:
    for unit, size in (("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{rounded(seconds / size, 2)} {unit}"
    return f"{rounded(seconds, 2)} seconds"


def _listed(parts: list[str]) -> str:
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]

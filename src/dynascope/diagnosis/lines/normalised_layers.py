"""Normalised layers: the angle by which each step rotates their weights, against its equilibrium under weight decay."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dynascope.diagnosis.line import Line
from dynascope.diagnosis.lines.step_settings import StepSettings, step_settings, total_learning_rate
from dynascope.diagnosis.run_facts import RunFacts
from dynascope.results.numbers import rounded
from dynascope.symmetry import Charge
from dynascope.theory import SGD
from dynascope.theory.symmetry import equilibration_steps, equilibrium_angular_step

__all__ = ["normalised_layers"]

_TOPIC = "normalised layers"
TIMES = 3.0  # equilibration times after which 5 % of the deviation of ‖θ‖⁴ remain
_ROWS = 5  # whose angles are averaged
_THEORY = (
    "scale-invariant weights under SGD with weight decay and heavy-ball momentum (Tanaka, Kunin, arXiv:2105.02716; Wan "
    "et al., arXiv:2006.08419)"
)


class _Rotation(NamedTuple):
    """The rotation of the weights of one normalised layer.

    Attributes:
        name: The parameter.
        angle: The measured angle per step, ‖Δθ‖/‖θ‖; NaN if it was not measured.
        equilibrium: Its equilibrium √(2ηλ/(1 + β)).
        steps: The equilibration time (1 − β)/(4ηλ) at the final learning rate.
        times: The length of the run in equilibration times.
    """

    name: str
    angle: float
    equilibrium: float
    steps: float
    times: float


def normalised_layers(run: RunFacts) -> Line:
    """Compare the rotation of weights before normalisation layers with its equilibrium under SGD with weight decay.

    The layers are those with a charge of kind "scale" in `run.symmetries`. The run is "stationary" if it lasted at
    least three equilibration times (1 − β)/(4ηλ) in every such layer. The number is the median angle per step of the
    last five rows, and the threshold its equilibrium √(2ηλ/(1 + β)).

    Example:
        >>> import xarray as xr
        >>> normalised_layers(RunFacts(xr.Dataset(), optimizer="Adam", groups=[{}])).state
        'not measured'
    """
    if not run.symmetries:
        return _absent("not measured", "Normalised layers are unknown. Pass charges=True to the Recorder.")
    layers = [each for each in run.symmetries if each.kind == "scale"]
    if not layers:
        return _absent(
            "does not apply",
            "No recorded charge is that of weights before a normalisation. The ε of a normalisation breaks this "
            "symmetry slightly, so `symmetry.find_symmetries` lists such charges under `broken`.",
        )
    settings = step_settings(run) if run.optimizer else "the optimizer is unknown"
    if isinstance(settings, str):
        return _absent("does not apply", f"{settings[:1].upper()}{settings[1:]}.")
    if settings.optimizer != "SGD" or settings.nesterov:
        kind = "Nesterov momentum" if settings.nesterov else settings.optimizer
        return _absent(
            "does not apply",
            f"The equilibrium is known for SGD with coupled decay and heavy-ball momentum, not {kind}.",
        )
    if run.known("learning_rate") is None:
        return _absent("not measured", "The learning rate is unknown. Pass optimizer to the Recorder.")
    found = [each for each in (_rotation(run, settings, layer) for layer in layers) if each is not None]
    if not found:
        return _absent(
            "does not apply",
            "The weights before normalisations have no weight decay, so no equilibrium exists: their norms only grow, "
            "and each step rotates them less.",
        )
    return _line(found)


def _line(found: list[_Rotation]) -> Line:
    slowest = min(found, key=lambda each: each.times)
    angles = [each.angle for each in found if math.isfinite(each.angle)]
    angle, expected = float(np.median(angles)) if angles else None, slowest.equilibrium
    stationary = slowest.times >= TIMES
    rotated = slowest.name if len(found) == 1 else f"the weights of {len(found)} normalised layers"
    median = "" if len(found) == 1 else " (median)"
    measured = f"Steps rotate {rotated}" + (f" by {rounded(angle, 2)} rad{median}" if angles else "")
    sentence = (
        f"{measured}, against √(2ηλ/(1 + β)) = {rounded(expected, 2)} rad at equilibrium. The run lasted "
        f"{rounded(slowest.times, 2)} equilibration times (1 − β)/(4ηλ) = {rounded(slowest.steps, 2)} steps"
    )
    if stationary:
        sentence += ", so ηλ alone sets the rotation."
        return Line(_TOPIC, "stationary", sentence, angle, expected, _THEORY)
    sentence += ", so the rotation still depends on the initial norms."
    action = "Compare learning rates of normalised layers only after three equilibration times, or at equal ηλ."
    return Line(_TOPIC, "not stationary yet", sentence, angle, expected, _THEORY, action)


def _rotation(run: RunFacts, settings: StepSettings, layer: Charge) -> _Rotation | None:
    """Return the rotation of a layer; None if it has no weight decay, or its parts have different settings."""
    names = [_name(path) for path in layer.paths]
    groups = {_group(run, name) for name in names}
    if len(groups) != 1 or -1 in groups:
        return None
    [group] = groups
    decay = float(run.groups[group].get("weight_decay", 0.0)) if group < len(run.groups) else 0.0
    rates = run.record["learning_rate"].isel(group=group).to_numpy()
    positive = rates[np.isfinite(rates) & (rates > 0)]
    if decay == 0 or not len(positive):
        return None
    sgd = SGD(float(positive[-1]) * (1 - settings.dampening), momentum=settings.momentum, weight_decay=decay)
    steps = equilibration_steps(sgd)
    # The distance decays at a rate proportional to the learning rate of each step.
    times = float(total_learning_rate(run)[group]) / float(positive[-1]) / steps
    return _Rotation(names[0], _angle(run, names), equilibrium_angular_step(sgd), steps, times)


def _angle(run: RunFacts, names: list[str]) -> float:
    """Return ‖Δθ‖/‖θ‖ of the last rows, as a root mean square over rows; NaN if updates were not recorded."""
    updates, norms = run.known("update_norm"), run.known("weight_norm")
    if updates is None or norms is None or not {*names} <= {*map(str, run.record["parameter"].to_numpy())}:
        return math.nan
    moved = (updates.sel(parameter=names)[-_ROWS:] ** 2).sum("parameter")
    size = (norms.sel(parameter=names) ** 2).sum("parameter")
    return float(np.sqrt((moved / size.where(size > 0)).mean()))


def _group(run: RunFacts, name: str) -> int:
    """Return the parameter group of a parameter; the first group if the record does not contain it."""
    if "parameter_group" not in run.record or name not in run.record["parameter"].to_numpy():
        return 0
    return int(run.record["parameter_group"].sel(parameter=name))


def _name(path: str) -> str:
    """Return the name of a parameter from its path in a tree of names.

    Example:
        >>> _name("['0.weight']")
        '0.weight'
    """
    return path.removeprefix("['").removesuffix("']")


def _absent(state: str, sentence: str) -> Line:
    return Line(_TOPIC, state, sentence, weight=0)

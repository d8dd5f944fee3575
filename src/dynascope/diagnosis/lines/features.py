"""Lines on the features of the last layer: their number, their redundancy and their neural collapse."""

from __future__ import annotations

import numpy as np
import xarray as xr

from dynascope.diagnosis.line import Line
from dynascope.diagnosis.run_facts import RunFacts
from dynascope.results.numbers import percent, rounded

__all__ = ["features_used", "neural_collapse", "redundancy"]

_MINIMAL = 0.1  # κ, the convention of the source
_LOST = 2  # outputs can lose one dimension, their mean over classes, because softmax does not depend on it
_SPANNED = 1e-3  # relative difference below which the used features count as all features of the layer
_REDUNDANT = 0.5  # effective number of features / width
# Small MLPs on clusters and digits, trained far beyond zero error with weight decay, reached NC1 of 0.03 to 0.1 and
# angles of 0.03 to 0.17. Those trained just to zero error stayed above 0.15 or 0.2.
_NC1, _ANGLE, _NC4 = 0.1, 0.2, 0.01

_NAM = "Source: Y. Nam, DPhil thesis (2024), chapter 2."
_PAPYAN = (
    "In the terminal phase of training, the features of a class converge to one point (NC1), the class means to a "
    "simplex (NC2), and predictions to the nearest class mean (NC4). Domain: balanced classes, reference batch from "
    "the training set, several examples per class. Source: Papyan, Han, Donoho, arXiv:2008.08186."
)


def features_used(run: RunFacts) -> Line:
    """Compare the number of features that the outputs use with the dimension of the outputs."""
    topic = "features used"
    theory = (
        f"Features are minimal if their distance from the span of the outputs is κ < {_MINIMAL:g} (a convention). "
        f"Domain: last layers with more features than outputs. {_NAM}"
    )
    kappa, used, outputs = (
        _last_layer(run, each) for each in ("kappa_cka", "effective_dimension_utilization", "output_dimension")
    )
    if kappa is None or used is None or outputs is None:
        return Line(topic, "not measured", _unmeasured("features"), theory=theory, weight=0)
    number, dimension = float(used[-1]), float(outputs[-1])
    layer = f"the layer {str(kappa['layer'].item())!r}"
    if dimension <= float(outputs.max()) - _LOST:
        earlier = float(outputs.max())
        sentence = (
            f"The outputs span only {_dimensions(dimension)}, against {earlier:.0f} earlier in training, so some "
            "outputs are determined by others."
        )
        action = "If the targets have more dimensions, lower the learning rate, and look for dead units."
        return Line(topic, "features lost", sentence, dimension, earlier, theory, action, weight=2)
    if all(abs(float(used[k]) - float(outputs[k])) <= _SPANNED * float(outputs[k]) for k in (0, -1)):
        sentence = f"The outputs span all {dimension:.0f} features of {layer}, so no feature can be superfluous."
        return Line(topic, "does not apply", sentence, theory=theory, weight=0)
    state = "minimal features" if float(kappa[-1]) < _MINIMAL else "extended features"
    sentence = (
        f"The outputs use {rounded(number)} features of {layer} (effective number{_at_first(used)}) and span "
        f"{_dimensions(dimension)}. The distance from minimal features is κ = {rounded(kappa[-1], 2)} (threshold "
        f"{_MINIMAL:g})."
    )
    return Line(topic, state, sentence, float(kappa[-1]), _MINIMAL, theory)


def redundancy(run: RunFacts) -> Line:
    """Compare the effective number of features of the last layer with its width."""
    topic = "redundancy"
    theory = f"Features are redundant if their effective number is below half of the width (a convention). {_NAM}"
    number, width = _last_layer(run, "effective_dimension"), None
    if number is not None:
        width = _width(run, str(number["layer"].item()))
    if number is None or width is None:
        sentence = _unmeasured("features") if number is None else "The width of the last layer is unknown."
        return Line(topic, "not measured", sentence, theory=theory, weight=0)
    ratio = float(number[-1]) / width
    sentence = (
        f"The last layer has {width} units, whose features have the effective number {rounded(number[-1])}, "
        f"{percent(ratio, 2)} of the width (threshold {percent(_REDUNDANT)}{_at_first(number)})."
    )
    if ratio >= _REDUNDANT:
        return Line(topic, "not redundant", sentence, ratio, _REDUNDANT, theory)
    return Line(topic, "redundant features", sentence, ratio, _REDUNDANT, theory)


def neural_collapse(run: RunFacts) -> Line:
    """Report whether the features of the last layer have collapsed to a simplex of class means."""
    topic = "neural collapse"
    values = {name: run.last(name) for name in ("nc1", "nc2_angle", "nc4")}
    first = run.known("nc1")
    if first is None or not np.isfinite([*values.values()]).all():
        return Line(topic, "not measured", _unmeasured("collapse"), theory=_PAPYAN, weight=0)
    if values["nc1"] < np.finfo(np.float32).eps:
        sentence = "The features do not vary within classes: the reference batch has only one example per class."
        return Line(topic, "not measured", sentence, theory=_PAPYAN, weight=0)
    names = {"nc1": "NC1", "nc2_angle": "NC2 (largest deviation of a cosine)", "nc4": "NC4"}
    limits = {"nc1": _NC1, "nc2_angle": _ANGLE, "nc4": _NC4}
    numbers = ", ".join(f"{names[each]} = {rounded(values[each], 2)}" for each in names)
    above = [names[each].partition(" ")[0] for each in names if values[each] > limits[each]]
    initial = f"; NC1 was {rounded(first[0], 2)} at first" if len(first) > 1 else ""
    sentence = f"{numbers} (thresholds {_NC1:g}, {_ANGLE:g} and {_NC4:g}){initial}."
    if above:
        sentence = f"The features have not collapsed, because of {', '.join(above)}: {sentence}"
        return Line(topic, "not collapsed", sentence, values["nc1"], _NC1, _PAPYAN)
    sentence = f"The features have collapsed to a simplex of class means: {sentence}"
    action = "For features that transfer to other tasks, stop earlier or use the features of an earlier layer."
    return Line(topic, "collapsed", sentence, values["nc1"], _NC1, _PAPYAN, action, weight=2)


def _last_layer(run: RunFacts, name: str) -> xr.DataArray | None:
    """Return the finite values of the last measured layer."""
    values = run.known(name)
    if values is None:
        return None
    layers = np.flatnonzero(np.any(np.isfinite(values.to_numpy()), axis=0))
    last = values.isel(layer=int(layers[-1]))
    return last[np.isfinite(last.to_numpy())]


def _dimensions(number: float) -> str:
    return f"{number:.0f} dimension{'s' * (round(number) != 1)}"


def _at_first(values: xr.DataArray) -> str:
    """Return the first of several values, for the parenthesis after the last one."""
    return f"; {rounded(values[0])} in the first row" if len(values) > 1 else ""


def _width(run: RunFacts, layer: str) -> int | None:
    """Return the number of inputs of the last linear layer of a PyTorch module; None if the layer is another one."""
    weights = run.initial_weights.get(f"{layer.removeprefix('input of ')}.weight")
    return weights.shape[1] if layer.startswith("input of ") and weights is not None and weights.ndim == 2 else None


def _unmeasured(probe: str) -> str:
    labels = ", with one class label per example" if probe == "collapse" else ""
    return f'The features of the last layer were not measured: record the probe "{probe}"{labels}.'

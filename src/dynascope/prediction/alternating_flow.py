"""Predict a staircase by alternating gradient flow on the data, for networks without a closed form."""

from __future__ import annotations

import warnings

import numpy as np
import xarray as xr

from dynascope.alternating.flow import alternating_flow
from dynascope.alternating.phases import OUT_OF_WORK
from dynascope.flows.progress import track
from dynascope.networks.biased_two_layer import BiasedTwoLayer
from dynascope.networks.two_layer import TwoLayer
from dynascope.protocols import Learnable, SumOfNeurons
from dynascope.results import StaircaseView, is_exponential, other_scale, time_unit
from dynascope.results.staircase import slopes_between, with_slow_jumps, with_tolerances
from dynascope.results.staircase_names import GROWTH_RATE, REASON
from dynascope.theory.assumptions import SMALL_START

__all__ = ["MAX_STEPS", "expected_time_error", "predict_by_alternation"]

MAX_STEPS = 20_000  # per phase; few phases need as many
# Operations per allowed step, after which the search for jumps ends: about half a minute on one core for each scale.
# Unlike a time limit, this limit gives the same jumps on every machine.
_OPERATIONS = 1.5e7
_LEFT = 0.05  # share of the initial loss that is worth a warning

# Factor and divisor for the second scale; it is closer to the first than for a training run.
_FACTOR, _DIVISOR = 1e-2, 2.0
_REST = 5.0  # e-folds of growth of the next neuron in which the active neurons become stationary


def predict_by_alternation(
    task: Learnable,
    network: SumOfNeurons,
    *,
    scale: float,
    normalised: bool = False,
    jumps: int | None = None,
    max_steps: int = MAX_STEPS,
) -> xr.Dataset:
    """Predict the loss staircase (plateaus and jumps) of any sum of homogeneous neurons.

    Alternating gradient flow is run at two scales. The jump times are those at the given scale. The accelerated time of
    a jump is the slope of its time against `results.time_unit`; constant offsets cancel in this slope.

    Args:
        task: The data, or an expectation in closed form.
        network: A sum of homogeneous neurons of degree two or more, with its weights at unit scale.
        scale: Factor on the initial weights, below one.
        normalised: Whether to predict the homogeneity-normalised flow.
        jumps: Maximum number of jumps; None for all.
        max_steps: Maximum number of steps in one phase. It also limits the total number of operations.

    Returns:
        A staircase record, as returned by `alternating.alternating_flow`. For a `TwoLayer` network, the record also
        contains the weights of the first neuron that each jump activates: `input_feature` (first layer),
        `output_feature` (second layer) and, if there are hidden biases, `hidden_bias`. These are the weights on the
        plateau after the jump, divided by the norm of all weights of the neuron (`settled_direction`). On correlated
        inputs, they can differ strongly from the weights at activation (`direction`). If the neuron is dormant (small)
        again on the plateau, the weights at activation are returned instead.

    Example:
        >>> from dynascope.tasks import Task
        >>> task = Task(np.diag([1.0, 1.2, 0.9, 1.1]), [[1.5], [1.0], [-0.8], [-0.9]])
        >>> staircase = predict_by_alternation(task, TwoLayer(4, 12, 1, activation="relu"), scale=1e-5)
        >>> staircase["accelerated_time"].to_numpy().round(3), staircase["loss_after"].to_numpy().round(3)
        (array([2.082, 3.268]), array([0.181, 0.   ]))
    """
    kind = {"degree": network.degree, "normalised": normalised}
    second = other_scale(scale, **kind, factor=_FACTOR, divisor=_DIVISOR)
    limits = {"max_steps": max_steps, "operations": _OPERATIONS * max_steps}
    found: list[xr.Dataset] = []
    for each in track((scale, second), "scales"):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", f".*assumes a {SMALL_START.name}")  # the prediction states it
            found.append(alternating_flow(task, network, scale=each, normalised=normalised, jumps=jumps, **limits))
        if found[0].attrs["stopped"] == OUT_OF_WORK:
            jumps = found[0].sizes["jump"]
    here, there = found
    notes = [each.replace("increase operations", "increase max_steps") for each in here.attrs["warnings"]]
    if here.sizes["jump"] == there.sizes["jump"]:
        here = slopes_between(here, there)
    else:
        notes.append(
            f"At scale {second:.2g}, the number of jumps is {there.sizes['jump']} instead of {here.sizes['jump']}, so "
            "accelerated times are computed from one scale instead of extrapolated."
        )
    left = float(here["loss_after"][-1] / here["loss_before"][0]) if here.sizes["jump"] else 0.0
    if here.attrs["stopped"].startswith("no dormant neuron") and left > _LEFT:
        notes.append(
            f"The staircase ends at {100 * left:.2g} % of the initial loss, because no dormant (small) neuron "
            "reduces the loss further. More neurons or a larger scale may help."
        )
    exponential = is_exponential(**kind)
    if exponential and here.sizes["jump"]:
        here = _with_short_plateaus_marked(here)
    offset = expected_time_error(network, scale, normalised=normalised)
    two_layers = isinstance(network, TwoLayer | BiasedTwoLayer)
    name = network.activation.name if two_layers else type(network).__name__
    here = with_tolerances(
        here.assign_attrs(network=name, warnings=notes),
        jump_time=(offset, "the times may all be shifted by an unknown amount, which hardly depends on the scale"),
        slope=(0.05, "neighbouring jumps still overlap at finite scale"),
    )
    return _with_features(here, network, task) if two_layers else here


def expected_time_error(network: SumOfNeurons, scale: float, *, normalised: bool) -> float:
    """Return the expected relative error of jump times at a scale below one."""
    kind = {"degree": network.degree, "normalised": normalised}
    return 2.2 / time_unit(scale, **kind) if is_exponential(**kind) else 0.1


def _with_short_plateaus_marked(record: xr.Dataset) -> xr.Dataset:
    """Mark all jumps as slow that follow the first plateau too short for the active neurons to converge."""
    gaps = np.diff(StaircaseView(record).times)
    e_folds = np.append(np.inf, gaps * record[GROWTH_RATE].to_numpy()[1:])
    reasons, marked = [], False
    for each in e_folds:
        after = "an earlier plateau is too short, so the path may differ after this plateau" if marked else ""
        marked = marked or bool(each < _REST)
        reasons.append(f"the preceding plateau lasts only {each:.1f} e-folds of growth" if each < _REST else after)
    known = record[REASON].to_numpy().tolist()
    return with_slow_jumps(record, [old or new for old, new in zip(known, reasons, strict=True)])


def _with_features(record: xr.Dataset, network: TwoLayer | BiasedTwoLayer, task: Learnable) -> xr.Dataset:
    inputs = network.input_dimension if isinstance(network, BiasedTwoLayer) else network.first.shape[0]
    outputs = network.second.shape[1]
    direction = record["settled_direction"].to_numpy()
    names = {"feature": getattr(task, "feature_names", ()), "target": getattr(task, "target_names", ())}
    coordinates = {
        name: np.array(names[name]) if len(names[name]) == length else np.arange(length)
        for name, length in (("feature", inputs), ("target", outputs))
    }
    if isinstance(network, BiasedTwoLayer) and network.has_hidden_biases:
        record = record.assign(hidden_bias=("jump", direction[:, inputs]))
    return record.assign(
        input_feature=(("jump", "feature"), direction[:, :inputs]),
        output_feature=(("jump", "target"), direction[:, -outputs:]),
    ).assign_coords(coordinates)

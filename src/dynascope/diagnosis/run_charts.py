"""The figures of a recorded training run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from dynascope.diagnosis.known_values import known_values
from dynascope.results import Chart

__all__ = ["run_charts"]

_MOST_LINES = 8
_DECADES = 10.0  # minimum ratio of the largest to the smallest value for a logarithmic y-axis


def run_charts(record: xr.Dataset) -> tuple[Chart, ...]:
    """Return the figures of a recorded run; variables that were not measured are omitted.

    The steps are on a logarithmic axis if most rows are in the first quarter of the run. Figures with one line for each
    parameter or layer show at most the eight lines that change most.

    Args:
        record: The record of a run, over `step`.

    Example:
        >>> from dynascope.results import make_record
        >>> values = {"mean_loss": (["step"], [np.nan, 2.0, 1.0]), "nc1": (["step"], [np.nan] * 3)}
        >>> [chart.title for chart in run_charts(make_record(values, {"step": [0, 1, 2]}))]
        ['Loss']
    """
    drawn = _Charts(record)
    drawn.add(
        {"mean_loss": "mean since the previous row", "max_loss": "largest since the previous row"},
        title="Loss",
        y_label="loss",
        caption="Loss of the training loop, averaged over the steps since the previous row.",
    )
    if _varies(record, "learning_rate"):
        drawn.add(["learning_rate"], title="Learning rate", caption="Learning rate of each parameter group.")
    drawn.add(
        {
            "exact_kernel_distance": "neural tangent kernel",
            "kernel_distance": "pseudo-kernel",
            "hamming_distance": "activation patterns",
        },
        title="Kernel and activation patterns",
        y_label="distance from initialisation",
        caption="Distance of a kernel from its initial value, 1 − ⟨K, K₀⟩/(‖K‖‖K₀‖), and share of the activations that "
        "flipped since initialisation, on the reference batch. The pseudo-kernel is the neural tangent kernel of the "
        "sum of the outputs.",
    )
    drawn.add_members(
        "layer_hamming_distance",
        title="Activation patterns of each layer",
        caption="Share of the activations of each layer that flipped since initialisation.",
    )
    if record.sizes.get("layer", 0) == 1:
        drawn.add(
            {
                "effective_dimension": "intensity",
                "effective_dimension_utilization": "utilisation",
                "effective_dimension_quality": "quality",
            },
            title="Effective number of features",
            y_label="effective number of features",
            caption="Number of features over which three quantities are spread: the intensity of the features that the "
            "last linear layer receives, their utilisation by the outputs, and their alignment with the targets "
            "(quality).",
            places={"layer": (0,)},
        )
    else:
        drawn.add_members(
            "effective_dimension",
            title="Effective number of features",
            caption="Effective number of features of each recorded layer.",
        )
    drawn.add_members(
        "feature_alignment",
        title="Alignment of the features with the targets",
        caption="Alignment of the centred kernel of each layer's features with the targets: 0 if unrelated, 1 if "
        "proportional.",
    )
    drawn.add_members(
        "kappa_cka",
        title="Distance from minimum features",
        caption="Distance κ of the features of each layer from the smallest features that give the same outputs, one "
        "for each output direction.",
    )
    drawn.add(
        {
            "nc1": "NC1",
            "nc2_angle": "NC2, angles",
            "nc2_norm": "NC2, norms",
            "nc3": "NC3",
            "nc4": "NC4",
        },
        title="Neural collapse",
        y_label="distance from collapse",
        caption="Distance of the last features from neural collapse, where all five quantities vanish. NC1: variation "
        "within classes relative to that between classes; NC2: deviation of the class means from a simplex, in angle "
        "and in norm; NC3: distance of the classifier from the class means; NC4: share of predictions that differ from "
        "the nearest class mean.",
    )
    drawn.add(
        ["relative_displacement"],
        title="Distance from initialisation",
        caption="Distance of all weights from their initial values, relative to the initial norm.",
    )
    drawn.add(
        {"total_weight_norm": "weights", "total_update_norm": "update", "total_gradient_norm": "gradient"},
        title="Norms of weights, updates and gradients",
        y_label="norm",
        caption="Norms of all weights, of the last update and of the last gradient.",
    )
    drawn.add_members("weight_norm", title="Norm of each parameter", caption="Norm of each parameter tensor.")
    drawn.add_members(
        "layer_balance",
        title="Balance of consecutive layers",
        caption="Balance of weight matrices that are consecutive in the list of parameters, (‖next‖² − ‖previous‖²)/"
        "(‖next‖² + ‖previous‖²). In networks with branches, such matrices need not be connected.",
    )
    if _occurs(record, "dead_fraction"):
        drawn.add_members(
            "dead_fraction",
            title="Dead units",
            caption="Share of the units of each layer that are active on no reference example, at no position.",
        )
    return tuple(drawn.charts)


class _Charts:
    """Collects the figures whose variables were measured."""

    def __init__(self, record: xr.Dataset):
        self._record, self.charts = record, []
        steps = record["step"].to_numpy()
        self._log_x = bool(len(steps) > 2 and np.median(steps) < steps[-1] / 4)

    def add(self, names: dict[str, str] | Sequence[str], *, caption: str, **how: Any) -> None:
        """Add a figure of the variables that have values; if `names` is a dictionary, its values label the lines."""
        found = {name: each for name in names if (each := known_values(self._record, name)) is not None}
        if not found:
            return
        words = tuple(names[name] for name in found) if isinstance(names, dict) and len(found) > 1 else ()
        values = np.concatenate([each.to_numpy().ravel() for each in found.values()])
        log = f"{'x' * self._log_x}{'y' * _spans_decades(values)}"
        self.charts.append(
            Chart(tuple(found), over="step", joined=True, log=log, words=words, caption=caption, **how)  # pyright: ignore[reportArgumentType]
        )

    def add_members(self, name: str, *, caption: str, **how: Any) -> None:
        """Add a figure of a variable with one line for each member of its other dimension.

        Members without values are omitted. If there are many members, only those that change most are shown.
        """
        values = known_values(self._record, name)
        if values is None:
            return
        (dimension,) = (str(each) for each in values.dims if each != "step")
        array = values.transpose("step", dimension).to_numpy().astype(float)
        known = np.flatnonzero(np.isfinite(array).any(axis=0))
        array = array[:, known]
        change = np.nanmax(array, axis=0) - np.nanmin(array, axis=0)
        most = np.sort(known[np.argsort(-change, kind="stable")[:_MOST_LINES]])
        if len(most) < len(known):
            caption = f"{caption} The {_MOST_LINES} of {len(known)} that change most are shown."
        members = tuple(values[dimension].to_numpy()[most].tolist())
        self.add([name], caption=caption, members={dimension: members}, **how)


def _varies(record: xr.Dataset, name: str) -> bool:
    values = known_values(record, name)
    return values is not None and bool((values.max("step") > values.min("step")).any())


def _occurs(record: xr.Dataset, name: str) -> bool:
    values = known_values(record, name)
    return values is not None and bool((values > 0).any())


def _spans_decades(values: np.ndarray) -> bool:
    positive = values[np.isfinite(values)]
    return bool(len(positive) and positive.min() > 0 and positive.max() > _DECADES * positive.min())

"""Dimension, alignment and collapse of the features of recorded layers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dynascope.diagnosis.measurements.measured_rows import MeasuredRows, measured_rows
from dynascope.diagnosis.probe import Probe, ProbeCost
from dynascope.diagnosis.snapshot import Snapshot
from dynascope.errors import InputError
from dynascope.probes.class_moments import class_moments
from dynascope.probes.features.metrics import feature_metrics
from dynascope.probes.kernel.distance_and_alignment import target_alignment
from dynascope.probes.neural_collapse import collapse_metrics, nearest_mean_disagreement
from dynascope.validation import array_namespace, shown_error

__all__ = ["ALIGNMENT", "COLLAPSE", "FEATURES", "measure_alignment", "measure_collapse", "measure_features"]

_METRICS = "effective_dimension", "effective_dimension_utilization", "output_dimension", "kappa_cka"
_QUALITY = "effective_dimension_quality"


def measure_features(snapshot: Snapshot) -> dict[str, tuple[list[str], Any]]:
    """Measure the effective dimensions of the features of each layer, and their distance κ from minimal features."""
    rows = measured_rows(snapshot)
    outputs, targets = rows.outputs, rows.targets
    xp = array_namespace(outputs)

    def metrics_of(features: Any) -> dict[str, Any]:
        with warnings.catch_warnings():
            # The reference batch is small and fixed; its composition is the user's choice.
            warnings.simplefilter("ignore", UserWarning)
            found = feature_metrics(features, outputs, targets)
        names = [*_METRICS, *([] if targets is None else [_QUALITY])]
        return {name: xp.asarray(getattr(found, name)) for name in names}

    return _over_layers(snapshot, rows, metrics_of)


def measure_alignment(snapshot: Snapshot) -> dict[str, tuple[list[str], Any]]:
    """Measure the alignment of the kernel of each layer's features with the targets, both centred."""
    rows = measured_rows(snapshot)
    if rows.targets is None:
        return {}
    y = _one_hot(rows.targets, rows.outputs)
    return _over_layers(
        snapshot, rows, lambda features: {"feature_alignment": target_alignment(features @ features.T, y, centred=True)}
    )


def _over_layers(
    snapshot: Snapshot, rows: MeasuredRows, measure: Callable[[Any], Mapping[str, Any]]
) -> dict[str, tuple[list[str], np.ndarray]]:
    """Measure each layer. The values of a layer that cannot be measured are NaN, and the reason is reported."""
    layers = rows.features
    found: dict[str, Mapping[str, Any]] = {}
    for name, features in layers.items():
        try:
            found[name] = measure(features)
        except InputError as error:
            snapshot.note(f"layer {name!r} is not measured, because {shown_error(error)}")
    for name in snapshot.forward.unread:
        snapshot.note(f"layer {name!r} is not measured, because it returns no matrix of numbers in a forward pass")
    names = next(iter(found.values()), {})
    return {
        each: (["layer"], np.array([float(found[name][each]) if name in found else np.nan for name in layers]))
        for each in names
    }


def measure_collapse(snapshot: Snapshot) -> dict[str, tuple[list[str], Any]]:
    """Measure neural collapse (NC1 to NC4) of the features that the last linear layer receives."""
    forward, rows = snapshot.forward, measured_rows(snapshot)
    if rows.targets is None or len(rows.targets.shape) != 1 or not forward.readout:
        return {}
    features, weight = rows.features[forward.readout], forward.readout_weight
    moments = class_moments(features, rows.targets, classes=rows.outputs.shape[1])
    metrics = collapse_metrics(moments, weight, layout="classes_features")
    count = nearest_mean_disagreement(moments, features, weight, forward.readout_bias, layout="classes_features")
    values = {"nc1": metrics.nc1, "nc2_angle": metrics.nc2_angle, "nc2_norm": metrics.nc2_norm, "nc3": metrics.nc3}
    return {name: ([], value) for name, value in {**values, "nc4": count / len(features)}.items()}


def _one_hot(targets: Any, outputs: Any) -> Any:
    """Return labels as unit vectors, and other targets unchanged."""
    xp = array_namespace(targets, outputs)
    if len(targets.shape) > 1 or not xp.isdtype(targets.dtype, "integral"):
        return targets
    numbers = xp.cumulative_sum(xp.ones_like(outputs[0]), axis=0) - 1
    return xp.astype(xp.astype(targets, outputs.dtype)[:, None] == numbers, outputs.dtype)


def _feature_cost(sizes: Any) -> ProbeCost:
    return ProbeCost(
        sizes.examples * (sizes.forward + 6.0 * sizes.features * min(sizes.features, sizes.examples)),
        32.0 * sizes.examples * sizes.features,
    )


FEATURES = Probe(
    name="features",
    description="Effective dimensions of the features of each recorded layer, and their alignment with the outputs.",
    needs=("features", "outputs"),
    measure=measure_features,
    cost=_feature_cost,
    names={
        "effective_dimension": ("effective number of features", "1"),
        "effective_dimension_utilization": ("effective number of features that the outputs use", "1"),
        "effective_dimension_quality": ("effective number of features aligned with the targets", "1"),
        "output_dimension": ("dimension of the outputs", "1"),
        "kappa_cka": ("distance κ from minimum features", "1"),
    },
)
ALIGNMENT = Probe(
    name="alignment",
    description="Alignment of the feature kernel of each recorded layer with the targets.",
    needs=("features", "targets"),
    measure=measure_alignment,
    cost=lambda sizes: ProbeCost(
        sizes.examples * (sizes.forward + 2.0 * sizes.examples * sizes.features), 16.0 * sizes.examples**2
    ),
    names={"feature_alignment": ("alignment of the features with the targets", "1")},
)
COLLAPSE = Probe(
    name="collapse",
    description="Neural collapse of the last layer's features: NC1 to NC4.",
    needs=("features", "targets"),
    measure=measure_collapse,
    cost=_feature_cost,
    names={
        "nc1": ("NC1: variation within classes / between classes", "1"),
        "nc2_angle": ("NC2: largest deviation of the angles between class means", "1"),
        "nc2_norm": ("NC2: variation of the norms of class means", "1"),
        "nc3": ("NC3: distance of classifier and class means", "1"),
        "nc4": ("NC4: share of predictions that differ from the nearest class mean", "1"),
    },
)

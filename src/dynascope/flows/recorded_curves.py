"""Dimensions and labels of the curves that a flow records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynascope.validation import require

__all__ = ["axis_labels", "curve_variables"]

_FIRST = {"mode": 1, "layer": 1}  # first label of axes that are numbered from one


def curve_variables(
    curves: Mapping[str, np.ndarray], leading: Sequence[str], axes: Mapping[str, Sequence[str]]
) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    """Return the dimensions and values of each curve.

    Args:
        curves: The loss and each statistic.
        leading: Dimensions of every curve, which come first.
        axes: Names of the additional dimensions of each statistic.

    Raises:
        InputError: If a statistic has more or fewer dimensions than names.
    """
    variables = {}
    for name, values in curves.items():
        dimensions, shape = tuple(axes.get(name, ())), np.shape(values)[len(leading) :]
        require(
            len(shape) == len(dimensions),
            f"the statistic {name!r} has shape {shape}, but its named dimensions are {dimensions}",
            argument="statistics",
            value=name,
            remedy="give one name for each axis of the statistic",
        )
        variables[name] = ((*leading, *dimensions), values)
    return variables


def axis_labels(task: Any, variables: Mapping[str, tuple[Sequence[str], Any]]) -> dict[str, np.ndarray]:
    """Return labels of every dimension: the names of features and targets if the task has any, otherwise numbers."""
    names = {name: getattr(task, f"{name}_names", ()) for name in ("feature", "target")}
    labels: dict[str, np.ndarray] = {}
    for dimensions, values in variables.values():
        # `make_record` rejects a wrong number of dimensions.
        for dimension, length in zip(dimensions, np.shape(values), strict=False):
            own = np.array(names.get(dimension, ()))
            numbers = np.arange(length) + _FIRST.get(dimension, 0)
            labels.setdefault(dimension, own if len(own) == length else numbers)
    return labels

"""The labels of the dimensions of a record."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynascope.diagnosis.measurements.weights import matrices
from dynascope.diagnosis.snapshot import ForwardPass

__all__ = ["logged_name", "record_labels"]


def record_labels(
    weights: Mapping[str, Any],
    forward: ForwardPass,
    probes: Sequence[str],
    groups: int,
    first: Mapping[str, tuple[Sequence[str], np.ndarray]],
) -> dict[str, list[Any]]:
    """Return the labels of every dimension of a record.

    Args:
        weights: The weights by name.
        forward: A forward pass, without arrays if no probe reads one.
        probes: The names of the probes.
        groups: Number of parameter groups.
        first: The dimensions and values of each variable in the first row.
    """
    names = list(matrices(weights))
    labels: dict[str, list[Any]] = {
        "group": list(range(groups)),
        "probe": list(probes),
        "parameter": list(weights),
        "matrix": names,
        "pair": [" → ".join(each.removesuffix(".weight") for each in pair) for pair in itertools.pairwise(names)],
        "activation": list(forward.preactivations),
        "layer": list(forward.features),
    }
    used = {"group", "probe", "parameter"} | {each for dimensions, _ in first.values() for each in dimensions}
    for dimensions, values in first.values():
        for dimension, size in zip(dimensions, values.shape, strict=True):
            labels.setdefault(dimension, list(range(size)))
    return {name: each for name, each in labels.items() if name in used}


def logged_name(name: str) -> str:
    """Return a name in the characters that all loggers accept: letters, digits, spaces, and `_`, `-`, `.` and `/`.

    Example:
        >>> logged_name("layer_balance/0 → 2"), logged_name("dead_fraction/relu#2")
        ('layer_balance/0 to 2', 'dead_fraction/relu_2')
    """
    return re.sub(r"[^/\w.\- ]", "_", name.replace("→", "to"))

"""Powers of the width with which the outputs of layers change in training."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy
import xarray as xr

from dynascope.theory.regimes import ABCParametrisation, abc_class
from dynascope.validation import require

__all__ = ["CoordinateCheck", "coordinates_checked", "require_widths"]

_SENTENCES = {
    "grows": "the change of the output grows with the width",
    "vanishes": "the change of the output vanishes with the width",
    "constant": "the change of the output does not depend on the width",
    "undecided": "more seeds or larger widths are needed to decide how the change of the output depends on the width",
    "unchanged": "the output does not change in training at one of the widths",
}


class _Scaling(NamedTuple):
    slope: float
    low: float
    high: float
    trend: str


@dataclasses.dataclass(frozen=True, eq=False)
class CoordinateCheck:
    """Changes of the outputs of every layer in training, and their powers of the width.

    `print` shows one sentence for each layer.

    Attributes:
        sizes: `change`, the root mean square change of the outputs of a layer over samples and units, and `initial`,
            the root mean square of its initial outputs, with dimensions (layer, width, seed).
        layers: One row per layer: the log-log `slope` of the change against the width, the ends `low` and `high` of its
            confidence interval, the `expected` exponent (NaN without a theory), and the `trend`: "grows", "vanishes",
            "constant" (the interval lies within the tolerance of zero), "undecided", "unchanged" (the layer does not
            change) or "diverges" (training diverges at a width).
        confidence: Confidence level of the intervals.
        summary: One sentence for each layer.
    """

    sizes: xr.Dataset
    layers: pd.DataFrame
    confidence: float
    summary: str

    def __str__(self) -> str:
        return self.summary

    __repr__ = __str__


def coordinates_checked(
    names: Sequence[str],
    widths: Sequence[int],
    initial: np.ndarray,
    change: np.ndarray,
    parametrisation: ABCParametrisation | None,
    *,
    confidence: float,
    tolerance: float,
) -> CoordinateCheck:
    """Fit the slope of each layer.

    Args:
        names: Names of the layers.
        widths: The widths n.
        initial: Root mean squares of the initial outputs, shape (layers, widths, seeds).
        change: Root mean square changes; not finite where training diverged.
        parametrisation: Exponents of the parametrisation, or None.
        confidence: Confidence level.
        tolerance: Slope below which a change counts as constant.
    """
    expected = _expected(len(names), parametrisation)
    found = [_scaling(widths, each, tolerance, confidence) for each in change]
    table = pd.DataFrame(found, index=pd.Index(names, name="layer"))
    table.insert(3, "expected", expected)
    dimensions = ("layer", "width", "seed")
    sizes = xr.Dataset(
        {"change": (dimensions, change), "initial": (dimensions, initial)},
        {"layer": list(names), "width": list(widths), "seed": np.arange(change.shape[2])},
    )
    divergent = [width for place, width in enumerate(widths) if not np.isfinite(change[:, place]).all()]
    sentences = [
        _sentence(name, each, exponent, confidence, divergent)
        for name, each, exponent in zip(names, found, expected, strict=True)
    ]
    return CoordinateCheck(sizes, table, confidence, "\n".join(sentences))


def require_widths(widths: Sequence[int]) -> None:
    """Raise `InputError` unless there are two different widths."""
    require(
        len(set(widths)) == len(widths) >= 2,
        f"widths is {list(widths)}",
        argument="widths",
        value=list(widths),
        remedy="give at least two different widths, such as [64, 128, 256, 512]",
    )


def _expected(layers: int, parametrisation: ABCParametrisation | None) -> tuple[float, ...]:
    if parametrisation is None:
        return (math.nan,) * layers
    count = parametrisation.hidden_layers + 1
    require(
        count == layers,
        f"parametrisation has {count} layers, but the network has {layers}",
        argument="parametrisation",
        value=count,
        remedy=f"use dataclasses.replace(parametrisation, hidden_layers={max(layers - 1, 1)}), or omit parametrisation",
    )
    found = abc_class(parametrisation)
    return (math.nan,) * layers if found.name == "unstable" else found.layer_exponents


def _scaling(widths: Sequence[int], change: np.ndarray, tolerance: float, confidence: float) -> _Scaling:
    """Slope, interval and trend of the changes (widths, seeds) of one layer."""
    if not np.isfinite(change).all():
        return _Scaling(math.nan, math.nan, math.nan, "diverges")
    if (change == 0).any():
        return _Scaling(math.nan, math.nan, math.nan, "unchanged")
    # Seeds are independent, so that the slopes of the seeds are independent samples.
    slopes = np.polyfit(np.log(widths), np.log(change), 1)[0]
    slope, runs = float(slopes.mean()), len(slopes)
    quantile = float(scipy.special.stdtrit(runs - 1, (1 + confidence) / 2))
    half = quantile * float(slopes.std(ddof=1)) / math.sqrt(runs)
    low, high = slope - half, slope + half
    if -tolerance <= low and high <= tolerance:
        return _Scaling(slope, low, high, "constant")
    trend = "grows" if low > tolerance else "vanishes" if high < -tolerance else "undecided"
    return _Scaling(slope, low, high, trend)


def _sentence(name: str, found: _Scaling, expected: float, confidence: float, divergent: Sequence[int]) -> str:
    if found.trend == "diverges":
        return f"{name}: training diverges at width {', '.join(map(str, divergent))}."
    interval = f"{confidence:.0%} interval {found.low:.2f} to {found.high:.2f}"
    theory = "" if math.isnan(expected) else f"; the expected slope is {expected:.4g}"
    numbers = "" if math.isnan(found.slope) else f" (slope {found.slope:.2f}, {interval}{theory})"
    return f"{name}: {_SENTENCES[found.trend]}{numbers}."

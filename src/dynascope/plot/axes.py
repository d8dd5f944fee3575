"""How an axis is scaled and named, whoever draws it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynascope.plot.traces import Trace, corners
from dynascope.results import describe

__all__ = ["axis_label", "count_ticks", "is_crowded", "is_logarithmic", "is_power_law", "literal"]

_LOGARITHMIC = ("scaling_parameter", "scale", "learning_rate", "samples", "compute", "neurons")
_CLOCKS = ("time", "step", "sampled_step")
_FEW = 12  # things that are counted along an axis, each with a tick
_DECADES = 100.0  # less of a span does not need a logarithmic axis
_DECADE = 10.0  # nor does less of a span of values
_STRAIGHT = 0.97  # correlation of logarithms from which on a curve is seen best between two logarithmic axes


def is_logarithmic(lines: Sequence[Trace]) -> bool:
    """Whether the horizontal axis is to be logarithmic: by its kind, or as its points (after a zero) keep a ratio.

    Example:
        >>> x = np.geomspace(1.0, 1e6, 20)
        >>> [is_logarithmic([Trace("observed", "", "#0072B2", True, "time", each, x)]) for each in (x, np.arange(20.0))]
        [True, False]
    """
    if lines[0].axis in _LOGARITHMIC:
        return True
    x = lines[0].x[1:] if len(lines[0].x) and lines[0].x[0] == 0 else lines[0].x
    if len(x) < 4 or not np.all(x > 0) or x[-1] < _DECADES * x[0]:
        return False
    return bool(np.ptp(np.diff(np.log(x))) < 1e-3 * np.log(x[1] / x[0]))


def is_crowded(lines: Sequence[Trace]) -> bool:
    """Whether a late jump presses at least half of a predicted staircase into the first tenth of a linear axis."""
    for line in lines:
        if line.side == "predicted" and line.alone:
            times = corners(line)[0]
            return len(times) > 1 and 2 * int(np.sum(times < line.x[-1] / 10)) >= len(times)
    return False


def count_ticks(lines: Sequence[Trace]) -> dict[float, str]:
    """A tick at each of a few things that are counted along the horizontal axis; none for anything else.

    Example:
        >>> x = np.arange(1.0, 4.0)
        >>> count_ticks([Trace("observed", "", "#0072B2", True, "layer", x, x)])
        {1.0: '1', 2.0: '2', 3.0: '3'}
    """
    x = np.unique(np.concatenate([line.x for line in lines]))
    counted = lines[0].axis not in (*_CLOCKS, *_LOGARITHMIC) and len(x) <= _FEW
    if not counted or not np.all(x == np.round(x)) or not np.all(np.diff(x) == 1):
        return {}
    return {float(place): f"{place:.0f}" for place in x}


def is_power_law(lines: Sequence[Trace]) -> bool:
    """Whether the vertical axis is to be logarithmic too: most curves are about straight between logarithmic axes.

    Example:
        >>> x = np.geomspace(1.0, 1e6, 20)
        >>> [is_power_law([Trace("observed", "", "#0072B2", True, "time", x, y)]) for y in (x**-0.5, 1 / (1 + x / 1e5))]
        [True, False]
    """
    if not is_logarithmic(lines):
        return False
    values = np.concatenate([line.y for line in lines])
    if not np.all(values > 0) or values.max() < _DECADE * values.min():
        return False
    return bool(np.median([_straightness(line.x, line.y) for line in lines]) > _STRAIGHT)


def _straightness(x: np.ndarray, y: np.ndarray) -> float:
    """Size of the correlation of ln x and ln y where x is positive; zero for a constant or fewer than three points."""
    x, y = np.log(x[x > 0]), np.log(y[x > 0])
    if len(x) < 3 or np.ptp(y) == 0:
        return 0.0
    return float(abs(np.corrcoef(x, y)[0, 1]))


def axis_label(name: str) -> str:
    """What a variable is called of which only the name is known."""
    long_name, units = describe(name)
    return units if name == "time" else long_name


def literal(text: str) -> str:
    """The text with no dollar sign that would start a formula."""
    return text.replace("$", r"\$")

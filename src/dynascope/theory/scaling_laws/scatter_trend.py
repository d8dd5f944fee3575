"""How the scatter of losses changes over the design: small runs are often noisier than large ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float
from scipy.stats import theilslopes

__all__ = ["ROUNDING", "scatter_trend"]

ROUNDING = 1e-6  # relative residual that rounding, single precision or the last step of a descent may leave

_PASSES = 2  # over the resources
_MOST = 500  # points in a regression, whose cost grows with their square


def scatter_trend(
    rest: Float[np.ndarray, " points"],
    resources: Sequence[Float[np.ndarray, " points"]],
    kept: Bool[np.ndarray, " points"] | None = None,
) -> Float[np.ndarray, " points"]:
    """Estimate the relative standard deviation of each loss, up to a common factor, as powers of the resources.

    The slopes of ln |residual| over ln of each resource are Theil and Sen's medians of pairwise slopes, which tolerate
    29 % of outliers.

    Args:
        rest: Residuals of ln L about a law.
        resources: ln of N and of D, or of one resource.
        kept: Which points the slopes are estimated from; all if not given.
    """
    size = np.log(np.maximum(np.abs(rest), ROUNDING))
    some = np.flatnonzero(np.ones(size.size, bool) if kept is None else kept)
    some = np.random.default_rng(0).permutation(some)[:_MOST]
    trend = np.zeros(size.size)
    for _ in range(_PASSES):
        for resource in resources:
            with np.errstate(invalid="ignore"):  # in the interval of the slope, where many residuals are equal
                slope = theilslopes((size - trend)[some], resource[some])[0]
            trend += slope * resource
    return np.exp(trend - trend.mean())

"""Tolerances of means over draws: what chance may explain is no disagreement, and what it could hide is not judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

__all__ = ["WORTH", "error_of_mean", "error_of_median", "within_chance"]

WORTH = 0.5  # a tolerance that would let half or twice the prediction pass judges nothing
_DEVIATIONS = 3


def within_chance(
    predicted: xr.Dataset, standard_errors: Mapping[str, ArrayLike], *, beside: float = 0.0
) -> xr.Dataset:
    """The prediction with tolerances of at least three standard errors; what could then not be judged is left out.

    Args:
        predicted: A record with tolerances.
        standard_errors: Of the observed means, by the name of the quantity, in its shape.
        beside: Error of the theory, relative, that is added.

    Example:
        >>> predicted = xr.Dataset({"loss": ("samples", [2.0, 1.0])}, attrs={"loss_tolerance": 0.01})
        >>> within_chance(predicted, {"loss": [0.02, 0.01]}).attrs["loss_maximum_tolerance"]
        0.03
        >>> list(within_chance(predicted, {"loss": [1.0, 0.1]}))
        []
    """
    for name, errors in standard_errors.items():
        if name not in predicted:
            continue
        size, mean = np.asarray(errors, float), np.abs(predicted[name].to_numpy())
        ratios = {"": np.linalg.norm(size) / np.linalg.norm(mean), "_maximum": size.max() / mean.max()}
        limits = {f"{name}{end}_tolerance": float(_DEVIATIONS * ratio + beside) for end, ratio in ratios.items()}
        if max(limits.values()) >= WORTH:
            predicted = predicted.drop_vars(name)
            continue
        wider = {at: limit for at, limit in limits.items() if limit > predicted.attrs.get(at, 0.0)}
        reasons = {f"{at}_reason": "three standard errors of the mean, beside the error of the theory" for at in wider}
        predicted = predicted.assign_attrs(wider | reasons)
    return predicted


def error_of_mean(draws: np.ndarray) -> Any:
    """The standard error of the mean over the first axis.

    Example:
        >>> float(error_of_mean(np.array([1.0, 3.0])))
        1.0
    """
    return np.std(draws, axis=0, ddof=1) / np.sqrt(len(draws))


def error_of_median(draws: np.ndarray) -> Any:
    """The standard error of the median over the first axis, from the quartiles, which heavy tails do not move.

    Example:
        >>> normal = np.random.default_rng(0).normal(size=10_000)
        >>> float((error_of_median(normal) * 100).round(1))
        1.3
    """
    quarter, three = np.percentile(draws, [25, 75], axis=0)
    # Quartiles of a normal quantity are 1.349 deviations apart, and its median scatters √(π/2) as much as the mean.
    return (three - quarter) / 1.349 * np.sqrt(np.pi / 2 / len(draws))

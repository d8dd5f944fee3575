"""Tolerances that allow for the sampling error of averages over draws."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

__all__ = ["WORTH", "within_chance"]

WORTH = 0.5  # relative tolerance above which a comparison is meaningless
_DEVIATIONS = 3
_REASON = "three standard errors of the average over draws, plus the error of the theory"


def within_chance(
    predicted: xr.Dataset, standard_errors: Mapping[str, ArrayLike], *, beside: float = 0.0
) -> xr.Dataset:
    """Widen the tolerances of a prediction to three standard errors, and drop quantities that are too uncertain.

    Args:
        predicted: A record with tolerances.
        standard_errors: Standard errors of the observed averages by name, each with the shape of the quantity.
        beside: Relative error of the theory, added to each tolerance.

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
        reasons = {f"{at}_reason": _REASON for at in wider}
        predicted = predicted.assign_attrs(wider | reasons)
    return predicted

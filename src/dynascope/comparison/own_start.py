"""Detect a prediction from other weights than those from which a curve of your own started."""

from __future__ import annotations

import numpy as np
import xarray as xr

from dynascope.comparison.doubts import FIRST
from dynascope.comparison.loss_convention import LOSSES, ratio_names
from dynascope.record import staircase_names as names
from dynascope.record.numbers import number
from dynascope.record.staircase_view import is_staircase

__all__ = ["other_start"]

_FEW = 20  # logged losses; in a shorter noisy curve, none may rise by chance
_NOISE_OF_FEW = 0.5  # of the first loss, which may be that of a small minibatch


def other_start(observed: xr.Dataset, predicted: xr.Dataset) -> str:
    """Why a curve did not start from the weights of a prediction; empty if it may have.

    The first loss of the curve shows other weights only where it is above their loss. Below, it may be a mean over
    steps or come after some. The largest rise of the curve bounds the noise of its first loss, as of a minibatch; where
    fewer than 20 losses were logged, half of the first loss does.

    Args:
        observed: The record of a curve, as of `own_curve`.
        predicted: A prediction in the units of the curve. Weights that `predict` draws and tasks that are no samples
            have another loss than the training anyway, so that nothing follows from theirs.

    Example:
        >>> from dynascope.comparison.own_curve import own_curve
        >>> from dynascope.record import make_record
        >>> theory = make_record({"loss": (["time"], [0.5, 0.4])}, {"time": [0.0, 9.0]}, attributes={"samples": 20})
        >>> other_start(own_curve([0.5, 0.4], learning_rate=0.1, loss="squared"), theory)
        ''
        >>> print(other_start(own_curve([1.7, 0.4], learning_rate=0.1, loss="squared"), theory))
        The first loss of the curve is 1.7, and the weights given to predict have a loss of 0.5, so they are not ...
    """
    facts = predicted.attrs
    known = "loss" in predicted and predicted["loss"].dims == ("time",) and float(predicted["time"][0]) == 0
    if not known or facts.get("weights") == "drawn" or "samples" not in facts:
        return ""
    loss, start = observed["loss"].to_numpy(), float(predicted["loss"][0])
    noise = float(np.max(loss - np.minimum.accumulate(loss)))
    tolerance = float(facts.get(f"{names.CURVE if is_staircase(predicted) else 'loss_maximum'}_tolerance", 0.0))
    if len(loss) < _FEW:
        noise = max(noise, _NOISE_OF_FEW * loss[0])
    if loss[0] - start <= (FIRST + tolerance) * loss[0] + noise:
        return ""
    found = f"The first loss of the curve is {number(loss[0], 3)}, and the weights given to predict have a loss of "
    found += number(start, 3)
    others = ratio_names(loss[0] / start, observed.attrs["loss_convention"], facts, FIRST) if start > 0 else []
    if others:
        is_it = " or ".join(f"loss={each!r} ({LOSSES[each].formula})" for each in others)
        return f"{found}: is it {is_it}, and not loss={observed.attrs['loss_convention']!r}?"
    return (
        f"{found}, so they are not the weights of step 0. Copy the model before training, with copy.deepcopy(model), "
        "and predict from the copy. If they are the weights of step 0, check that the data and loss= are those of the "
        "training."
    )

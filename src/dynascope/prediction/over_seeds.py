"""Predictions for several random initialisations."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import xarray as xr

from dynascope.flows.progress import track
from dynascope.networks.kinds import NetworkKind
from dynascope.prediction.initial_weights import with_weights
from dynascope.prediction.prediction import predict
from dynascope.protocols import Learnable
from dynascope.results import Prediction
from dynascope.results import staircase_names as names
from dynascope.tasks.as_task import as_task
from dynascope.validation import require
from dynascope.validation.bounded_scalars import PositiveFloat, PositiveInt, Seed
from dynascope.validation.checked import checked

__all__ = ["predict_seeds"]


def predict_seeds(
    task: Learnable,
    kind: NetworkKind,
    *,
    seeds: PositiveInt,
    scale: PositiveFloat | None = None,
    first: Seed = 0,
    width: PositiveInt = 50,
    **options: Any,
) -> Prediction:
    """Predict how a kind of network learns, for several draws of its initial weights.

    Args:
        task: The data.
        kind: "linear", "relu", "quadratic" or "attention".
        seeds: Number of draws.
        scale: Factor on the initial weights, below one; by default `prediction.default_scale`.
        first: The first seed; the others are consecutive.
        width: Number of hidden neurons.
        **options: Passed to `predict`.

    Returns:
        The prediction for the first seed, with additional variables for all seeds. `seed_jump_time` over (`seed`,
        `jump`) contains the times, and `seed_learned` a description of the learned feature: the input with the largest
        weight, or the description of the jump if it is the same for all seeds or if the inputs have no names. Jumps
        that a seed lacks are NaN or empty. If there are loss curves, `loss_low`, `loss_median` and `loss_high` contain
        the minimum, median and maximum over the seeds, at the times of the first curve.

    Raises:
        InputError: As for `predict`, or the weights of this kind of network are not random.

    Example:
        >>> from dynascope.tasks import Task
        >>> task = Task(np.eye(2) * 2**0.5, np.diag([4.0, 1.0]) * 2**0.5, name="two modes")
        >>> predicted = predict_seeds(task, "linear", seeds=3, scale=1e-8)
        >>> predicted["seed_learned"].to_numpy()[:, 0].tolist()
        ['direction x1, for y1', 'direction x1, for y1', 'direction x1, for y1']
    """
    require(
        kind != "diagonal",
        f"seeds is {seeds}, but the initial weights of a diagonal network are not random",
        argument="seeds",
        value=seeds,
        remedy="omit seeds",
    )
    task = as_task(task)
    # Sequentially, because a batch is not faster: a batch of four takes 1.1 times as long as a loop (ReLU, wine and
    # diabetes), and all members would use the shortest step that any member needs.
    normalised = bool(options.get("normalised"))
    found = []
    for seed in track(range(first, first + seeds), "seeds"):
        network, factor = with_weights(task, kind, scale, seed=seed, width=width, normalised=normalised)
        found.append(checked(predict)(task, network, scale=factor, **options).record)
    named = getattr(task, "image_shape", None) is None
    jumps = max(each.sizes["jump"] for each in found)
    times = np.full((seeds, found[0].sizes["jump"]), np.nan)
    learned = np.full(times.shape, "", dtype=object)
    for row, (each, labels) in enumerate(zip(found, _labels(found, jumps, named=named), strict=True)):
        shown = min(each.sizes["jump"], times.shape[1])
        times[row, :shown] = each[names.JUMP_TIME].to_numpy()[:shown]
        learned[row, :shown] = labels[:shown]
    together = (
        found[0]
        .assign_coords(seed=np.arange(first, first + seeds))
        .assign(
            {
                names.SEED_JUMP_TIME: (("seed", "jump"), times),
                names.SEED_LEARNED: (("seed", "jump"), learned.astype(str)),
            }
        )
    )
    return Prediction.of(together.assign(_curves(found)))


def _labels(found: list[xr.Dataset], jumps: int, *, named: bool) -> list[list[str]]:
    """Describe the feature that each seed learns at each jump, briefly enough to count equal descriptions."""
    words = [[str(each) for each in record[names.LEARNED].to_numpy()] for record in found]
    labels = [list(each) for each in words]
    for jump in range(jumps):
        distinct = {each[jump] for each in words if jump < len(each)}
        if len(distinct) == 1:
            continue
        for record, own in zip(found, labels, strict=True):
            if named and jump < len(own) and "learned_direction" in record:
                direction = np.abs(record["learned_direction"].to_numpy()[jump])
                own[jump] = str(record["feature"].to_numpy()[int(direction.argmax())])
    return labels


def _curves(found: list[xr.Dataset]) -> dict[str, tuple[str, np.ndarray]]:
    """Return minimum, median and maximum of the losses at the times of the first curve; ended curves are ignored."""
    if any(names.CURVE_LOSS not in each for each in found):
        return {}
    time = found[0]["time"].to_numpy()
    losses = [np.interp(time, each["time"], each[names.CURVE_LOSS], right=np.nan) for each in found]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # times beyond all curves
        spread = np.nanmin(losses, axis=0), np.nanmedian(losses, axis=0), np.nanmax(losses, axis=0)
    return {
        f"{names.CURVE_LOSS}_{end}": ("time", curve)
        for end, curve in zip(("low", "median", "high"), spread, strict=True)
    }

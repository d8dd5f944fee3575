"""Comparison of the loss curves of two runs that should be twins."""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
import xarray as xr
from annotated_types import Gt
from numpy.typing import ArrayLike

from dynascope.results.named_tuples import short_repr
from dynascope.tasks.data.plain_arrays import array_or_frame
from dynascope.validation import require
from dynascope.validation.arrays import real_array
from dynascope.validation.bounded import PositiveFloat

__all__ = ["TwinCheck", "check_twin"]


class TwinCheck(NamedTuple):
    """Whether and where two loss curves part.

    Attributes:
        identical: Whether the losses are equal bit by bit.
        largest_difference: Largest difference of √L, relative to the largest √L of the run.
        first_difference: First step at which the losses differ; None if they never differ.
        parting_step: First step at which the difference exceeds the tolerance; None if it never does.
        rounding_suffices: Whether rounding errors and their growth can explain all differences up to the parting step.
        summary: One sentence.
    """

    identical: bool
    largest_difference: float
    first_difference: int | None
    parting_step: int | None
    rounding_suffices: bool
    summary: str

    __repr__ = short_repr


def check_twin(
    run: Any,
    twin: Any,
    *,
    steps: ArrayLike | None = None,
    loss_factor: PositiveFloat = 1.0,
    tolerance: PositiveFloat = 1e-6,
    rounding: PositiveFloat = 1e-13,
    growth: Annotated[float, Gt(1)] = 10.0,
) -> TwinCheck:
    """Find where the recorded losses of two twins part, and whether rounding can explain it.

    The difference at a record is d = |√L − √(L'/q)|/max √L, with the loss factor q of the twin. Rounding errors start
    at the order of the precision, and unstable training multiplies them. Hence rounding suffices if every difference d
    up to the parting step satisfies

        d(t) ≤ max(rounding · t, g^(t − t₋) · max(d(t₋), rounding)),  d(0) ≤ rounding,

    where t₋ is the previous record and g the largest growth per step. A setting that is not matched violates this
    bound at an early step, and an event such as clipping at the step where it happens. An unmatched setting whose
    effect on one step is below the rounding errors is not detected. The more densely the losses are recorded, the
    sharper the check.

    Args:
        run: Losses L of the run, shape (records,): an array, a list of numbers or PyTorch tensors, or a record with
            the variable `loss` along `step`, as `training.descend` and `torch.Recorder` return it.
        twin: Losses L' of the twin at the same steps, in the same forms.
        steps: Recorded steps, in increasing order; by default those of the records, or 0, 1, 2, ….
        loss_factor: q > 0, the loss of the twin divided by that of the run.
        tolerance: Difference beyond which the curves part.
        rounding: Relative rounding error of √L per step: about 1e-13 for float64, 1e-5 for float32.
        growth: g > 1.

    Returns:
        The steps at which the curves differ and part, and whether rounding suffices.

    Raises:
        InputError: If a loss is negative or not finite, the shapes or the steps of two records differ, there are no
            records, all losses are zero, or the steps do not increase.

    Example:
        >>> losses = 0.5 ** np.arange(6)
        >>> check_twin(losses, 4 * losses, loss_factor=4.0).identical
        True
        >>> check_twin(losses, losses * [1, 1, 1, 1.1, 1.1, 1.1]).summary
        'The losses part at step 3, and rounding errors cannot explain the difference.'
    """
    (one, recorded), (two, also_recorded) = _losses("run", run), _losses("twin", twin)
    two = two / loss_factor
    require(
        recorded is None or also_recorded is None or np.array_equal(recorded, also_recorded),
        "run and twin are recorded at different steps",
        argument="twin",
        value=also_recorded,
        remedy="record both runs at the same steps",
    )
    if steps is None:
        steps = recorded if recorded is not None else also_recorded
    at = np.arange(one.size, dtype=float) if steps is None else np.asarray(steps, float)
    require(
        one.ndim == 1 and one.size > 0 and one.shape == two.shape,
        f"run has shape {one.shape}, but twin has shape {two.shape}",
        argument="twin",
        value=two.shape,
        remedy="give one loss of each run per recorded step",
    )
    require(
        at.shape == one.shape and bool(np.isfinite(at).all()) and at[0] >= 0 and bool((np.diff(at) > 0).all()),
        f"steps has shape {at.shape} or does not increase",
        argument="steps",
        value=at.shape,
        remedy="give the recorded step of each loss, in increasing order from 0",
    )
    largest = math.sqrt(one.max())
    require(largest > 0, "all losses of the run are 0", argument="run", value=0.0, remedy="give a run with a loss")
    difference = np.abs(np.sqrt(one) - np.sqrt(two)) / largest
    gaps = np.diff(at, prepend=at[0])
    before = np.concatenate([[0.0], difference[:-1]])
    with np.errstate(over="ignore"):
        allowed = np.maximum(rounding * np.maximum(at, 1), growth**gaps * np.maximum(before, rounding))
    parted = np.flatnonzero(difference > tolerance)
    end = parted[0] + 1 if parted.size else one.size
    suffices = bool((difference[:end] <= allowed[:end]).all())
    differing = np.flatnonzero(one != two)
    first = int(at[differing[0]]) if differing.size else None
    parting = int(at[parted[0]]) if parted.size else None
    cause = "which rounding errors can explain" if suffices else "and rounding errors cannot explain the difference"
    if first is None:
        summary = "The losses are identical."
    elif parting is None:
        summary = f"The losses differ from step {first}, by at most {difference.max():.2g}, {cause}."
    else:
        summary = f"The losses part at step {parting}, {cause}."
    return TwinCheck(first is None, float(difference.max()), first, parting, suffices, summary)


def _losses(name: str, run: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the losses of a run, and the steps if it is a record."""
    if not isinstance(run, xr.Dataset):
        return np.asarray(real_array(name, array_or_frame(run, name), minimum=0, dimensions=1), float), None
    require(
        "loss" in run and run["loss"].dims == ("step",),
        f"{name} has no variable loss along the dimension step alone",
        argument=name,
        value=list(run.data_vars),
        remedy="give the record of a single run",
    )
    # `torch.Recorder` measures the model before the first loss is known.
    start = int(np.isnan(run["loss"].to_numpy()[:1]).sum())
    kept = run["loss"][start:]
    return np.asarray(real_array(name, kept.to_numpy(), minimum=0), float), kept["step"].to_numpy().astype(float)

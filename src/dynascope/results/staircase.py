"""Staircases: the results of staircase theories, their records, and the training time that shows all jumps."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float

from dynascope.results import staircase_names as names
from dynascope.results.schema import make_record
from dynascope.results.staircase_view import StaircaseView
from dynascope.validation import require
from dynascope.validation.bounded_scalars import OpenFraction, PositiveFloat

__all__ = [
    "Staircase",
    "slopes_between",
    "staircase_record",
    "staircase_residual",
    "training_time",
    "with_slow_jumps",
    "with_tolerances",
]


_LONGEST = 100.0  # times the time of the last jump, to see its plateau settle


@dataclasses.dataclass(frozen=True)
class Staircase:
    """Plateaus of the loss and the jumps between them, in order.

    Attributes:
        accelerated_times: Limit of t / T at each jump as the scale goes to zero, shape (J,), where T is given by
            `results.time_unit`: log(1/scale) for degree 2.
        times: Gradient-flow time t of each jump at the given scale, shape (J,): when the loss passes the midpoint
            between the two plateaus.
        levels: Loss of each plateau, L = ½ E‖f(x) − y‖², shape (J + 1,); the first is the initial loss.
        learned: One phrase for each jump that describes the learned feature.
        slow: For each jump, the reason why its time converges slowly to the small-scale limit; empty if it does not.
        features: Further quantities by name, each with its dimension names and values; the first dimension is "jump".
        names: Long names and units of the features.
        theory: Name of the theory.
        reference: The publication.
        warnings: Sentences about the limits of this prediction.
        degree: Degree of homogeneity κ of a neuron.
        normalised: Whether the times are those of the homogeneity-normalised flow.

    Example:
        >>> from dynascope.theory.staircase import linear_staircase
        >>> staircase = linear_staircase(np.diag([2.0, 0.5]), np.eye(2), 4.25, scale=1e-6)
        >>> staircase.times.round(2).tolist(), staircase.levels.tolist()
        ([6.91, 27.63], [2.125, 0.125, 0.0])
    """

    accelerated_times: Float[np.ndarray, " jump"]
    times: Float[np.ndarray, " jump"]
    levels: Float[np.ndarray, " level"]
    learned: tuple[str, ...]
    slow: tuple[str, ...]
    features: Mapping[str, tuple[tuple[str, ...], np.ndarray]]
    theory: str
    reference: str
    warnings: tuple[str, ...] = ()
    degree: int = 2
    normalised: bool = False
    names: Mapping[str, tuple[str, str]] = dataclasses.field(default_factory=dict)


@runtime_checkable
class Described(Protocol):
    """The part of a task that a record requires; `feature_names` and similar attributes label its dimensions."""

    def attributes(self) -> Mapping[str, Any]:
        """Return the attributes of the task for a record."""
        ...


def staircase_record(
    staircase: Staircase,
    task: Described,
    *,
    scale: PositiveFloat,
    network: str,
    jump_time_tolerance: tuple[float, str] | None = None,
    slope_tolerance: tuple[float, str] | None = None,
) -> xr.Dataset:
    """Make the record of a predicted staircase.

    Args:
        staircase: The staircase returned by a theory.
        task: The data, or an expectation in closed form.
        scale: Factor on the initial weights.
        network: Name of the kind of network.
        jump_time_tolerance: Relative tolerance of times, and its reason; by default that of `compare`.
        slope_tolerance: Relative tolerance of the slopes of the times against `results.time_unit`, and its reason.

    Returns:
        A staircase record. Over `jump`: `jump_time` (gradient-flow time at this scale), `accelerated_time`,
        `loss_before`, `loss_after`, `learned`, `slow` with its `reason`, and the features of the staircase.

    Example:
        >>> from types import SimpleNamespace
        >>> task = SimpleNamespace(attributes=lambda: {"task": "an example"})
        >>> times, levels = (np.array([0.5]), np.array([9.2])), np.array([1.0, 0.0])
        >>> steps = Staircase(*times, levels, learned=("it",), slow=("",), features={}, theory="a theory", reference="")
        >>> record = staircase_record(steps, task, scale=1e-8, network="linear")
        >>> record["jump_time"].item(), record["loss_after"].item(), record.attrs["initial_loss"]
        (9.2, 0.0, 1.0)
    """
    variables = {
        names.JUMP_TIME: (("jump",), staircase.times),
        names.ACCELERATED_TIME: (("jump",), staircase.accelerated_times),
        names.LOSS_BEFORE: (("jump",), staircase.levels[:-1]),
        names.LOSS_AFTER: (("jump",), staircase.levels[1:]),
        names.LEARNED: (("jump",), np.array(staircase.learned, dtype=str)),
        **_slow(staircase.slow),
        **staircase.features,
    }
    coordinates: dict[str, Any] = {"jump": np.arange(1, len(staircase.times) + 1)}
    for dimensions, values in variables.values():
        for name, length in zip(dimensions, np.shape(values), strict=True):
            labels = getattr(task, f"{name}_names", ())
            coordinates.setdefault(name, np.array(labels) if len(labels) == length else np.arange(length))
    return make_record(
        variables,
        coordinates,
        attributes={
            "theory": staircase.theory,
            "reference": staircase.reference,
            "network": network,
            "degree": staircase.degree,
            "normalised": staircase.normalised,
            "scale": scale,
            names.INITIAL_LOSS: float(staircase.levels[0]),
            "warnings": list(staircase.warnings),
            **_tolerances(jump_time_tolerance, slope_tolerance),
            **task.attributes(),
        },
        names=staircase.names,
    )


def with_tolerances(
    record: xr.Dataset, *, jump_time: tuple[float, str] | None = None, slope: tuple[float, str] | None = None
) -> xr.Dataset:
    """Replace the tolerances of times and slopes, each with its reason."""
    return record.assign_attrs(_tolerances(jump_time, slope))


def with_slow_jumps(record: xr.Dataset, reasons: Sequence[str]) -> xr.Dataset:
    """Mark slow jumps, each with a reason; an empty reason means that the jump is not slow."""
    return record.assign(_slow(reasons))


def slopes_between(record: xr.Dataset, at_other_scale: xr.Dataset) -> xr.Dataset:
    """Replace accelerated times with the slopes of the times between two scales, in which constant offsets cancel.

    Args:
        record: A staircase.
        at_other_scale: The staircase of the same network at another scale, with the same number of jumps.
    """
    here, there = StaircaseView(record), StaircaseView(at_other_scale)
    return record.assign({names.ACCELERATED_TIME: ("jump", (there.times - here.times) / (there.unit() - here.unit()))})


def training_time(staircase: xr.Dataset, scale: OpenFraction) -> float:
    """Return a training time that is long enough to show all jumps of a staircase.

    Args:
        staircase: A staircase record, as returned by `predict`.
        scale: Initialisation scale of the training, which may differ from that of the prediction.

    Returns:
        Gradient-flow time: at least 1.25 times the time of the last jump, or 1.1 times if more jumps follow; longer
        at large scales, where the predicted times are less accurate.

    Raises:
        InputError: The staircase has no jumps, or the scale is not between zero and one.

    Example:
        >>> from types import SimpleNamespace
        >>> task = SimpleNamespace(attributes=dict)
        >>> times, levels = (np.array([0.5]), np.array([9.2])), np.array([1.0, 0.0])
        >>> steps = Staircase(*times, levels, learned=("it",), slow=("",), features={}, theory="a theory", reference="")
        >>> record = staircase_record(steps, task, scale=1e-8, network="linear")
        >>> round(training_time(record, 1e-8), 2), round(training_time(record, 1e-12), 2)
        (12.5, 18.26)
    """
    view = StaircaseView(staircase)
    require(
        view.times.size > 0,
        "the staircase has no jumps, so the training time is undefined",
        argument="staircase",
        value=0,
        remedy="give a duration",
    )
    last = float(np.nanmax(view.times + view.accelerated_times * (view.unit(scale) - view.unit())))
    # From a large scale, features learned early still take time to converge.
    last = max(last, float(np.nanmax(view.accelerated_times)))
    # A slow last jump may come much later.
    beyond = 1.25 if view.complete else 1.5 if bool(view.slow[-1]) else 1.1
    duration = last * (beyond - 2 / np.log(scale))
    settling = view.settling_times
    if view.complete and settling is not None and np.isfinite(settling[-1]):
        # With inputs of very different spreads, the loss settles on its last plateau long after the jump.
        duration = max(duration, min(last + 1.02 * settling[-1], _LONGEST * last))
    return float(duration)


def staircase_residual(
    predicted: xr.Dataset,
    *,
    times: Float[np.ndarray, " jump"],
    time_errors: Float[np.ndarray, " jump"],
    levels: Float[np.ndarray, " level"],
    level_errors: Float[np.ndarray, " jump"],
    status: Sequence[str],
    settled: Bool[np.ndarray, " jump"] | None = None,
    time_tolerances: Float[np.ndarray, " jump"] | None = None,
    slopes: Float[np.ndarray, " jump"] | None = None,
    slope_errors: Float[np.ndarray, " jump"] | None = None,
) -> xr.Dataset:
    """Make the residual of a predicted staircase, over its jumps.

    Args:
        predicted: The staircase record.
        times: Time at which each jump was observed.
        time_errors: Relative errors of the predicted times.
        levels: Observed loss on each plateau, beginning with the initial loss.
        level_errors: Errors of the predicted losses after each jump, relative to the initial loss.
        status: For each jump "judged", "slow" or "not due".
        settled: Whether the plateau after each jump is flat where its level is read; by default all are.
        time_tolerances: Tolerances of the relative errors of the times.
        slopes: Slopes of the times between two scales.
        slope_errors: Relative errors of the accelerated times with respect to these slopes.

    Returns:
        `observed_jump_time`, `predicted_jump_time`, `jump_time_error`, `observed_loss_before`, `observed_loss_after`,
        `level_error`, `status` and, if given, `settled`, `jump_time_tolerance`, `slope` and
        `slope_error`, over `jump`.
    """
    columns = {
        names.OBSERVED_JUMP_TIME: times,
        names.PREDICTED_JUMP_TIME: StaircaseView(predicted).times,
        names.TIME_ERROR: time_errors,
        names.OBSERVED_LOSS_BEFORE: levels[:-1],
        names.OBSERVED_LOSS_AFTER: levels[1:],
        names.LEVEL_ERROR: level_errors,
        names.STATUS: np.array(status, dtype=str),
        names.SETTLED: settled,
        names.TIME_TOLERANCE: time_tolerances,
        names.SLOPE: slopes,
        names.SLOPE_ERROR: slope_errors,
    }
    return xr.Dataset(
        {name: (("jump",), column) for name, column in columns.items() if column is not None},
        coords={"jump": predicted["jump"].to_numpy()},
    )


def _slow(reasons: Sequence[str]) -> dict[str, tuple[tuple[str], np.ndarray]]:
    return {
        names.SLOW: (("jump",), np.array([bool(reason) for reason in reasons], dtype=bool)),
        names.REASON: (("jump",), np.array(reasons, dtype=str)),
    }


def _tolerances(jump_time: tuple[float, str] | None, slope: tuple[float, str] | None) -> dict[str, float | str]:
    given = {names.JUMP_TIME: jump_time, names.SLOPE: slope}
    return {
        attribute: value
        for quantity, tolerance in given.items()
        if tolerance is not None
        for attribute, value in zip((f"{quantity}_tolerance", f"{quantity}_tolerance_reason"), tolerance, strict=True)
    }

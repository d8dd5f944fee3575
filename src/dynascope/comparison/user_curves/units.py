"""Convert a prediction to the loss definition and time units of a user's loss curve."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias

from annotated_types import Interval

# Rooms load their modules lazily; the command line needs `LossName` for its help.
from dynascope import results
from dynascope.results import staircase_names as names
from dynascope.validation import require
from dynascope.validation.bounded_scalars import PositiveFloat, PositiveInt

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "LOSSES",
    "LossConvention",
    "LossName",
    "Momentum",
    "factor_of",
    "in_steps",
    "in_units_of",
    "is_user_curve",
    "matching_conventions",
    "needed_facts",
    "step_duration",
    "with_clock_of",
]

Momentum: TypeAlias = Annotated[float, Interval(ge=0, lt=1)]
LossName = Literal["mse", "half_mse", "squared_norm", "squared", "sum"]


class LossConvention(NamedTuple):
    """A definition of the squared loss, relative to that of dynascope, L = ½ E‖f(x) − y‖².

    Attributes:
        formula: The loss as a formula.
        half: The factor before (f(x) − y)², relative to the ½ of L.
        over_samples: "mean" or "sum".
        over_outputs: "mean" or "sum".
    """

    formula: str
    half: int
    over_samples: Literal["mean", "sum"]
    over_outputs: Literal["mean", "sum"]


LOSSES: dict[LossName, LossConvention] = {
    "mse": LossConvention("mean of (f(x) − y)² over samples and outputs, as torch.nn.MSELoss", 2, "mean", "mean"),
    "half_mse": LossConvention("half the mean of (f(x) − y)² over samples and outputs", 1, "mean", "mean"),
    "squared_norm": LossConvention("E‖f(x) − y‖², mean over samples, sum over outputs", 2, "mean", "sum"),
    "squared": LossConvention("½ E‖f(x) − y‖², mean over samples, sum over outputs", 1, "mean", "sum"),
    "sum": LossConvention(
        "sum of (f(x) − y)² over samples and outputs, as torch.nn.MSELoss(reduction='sum')", 2, "sum", "sum"
    ),
}
_RATES = (names.GROWTH_RATE, names.UNSTABLE_RATE)


def needed_facts(loss: LossName) -> set[str]:
    """Return the attributes of a prediction that a loss definition requires.

    Example:
        >>> needed_facts("mse"), needed_facts("squared")
        ({'output_dimension'}, set())
    """
    needed = {
        "output_dimension": LOSSES[loss].over_outputs == "mean",
        "samples": LOSSES[loss].over_samples == "sum",
    }
    return {name for name, is_needed in needed.items() if is_needed}


def factor_of(loss: LossName, facts: Mapping[Any, Any]) -> float:
    """Return the ratio of a loss to L, which is also the ratio of their gradients.

    Args:
        loss: Name of the loss definition.
        facts: Attributes of a prediction with the numbers of outputs and samples, if the definition requires them.

    Raises:
        InputError: The prediction does not state its number of outputs or samples.

    Example:
        >>> factor_of("mse", {"output_dimension": 3}), factor_of("squared", {})
        (0.6666666666666666, 1.0)
    """
    factor = float(LOSSES[loss].half)
    for name, power in (("output_dimension", -1), ("samples", 1)):
        if name in needed_facts(loss):
            require(
                name in facts,
                f"the prediction has no attribute {name}, which the loss {loss!r} requires",
                argument="loss",
                value=loss,
                remedy="convert the losses to 'squared', ½ E‖f(x) − y‖²",
            )
            factor *= float(facts[name]) ** power
    return factor


def matching_conventions(ratio: float, loss: LossName, facts: Mapping[Any, Any], tolerance: float) -> list[LossName]:
    """Return the loss definitions that explain a loss that is too large by a given ratio.

    Example:
        >>> matching_conventions(0.5, "squared_norm", {"output_dimension": 1, "samples": 9}, 0.02)
        ['half_mse', 'squared']
    """
    found: list[LossName] = []
    for name in LOSSES:
        if name != loss and needed_facts(name) <= facts.keys():
            expected = factor_of(name, facts) / factor_of(loss, facts)
            if abs(ratio / expected - 1) <= tolerance and abs(expected - 1) > tolerance:
                found.append(name)
    return found


def is_user_curve(observed: xr.Dataset) -> bool:
    """Whether a record is a loss curve logged by the user, as `user_curve` returns it."""
    return "loss_convention" in observed.attrs


def in_units_of(predicted: xr.Dataset, observed: xr.Dataset) -> xr.Dataset:
    """Convert the losses, times and rates of a prediction to the units of a user's curve.

    Gradient descent on the loss a L is faster than on L by the factor a, so a step of learning rate η corresponds to
    the gradient-flow time a η.

    Args:
        predicted: A prediction for the loss L.
        observed: The record of the curve.

    Raises:
        InputError: The prediction lacks the number of outputs or samples that the loss definition requires.

    Example:
        >>> from dynascope.comparison import user_curve
        >>> from dynascope.results import make_record
        >>> theory = make_record(
        ...     {"jump_time": (["jump"], [3.0]), "loss_before": (["jump"], [1.0]), "loss_after": (["jump"], [0.2])},
        ...     {"jump": [1]},
        ...     attributes={"output_dimension": 1},
        ... )
        >>> converted = in_units_of(theory, user_curve([2.0, 0.4], learning_rate=0.05, loss="mse"))
        >>> converted["jump_time"].item(), converted["loss_after"].item()
        (30.0, 0.4)
    """
    factor = factor_of(observed.attrs["loss_convention"], predicted.attrs)
    unit = factor * observed.attrs["time_per_unit"]  # gradient-flow time of one unit of the curve's time axis
    flow_time = results.describe("time")[1]
    converted = {}
    # Variables replaced by the user, for example with `assign`, have lost their units.
    predicted = results.name_all(predicted)
    for name, values in predicted.variables.items():
        if values.attrs.get("units") == flow_time or name == names.ACCELERATED_TIME:
            converted[name] = values / unit
        elif name in _RATES:
            converted[name] = values * unit
        elif name == "loss" or str(name).startswith("loss_") or str(name).endswith("_loss"):
            converted[name] = values * factor
        else:
            continue
        converted[name].attrs = values.attrs
    converted = predicted.assign_coords(
        {name: values for name, values in converted.items() if name in predicted.coords}
    ).assign({name: values for name, values in converted.items() if name not in predicted.coords})
    converted.attrs["convention"] = observed.attrs["convention"]
    if names.INITIAL_LOSS in converted.attrs:
        converted.attrs[names.INITIAL_LOSS] *= factor
    return with_clock_of(converted, observed)


def with_clock_of(converted: xr.Dataset, observed: xr.Dataset) -> xr.Dataset:
    """Label the times of a record, which are already on the time axis of a curve, with the units of the curve."""
    converted = converted.copy(deep=False)
    units, flow_time = observed["time"].attrs["units"], results.describe("time")[1]
    for name in converted.variables:
        if converted[name].attrs.get("units") == flow_time:
            converted[name].attrs = {**converted[name].attrs, "units": units}
    return converted


def step_duration(
    predicted: xr.Dataset, *, learning_rate: PositiveFloat, momentum: Momentum = 0.0, loss: LossName = "squared"
) -> float:
    """Return the gradient-flow time of a step, a η / (1 − β), for the loss a L.

    Args:
        predicted: A prediction.
        learning_rate: η.
        momentum: β, as in `user_curve`.
        loss: The loss definition, as in `user_curve`.

    Raises:
        InputError: An argument is out of bounds, or the prediction lacks the number of outputs or samples that the loss
            definition requires.

    Example:
        >>> from dynascope import predict
        >>> predicted = predict(([[1.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 1.0]]), "linear", scale=1e-8).record
        >>> round(step_duration(predicted, learning_rate=0.1, momentum=0.9), 9)
        1.0
    """
    return learning_rate / (1 - momentum) * factor_of(loss, predicted.attrs)


def in_steps(
    predicted: xr.Dataset,
    *,
    learning_rate: PositiveFloat,
    momentum: Momentum = 0.0,
    loss: LossName = "squared",
    batch_size: PositiveInt | None = None,
) -> xr.Dataset:
    """Add the step and the epoch to each jump of a prediction, or to each time of a loss curve.

    Args:
        predicted: The record of a staircase, or of a loss over time.
        learning_rate: η of gradient descent.
        momentum: β, as in `user_curve`.
        loss: The loss definition, as in `user_curve`.
        batch_size: The batch size; without it, epochs are not added.

    Returns:
        The record with `jump_step` and, if the batch size is given, `jump_epoch` (for a curve, `training_step` and
        `training_epoch`). Its attribute `steps` describes the steps.

    Raises:
        InputError: As for `step_duration`, or the batch size exceeds the number of samples.

    Example:
        >>> from dynascope.results import make_record
        >>> theory = make_record(
        ...     {"jump_time": (["jump"], [3.0]), "loss_before": (["jump"], [1.0]), "loss_after": (["jump"], [0.2])},
        ...     {"jump": [1]},
        ...     attributes={"samples": 60},
        ... )
        >>> converted = in_steps(theory, learning_rate=0.05, batch_size=20)
        >>> converted["jump_step"].item(), converted["jump_epoch"].item()
        (60.0, 20.0)
    """
    jumps = names.JUMP_TIME in predicted
    times = predicted[names.JUMP_TIME if jumps else "time"]
    in_step, in_epoch = (names.JUMP_STEP, names.JUMP_EPOCH) if jumps else ("training_step", "training_epoch")
    steps = times / step_duration(predicted, learning_rate=learning_rate, momentum=momentum, loss=loss)
    with_momentum = f" and momentum {momentum:g}" if momentum else ""
    description = f"of learning rate {learning_rate:g}{with_momentum} on loss = {LOSSES[loss].formula}"
    columns = {in_step: (steps.dims, steps.to_numpy())}
    if batch_size is not None:
        require(
            "samples" in predicted.attrs,
            f"batch_size is {batch_size}, but epochs are undefined, because the task has no samples",
            argument="batch_size",
            value=batch_size,
            remedy="omit batch_size",
        )
        samples = int(predicted.attrs["samples"])
        require(
            batch_size <= samples,
            f"batch_size is {batch_size}, but there are {samples} samples",
            argument="batch_size",
            value=batch_size,
            remedy=f"choose an integer from 1 to {samples}",
        )
        columns[in_epoch] = (steps.dims, steps.to_numpy() * batch_size / samples)
        description += f", each with {batch_size} of {samples} samples"
    return results.name_all(predicted.drop_vars([*columns], errors="ignore").assign(columns)).assign_attrs(
        steps=description
    )

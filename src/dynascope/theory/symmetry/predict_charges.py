"""Charges of a recorded run at every step, predicted by the law of its optimiser, or a split of their drift."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from dynascope.results import make_record
from dynascope.theory.domain import covers
from dynascope.theory.symmetry.drift import charge_drift
from dynascope.theory.symmetry.schedules import grouped_charge, scheduled_charge
from dynascope.theory.symmetry.step_series import WITHOUT_LAW, known_rule, per_step, require_steps
from dynascope.theory.symmetry.translation import Momenta
from dynascope.validation import require, require_array, shown
from dynascope.validation.bounded import NonNegativeNumbers, PositiveNumbers

__all__ = ["predict_charges"]

_NO_LAW = "no law"


@covers(
    network="any with a linear symmetry",
    data="any, in any batches",
    start="any",
    gives="the charges of a recorded run by the law of its optimiser, or the split of their drift without a law",
    reference="arXiv:2012.04728",
)
def predict_charges(
    record: xr.Dataset,
    *,
    learning_rate: PositiveNumbers,
    optimizer: str = "heavy_ball",
    weight_decay: NonNegativeNumbers = 0.0,
    momentum: Momenta = 0.0,
    schedule: PositiveNumbers = 1.0,
) -> xr.Dataset:
    """Predict the charges r = θᵀGθ of a recorded run at every step, by the law of its optimiser.

    `training.charge_statistics` evaluates the law during training; `predict_charges` evaluates it afterwards, for any
    settings. The function uses `scheduled_charge`. If the record has the dimension `group`, for groups of weights with
    different rates and decays, the function uses `grouped_charge` instead. The buffers are v = −d/η, or −d/η − λ θ for
    decoupled decay. Under Adam and other optimisers with per-weight statistics, charges obey no law. For such
    optimisers, the function splits the drift as `charge_drift` does, and sets the attribute `law` to "no law".

    Args:
        record: Record of every step along `step`, optionally `group`, and further dimensions. The record contains
            `charge_value` θᵀGθ, and `displacement_charge` dᵀGd of the preceding step, whose first value is ignored.
            Without a law or for decoupled decay, the record also contains `crossed_charge` θᵀGd, with the weights
            before the step. Nesterov momentum requires `crossed_charge` and `slope_charge` dᵀG∇L.
        learning_rate: η > 0; for groups, one per group.
        optimizer: "heavy_ball", "nesterov" or "decoupled", or the name of an optimiser without a law, such as "adam".
        weight_decay: λ ≥ 0, a number or one per group.
        momentum: β ≥ 0, below one, a number or one per step.
        schedule: Factor > 0 of the learning rates, a number or one per step.

    Returns:
        A record with `predicted_charge`; for groups, this is Q of `grouped_charge`. Without a law, the record contains
        `memory_drift` and `finite_step_drift`, which add up to the change in the charge.

    Raises:
        InputError: If the record lacks a required series or a step, or a number is out of range.

    References:
        Kunin, Sagastuy-Breña, Ganguli, Yamins, Tanaka, arXiv:2012.04728, in discrete form.

    Example:
        >>> steps = {"charge_value": [[1.0], [0.0], [0.0]], "displacement_charge": [[np.nan], [0.01], [0.04]]}
        >>> record = xr.Dataset({name: (("step", "charge"), each) for name, each in steps.items()})
        >>> record = record.assign_coords(step=[0, 1, 2], charge=[0])
        >>> predict_charges(record, learning_rate=0.1)["predicted_charge"].to_numpy().ravel().round(4).tolist()
        [1.0, 1.01, 1.05]
    """
    require(
        isinstance(record, xr.Dataset) and "step" in record.dims and "step" in record.coords,
        "record has no steps",
        argument="record",
        value=shown(record) if not isinstance(record, xr.Dataset) else ", ".join(map(str, record.dims)),
        remedy="give a record with the dimension and coordinate step",
    )
    require_steps(record["step"].to_numpy(), record.sizes["step"])
    squares = _step_series(record, "displacement_charge")
    dims = record["displacement_charge"].dims
    grouped = "group" in dims
    if optimizer.lower().replace("_", "") in WITHOUT_LAW:
        found = charge_drift(_series(record, "charge_value")[0], _step_series(record, "crossed_charge"), squares)
        drifts = {"memory_drift": (dims, found.memory), "finite_step_drift": (dims, found.finite_step)}
        return _result(record, drifts, _NO_LAW)
    known_rule(optimizer)
    count, groups = len(squares), squares.shape[1] if grouped else 1
    rates = np.broadcast_to(require_array("learning_rate", learning_rate, (groups,) * grouped), groups)
    factors, decays = per_step("schedule", schedule, count), per_step("weight_decay", weight_decay, groups)
    momenta = per_step("momentum", momentum, count)

    def spread(of_steps: np.ndarray, of_groups: np.ndarray) -> np.ndarray:
        return np.outer(of_steps, of_groups).reshape(
            *squares.shape[: 1 + grouped], *(1,) * (squares.ndim - 1 - grouped)
        )

    rate, decay = spread(factors, rates), spread(np.ones(count), decays)
    charges = _series(record, "charge_value")
    options: dict[str, Any] = {"optimizer": optimizer, "momentum": momenta}
    with np.errstate(all="ignore"):
        buffers = squares / rate**2
        if optimizer == "decoupled" and decays.any():
            buffers = buffers + 2 * decay / rate * _step_series(record, "crossed_charge") + decay**2 * charges[:-1]
        if optimizer == "nesterov":
            options |= {"updates": buffers, "crossed": buffers}
            if momenta.any():
                # From w = ∂L/∂θ + λ θ + β v and d = −η w; without momentum, v = w.
                along = _step_series(record, "slope_charge") + decay * _step_series(record, "crossed_charge")
                beta = spread(momenta, np.ones(groups))
                options["crossed"] = np.where(beta > 0, (buffers + along / rate) / np.where(beta > 0, beta, 1), buffers)
    require(
        np.isfinite(buffers).all(),
        "the displacements divided by the learning rate overflow",
        argument="learning_rate",
        value=float(rates.min()),
        remedy="check that learning_rate is the learning rate of the run",
    )
    if grouped:
        path = grouped_charge(
            charges[:-1], buffers, learning_rate=rates, weight_decay=decays, schedule=factors, **options
        )
    else:
        path = scheduled_charge(
            charges[0], buffers, learning_rate=rates[0] * factors, weight_decay=decays[0], **options
        )
    remaining_dims = tuple(each for each in dims if each != "group")
    return _result(record, {"predicted_charge": (remaining_dims, path)}, optimizer)


def _series(record: xr.Dataset, name: str) -> np.ndarray:
    """A series along `step`, with the groups, if any, on the second axis."""
    require(
        name in record and record[name].dims[:1] == ("step",) and "group" not in record[name].dims[2:],
        f"record has no {name} along step",
        argument="record",
        value=", ".join(map(str, record)),
        remedy=f"record {name} at every step, with the dimensions step, group (if present) and charge",
    )
    return record[name].to_numpy().astype(np.float64)


def _step_series(record: xr.Dataset, name: str) -> np.ndarray:
    """Values of a series at all records except the first, which has no preceding step."""
    values = _series(record, name)
    require(
        len(values) > 1 and values.shape == _series(record, "charge_value").shape,
        f"{name} has shape {values.shape}",
        argument="record",
        value=values.shape,
        remedy=f"record {name} with the dimensions of charge_value, at two or more steps",
    )
    return require_array("record", values[1:], values[1:].shape)


def _result(record: xr.Dataset, variables: dict[str, Any], law: str) -> xr.Dataset:
    used = dict.fromkeys(name for dims, _ in variables.values() for name in dims)
    coordinates = {str(name): record[name].to_numpy() for name in used}
    return make_record(variables, coordinates, attributes={"law": law})

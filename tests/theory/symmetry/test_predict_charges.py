from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from dynascope.errors import InputError
from dynascope.theory.symmetry import predict_charges

STEPS, MOMENTUM = 60, 0.8
SCHEDULE = 1 + 0.5 * np.cos(0.3 * np.arange(STEPS))


def trained(rule, *, rates=(0.05, 0.05), decays=(0.02, 0.02), momentum=MOMENTUM, schedule=SCHEDULE):
    """f = (a b) x with vectors a and b of two units, whose charges a² − b² are those of rescaling, in NumPy."""
    draw = np.random.default_rng(0)
    theta, signs = draw.normal(size=(2, 2)), np.array([[1.0], [-1.0]])
    buffer, second = np.zeros_like(theta), np.zeros_like(theta)
    rate, decay = np.array(rates)[:, None], np.array(decays)[:, None]
    nothing = np.full((2, 2), np.nan)
    rows = {"charge_value": [signs * theta**2]} | {
        name: [nothing] for name in ("displacement_charge", "crossed_charge", "slope_charge")
    }
    for factor in schedule:
        x, y = draw.normal(size=2)
        gradient = (theta[0] @ theta[1] * x - y) * x * theta[::-1]
        if rule == "adam":
            second = 0.9 * second + 0.1 * gradient**2
            update = -rate * gradient / (np.sqrt(second) + 1e-8)
        elif rule == "decoupled":
            buffer = momentum * buffer + gradient
            update = -factor * rate * (buffer + decay * theta)
        else:
            buffer = momentum * buffer + gradient + decay * theta
            ahead = gradient + decay * theta + momentum * buffer
            update = -factor * rate * (ahead if rule == "nesterov" else buffer)
        rows["displacement_charge"].append(signs * update**2)
        rows["crossed_charge"].append(signs * theta * update)
        rows["slope_charge"].append(signs * gradient * update)
        theta = theta + update
        rows["charge_value"].append(signs * theta**2)
    coordinates = {"step": range(STEPS + 1), "group": [0, 1], "charge": [0, 1]}
    return xr.Dataset({name: (tuple(coordinates), np.array(each)) for name, each in rows.items()}, coordinates)


def summed(record):
    return record.sum("group", skipna=False)


@pytest.mark.parametrize("rule", ["heavy_ball", "nesterov", "decoupled"])
@pytest.mark.parametrize("momentum", [0.0, MOMENTUM])
def test_the_law_of_every_optimiser_is_met_along_a_schedule(rule, momentum):
    record = summed(trained(rule, momentum=momentum))
    found = predict_charges(
        record, learning_rate=0.05, optimizer=rule, weight_decay=0.02, momentum=momentum, schedule=SCHEDULE
    )
    assert found.attrs["law"] == rule
    # Sixty steps of about ten roundings each, of charges of size one.
    np.testing.assert_allclose(found["predicted_charge"], record["charge_value"], atol=1e-12)


@pytest.mark.parametrize("rule", ["heavy_ball", "nesterov"])
def test_groups_have_rates_and_decays_of_their_own(rule):
    rates, decays = [0.05, 0.02], [0.02, 0.1]
    record = trained(rule, rates=rates, decays=decays)
    found = predict_charges(
        record, learning_rate=rates, optimizer=rule, weight_decay=decays, momentum=MOMENTUM, schedule=SCHEDULE
    )
    weighed = record["charge_value"][:, 0] + rates[0] / rates[1] * record["charge_value"][:, 1]
    assert found["predicted_charge"].dims == ("step", "charge")
    np.testing.assert_allclose(found["predicted_charge"], weighed, atol=1e-12)


def test_an_optimiser_without_a_law_has_its_drift_split():
    record = summed(trained("adam"))
    found = predict_charges(record, learning_rate=0.05, optimizer="adam")
    assert found.attrs["law"] == "no law"
    moved = record["charge_value"] - record["charge_value"][0]
    np.testing.assert_allclose(found["memory_drift"] + found["finite_step_drift"], moved, atol=1e-13)
    assert abs(found["memory_drift"]).max() > 0.01


@pytest.mark.parametrize(
    ("change", "options", "named"),
    [
        (lambda r: None, {}, "record"),
        (lambda r: r.drop_vars("displacement_charge"), {}, "record"),
        (lambda r: r.drop_vars("slope_charge"), {"optimizer": "nesterov", "momentum": 0.5}, "record"),
        (lambda r: r.isel(step=slice(0, None, 2)), {}, "steps"),
        (lambda r: r.isel(step=slice(1)), {}, "record"),
        (lambda r: r, {"optimizer": "sgd"}, "optimizer"),
        (lambda r: r, {"learning_rate": 0.0}, "learning_rate"),
        (lambda r: r, {"learning_rate": 1e-200}, "learning_rate"),
        (lambda r: r, {"weight_decay": -1.0}, "weight_decay"),
        (lambda r: r, {"momentum": 1.0}, "momentum"),
        (lambda r: r, {"schedule": 0.0}, "schedule"),
    ],
)
def test_what_the_law_says_nothing_of_is_refused_by_name(change, options, named):
    with pytest.raises(InputError) as caught:
        predict_charges(change(summed(trained("heavy_ball"))), **{"learning_rate": 0.05, **options})
    assert caught.value.argument == named

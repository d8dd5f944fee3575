from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import dynascope
from dynascope.errors import InputError
from dynascope.results import CONVENTION, make_record, validate_record
from dynascope.training.losses import LossName

TIMES = [0.0, 1.0, 2.5]
CURVE = {"loss": (["time"], [1.0, 0.5, 0.25])}


def test_a_record_keeps_values_labels_and_says_its_convention():
    record = make_record(
        {"mode_strength": (["time", "mode"], np.ones((3, 2)))}, {"time": TIMES, "mode": [1, 2]}, attributes={"seed": 3}
    )
    assert record["mode_strength"].dims == ("time", "mode")
    np.testing.assert_array_equal(record["time"], TIMES)
    assert record.attrs == {"convention": CONVENTION, "version": dynascope.__version__, "seed": 3}


def test_attributes_are_plain_values_as_they_come_back_from_a_file():
    attributes = {"warnings": ("ε is large",), "size": np.int64(3), "slow": np.bool(True), "none": None}
    attrs = make_record(CURVE, {"time": TIMES}, attributes=attributes).attrs
    assert attrs["warnings"] == ["ε is large"]
    assert attrs["none"] is None
    assert [(attrs[name], type(attrs[name])) for name in ("size", "slow")] == [(3, int), (True, bool)]


def test_an_attribute_that_is_not_plain_data_is_refused_by_name():
    with pytest.raises(InputError, match="the attribute 'network' has type set: use text") as caught:
        make_record(CURVE, {"time": TIMES}, attributes={"network": {1, 2}})
    assert caught.value.argument == "network"


def test_a_convention_that_differs_is_kept():
    assert make_record(CURVE, {"time": TIMES}, attributes={"convention": "sums"}).attrs["convention"] == "sums"


@pytest.mark.parametrize(
    ("variables", "coordinates", "problem"),
    [
        ({"loss": (["time"], [1.0])}, {}, "the dimension 'time' has no labels"),
        ({"loss": (["time"], [1.0, 2.0])}, {"time": TIMES}, "are inconsistent"),
        ({"loss": (["time"], [[1.0], [1.0, 2.0]])}, {"time": TIMES}, "are inconsistent"),
        ({"loss": (["time"], [1.0, 0.5, -1e-9])}, {"time": TIMES}, "minimum of 'loss' is -1e-09: give non-negative"),
        ({"loss": (["time"], [1j, 0, 0])}, {"time": TIMES}, "'loss' has values of type complex128"),
        ({"loss": (["time"], [None, {}, 0])}, {"time": TIMES}, "'loss' has values of type object"),
        (CURVE, {"time": [0.0, 1.0, 1.0]}, "time is not increasing"),
        (CURVE, {"time": [2.0, 1.0, 0.0]}, "time is not increasing"),
        (CURVE, {"time": [0.0, np.nan, 1.0]}, "time is not increasing"),
        ({"jump_time": (["jump"], [1.0, -2.0])}, {"jump": [1, 2]}, "minimum of 'jump_time' is -2"),
    ],
)
def test_what_breaks_the_schema_is_refused(variables, coordinates, problem):
    with pytest.raises(InputError, match=problem):
        make_record(variables, coordinates)


@pytest.mark.parametrize("name", ["loss", "test_loss"])
def test_only_a_user_loss_may_be_negative(name):
    record = make_record({name: (["step"], [0.5, -0.5])}, {"step": [0, 1]}, attributes={"loss_function": "profit"})
    assert record[name][1] == -0.5
    for known in get_args(LossName):
        with pytest.raises(InputError, match="negative"):
            make_record({name: (["step"], [0.5, -0.5])}, {"step": [0, 1]}, attributes={"loss_function": known})
    with pytest.raises(InputError, match="negative"):
        make_record({"loss_before": (["jump"], [-1.0])}, {"jump": [1]}, attributes={"loss_function": "profit"})


def test_a_signed_quantity_may_be_negative():
    record = make_record({"charge_drift": (["time"], [-1.0, 0.0, 1.0])}, {"time": TIMES})
    assert float(record["charge_drift"].min()) == -1.0


def test_gaps_are_allowed_in_a_loss():
    record = make_record({"loss": (["time"], [np.nan, np.nan, np.nan])}, {"time": TIMES})
    assert bool(record["loss"].isnull().all())


def test_a_dataset_made_elsewhere_needs_the_convention_and_the_version():
    unmarked = xr.Dataset({"loss": ("time", [1.0])}, {"time": [0.0]})
    with pytest.raises(InputError, match="the attribute 'convention' is missing: use make_record"):
        validate_record(unmarked)
    with pytest.raises(InputError, match="the attribute 'version' is missing"):
        validate_record(unmarked.assign_attrs(convention=CONVENTION))


def test_validation_returns_the_same_record():
    record = make_record(CURVE, {"time": TIMES})
    assert validate_record(record) is record


@given(
    st.lists(st.sampled_from(["time", "layer", "mode", "seed", "weather"]), min_size=1, max_size=4, unique=True),
    st.integers(1, 3),
)
def test_any_array_over_labelled_dimensions_makes_a_record(dimensions, length):
    shape = (length,) * len(dimensions)
    labels = {name: np.arange(length, dtype=float) for name in dimensions}
    record = make_record({"alignment": (dimensions, np.zeros(shape))}, labels)
    assert record["alignment"].shape == shape

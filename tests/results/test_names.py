from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from dynascope.errors import InputError
from dynascope.results import describe, label, load, make_record, name_all, names_of, save

CURVE = {"loss": (["time"], [1.0, 0.5])}
TIMES = {"time": [0.0, 1.0]}


def words_of(record: xr.Dataset) -> dict[str, tuple[str, str]]:
    return {str(name): (part.attrs["long_name"], part.attrs["units"]) for name, part in record.variables.items()}


def test_every_part_of_a_record_says_what_it_is_and_in_which_units():
    record = make_record({**CURVE, "delay": ([], 3.0), "strange_thing": ([], 1)}, TIMES)
    words = words_of(record)
    assert words == {name: describe(name) for name in ("time", "loss", "delay", "strange_thing")}
    assert words["delay"][1] == words["time"][1] != words["loss"][1] == "1"
    assert words["strange_thing"] == ("strange thing", "1")


def test_a_time_says_which_clock_its_record_has():
    record = make_record({"loss": (["step"], [1.0, 0.5]), "delay": ([], 3.0)}, {"step": [0, 1]})
    assert words_of(record)["delay"][1] == words_of(record)["step"][1] != describe("time")[1]


def test_a_user_name_is_kept():
    given = ("error of the gauge", "mm²")
    assert words_of(make_record(CURVE, TIMES, names={"loss": given}))["loss"] == given
    record = make_record(CURVE, TIMES)
    record["loss"].attrs["long_name"] = "mine"
    assert words_of(name_all(record))["loss"] == ("mine", "1")


def test_a_given_name_describes_what_derives_from_it_unless_that_has_one_of_its_own():
    names = {"reach": ("reach of the kernel", "m"), "test": ("a test", "1"), "absent": ("not here", "1")}
    record = make_record({"reach_spread": ([], 1.0), "log_reach": ([], 0.0), "test_loss": ([], 1.0)}, {}, names=names)
    words = words_of(record)
    assert words["reach_spread"] == ("reach of the kernel, standard deviation over seeds", "m")
    assert words["log_reach"] == ("logarithm of the reach of the kernel", "1")
    assert words["test_loss"] == describe("test_loss")
    record["reach_spread"].attrs["long_name"] = "mine"
    assert words_of(name_all(record))["reach_spread"] == ("mine", "m")
    assert words_of(name_all(record, names))["reach_spread"] == words["reach_spread"]


def test_names_of_several_records_are_those_of_the_last_that_has_them():
    first = make_record(CURVE, TIMES, names={"loss": ("first", "1")})
    last = make_record({"accuracy": ([], 1.0)}, {})
    assert names_of(first, last)["loss"] == ("first", "1")
    assert names_of(last, first)["accuracy"] == describe("accuracy")


def test_a_long_name_that_is_no_text_is_refused_when_the_record_is_stored(tmp_path):
    record = make_record(CURVE, TIMES)
    record["loss"].attrs["long_name"] = 3
    with pytest.raises(InputError, match="the long_name of 'loss' has type int"):
        save(record, tmp_path / "record.zip")


def test_names_are_stored_and_come_back(tmp_path):
    record = make_record(CURVE, TIMES, names={"loss": ("<b>½ MSE</b>", "mV²")})
    assert words_of(load(save(record, tmp_path / "record.zip")).observed) == words_of(record)


def test_a_record_of_a_version_without_names_has_them_when_it_is_loaded(tmp_path):
    record = make_record(CURVE, TIMES)
    for part in record.variables.values():
        part.attrs.clear()
    assert words_of(load(save(record, tmp_path / "old.zip")).observed)["time"] == describe("time")


def test_the_names_of_parts_follow_from_those_of_the_whole():
    for whole, end in (("kernel_distance", "residual"), ("samples", "low"), ("grokking_time", "standard_error")):
        words, units = describe(f"{whole}_{end}")
        assert describe(whole)[0] in words
        assert units == describe(whole)[1]


def test_a_label_has_units_unless_they_add_nothing():
    given = xr.Dataset({"duration": ("neurons", np.ones(2)), "loss": 1.0}, {"neurons": [1, 2]})
    parts = name_all(given, {"duration": ("duration of Adam", "s")})
    assert [label(parts[name]) for name in ("duration", "neurons", "loss")] == [
        "duration of Adam (s)",
        "neurons",
        "loss",
    ]


def test_names_are_given_once_and_the_record_that_was_given_keeps_what_it_has():
    record = xr.Dataset({"loss": ("time", [1.0])}, {"time": [0.0]})
    assert words_of(name_all(name_all(record))) == words_of(name_all(record))
    assert record["loss"].attrs == {}

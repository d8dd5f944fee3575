"""The attributes of stored records are what their readers expect, or an error names the one that is not."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from zip_members import read_members, write_members

from dynascope.comparison import compare
from dynascope.errors import InputError
from dynascope.results import Chart, load, make_record, save
from dynascope.results.attributes import CHART, check_attributes
from dynascope.results.tree import to_tree

GOOD = {"error": 0.1, "tolerance": 1, "agrees": True, "reason": "it is exact"}
WRONG = [
    ("verdict", 5),
    ("verdict", "maybe"),
    ("verdict_sentence", 5),
    ("title", None),
    ("claim", ["it learns"]),
    ("scale", "small"),
    ("scale", float("nan")),
    ("scale", 10**400),
    ("degree", 0),
    ("degree", 1.5),
    ("normalised", 2),
    ("smallest_jump", -1.0),
    ("loss_tolerance", "x"),
    ("loss_tolerance_reason", 5),
    ("batch_size", "many"),
    ("warnings", "read with care"),
    ("warnings", [5]),
    ("warnings", {"a": "b"}),
    ("description", "text"),
    ("versions", {"numpy": 2}),
    ("parameters", [1]),
    ("parameters", {"width": [[[1]]]}),
    ("image_shape", [8]),
    ("image_shape", [0, 8]),
    ("figures", {"variables": "loss"}),
    ("figures", [{"over": "time"}]),
    ("figures", [{"variables": ["loss"], "log": "z"}]),
    ("figures", [{"variables": ["loss"], "colour": "red"}]),
    ("figures", [{"variables": ["loss"], "interval": ["low"]}]),
    ("figures", [{"variables": ["loss"], "places": {"time": ["first"]}}]),
    ("claims", {"a": True}),
    *(
        (name, {"a": wrong})
        for name in ("agreement", "checks")
        for wrong in (
            {**GOOD, "error": "x"},
            {**GOOD, "error": [1]},
            {**GOOD, "tolerance": "x"},
            {**GOOD, "tolerance": -1},
            {**GOOD, "agrees": "maybe"},
            {**GOOD, "reason": 5},
            {"error": 0.1, "tolerance": 1},
            {**GOOD, "size": 5},
            1,
        )
    ),
]


@pytest.fixture(scope="module")
def tree():
    curve = make_record({"loss": (["time"], np.linspace(1, 0, 50))}, {"time": np.arange(50.0)})
    return compare(curve, curve)


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_an_attribute_of_another_kind_is_named(name, value):
    with pytest.raises(InputError) as refused:
        check_attributes({name: value})
    assert refused.value.argument == name
    assert f"the attribute {name!r} is not" in str(refused.value)


@pytest.mark.parametrize(
    "attributes",
    [
        {"agreement": {"a": GOOD, "b": {**GOOD, "error": None}}, "checks": {}, "claims": {"c": "holds"}}
        | {"verdict": "agree", "verdict_sentence": "It is so."},
        {
            "scale": 0,
            "degree": 3,
            "normalised": True,
            "batch_size": None,
            "image_shape": None,
            "learning_rate": "x",
        },
        {"parameters": {"width": 5, "names": ["a"], "sizes": [[1, 2]], "rates": {"a": 0.1}, "other": None}},
        {"initial_loss": float("inf"), "undefined": float("nan"), "seed": 5, "mine": [1, 2], "flag": True},
        {"scale": np.float64(1e-8), "degree": np.int64(2)},
    ],
)
def test_what_dynascope_writes_is_accepted(attributes):
    check_attributes(attributes)


@pytest.mark.parametrize("name", ["verdict", "verdict_sentence", "agreement", "checks", "claims"])
def test_no_part_of_a_comparison_may_be_missing(tree, name):
    with pytest.raises(InputError, match="of a comparison is missing") as refused:
        check_attributes({each: value for each, value in to_tree(tree).attrs.items() if each != name})
    assert refused.value.argument == name


def test_the_schema_of_charts_has_every_field_with_its_default():
    fields = {field.name: field for field in dataclasses.fields(Chart)}
    assert fields.keys() == {"variables", *CHART}
    defaults = dataclasses.asdict(Chart("loss"))
    assert all(check(defaults[name]) for name, check in CHART.items())


@pytest.mark.parametrize("group", ["", "observed"])
def test_a_record_is_checked_when_it_is_read_and_before_it_is_saved(tree, tmp_path, group):
    path = save(tree, tmp_path / "study.zarr.zip")
    members, name = read_members(path), f"{group}/.zattrs".removeprefix("/")
    write_members(path, members | {name: json.dumps({**json.loads(members[name]), "title": 5}).encode()})
    with pytest.raises(InputError, match="the attribute 'title' is not text"):
        load(path)
    wrong = to_tree(tree)
    wrong.attrs["title"] = 5
    with pytest.raises(InputError, match="the attribute 'title' is not text"):
        save(wrong, tmp_path / "other.zarr.zip")
    assert not (tmp_path / "other.zarr.zip").exists()

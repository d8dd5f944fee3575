from __future__ import annotations

import numpy as np
import xarray as xr

from dynascope.results import from_tree, make_record

CURVE = make_record({"loss": (["time"], [1.0, 0.5])}, {"time": [0.0, 1.0]})
STAIRS = make_record(
    {"jump_time": (["jump"], [1.0]), "loss_before": (["jump"], [1.0]), "loss_after": (["jump"], [0.0])}, {"jump": [1]}
)


def test_a_record_alone_is_the_side_that_its_contents_tell():
    assert list(from_tree(CURVE).sides) == ["observed"]
    assert list(from_tree(STAIRS).sides) == ["predicted"]
    assert list(from_tree(CURVE.assign_attrs(theory="an example")).sides) == ["predicted"]


def test_a_tree_has_the_sides_that_hold_variables():
    tree = xr.DataTree.from_dict({"observed": CURVE, "predicted": STAIRS})
    found = from_tree(tree)
    assert list(found.sides) == ["observed", "predicted"]
    assert found.residual is None
    assert from_tree(xr.DataTree()).sides == {}


def test_a_result_is_returned_as_it_is():
    found = from_tree(STAIRS)
    assert from_tree(found) is found
    assert found.staircase is found.staircase


def test_only_a_predicted_staircase_is_one():
    assert from_tree(CURVE).staircase is None
    assert from_tree(CURVE.assign_attrs(theory="an example")).staircase is None
    staircase = from_tree(STAIRS).staircase
    assert staircase is not None
    np.testing.assert_array_equal(staircase.times, [1.0])


def test_warnings_are_those_of_all_records_each_once():
    warned = CURVE.assign_attrs(warnings=["late"]), STAIRS.assign_attrs(warnings=["rough", "late"])
    tree = xr.DataTree.from_dict(dict(zip(("observed", "predicted"), warned, strict=True)))
    assert from_tree(tree).warnings == ["late", "rough"]

from __future__ import annotations

import pandas as pd
import pytest

from dynascope.errors import InputError
from dynascope.tasks.data.column_names import listed
from dynascope.tasks.data.column_roles import split_columns, split_frame
from dynascope.tasks.data.columns import Column

COLUMNS = {name: Column.of([0.0]) for name in ("height", "girth", "age", "kind")}


@pytest.mark.parametrize("drop", ["girth", ["girth"], ("girth", "girth")])
def test_columns_that_are_dropped_are_neither_inputs_nor_targets(drop):
    inputs, targets, _ = split_columns(COLUMNS, ["kind", "age"], drop, source="trees.csv")
    assert (list(inputs), list(targets)) == (["height"], ["kind", "age"])


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("target", "drop", "argument", "problem"),
    [
        ("age", "grith", "drop", "trees.csv has no column 'grith': choose 'girth' or another of 'height'"),
        ("age", ["age"], "drop", "both target and drop contain 'age': list each"),
        ("age", ["height", "girth", "kind"], "target", "every column of trees.csv is dropped or a target"),
        (None, "age", "target", "no target column of trees.csv is given"),
        (pd.Series([1.0]), (), "target", "target has type Series: give the name of a column"),
        ("age", pd.Index(["kind"]), "drop", "drop has type Index: give the name of a column"),
    ],
)
def test_names_that_leave_nothing_to_learn_are_refused(target, drop, argument, problem):
    with pytest.raises(InputError, match=problem) as caught:
        split_columns(COLUMNS, target, drop, source="trees.csv")
    assert caught.value.argument == argument


@pytest.mark.usefixtures("unchecked_types")
def test_columns_that_are_numbered_may_be_named_by_numbers():
    inputs, targets, _ = split_columns({str(i): Column.of([0.0]) for i in range(4)}, 3, [0], source="table")
    assert (list(inputs), list(targets)) == (["1", "2"], ["3"])


def test_long_lists_are_cut():
    assert listed(map(str, range(14))).endswith("'11' and 2 more")


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "...1"])
@pytest.mark.parametrize(
    "rows", [[1, 2, 3], [7, 5, 9], ["oak", "elm", "yew"], ["2020-01-02", "2020-01-03", "2020-01-04"]]
)
def test_a_first_column_without_a_name_that_names_the_rows_is_left_out(name, rows):
    columns = {name: Column.of(rows), "a": Column.of([1.0, 2.0, 3.0]), "y": Column.of([2.0, 1.0, 0.0])}
    inputs, _, notes = split_columns(columns, "y", source="trees.csv")
    assert list(inputs) == ["a"]
    assert ["column 1" in each for each in notes] == [True]
    for drop in ("", name):
        inputs, _, notes = split_columns(columns, "y", drop, source="trees.csv")
        assert list(inputs) == ["a"]
        assert [repr(name) in each for each in notes] == [True]
    assert list(split_columns(columns, name or "y", source="trees.csv")[1]) == [name or "y"]


@pytest.mark.parametrize(
    "rows", [[1, 1, 2], [0.5, 1.5, 2.5], ["oak", "oak", "elm"], [1, None, 3], ["1 %", "2 %", "3 %"]]
)
def test_a_column_without_a_name_that_says_more_is_not_left_out_in_silence(rows):
    columns = {"Unnamed: 0": Column.of(rows), "a": Column.of([1.0, 2.0, 3.0]), "y": Column.of([2.0, 1.0, 0.0])}
    with pytest.raises(InputError, match=r"column 1 of trees\.csv has no name, and its values do not number or name"):
        split_columns(columns, "y", source="trees.csv")
    assert list(split_columns(columns, "y", "", source="trees.csv")[0]) == ["a"]
    with pytest.raises(InputError, match=r"column 2 of trees\.csv has no name: name the column"):
        split_columns({"a": columns["a"], "": Column.of([1, 2, 3]), "y": columns["y"]}, "y", source="trees.csv")


def test_no_column_without_a_name_can_be_dropped_where_all_have_one():
    with pytest.raises(InputError, match=r"trees\.csv has no column ''"):
        split_columns(COLUMNS, "age", "", source="trees.csv")


@pytest.mark.parametrize(
    ("index", "called"),
    [
        (pd.Index(["oak", "elm"]), "the index"),
        (pd.Index([5, 9], name="year"), "the index 'year'"),
        (pd.RangeIndex(2, name="row"), "the index 'row'"),
        (pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["site", "plot"]), "the index 'site' 'plot'"),
        (pd.RangeIndex(2), ""),
        (pd.Index([0, 1]), ""),
    ],
)
def test_an_index_is_left_out_and_named(index, called):
    frame = pd.DataFrame({"a": [1.0, 2.0], "y": [2.0, 1.0]}, index=index)
    inputs, targets, notes = split_frame(frame, "y", source="table", argument="table")
    assert (list(inputs), list(targets)) == (["a"], ["y"])
    assert inputs["a"].values.index.tolist() == [0, 1]
    assert len(notes) == bool(called)
    assert all(called in each and "reset_index()" in each for each in notes)

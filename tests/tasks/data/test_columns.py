from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pyarrow
import pytest

from dynascope.errors import InputError
from dynascope.tasks.data.columns import Column, columns_of, not_numbers, to_numbers

NUMBERS = np.array([[1.0, 2.5], [3.0, -4.0]])


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        ("number", [1.5, None]),
        ("number", [None, None]),
        ("integer", [1, 2]),
        ("integer", pd.array([1, None], dtype="Int64")),
        ("truth", [True, False]),
        ("text", ["oak", None]),
        ("text", ["5th Avenue", "2 High Street"]),
        ("text", ["May", "June"]),
        ("text", ["A-12", "1.4.2-beta"]),
        ("category", pd.Categorical([1, 2])),
        ("date", pd.to_datetime(["2020", "2021"])),
        ("date", [datetime.date(2020, 1, 2)]),
        ("date", ["2020-01-02", "2020-01-03T10:00:00Z"]),
        ("date", ["1/2/20", "3/2/20"]),
        ("date", ["10:15", "11:30:05.5"]),
        ("date", ["3 Jan 2020", "Jan 4, 2020"]),
        ("other", [b"oak", b"elm"]),
        ("other", [[1.0], [2.0]]),
        ("other", [1 + 2j]),
    ],
)
def test_the_kind_is_that_of_what_is_there(kind, column):
    assert Column.of(column).kind == kind


@pytest.mark.parametrize(
    ("column", "written"),
    [
        (["12 %", "7%"], True),
        (["$1,200", "$80.50"], True),
        (["1.234,5", "2.000,1"], True),
        (["?", "3"], True),
        (["\u22121.5", "2.5"], True),
        (["1.0D+00", "2.0D-01"], True),
        (["1e5", "-", "2.5"], True),
        (["1+2j", "2+3j"], True),
        (["A12", "B7"], False),
        (["5 apples", "6 pears"], False),
        (["?", "oak", "3"], False),
    ],
)
def test_numbers_in_unknown_writing_are_told_from_text(column, written):
    assert (Column.of(column).kind == "written number") is written


def test_all_kinds_of_numbers_are_read():
    columns = {"a": Column.of([True, False]), "b": Column.of(pd.array([1, None], dtype="Int64"))}
    np.testing.assert_array_equal(to_numbers(columns, "input", "table"), [[1, 1], [0, np.nan]])


def test_what_is_no_number_is_refused_with_what_to_do():
    dates = {"born": Column.of(["2020-01-02", "2020-01-03"])}
    with pytest.raises(InputError, match=r"dates or times in text such as '2020-01-02' in the input 'born': .*drop"):
        to_numbers(dates, "input", "trees.csv")
    with pytest.raises(InputError, match="in the target 'born'"):
        to_numbers(dates, "target", "trees.csv")
    assert "blank" in not_numbers({"a": Column.of(["?", "3"])}, "input", "trees.csv").remedy


@pytest.mark.parametrize(
    ("column", "gaps"),
    [
        ([31.0, np.nan, 35.0, np.inf, 33.0], [1, 3]),
        (["oak", "elm", None, "oak", "elm"], [2]),
        (pd.array([1, None, 3], dtype="Int64"), [1]),
        (pd.array([True, None], dtype="boolean"), [1]),
        (pd.array([0.5, None], dtype="Float64"), [1]),
        (pd.array(["oak", None], dtype="string"), [1]),
        (pd.Categorical(["oak", None]), [1]),
        (pd.to_datetime(["2020", None]), [1]),
        (np.array([True, None], dtype=object), [1]),
        ([1, 2], []),
    ],
)
def test_gaps_are_found_in_columns_of_every_kind(column, gaps):
    assert np.flatnonzero(Column.of(column).gaps).tolist() == gaps


class Polars:
    """As frames of other libraries are called, and what they offer."""

    def to_pandas(self):
        return pd.DataFrame(NUMBERS, columns=["a", "b"])


Polars.__name__ = "DataFrame"


@pytest.mark.parametrize("value", [Polars(), pyarrow.table({"a": [1.0, 3.0], "b": [2.5, -4.0]})])
def test_frames_of_other_libraries_know_the_way_to_pandas(value):
    columns = columns_of(value, "x", argument="x")
    assert {name: column.values.tolist() for name, column in columns.items()} == {"a": [1.0, 3.0], "b": [2.5, -4.0]}


def test_columns_have_names():
    assert list(columns_of(NUMBERS, "x", argument="x")) == ["x1", "x2"]
    assert list(columns_of(NUMBERS, "x", argument="x", names=["a", "b"])) == ["a", "b"]
    assert list(columns_of([1.0, 2.0], "y", argument="y")) == ["y"]
    assert list(columns_of(pd.Series([1.0]), "y", argument="y")) == ["y"]
    assert list(columns_of(pd.Series([1.0], name="price"), "y", argument="y")) == ["price"]
    assert list(columns_of(pd.DataFrame({1: [1.0], ("a", "b"): [2.0]}), "x", argument="x")) == ["1", "('a', 'b')"]


def test_two_columns_of_one_name_are_refused():
    with pytest.raises(InputError, match="x has several columns named 'a'"):
        columns_of(pd.DataFrame(NUMBERS, columns=["a", "a"]), "x", argument="x")

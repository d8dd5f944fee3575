from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest

from dynascope.errors import InputError
from dynascope.tasks.data.column_kinds import is_written_number, kind_of, refused, to_numbers


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
    assert kind_of(pd.Series(column)) == kind


@pytest.mark.parametrize(
    ("column", "written"),
    [
        (["12 %", "7%"], True),
        (["$1,200", "$80.50"], True),
        (["1.234,5", "2.000,1"], True),
        (["?", "3"], True),
        (["1e5", "-", "2.5"], True),
        (["1+2j", "2+3j"], True),
        (["A12", "B7"], False),
        (["5 apples", "6 pears"], False),
        (["?", "oak", "3"], False),
    ],
)
def test_numbers_in_unknown_writing_are_told_from_text(column, written):
    assert is_written_number(pd.Series(column)) is written


def test_all_kinds_of_numbers_are_read():
    columns = {"a": pd.Series([True, False]), "b": pd.Series(pd.array([1, None], dtype="Int64"))}
    np.testing.assert_array_equal(to_numbers(columns, "input", "table"), [[1, 1], [0, np.nan]])


def test_what_is_no_number_is_refused_with_what_to_do():
    dates = {"born": pd.Series(["2020-01-02", "2020-01-03"])}
    with pytest.raises(InputError, match=r"dates or times in text such as '2020-01-02' in the input 'born': .*--drop"):
        to_numbers(dates, "input", "trees.csv")
    with pytest.raises(InputError, match="in the target 'born': encode it as numbers or choose another target"):
        to_numbers(dates, "target", "trees.csv")
    assert "blank where one is missing" in refused({"a": pd.Series(["?", "3"])}, "input", "trees.csv").remedy

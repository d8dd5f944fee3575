"""Decimal commas and thousands separators, recognised from the whole column or table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dynascope.errors import InputError
from dynascope.tasks.data.decimal_marks import with_numbers
from dynascope.tasks.data.delimited import read_delimited


@pytest.fixture
def read(tmp_path):
    def write(**columns: str):
        path = tmp_path / "trees.csv"
        rows = zip(*(column.split("|") for column in columns.values()), strict=True)
        path.write_text("\n".join([";".join(columns), *map(";".join, rows)]) + "\n", "utf-8")
        return read_delimited(path)[:2]

    return write


@pytest.mark.parametrize(
    ("column", "numbers"),
    [
        ("1,5|2|-2|,5e2", [1.5, 2, -2, 50]),
        ("1,5||2,5|NA", [1.5, np.nan, 2.5, np.nan]),
        ("1.500,25|2.500,5|12|1.000", [1500.25, 2500.5, 12, 1000]),
        ("1\u00a0234,5|2\u202f345,25|1 000,0|3", [1234.5, 2345.25, 1000, 3]),
        ("1'234,5|2,25|1,0|3", [1234.5, 2.25, 1, 3]),
        ("0,123|1,234|2,345|3,456", [0.123, 1.234, 2.345, 3.456]),
        ("1,234.5|2,345|3|4.5", [1234.5, 2345, 3, 4.5]),
        ("1,234,567|2,345|3|4", [1234567, 2345, 3, 4]),
        ("1 234|2 345|3|4", [1234, 2345, 3, 4]),
    ],
)
def test_a_column_shows_what_its_marks_are(read, column, numbers):
    frame, notes = read(a=column, b="1|2|3|4")
    np.testing.assert_array_equal(frame["a"], numbers)
    assert len(notes) == 1
    assert notes[0].endswith(" in 'a'.")


@pytest.mark.parametrize(
    ("a", "b", "numbers"),
    [
        ("1,234|2,345", "1,5|2", [1.234, 2.345]),
        ("1,234|2,345", "0.5|1.25", [1234, 2345]),
        ("1,234|2,345", "1,234.5|2", [1234, 2345]),
        ("1.234|2.345", "1,5|2", [1234, 2345]),
        ("1.234|967", "1,5|2", [1234, 967]),
        ("1.234|967", "0.5|2", [1.234, 967]),
        ("1.234|2.345", "5|6", [1.234, 2.345]),
        ("1.5|2.25", "1,5|2", [1.5, 2.25]),
    ],
)
def test_a_doubtful_column_is_read_as_the_others(read, a, b, numbers):
    assert read(a=a, b=b)[0]["a"].tolist() == numbers


@pytest.mark.parametrize(
    ("a", "b", "mark"),
    [
        ("1,234|2,345", "1|2", "comma"),
        ("1,234|5", "1|2", "comma"),
        ("1.234|967", "1|2", "point"),
        ("1,234|2,345", "1,234|1.234", "comma"),
        ("1,234|2,345", "0,5|2", ""),
    ],
)
def test_what_nothing_decides_is_rejected(read, a, b, mark):
    if not mark:
        assert read(a=a, b=b)[0]["a"].tolist() == [1.234, 2.345]
        return
    with pytest.raises(InputError, match=f"in 'a'.*whose {mark} can be a decimal mark or a thousands separator"):
        read(a=a, b=b)


@pytest.mark.parametrize("column", ["x,1|y,2", "1,5|2,x", "1.2.3|1.2.4", "12 %|7,5 %"])
def test_other_text_is_left_alone(read, column):
    frame, notes = read(a=column, b="1|2")
    assert frame["a"].tolist() == column.split("|")
    assert notes == []


def test_between_commas_a_point_is_a_decimal_mark(tmp_path):
    (tmp_path / "trees.csv").write_text("a,b\n1.234,1\n967,2\n")
    frame, notes, _ = read_delimited(tmp_path / "trees.csv")
    assert frame["a"].tolist() == [1.234, 967]
    assert ["'a'" in each for each in notes] == [True]
    (tmp_path / "trees.csv").write_text('"a","b"\n"1.234","1"\n"967","2"\n')
    with pytest.raises(InputError, match="in 'a', whose point can be a decimal mark"):
        read_delimited(tmp_path / "trees.csv")


@pytest.mark.parametrize(("other", "reported"), [("5", True), ("0.5", False)])
def test_points_between_commas_are_decimal_and_reported_if_they_may_be_thousands(other, reported):
    written = pd.DataFrame({"a": [other, "15", "7"], "b": ["1.234", "87", "4.827"]})
    frame = written.apply(pd.to_numeric)
    found, said = with_numbers(frame, written, "a.csv", decimal_points=True, argument="path")
    assert found["b"].tolist() == [1.234, 87, 4.827]
    assert ["'b'" in each for each in said] == [True] * reported

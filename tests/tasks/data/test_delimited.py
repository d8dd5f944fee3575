"""Delimited text as people and programs write it: encodings, separators, quotes, blanks, lines above the header."""

from __future__ import annotations

import csv
import io
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.tasks.data.delimited import read_delimited

NUMBERS = [[1.5, 2.0, -3.25], [4.0, 5.5, 0.125]]


@pytest.fixture
def table(tmp_path):
    def write(written: str, encoding: str = "utf-8", **options):
        path = tmp_path / "trees.csv"
        path.write_bytes(written.encode(encoding))
        return read_delimited(path, **options)[:2]

    return write


def columns(frame: pd.DataFrame) -> dict[str, list]:
    return {str(name): column.tolist() for name, column in frame.items()}


@pytest.mark.parametrize("separator", [",", ";", "\t", "|", " ", ":", ", ", "; ", "   "])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_the_separator_is_found(table, separator, end, encoding):
    rows = [["Höhe", "girth", "age"], *([str(each) for each in row] for row in NUMBERS)]
    frame, notes = table(end.join(separator.join(row) for row in rows) + end, encoding)
    assert list(frame) == ["Höhe", "girth", "age"]
    np.testing.assert_array_equal(frame, NUMBERS)
    assert bool(notes) == (encoding == "latin-1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("height, in m\tage\n1\t2\n3\t4\n", {"height, in m": [1, 3], "age": [2, 4]}),
        ("x,m;y,m\n1,5;2\n3,5;4\n", {"x,m": [1.5, 3.5], "y,m": [2, 4]}),
        ("the big name,height\nan old oak,1.5\na new elm,2.5\n", {"the big name": ["an old oak", "a new elm"]}),
        ("time,v\n10:15:00,1\n10:16:00,2\n", {"v": [1, 2]}),
        ("   a     b    y\n 1.0   2.0 -3.0\n10.0 -20.5  3e2\n", {"a": [1, 10], "b": [2, -20.5], "y": [-3, 300]}),
        ('"kind, of tree";age\n"oak; old";1\n"elm\nyoung";2\n', {"kind, of tree": ["oak; old", "elm\nyoung"]}),
        ("final train loss\n1.0\n0.5\n", {"final train loss": [1, 0.5]}),
        (" a , b \n1,2\n3,4\n", {"a": [1, 3], "b": [2, 4]}),
        ("kind\tsize\noak\tbig\nelm\tsmall\n", {"kind": ["oak", "elm"], "size": ["big", "small"]}),
        ("a;y\n1.5e-3;1E5\n2.5E+2;2\n", {"a": [0.0015, 250], "y": [100000, 2]}),
    ],
)
def test_what_is_no_separator_is_left_in_the_text(table, text, expected):
    found = columns(table(text)[0])
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize(
    "text", ["a,b,\n1,2,\n3,4,\n", "a,b\n1,2,\n3,4,\n", "a,b,\n1,2\n3,4\n", "a,b,,\n1,2,,\n3,4,,\n"]
)
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_separators_at_the_end_of_rows_are_no_columns(table, text, separator):
    assert columns(table(text.replace(",", separator))[0]) == {"a": [1, 3], "b": [2, 4]}


@pytest.mark.parametrize(
    ("above", "skipped"),
    [
        ("# Station: North\n# Units: mixed\n", 2),
        ("// made by hand\n", 1),
        ("Station: North\nUnits, metres; and more\n\n", 2),
        ("Report of the station in the north,,\n,,\n", 1),
        ("", 0),
    ],
)
@pytest.mark.parametrize("separator", [",", "\t", " "])
def test_lines_above_the_column_names_are_skipped(table, above, skipped, separator):
    if ",," in above:
        above = "Report\n\n" if separator == " " else above.replace(",", separator)
    frame, notes = table(above + "a,b,y\n1,2,3\n4,5,6\n7,8,9\n".replace(",", separator))
    assert columns(frame) == {"a": [1, 4, 7], "b": [2, 5, 8], "y": [3, 6, 9]}
    assert [re.findall(r"\d+", each) for each in notes] == [[str(skipped)]] * bool(skipped)


def test_the_last_comment_may_name_the_columns(table):
    text = io.StringIO()
    np.savetxt(text, NUMBERS, header="made by numpy\na b y")
    frame, notes = table(text.getvalue())
    np.testing.assert_array_equal(frame, NUMBERS)
    assert list(frame) == ["a", "b", "y"]
    assert [re.findall(r"\d+", each) for each in notes] == [["1"]]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('"a","y"\n"1",1.5,2\n"2",0.5,3\n', [1, 2]),
        ('"a" "y"\n"Mazda RX4" 1.5 2\n"Fiat" 0.5 3\n', ["Mazda RX4", "Fiat"]),
        ("a\ty\n17\t1.5\t2\n4\t0.5\t3\n", [17, 4]),
        ("a,y\n0,1.5,2\n1,0.5,3\n", [0, 1]),
        (",a,y\n0,1.5,2\n1,0.5,3\n", [0, 1]),
        (";a;y\n5;1,5;2\n5;0,5;3\n", [5, 5]),
    ],
)
def test_row_names_have_the_name_that_pandas_gives_them(table, text, names):
    assert columns(table(text)[0]) == {"Unnamed: 0": names, "a": [1.5, 0.5], "y": [2, 3]}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("step,loss\n0,3,5\n1,2,5\n2,1,5\n", "the rows of trees.csv have 3 fields, but line 1 names only 2 of them"),
        ("kind,loss\noak,3,5\nelm,2,5\n", "the rows of trees.csv have 3 fields, but line 1 names only 2 of them"),
        ("a;y\n1.5;1;2\n1.5;3;4\n", "the rows of trees.csv have 3 fields, but line 1 names only 2 of them"),
        ("loss\n0,3\n1,2\n2,1\n", "the rows of trees.csv have 2 fields, but line 1 names only 1 of them"),
        ("a,y\n1,2\n3,4,5\n", "line 3 of trees.csv has 3 instead of 2 fields"),
        ("y a b\n1 2 3\n4   6\n", "line 3 of trees.csv has 2 instead of 3 fields"),
        (
            "# x\na\ty\n" + "".join(f"{i}\t1\t2\n" for i in range(50000)) + "50000\t1\n",
            "line 50003 of .* has 2 instead of 3 fields",
        ),
        ("Station\nUnits\n1,2,3\n4,5,6\n", "no line of trees.csv names the 3 columns"),
        ("# a\n\n# b\n", "trees.csv contains only comments"),
        ("a,a\n1,2\n", "trees.csv has several columns named 'a'"),
    ],
)
def test_rows_that_do_not_fit_are_named_by_their_line(table, text, problem):
    with pytest.raises(InputError, match=problem):
        table(text)


def test_many_comments_are_skipped(table):
    frame, notes = table("# a long line of comments\n" * 20000 + "a,y\n1,2\n3,4\n")
    assert columns(frame) == {"a": [1, 3], "y": [2, 4]}
    assert [re.findall(r"\d+", each) for each in notes] == [["20000"]]


def test_a_table_that_was_written_twice_has_two_columns_of_row_names(table):
    assert list(table(",Unnamed: 0,a,y\n0,10,1,2.5\n1,11,2,1.5\n")[0]) == ["Unnamed: 0.1", "Unnamed: 0", "a", "y"]


def test_a_last_column_of_gaps_is_no_separator(table):
    frame, _ = table('"a" "y" "c"\n"1" 1.5 2 NA\n"2" 0.5 3 NA\n')
    assert (frame["a"].tolist(), frame["y"].tolist()) == ([1.5, 0.5], [2, 3])


def test_rows_may_lack_their_last_fields(table):
    np.testing.assert_array_equal(table("a,b,y\n1,2\n3,4,5\n")[0], [[1, 2, np.nan], [3, 4, 5]])


def test_aligned_row_names_are_not_taken_for_the_first_column(table):
    frame = pd.DataFrame({"height": [9.5, 7.0], "y": [1.0, 2.0]})
    assert columns(table(frame.to_string())[0]) == {"Unnamed: 0": [0, 1], "height": [9.5, 7], "y": [1, 2]}
    assert columns(table(frame.to_string(index=False))[0]) == {"height": [9.5, 7], "y": [1, 2]}
    with pytest.raises(InputError, match=r"no line of trees\.csv names the 3 columns: .* quoted"):
        table(frame.rename(columns={"height": "height m"}).to_string())


def test_numbers_in_the_first_row_are_names_only_where_names_are_needed(table):
    assert columns(table("2019,2020\n1,2\n")[0]) == {"2019": [1], "2020": [2]}
    assert columns(table("2019,2020\n1,2\n", header=False)[0]) == {"0": [2019, 1], "1": [2020, 2]}


def test_an_empty_field_differs_from_a_written_nan(tmp_path):
    (tmp_path / "trees.csv").write_text("a,y\nnan,1\n,2\n")
    read = read_delimited(tmp_path / "trees.csv")
    assert read.frame["a"].isna().tolist() == [True, True]
    assert read.empty[:, 0].tolist() == [False, True]


@given(
    st.lists(st.tuples(st.integers(-(10**9), 10**9), st.floats(-1e9, 1e9)), min_size=2, max_size=8),
    st.sampled_from([(",", "."), (";", ","), ("\t", ","), ("\t", "."), (" ", "."), ("|", ",")]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC]),
    st.booleans(),
)
def test_what_pandas_writes_is_read_or_rejected(tmp_path_factory, rows, marks, quoting, index):
    frame = pd.DataFrame(rows, columns=["a", "y"])
    path = tmp_path_factory.mktemp("data") / "trees.csv"
    frame.to_csv(path, sep=marks[0], decimal=marks[1], quoting=quoting, index=index)
    try:
        read = read_delimited(path).frame
    except InputError as error:
        assert "can be a decimal mark" in str(error)  # noqa: PT017 - numbers such as 1.234 beside 5
        return
    np.testing.assert_allclose(read[["a", "y"]], frame, rtol=1e-14)

"""Tables as people write them: separators, decimal commas, quotes, blanks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dynascope.errors import InputError
from dynascope.tasks.data.table_files import read_table

NUMBERS = [[1.5, 2.0, -3.25], [4.0, 5.5, 0.125]]


@pytest.fixture
def table(tmp_path):
    def write(text: str, name: str = "trees.csv"):
        path = tmp_path / name
        path.write_bytes(text.encode())
        return read_table(path)

    return write


@pytest.mark.parametrize("separator", [",", ";", "\t", ", ", "; "])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_the_separator_is_found(table, separator, end, start):
    rows = [["height", "girth", "age"], *([str(each) for each in row] for row in NUMBERS)]
    columns, told = table(start + end.join(separator.join(row) for row in rows) + end)
    assert list(columns) == ["height", "girth", "age"]
    np.testing.assert_array_equal(np.column_stack(list(columns.values())), NUMBERS)
    assert told == []


def test_a_file_of_tabs_is_read_by_its_name(table):
    columns, _ = table("height, in m\tage\n1\t2\n3\t4\n", "trees.tsv")
    assert list(columns) == ["height, in m", "age"]


@pytest.mark.parametrize("separator", [";", "\t"])
def test_decimal_commas_are_read_where_commas_do_not_separate(table, separator):
    columns, told = table(separator.join("abk") + "\n" + "\n".join(map(separator.join, [["1,5", "2", "x,1"]] * 2)))
    assert [column.tolist() for column in columns.values()] == [[1.5, 1.5], [2, 2], ["x,1", "x,1"]]
    assert told == ["Decimal commas were read in 'a'."]


def test_decimal_commas_may_stand_beside_whole_numbers_and_gaps(table):
    columns, _ = table("a;b\n1,5;1\n;2\n-2;3\n,5e2;4\n")
    np.testing.assert_array_equal(columns["a"], [1.5, np.nan, -2.0, 50.0])


def test_points_between_thousands_are_not_guessed_at(table):
    columns, told = table("a;b\n1.500,25;1\n2.500,5;2\n")
    assert columns["a"].tolist() == ["1.500,25", "2.500,5"]
    assert told == []


def test_quotes_keep_separators_and_line_ends_together(table):
    columns, _ = table('"kind, of tree";age\n"oak; old";1\n"elm\nyoung";2\n')
    assert list(columns) == ["kind, of tree", "age"]
    assert columns["kind, of tree"].tolist() == ["oak; old", "elm\nyoung"]


def test_a_separator_at_the_end_of_each_row_is_no_column(table):
    assert list(table("a,b,\n1,2,\n3,4,\n")[0]) == ["a", "b"]
    with pytest.raises(InputError, match=r"column 3 of trees\.csv has no name"):
        table("a,b,\n1,2,\n3,4,5\n")


def test_blanks_around_names_do_not_count(table):
    assert list(table(" a , b \n1,2\n")[0]) == ["a", "b"]


def test_names_of_a_parquet_file_are_text(tmp_path):
    pd.DataFrame({"a": [1.0], "2": [2.0]}).to_parquet(tmp_path / "trees.parquet")
    assert list(read_table(tmp_path / "trees.parquet")[0]) == ["a", "2"]

from __future__ import annotations

import pandas as pd
import pytest

from dynascope.errors import InputError
from dynascope.tasks.data.identifiers import without_identifiers

AGE = pd.Series([31, 35, 33])


@pytest.mark.parametrize(
    ("labels", "kept"),
    [
        ("abcdefgh", False),
        ("aabbccdd", True),
        ("abcdeeee", True),  # half of the rows have a value of their own
        ("abcdefff", False),
        ("aaaaaaaa", True),
    ],
)
def test_text_that_tells_rows_apart_is_left_out(labels, kept):
    column, number = pd.Series(list(labels)), pd.Series(range(8))
    inputs, told = without_identifiers({"name": column, "rank": number}, source="trees.csv")
    assert list(inputs) == (["name", "rank"] if kept else ["rank"])
    assert told == ([] if kept else ["Left out, since nearly every row has another value: 'name'."])


@pytest.mark.parametrize(
    ("inputs", "problem"),
    [
        ({"name": pd.Series(list("abc"))}, "every input of trees.csv is text that has another value in nearly every"),
        ({"a": pd.Series(["1", "2", "?"]), "b": AGE}, r"text such as '\?' in the input 'a'"),
    ],
)
def test_inputs_that_say_nothing_or_hide_numbers_are_refused(inputs, problem):
    with pytest.raises(InputError, match=problem):
        without_identifiers(inputs, source="trees.csv")


@pytest.mark.parametrize(
    ("column", "counts"),
    [
        (range(1, 13), True),
        (pd.array(range(12), dtype="Int64"), True),
        ([*range(11), 12], False),
        ([i + 0.5 for i in range(12)], False),
        (range(9), False),
    ],
)
def test_numbers_that_count_the_rows_are_named_and_kept(column, counts):
    inputs, told = without_identifiers({"id": pd.Series(column)}, source="trees.csv")
    assert list(inputs) == ["id"]
    assert told == (
        ["Whole numbers that count the rows, kept as an input: 'id'; --drop leaves it out."] if counts else []
    )

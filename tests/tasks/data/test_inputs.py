from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dynascope.errors import InputError
from dynascope.tasks.data.columns import Column
from dynascope.tasks.data.inputs import encode_inputs, without_identifiers

KIND = pd.Series(["oak", "elm", "oak", None, "yew", "elm"])
AGE = Column.of([31, 35, 33, 30, 28, 41])


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
    column, number = Column.of(list(labels)), Column.of(range(8))
    inputs, told = without_identifiers({"name": column, "rank": number}, source="trees.csv")
    assert list(inputs) == (["name", "rank"] if kept else ["rank"])
    assert ["'name'" in each for each in told] == ([] if kept else [True])


@pytest.mark.parametrize(
    ("inputs", "problem"),
    [
        ({"name": Column.of(list("abc"))}, "every input of trees.csv is text with a different value in nearly every"),
        ({"a": Column.of(["1", "2", "?"]), "b": Column.of([31, 35, 33])}, r"text such as '\?' in the input 'a'"),
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
    inputs, told = without_identifiers({"id": Column.of(column)}, source="trees.csv")
    assert list(inputs) == ["id"]
    assert ["'id'" in each and "drop" in each for each in told] == ([True] if counts else [])


@pytest.mark.parametrize("column", [KIND, KIND.astype("string"), KIND.astype("category"), KIND.astype(object)])
def test_each_value_of_a_text_is_a_column_and_gaps_stay_gaps(column):
    values, names, told = encode_inputs({"kind": Column.of(column), "age": AGE}, source="trees.csv")
    assert names == ("kind=elm", "kind=oak", "kind=yew", "age")
    gap = [np.nan] * 3
    np.testing.assert_array_equal(values[:, :3], [[0, 1, 0], [1, 0, 0], [0, 1, 0], gap, [0, 0, 1], [1, 0, 0]])
    np.testing.assert_array_equal(values[:, 3], AGE.numbers)
    assert ["'kind' (3 values)" in each for each in told] == [True]


def test_blanks_around_words_do_not_count():
    assert encode_inputs({"kind": Column.of(["oak ", "oak", " oak"])}, source="trees.csv")[1] == ("kind=oak",)


def test_categories_may_be_numbers():
    values, names, _ = encode_inputs({"size": Column.of(pd.Categorical([2, 10, 2]))}, source="trees.csv")
    assert names == ("size=2",)
    np.testing.assert_array_equal(values[:, 0], [1, 0, 1])


def test_two_values_are_one_column_as_a_second_would_mirror_it():
    sex = Column.of(["male", "female", None, "male"])
    values, names, told = encode_inputs({"sex": sex}, source="people.csv")
    assert names == ("sex=male",)
    np.testing.assert_array_equal(values[:, 0], [1, 0, np.nan, 1])
    assert ["'sex=male' (0 is 'female')" in each for each in told] == [True]


@pytest.mark.parametrize(
    ("inputs", "problem"),
    [
        (
            {"kind=oak": AGE, "kind": Column.of(KIND)},
            "trees.csv has a column 'kind=oak', which is also the name of an encoded value of 'kind'",
        ),
        (
            {"kind": Column.of(KIND), "kind=oak": AGE},
            "trees.csv has a column 'kind=oak', which is also the name of an encoded value of 'kind'",
        ),
        ({"born": Column.of(["2020-01-02"] * 6)}, "dates or times in text such as '2020-01-02' in the input 'born'"),
        ({"a": Column.of([b"1"] * 6)}, "values that are not numbers, such as"),
        ({"a": Column.of([f"v{i}" for i in range(1001)] * 2)}, "1001 different text values in the input 'a'"),
    ],
)
def test_columns_that_cannot_be_encoded_are_refused(inputs, problem):
    with pytest.raises(InputError, match=problem):
        encode_inputs(inputs, source="trees.csv")

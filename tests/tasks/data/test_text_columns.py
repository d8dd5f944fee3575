from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dynascope.errors import InputError
from dynascope.tasks.data.text_columns import encode_text

KIND = pd.Series(["oak", "elm", "oak", None, "yew", "elm"])
AGE = pd.Series([31, 35, 33, 30, 28, 41])


@pytest.mark.parametrize("column", [KIND, KIND.astype("string"), KIND.astype("category"), KIND.astype(object)])
def test_each_value_of_a_text_is_a_column_and_gaps_stay_gaps(column):
    values, names, told = encode_text({"kind": column, "age": AGE}, source="trees.csv")
    assert names == ("kind=elm", "kind=oak", "kind=yew", "age")
    gap = [np.nan] * 3
    np.testing.assert_array_equal(values[:, :3], [[0, 1, 0], [1, 0, 0], [0, 1, 0], gap, [0, 0, 1], [1, 0, 0]])
    np.testing.assert_array_equal(values[:, 3], AGE)
    assert told == ["Text is one-hot encoded: 'kind' (3 values)."]


def test_blanks_around_words_do_not_count():
    assert encode_text({"kind": pd.Series(["oak ", "oak", " oak"])}, source="trees.csv")[1] == ("kind=oak",)


def test_categories_may_be_numbers():
    values, names, _ = encode_text({"size": pd.Series(pd.Categorical([2, 10, 2]))}, source="trees.csv")
    assert names == ("size=2",)
    np.testing.assert_array_equal(values[:, 0], [1, 0, 1])


def test_two_values_are_one_column_as_a_second_would_mirror_it():
    sex = pd.Series(["male", "female", None, "male"])
    values, names, told = encode_text({"sex": sex}, source="people.csv")
    assert names == ("sex=male",)
    np.testing.assert_array_equal(values[:, 0], [1, 0, np.nan, 1])
    assert told == ["Text of two values is one column of 1 and 0: 'sex=male' (0 is 'female')."]


@pytest.mark.parametrize(
    ("inputs", "problem"),
    [
        ({"kind=oak": AGE, "kind": KIND}, "trees.csv has a column 'kind=oak', as a value of 'kind' would be called"),
        ({"kind": KIND, "kind=oak": AGE}, "trees.csv has a column 'kind=oak', as a value of 'kind' would be called"),
        ({"born": pd.Series(["2020-01-02"] * 6)}, "dates or times in text such as '2020-01-02' in the input 'born'"),
        ({"a": pd.Series([b"1"] * 6)}, "values that are not numbers, such as"),
        ({"a": pd.Series([f"v{i}" for i in range(1001)] * 2)}, "1001 values of text in the input 'a': group them"),
    ],
)
def test_columns_that_cannot_be_encoded_are_refused(inputs, problem):
    with pytest.raises(InputError, match=problem):
        encode_text(inputs, source="trees.csv")

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dynascope.errors import InputError
from dynascope.tasks.data.gaps import filled, gaps_in, without_gaps

AGE = pd.Series([31.0, np.nan, 35.0, np.inf, 33.0])
KIND = pd.Series(["oak", "elm", None, "oak", "elm"])
PRICE = pd.Series([1.0, 2.0, 3.0, 4.0, np.nan])


@pytest.mark.parametrize(
    ("column", "gaps"),
    [
        (AGE, [1, 3]),
        (KIND, [2]),
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
    assert np.flatnonzero(gaps_in(pd.Series(column))).tolist() == gaps


def test_gaps_are_refused_with_their_rows_and_columns():
    with pytest.raises(
        InputError, match="4 rows with missing or infinite values in 'age', 'kind', 'price': "
    ) as caught:
        without_gaps({"age": AGE, "kind": KIND}, {"price": PRICE}, None, source="trees.csv")
    assert caught.value.value == {"age": 2, "kind": 1, "price": 1}
    assert "--missing" in caught.value.remedy
    assert "leave out 'age' (drop=, --drop), which lacks 2" in caught.value.remedy


def test_rows_with_gaps_are_left_out_and_it_is_said():
    inputs, targets, told = without_gaps({"age": AGE}, {"price": PRICE}, "drop", source="trees.csv")
    assert (inputs["age"].tolist(), targets["price"].tolist()) == ([31.0, 35.0], [1.0, 3.0])
    assert inputs["age"].index.tolist() == [0, 1]
    assert told == ["Left out: 3 rows with missing or infinite values in 'age' (2), 'price' (1)."]


def test_a_sample_without_a_target_is_left_out_where_inputs_are_filled():
    inputs, targets, told = without_gaps({"age": AGE}, {"price": PRICE}, "mean", source="trees.csv")
    assert (len(inputs["age"]), targets["price"].tolist()) == (4, [1.0, 2.0, 3.0, 4.0])
    assert told == ["Left out: 1 row with missing or infinite values in 'price' (1)."]
    values, sentences = filled(inputs["age"].to_numpy()[:, None], ("age",), source="trees.csv")
    assert values[:, 0].tolist() == [31.0, 33.0, 35.0, 33.0]
    assert sentences == ["Filled by the mean of their column: missing or infinite values in 'age' (2)."]


def test_whole_columns_change_nothing():
    columns = {"a": pd.Series([1.0, 2.0])}
    assert without_gaps(columns, columns, None, source="table") == (columns, columns, [])
    assert filled(np.eye(2), ("a", "b"), source="table")[1] == []


def test_labels_are_missed_by_their_name():
    with pytest.raises(InputError, match=r"trees\.csv has 1 row without a label in 'kind': drop or fill them"):
        without_gaps({"price": PRICE[:4]}, {"kind": KIND[:4]}, None, source="trees.csv")


def test_what_leaves_too_little_is_refused():
    empty = {"age": pd.Series([np.nan] * 5)}
    with pytest.raises(InputError, match=r"0 of 5 rows of trees\.csv are left without those that lack 'age': "):
        without_gaps(empty, {"kind": KIND.fillna("oak")}, "drop", source="trees.csv")
    with pytest.raises(InputError, match=r"trees\.csv has no value at all in 'age'"):
        filled(np.full((5, 1), np.nan), ("age",), source="trees.csv")


@pytest.mark.usefixtures("unchecked_types")
def test_another_way_to_fill_gaps_is_refused():
    with pytest.raises(InputError, match="missing is 'median': choose"):
        without_gaps({"age": AGE}, {"kind": KIND}, "median", source="trees.csv")  # pyright: ignore

from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.tasks.data.columns import Column
from dynascope.tasks.data.missing_values import filled, without_gaps

AGE = Column.of([31.0, np.nan, 35.0, np.inf, 33.0])
KIND = Column.of(["oak", "elm", None, "oak", "elm"])
FIRST = np.arange(4)
PRICE = Column.of([1.0, 2.0, 3.0, 4.0, np.nan])


def test_gaps_are_refused_with_their_rows_and_columns():
    with pytest.raises(
        InputError, match="4 rows with missing or infinite values in 'age', 'kind', 'price': "
    ) as caught:
        without_gaps({"age": AGE, "kind": KIND}, {"price": PRICE}, None, source="trees.csv")
    assert caught.value.value == {"age": 2, "kind": 1, "price": 1}
    assert "missing" in caught.value.remedy
    assert "drop" in caught.value.remedy


def test_rows_with_gaps_are_left_out_and_it_is_said():
    inputs, targets, told = without_gaps({"age": AGE}, {"price": PRICE}, "drop", source="trees.csv")
    assert (inputs["age"].values.tolist(), targets["price"].values.tolist()) == ([31.0, 35.0], [1.0, 3.0])
    assert inputs["age"].values.index.tolist() == [0, 1]
    assert ["3 rows" in each and "'age' (2), 'price' (1)" in each for each in told] == [True]


def test_a_sample_without_a_target_is_left_out_where_inputs_are_filled():
    inputs, targets, told = without_gaps({"age": AGE}, {"price": PRICE}, "mean", source="trees.csv")
    assert (len(inputs["age"]), targets["price"].values.tolist()) == (4, [1.0, 2.0, 3.0, 4.0])
    assert ["1 row" in each and "'price' (1)" in each for each in told] == [True]
    values, sentences = filled(inputs["age"].numbers[:, None], ("age",), source="trees.csv")
    assert values[:, 0].tolist() == [31.0, 33.0, 35.0, 33.0]
    assert ["'age' (2)" in each for each in sentences] == [True]


def test_whole_columns_change_nothing():
    columns = {"a": Column.of([1.0, 2.0])}
    assert without_gaps(columns, columns, None, source="table") == (columns, columns, [])
    assert filled(np.eye(2), ("a", "b"), source="table")[1] == []


def test_labels_are_missed_by_their_name():
    with pytest.raises(InputError, match=r"trees\.csv has 1 row without a label in 'kind'"):
        without_gaps({"price": PRICE.rows(FIRST)}, {"kind": KIND.rows(FIRST)}, None, source="trees.csv")


def test_what_leaves_too_little_is_refused():
    empty = {"age": Column.of([np.nan] * 5)}
    with pytest.raises(InputError, match=r"trees\.csv has too few rows without missing values in 'age' \(0 of 5\): "):
        without_gaps(empty, {"kind": Column.of(["oak"] * 5)}, "drop", source="trees.csv")
    with pytest.raises(InputError, match=r"trees\.csv has no values in 'age'"):
        filled(np.full((5, 1), np.nan), ("age",), source="trees.csv")


@pytest.mark.usefixtures("unchecked_types")
def test_another_way_to_fill_gaps_is_refused():
    with pytest.raises(InputError, match="missing is 'median': choose"):
        without_gaps({"age": AGE}, {"kind": KIND}, "median", source="trees.csv")  # pyright: ignore

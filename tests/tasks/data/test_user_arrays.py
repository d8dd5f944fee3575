from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dynascope.errors import InputError
from dynascope.tasks.data.user_arrays import given_inputs, given_targets, require_same_rows

FRAME = pd.DataFrame({"age": [31.0, 35.0, 33.0], "size": pd.array([1, 2, 3], dtype="Int64")})


def test_inputs_are_rows_frames_or_images():
    assert given_inputs([[1, 2], [3, 4]])[0].tolist() == [[1.0, 2.0], [3.0, 4.0]]
    values, names, shape = given_inputs(FRAME)
    assert (values.tolist(), names, shape) == ([[31, 1], [35, 2], [33, 3]], ("age", "size"), None)
    assert given_inputs(FRAME["age"])[:2][1] == ("age",)
    values, names, shape = given_inputs(np.arange(12.0).reshape(2, 2, 3))
    assert (values.shape, names, shape) == ((2, 6), (), (2, 3))


@pytest.mark.parametrize(
    ("targets", "columns", "names"),
    [
        ([1.5, 2.0, 2.0], 1, ("y",)),
        (FRAME["age"], 1, ("age",)),
        (FRAME, 2, ("age", "size")),
        (np.ones((3, 2)), 2, ()),
        (np.array([[1], [2], [1]]), 1, ()),
        ([[True], [False], [True]], 1, ()),
    ],
)
def test_numbers_are_quantities(targets, columns, names):
    values, found, told = given_targets(targets, None)
    assert (values.shape, found, told) == ((3, columns), names, ())


@pytest.mark.parametrize(
    "targets",
    [
        ["oak", "elm", "oak"],
        np.array(["oak", "elm", "oak"], dtype=object),
        np.array([["oak"], ["elm"], ["oak"]]),
        pd.Series(["oak", "elm", "oak"], name="y"),
        pd.DataFrame({"y": pd.Categorical(["oak", "elm", "oak"])}),
    ],
)
def test_text_is_a_class_label(targets):
    values, names, told = given_targets(targets, None)
    assert (values.tolist(), names) == ([[0, 1], [1, 0], [0, 1]], ("elm", "oak"))
    assert ["elm (1 sample), oak (2 samples)" in each for each in told] == [True]


def test_integers_that_repeat_are_labels_unless_it_is_declined():
    assert given_targets([1, 2, 1, 2], None)[0].shape == (4, 2)
    for values, classification in (([1, 2, 3, 4], None), ([1, 2, 1, 2], False)):
        found, _, told = given_targets(values, classification)
        np.testing.assert_array_equal(found[:, 0], values)
        assert len(told) == 1


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (pd.DataFrame({"kind": ["oak", "elm"]}), "x has text such as 'oak' in the input 'kind': .*read_table"),
        (pd.DataFrame({"age": [1.0, None], "size": [np.inf, 2.0]}), r"x has missing .* in 'age' \(1\), 'size' \(1\)"),
        ([1.0, 2.0], r"x has shape \(2,\): pass an array .*; for a single column, pass x\[:, None\]"),
        (np.ones((2, 2, 2, 2)), r"x has shape \(2, 2, 2, 2\)"),
        ([["oak"], ["elm"]], r"x contains text: .*x\.astype\(float\)"),
        ([[1j], [2.0]], "x contains complex numbers"),
        (np.array([["2020-01-02"]], "datetime64[D]"), "x contains dates or times"),
        ([[1.0], "a"], "x is not an array of real numbers"),
    ],
)
def test_inputs_that_are_no_numbers_are_refused(values, problem):
    with pytest.raises(InputError, match=problem):
        given_inputs(values)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (np.ones((2, 2, 2)), r"y has shape \(2, 2, 2\)"),
        ([1.0, np.nan], r"y has missing or infinite values in 'y' \(1\)"),
        (["oak", None], r"y has missing or infinite values in 'y' \(1\)"),
        (np.array(["2020-01-01"] * 2, dtype="M8[D]"), "y has dates or times such as"),
        ([["oak", "elm"]] * 2, "y has text such as 'oak' in the target 'y1', 'y2'"),
        ([1 + 2j, 2 + 1j], "y has values that are not numbers"),
    ],
)
def test_targets_that_are_neither_numbers_nor_labels_are_refused(values, problem):
    with pytest.raises(InputError, match=problem):
        given_targets(values, None)


def test_rows_in_another_order_are_refused():
    with pytest.raises(InputError, match=r"the same rows in different orders"):
        require_same_rows(FRAME, FRAME["age"].iloc[::-1])
    require_same_rows(FRAME, FRAME["age"])
    require_same_rows(FRAME, pd.Series([1, 2, 3], index=list("abc")))
    require_same_rows(FRAME, [3, 2, 1])

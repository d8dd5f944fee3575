from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn import datasets

from dynascope.errors import InputError
from dynascope.tasks import read_table

TREES = pd.DataFrame(
    {
        "name": [f"tree {i}" for i in range(6)],
        "kind": ["oak", "elm", "oak", "yew", "elm", "oak"],
        "height": pd.array([9, 7, None, 8, 6, 5], dtype="Int64"),
        "planted": pd.to_datetime(["2020-01-01"] * 6),
        "age": [60.0, 90.0, 84.0, 71.0, 65.0, np.nan],
    }
)
CLEAN = {"target": "age", "drop": "planted", "missing": "drop"}


def test_a_frame_is_read_like_a_file_of_it(tmp_path):
    TREES.to_parquet(tmp_path / "trees.parquet")
    read, made = read_table(tmp_path / "trees.parquet", **CLEAN), read_table(TREES, name="trees", **CLEAN)
    assert (read.name, read.feature_names, read.target_names) == (made.name, made.feature_names, made.target_names)
    np.testing.assert_array_equal(read.inputs, made.inputs)
    np.testing.assert_array_equal(read.targets, made.targets)
    assert read.description[1:] == made.description[1:]


def test_everything_that_was_done_is_said():
    task = read_table(TREES, **CLEAN)
    assert repr(task) == "Task('table', 4 × 4 → 1)"
    assert task.feature_names == ("kind=elm", "kind=oak", "kind=yew", "height")
    said = ("6 samples", "'planted'", "'name'", "'height' (1), 'age' (1)", "'kind' (3 values)", "'age'", "129.2")
    assert [each in sentence for each, sentence in zip(said, task.description, strict=True)] == [True] * 7


def test_gaps_are_filled_by_means():
    task = read_table(TREES, target="age", drop="planted", missing="mean", centre=False)
    assert task.samples == 5
    assert task.inputs[2, 3] == np.mean([9, 7, 8, 6])


def test_a_dictionary_of_columns_is_a_table():
    task = read_table({"a": [1.0, 2.0, 4.0], "b": ["x", "y", "x"]}, target="b", standardise=False)
    assert (task.feature_names, task.target_names) == (("a",), ("x", "y"))
    np.testing.assert_allclose(task.inputs[:, 0], np.array([1, 2, 4]) - 7 / 3)


def test_data_sets_of_scikit_learn_know_their_targets():
    task = read_table(datasets.load_wine())
    assert repr(task) == "Task('wine', 178 × 13 → 3)"
    np.testing.assert_allclose(task.inputs.std(axis=0), 1)
    assert task.target_names == ("class_0", "class_1", "class_2")
    both = read_table(datasets.load_wine(), target="alcohol", drop=["ash", "target"])
    assert (both.input_dimension, both.target_names) == (11, ("alcohol",))


def test_pixels_have_one_unit_and_are_centred():
    task = read_table(datasets.load_digits())
    assert task.image_shape == (8, 8)
    np.testing.assert_allclose(task.inputs.mean(axis=0), 0, atol=1e-12)
    assert task.inputs.std(axis=0).min() == 0  # some pixels never change, and none is standardised


@pytest.mark.parametrize(
    ("table", "options", "problem"),
    [
        (TREES, {"target": "age"}, "table has dates or times such as '2020-01-01' in the input 'planted': .*drop"),
        (TREES, {"target": "age", "drop": "planted"}, "2 rows with missing or infinite values in 'height', 'age'"),
        (TREES, {"name": "trees"}, "no target column of trees is given"),
        ({"a": [1.0], "b": [1.0, 2.0]}, {"target": "b"}, "table is not a dictionary of columns"),
        (np.eye(3), {"target": "b"}, r"table has type ndarray: .* use Task\(x, y\) for arrays"),
        ("trees.csv", {"target": "b"}, "there is no file trees.csv"),
    ],
)
def test_what_makes_no_task_is_refused(table, options, problem):
    with pytest.raises(InputError, match=problem):
        read_table(table, **options)

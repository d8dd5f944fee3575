from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.tasks import Task


@st.composite
def samples(draw):
    """Gaussian data of any small shape, with offsets and scales that differ between columns."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d, c = draw(st.integers(3, 12)), draw(st.integers(1, 6)), draw(st.integers(1, 3))
    x = rng.normal(size=(n, d)) * 10 ** rng.uniform(-2, 2, size=d) + rng.normal(size=d)
    return x, rng.normal(size=(n, c)) + 5


@given(samples())
def test_moments_are_means_of_products(data):
    task = Task(*data)
    pairs = list(zip(task.inputs, task.targets, strict=True))
    np.testing.assert_allclose(task.input_moment, np.mean([np.outer(x, x) for x, _ in pairs], axis=0), rtol=1e-9)
    np.testing.assert_allclose(
        task.cross_moment,
        np.mean([np.outer(y, x) for x, y in pairs], axis=0),
        rtol=1e-9,
        atol=1e-12 * np.abs(task.inputs).max() * np.abs(task.targets).max(),  # the products may cancel
    )
    assert task.target_power == pytest.approx(np.mean([y @ y for _, y in pairs]), rel=1e-12)


@given(samples())
def test_centring_removes_the_means_and_doing_it_twice_changes_nothing(data):
    task = Task(*data)
    once = task.centred()
    twice = once.centred()
    size = np.abs(task.inputs).max()
    np.testing.assert_allclose(once.inputs.mean(axis=0), 0, atol=1e-14 * size)  # rounding of a mean
    np.testing.assert_allclose(once.targets.mean(axis=0), 0, atol=1e-14 * np.abs(task.targets).max())
    np.testing.assert_allclose(twice.inputs, once.inputs, atol=1e-14 * size)
    np.testing.assert_allclose(twice.targets, once.targets, atol=1e-14 * np.abs(task.targets).max())
    assert twice.description == once.description != task.description


def test_centring_leaves_exact_zeros_in_a_constant_column():
    task = Task([[0.1, 1.0], [0.1, 2.0], [0.1, 4.0]], [[1.0], [2.0], [3.0]]).centred()
    np.testing.assert_array_equal(task.inputs[:, 0], 0.0)
    assert task.whitened().input_dimension == 1


@pytest.mark.parametrize("unit", [1e-100, 1.0, 1e100])
def test_whether_a_column_is_constant_does_not_depend_on_its_units(unit):
    x, y = np.array([[1.0], [2.0]]) * unit, np.array([[3.0], [4.0]]) * unit
    assert Task(x, y).centred().samples == 2
    with pytest.raises(InputError, match="the target y is constant"):
        Task(x, np.full((2, 1), 0.3 * unit)).centred()
    with pytest.raises(InputError, match="the input x is constant"):
        Task(np.full((2, 3), 0.3 * unit), y).centred()


@given(samples())
def test_whitening_gives_the_identity_on_the_range(data):
    task = Task(*data)
    whitened = task.whitened()
    rank = np.linalg.matrix_rank(task.inputs, tol=1e-6 * np.linalg.norm(task.inputs, 2))
    assert whitened.input_dimension == rank
    np.testing.assert_allclose(whitened.input_moment, np.eye(rank), atol=1e-12)
    # The new inputs span the columns of the old, but for directions below 1e-6 of the largest, which are dropped.
    span = whitened.inputs @ whitened.inputs.T / task.samples
    np.testing.assert_allclose(span @ task.inputs, task.inputs, atol=1e-5 * np.abs(task.inputs).max())
    np.testing.assert_array_equal(whitened.targets, task.targets)
    assert [str(rank) in each for each in whitened.description] == [True]


def test_whitening_drops_directions_without_data():
    x = np.random.default_rng(0).normal(size=(20, 2)) @ np.random.default_rng(1).normal(size=(2, 5))
    task = Task(x, x[:, :1], image_shape=(1, 5)).whitened()
    assert (task.input_dimension, task.image_shape, task.feature_names) == (2, None, ("x1", "x2"))


@given(samples(), st.floats(0.0, 1.0), st.integers(0, 5))
def test_a_split_is_a_partition_in_the_order_of_the_samples(data, fraction, seed):
    task = Task(*data)
    test_samples = round(task.samples * fraction)
    if not 2 <= test_samples <= task.samples - 2:
        with pytest.raises(InputError, match="test_fraction"):
            task.split(test_fraction=fraction, seed=seed)
        return
    parts = task.split(test_fraction=fraction, seed=seed)
    assert [part.samples for part in parts] == [task.samples - test_samples, test_samples]
    rows = [np.column_stack([part.inputs, part.targets]) for part in parts]
    whole = np.column_stack([task.inputs, task.targets])
    positions = [[int(np.flatnonzero((whole == row).all(axis=1))[0]) for row in part] for part in rows]
    assert sorted(positions[0] + positions[1]) == list(range(task.samples))
    assert all(part == sorted(part) for part in positions)


def test_a_split_depends_on_the_seed_alone():
    task = Task(np.arange(40.0).reshape(20, 2), np.arange(20.0)[:, None])
    first, again, other = (task.split(seed=seed)[1].inputs for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_names_default_to_numbers_and_for_images_to_rows_and_columns():
    x, y = np.eye(6), np.ones((6, 2))
    assert Task(x, y).feature_names == ("x1", "x2", "x3", "x4", "x5", "x6")
    assert Task(x, y).target_names == ("y1", "y2")
    image = Task(x, y, image_shape=(2, 3))
    assert image.feature_names[3] == "pixel 2,1"
    assert Task(x, y, image_shape=(2, 3), feature_names=list("abcdef")).feature_names == tuple("abcdef")


def test_a_task_is_told_in_one_line():
    assert repr(Task(np.eye(6), np.ones((6, 2)), name="wine")) == "Task('wine', 6 × 6 → 2)"


def test_what_frames_and_series_call_their_columns_is_kept_unless_names_are_given():
    x = pd.DataFrame({"age": [31, 35, 33], "tall": [True, False, True]})
    task = Task(x, pd.Series([1.5, 2.0, 3.0], name="price"))
    assert (task.feature_names, task.target_names, task.description) == (("age", "tall"), ("price",), ())
    np.testing.assert_array_equal(task.inputs, [[31, 1], [35, 0], [33, 1]])
    assert Task(x, x[["age"]] + 0.5, feature_names=("a", "b")).feature_names == ("a", "b")


def test_class_labels_are_one_hot_encoded_and_it_is_said():
    task = Task(np.eye(4), [3, 5, 5, 3], description=["Four."])
    assert task.target_names == ("y 3", "y 5")
    assert task.targets.tolist() == [[1, 0], [0, 1], [0, 1], [1, 0]]
    assert task.description[0] == "Four."
    assert "y 3 (2 samples), y 5 (2 samples)" in task.description[1]
    assert Task(np.eye(4), [3, 5, 5, 3], classification=False).targets.tolist() == [[3], [5], [5], [3]]
    assert Task(np.eye(4), np.array([[3], [5], [5], [3]])).output_dimension == 1
    assert Task(np.eye(4), [[3.0], [5.0], [5.0], [3.0]], classification=True).output_dimension == 2


def test_a_copy_of_a_task_is_the_same():
    task = Task(np.eye(4), list("abab"), name="letters").standardised()
    copy = dataclasses.replace(task)
    np.testing.assert_array_equal(copy.targets, task.targets)
    assert (copy.description, copy.target_names, copy.transform) == (
        task.description,
        task.target_names,
        task.transform,
    )


def test_a_task_cannot_be_changed_and_is_equal_only_to_itself():
    task = Task(np.eye(2), np.ones((2, 1)))
    with pytest.raises(dataclasses.FrozenInstanceError):
        task.name = "other"
    assert task == task
    assert task != Task(np.eye(2), np.ones((2, 1)))
    assert len({task, task}) == 1


@pytest.mark.parametrize(
    ("arguments", "argument", "problem"),
    [
        ({"inputs": [[1.0], [2.0], [3.0]]}, "y", "x has 3 samples, but y has 2"),
        ({"inputs": [[1.0]], "targets": [[1.0]]}, "x", "x has 1 sample"),
        ({"inputs": np.zeros((0, 2)), "targets": np.zeros((0, 1))}, "x", "x has 0 samples"),
        ({"inputs": np.zeros((2, 0))}, "x", r"x has shape \(2, 0\)"),
        ({"targets": np.zeros((2, 0))}, "x", r"y has shape \(2, 0\)"),
        ({"inputs": [1.0, 2.0]}, "x", r"x has shape \(2,\)"),
        ({"inputs": [[1.0], [np.nan]]}, "x", "x contains 1 value that is not finite"),
        ({"targets": [[1.0], [np.inf]]}, "y", "y contains 1 value that is not finite"),
        ({"inputs": [[1.0], [-1e200]]}, "x", r"x has values as large as 1\.0e\+200"),
        ({"feature_names": ["a"]}, "feature_names", "feature_names has length 1, but the number of columns is 2"),
        ({"target_names": ["a", "b"]}, "target_names", "target_names has length 2, but the number of columns is 1"),
        ({"image_shape": (2, 2)}, "image_shape", r"image_shape is \(2, 2\), but x has shape"),
        ({"image_shape": (-1, -2)}, "image_shape", r"image_shape is \(-1, -2\)"),
    ],
)
def test_bad_data_is_refused_by_name(arguments, argument, problem):
    good = {"inputs": [[1.0, 0.0], [0.0, 1.0]], "targets": [[1.0], [2.0]]}
    with pytest.raises(InputError, match=problem) as caught:
        Task(**{**good, **arguments})
    assert caught.value.argument == argument

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dynascope.tasks import Labelled, Task, digits
from dynascope.tasks.digest import data_digest

X = np.random.default_rng(0).normal(size=(40, 3)) * [1e-3, 1.0, 1e6]
Y = np.random.default_rng(1).normal(size=(40, 1))


def test_the_last_digits_of_a_number_which_machines_compute_differently_do_not_matter():
    noise = np.random.default_rng(2).normal(size=X.shape)
    assert data_digest(X * (1 + 1e-14 * noise)) == data_digest(X)
    # Centred columns hold round numbers too, and a constant one nothing but rounding.
    round_numbers = np.column_stack([np.arange(40) / 16 - 39 / 32, np.full(40, 0.0)])
    blurred = np.column_stack([round_numbers[:, 0] + 1e-16 * noise[:, 0], 1e-17 * noise[:, 1]])
    assert data_digest(blurred) == data_digest(round_numbers)


@pytest.mark.parametrize("column", [0, 1, 2])
def test_a_change_of_a_hundred_thousandth_of_a_column_is_seen_whatever_the_size_of_the_others(column):
    other = X.copy()
    other[7, column] += 1e-5 * np.abs(X[:, column]).max()
    assert data_digest(other) != data_digest(X)


def test_order_shape_and_the_split_into_inputs_and_targets_count():
    assert len({data_digest(X, Y), data_digest(Y, X), data_digest(X), data_digest(X[::-1], Y), data_digest(X.T)}) == 5


def test_data_in_parts_has_the_digest_of_data_at_once(monkeypatch):
    whole = data_digest(X)
    monkeypatch.setattr("dynascope.tasks.digest._BYTES", 100)
    assert data_digest(X) == whole


def test_no_sample_at_all_and_zeros_have_a_digest():
    assert data_digest(np.zeros((2, 2))) != data_digest(np.zeros((2, 3)))


def test_a_task_says_the_digest_of_its_numbers_and_not_of_its_name():
    task = Task(X, Y)
    assert task.attributes()["data_hash"] == Task(X, Y, name="other").attributes()["data_hash"] == data_digest(X, Y)
    assert dataclasses.replace(task, targets=2 * Y).attributes()["data_hash"] != task.attributes()["data_hash"]


def test_digits_have_the_digest_that_they_had_where_this_was_written():
    assert digits().attributes()["data_hash"] == "d8a21568dd0e"


def test_labelled_data_is_told_apart_by_inputs_and_labels():
    pixels = np.arange(24, dtype=np.float32).reshape(4, 3, 2)
    hashes = {
        Labelled(x, np.array(labels)).attributes()["data_hash"]
        for x, labels in ((pixels, [0, 1, 1, 0]), (pixels, [0, 1, 0, 1]), (pixels[::-1], [0, 1, 1, 0]))
    }
    assert len(hashes) == 3

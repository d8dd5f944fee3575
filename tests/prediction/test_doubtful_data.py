"""A prediction warns of inputs that determine the target and of numbers that stand for missing ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dynascope import predict
from dynascope.prediction.doubtful_data import determining_inputs, placeholders
from dynascope.tasks import Task, read_table

DRAW = np.random.default_rng(0)
A, B, NOISE = DRAW.normal(size=(3, 60))
KIND = np.array(["oak", "elm", "yew", "ash"])[DRAW.integers(4, size=60)]
CODE = DRAW.integers(6, size=60)


def task_of(target, **columns):
    return read_table({"a": A, "b": B, **columns, "y": target}, target="y")


@pytest.mark.parametrize(
    ("target", "columns", "found"),
    [
        (A + B, {"copy": A + B}, ["copy"]),
        (A + B, {"other units": 3.2 - 1.8 * (A + B)}, ["other units"]),
        (A + B, {"rounded": np.round(A + B, 6)}, ["rounded"]),
        (np.select([KIND == "oak", KIND == "elm"], [1.5, 2.5], 0.5), {"kind": KIND}, ["kind"]),
        (np.where(np.isin(KIND, ["oak", "elm"]), "hard", "soft"), {"kind": KIND}, ["kind"]),
        (np.array(["p", "q", "r", "p", "q", "s"])[CODE], {"code": CODE}, ["code"]),
        (np.where(KIND == "oak", "yes", "no"), {"answer": np.where(KIND == "oak", 1, 0)}, ["answer"]),
    ],
)
def test_an_input_that_determines_the_target_is_named(target, columns, found):
    assert determining_inputs(task_of(target, **columns)) == found


@pytest.mark.parametrize(
    ("target", "columns"),
    [
        (2 * A - B, {}),
        (2 * A - B + 1e-6 * NOISE, {}),
        (A + B, {"close": A + B + 0.01 * NOISE}),
        (CODE + 0.1 * NOISE, {"code": CODE}),
        (A + B, {"name": [f"tree {i // 2}" for i in range(60)]}),
        (np.where(A > 0, "yes", "no"), {"kind": KIND}),
    ],
)
def test_other_inputs_are_not_named(target, columns):
    assert determining_inputs(task_of(target, **columns)) == []


def test_few_rows_and_single_inputs_say_nothing():
    assert determining_inputs(Task([[1.0, 5.0], [2.0, 3.0]], [3.0, 4.0])) == []
    assert determining_inputs(Task([[1.0], [2.0], [4.0], [7.0], [9.0]], [1.0, 2.0, 4.0, 7.0, 9.0])) == []
    assert determining_inputs(Task(np.eye(6), np.eye(6))) == []


def with_gaps(values, placeholder, rows=6):
    return np.where(np.arange(60) % 10 < rows / 6, placeholder, values)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        (with_gaps(20 + 5 * A, -200.0), -200.0),
        (with_gaps(20 + 5 * A, 9999.0), 9999.0),
        (with_gaps(DRAW.integers(18, 80, size=60), -999), -999.0),
        (with_gaps(np.exp(A), -99.0), -99.0),
    ],
)
def test_numbers_that_stand_for_missing_ones_are_found_in_their_own_units(column, value):
    assert placeholders(task_of(A + B, c=column)) == {"c": (value, 6)}


@pytest.mark.parametrize(
    "column",
    [
        A,
        np.exp(2 * A),
        np.where(np.arange(60) < 40, 0.0, 1000 + B),
        np.arange(60) < 5,
        np.where(np.arange(60) < 5, 10, np.arange(60) % 4),
        np.minimum(A, 1.0),
        np.where(np.arange(60) < 2, -999.0, A),
    ],
)
def test_zeros_flags_and_outliers_are_not_placeholders(column):
    assert placeholders(task_of(A + B, c=column)) == {}


def warnings(task):
    return predict(task, "diagonal", scale=1e-8, curve=False).record.attrs["warnings"]


def test_a_prediction_warns_of_both():
    task = task_of(A + B, copy=A + B, c=with_gaps(A, -999.0))
    copied, missing = warnings(task)[-2:]
    assert "'copy'" in copied
    assert "-999 in 'c' (6 rows)" in missing
    assert len(warnings(task_of(2 * A - B))) == len(warnings(task)) - 2


def test_pixels_are_not_examined():
    x = np.c_[A, B, with_gaps(A, -999.0), A + B]
    task = Task(x, (A + B)[:, None], image_shape=(2, 2))
    assert not any("x4" in each or "-999" in each for each in warnings(task))


def test_columns_of_a_frame_are_told_by_their_names():
    frame = pd.DataFrame({"a": A, "b": B, "c": A + B})
    assert determining_inputs(Task(frame, A + B)) == ["c"]

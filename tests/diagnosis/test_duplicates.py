"""The share of duplicate units on matrices that can be checked by hand."""

import math

import numpy as np
import pytest
from snapshots import snapshot, values

from dynascope.diagnosis.measurements.duplicates import measure_duplicates


def share(matrix, **given):
    (found,) = values(measure_duplicates(snapshot({"w": np.asarray(matrix)}, **given)))["duplicate_fraction"]
    return found


def at_angle(degrees):
    return [math.cos(math.radians(degrees)), math.sin(math.radians(degrees))]


def test_a_unit_is_a_duplicate_if_it_is_parallel_to_another_one():
    matrix = np.array([[1.0, 2, 0], [2, 4, 0], [-1, -2, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]])
    assert share(matrix) == pytest.approx(2 / 6)
    assert share(matrix.T, units_last=True) == pytest.approx(2 / 6)
    assert share(matrix.astype(np.float16)) == pytest.approx(2 / 6)
    assert share(matrix.reshape(6, 3, 1, 1)) == pytest.approx(2 / 6)


@pytest.mark.parametrize(("angle", "expected"), [(8.0, 1.0), (8.2, 0.0)])  # arccos 0.99 = 8.11°
def test_units_are_parallel_up_to_eight_degrees(angle, expected):
    assert share([at_angle(0), at_angle(angle)]) == expected


def test_units_with_one_input_have_no_share():
    assert math.isnan(share([[1.0], [2.0]]))


def test_random_units_are_no_duplicates_and_copies_are():
    matrix = np.random.default_rng(0).normal(size=(64, 50))
    assert share(matrix) == 0
    assert share(np.concatenate([matrix, 0.5 * matrix[:16]])) == pytest.approx(32 / 80)


def test_wide_matrices_are_thinned():
    matrix = np.random.default_rng(0).normal(size=(3000, 40))
    assert share(matrix) == 0
    assert share(np.broadcast_to(matrix[:1], matrix.shape)) == 1


def test_vectors_have_no_units():
    assert measure_duplicates(snapshot({"b": np.ones(3)})) == {}

from __future__ import annotations

import importlib

import numpy as np
import pytest
from sklearn.datasets import load_digits

from dynascope.tasks import digits
from dynascope.tasks.data.digits import drawn_digits


@pytest.fixture(scope="module")
def task():
    return digits()


def test_pixels_are_a_sixteenth_of_the_originals_without_their_mean(task):
    pixels = load_digits().data
    assert task.inputs.shape == (1797, 64)
    np.testing.assert_allclose(task.inputs, (pixels - pixels.mean(axis=0)) / 16, atol=1e-14)  # rounding of a mean
    assert 0.9 < np.ptp(task.inputs) <= 2.0


def test_they_are_the_same_where_the_file_is_not_found(task, monkeypatch):
    monkeypatch.setattr(importlib.import_module("dynascope.tasks.data.digits"), "find_spec", lambda _: None)
    elsewhere = digits()
    np.testing.assert_array_equal(elsewhere.inputs, task.inputs)
    np.testing.assert_array_equal(elsewhere.targets, task.targets)


def test_targets_are_the_classes_without_their_mean(task):
    labels = load_digits().target
    assert task.targets.shape == (1797, 10)
    np.testing.assert_array_equal(task.targets.argmax(axis=1), labels)
    np.testing.assert_allclose(task.targets.sum(axis=1), 0.0, atol=1e-14)
    # A one-hot target of frequency p has variance p(1 − p).
    frequencies = np.bincount(labels) / len(labels)
    assert task.target_power == pytest.approx(np.sum(frequencies * (1 - frequencies)), rel=1e-12)


def test_pixels_and_classes_are_named(task):
    assert task.image_shape == (8, 8)
    assert task.feature_names[2 * 8 + 3] == "pixel 3,4"
    assert task.target_names == tuple(f"digit {k}" for k in range(10))


def test_some_digits_are_drawn_once_each_and_centred_anew(task):
    few = drawn_digits(20, np.random.default_rng(0))
    rows = np.random.default_rng(0).permutation(1797)[:20]
    expected = task.inputs[np.sort(rows)]
    np.testing.assert_allclose(few.inputs, expected - expected.mean(axis=0), atol=1e-14)
    np.testing.assert_allclose(few.targets.mean(axis=0), 0.0, atol=1e-14)

from __future__ import annotations

import numpy as np

from dynascope.studies.staircases.relu_alignment.paths import AlignmentPaths
from dynascope.theory.relu_alignment import alignment_path


def test_the_paths_of_all_neurons_are_those_of_each():
    draw = np.random.default_rng(0)
    inputs, targets, first = draw.normal(size=(5, 2)), draw.normal(size=5), draw.normal(size=(2, 7))
    signs, times = np.where(np.arange(7) % 2, -1, 1), np.linspace(0, 3, 10)
    paths = AlignmentPaths.of(inputs, targets, first, signs)
    directions, growths = paths.at(times)
    for neuron in range(7):
        direction, growth = alignment_path(inputs, targets, first[:, neuron], sign=int(signs[neuron])).at(times)
        np.testing.assert_array_equal(directions[:, neuron], direction)
        np.testing.assert_array_equal(growths[:, neuron], growth)
    assert len(paths.chosen(np.array([1, 4])).paths) == 2
    angles = np.radians(paths.angles(directions))
    np.testing.assert_allclose(np.stack([np.cos(angles), np.sin(angles)], axis=-1), directions, atol=1e-12)


def test_the_first_neuron_to_have_grown_tells_the_time():
    # One datum: a neuron along it grows at the rate y‖x‖.
    paths = AlignmentPaths.of(np.array([[2.0, 0.0]]), np.array([1.5]), np.eye(2)[:, :1], np.array([1]))
    assert abs(paths.time_to_grow(6.0, 10.0) - 2.0) < 2e-3

from __future__ import annotations

import numpy as np

from dynascope.groups import encoding_from_frequencies
from dynascope.studies.staircases.modular_addition.frequency_neurons import (
    frequency_projection,
    neurons_near_frequencies,
)
from dynascope.theory.modular.addition import addition_utility


def test_neurons_take_the_frequencies_in_turn():
    encoding = encoding_from_frequencies(11, {1: 1.0, 3: 0.5})
    rows = neurons_near_frequencies(encoding, [1, 3], neurons=6, seed=2)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1)
    sizes = np.stack([np.linalg.norm(rows[:, :11] @ frequency_projection(11, each), axis=1) for each in (1, 3)])
    assert sizes.argmax(axis=0).tolist() == [0, 1, 0, 1, 0, 1]


def test_aligned_neurons_of_a_frequency_have_the_same_and_the_largest_utility():
    encoding = encoding_from_frequencies(11, {1: 1.0, 3: 0.5}, {1: 0.4, 3: 2.0})
    drawn, aligned = (
        addition_utility(neurons_near_frequencies(encoding, [1], neurons=20, aligned=each), encoding)
        for each in (False, True)
    )
    np.testing.assert_allclose(aligned, aligned[0], rtol=1e-12)
    assert np.all(drawn <= aligned[0] * (1 + 1e-12))


def test_the_parts_of_all_frequencies_make_up_a_function_of_mean_zero():
    whole = sum(frequency_projection(6, each) for each in (1, 2, 3))
    np.testing.assert_allclose(whole, np.eye(6) - 1 / 6, atol=1e-14)

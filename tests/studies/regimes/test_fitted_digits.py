from __future__ import annotations

import numpy as np
import pytest

from dynascope.networks import MLP
from dynascope.studies.regimes.fitted_digits import centred_accuracy, fitted, layer_difference, split_digits


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_training_stops_at_the_loss_and_measures_the_network(scale):
    data = split_digits(60, np.random.default_rng(0))
    start = MLP((64, 64, 10), bias=False, scale=scale, seed=1)
    run = fitted(start, data, 0.05)
    assert 0.03 < run.loss <= 0.05
    assert run.accuracy == 1.0
    assert 0.1 < run.test_accuracy < 1.0
    np.testing.assert_allclose(run.layer_difference, layer_difference(start), rtol=1e-3)


@pytest.mark.slow
def test_a_multiplied_learning_rate_leaves_the_trained_network_unchanged():
    data, start = split_digits(60, np.random.default_rng(0)), MLP((64, 16, 10), bias=False)
    np.testing.assert_allclose(fitted(start, data, 0.05, 1.0)[2:], fitted(start, data, 0.05, 2.0)[2:], rtol=0.03)


@pytest.mark.slow
def test_the_initial_output_lowers_the_test_accuracy_of_networks_with_large_weights():
    data = split_digits(60, np.random.default_rng(0))
    starts = [MLP((64, 64, 10), bias=False, scale=scale) for scale in (1e-3, 4.0)]
    small, large = (centred_accuracy(each, data, 0.05) for each in starts)
    np.testing.assert_allclose(small, fitted(starts[0], data, 0.05).test_accuracy, atol=0.01)
    assert large > fitted(starts[1], data, 0.05).test_accuracy + 0.2


def test_training_and_test_digits_are_disjoint_and_complete():
    data = split_digits(100, np.random.default_rng(0))
    assert len(data.labels) + len(data.test_labels) == 1797
    np.testing.assert_array_equal(data.labels, np.argmax(data.task.targets, axis=1))
    assert not (data.test_inputs[:, None] == data.task.inputs).all(axis=2).any()

from __future__ import annotations

import numpy as np
import optax
import pytest

from dynascope.studies.scaling.gaussian_mlp import gaussian_mlp
from dynascope.tasks import SparseParity
from dynascope.training import Descent, descend
from dynascope.training.optimizers import decayed


def test_initial_weights_are_gaussian_and_the_output_bias_is_zero():
    network = gaussian_mlp((30, 500, 1), 0.02, seed=4)
    for leaf in (*network.weights, network.biases[0]):
        assert leaf.dtype == np.float32
        # Four standard errors of a standard deviation of as many numbers.
        assert leaf.std() == pytest.approx(0.02, rel=4 / np.sqrt(2 * leaf.size))
    assert network.biases[1] == 0
    other = gaussian_mlp((30, 500, 1), 0.02, seed=5)
    assert np.abs(other.weights[0] - network.weights[0]).min() > 0


@pytest.mark.slow
def test_absent_neurons_stay_at_zero():
    parity = SparseParity(skills=2, bits=4, relevant_bits=2, exponent=0.6, target_scale=5.0)
    _, trained = descend(
        parity.expectation(),
        gaussian_mlp((parity.input_dimension, 5, 1), 0.01, 0, present=3),
        Descent(decayed(optax.adam, 1e-4), learning_rate=0.02, steps=300, save=[300]),
        return_networks=True,
    )
    assert np.all(np.asarray(trained.weights[0])[:, 3:] == 0)
    assert np.all(np.asarray(trained.weights[1])[3:] == 0)
    assert np.all(np.asarray(trained.biases[0])[3:] == 0)
    assert np.abs(np.asarray(trained.weights[1])[:3]).max() > 1.0

from __future__ import annotations

import numpy as np
import pytest

from dynascope.compilation import jit
from dynascope.studies.noise.stochastic_collapse.network_runs import NoisyDigits, training_shares, unit_statistics


def trainings(network="mlp", **fields):
    usual = {"samples": 60, "units": 8, "batch_size": 4, "weight_decay": 1e-3, "starts": 2, "seed": 0}
    return NoisyDigits(network, **{**usual, **fields})


@pytest.fixture(scope="module")
def found():
    return trainings().collapse(0.1, 0.0, time=50.0, later_rate=0.1, later_time=20.0)


@pytest.mark.slow
def test_networks_are_measured_while_they_learn(found):
    shape = 2, len(training_shares())
    assert {name: each.shape for name, each in found.items()} == {
        **dict.fromkeys(("independent_fraction", "vanishing_fraction", "dead_fraction", "loss"), shape),
        "late_accuracy": (2,),
    }
    assert np.all(found["loss"][:, -1] < 0.3 * found["loss"][:, 0])
    # Ten classes would be a tenth by chance.
    assert found["late_accuracy"].min() > 0.4
    assert np.all(found["independent_fraction"] == 1)


@pytest.mark.slow
def test_decay_that_is_stronger_than_the_data_leaves_nothing_of_a_network(found):
    # The program is that of the other test; a decay of 2 outdoes curvatures of order one.
    gone = trainings(weight_decay=2.0).collapse(0.1, 0.5, time=50.0, later_rate=0.1, later_time=20.0)
    assert gone["loss"][:, -1] == pytest.approx(0.5, abs=0.05)
    assert found["loss"][:, -1].max() < 0.3


def test_of_noisy_labels_the_stated_share_is_random():
    made = trainings(samples=200)
    true, noisy, random = (made.task(noise).targets.argmax(axis=1).reshape(20, 200) for noise in (0.0, 0.5, 1.0))
    assert np.array_equal(true, np.tile(made.data[1][:200], (20, 1)))
    assert np.array_equal(noisy[10:], true[10:])
    assert np.array_equal(noisy[:10], random[:10])
    # A tenth of the random ones is right by chance, with a standard error of 0.005.
    assert np.mean(random == true) == pytest.approx(0.1, abs=0.02)
    assert np.array_equal(made.task(0.5).inputs.reshape(20, 200, -1)[7], made.data[0][:200])


@pytest.mark.slow
def test_channels_are_units_of_a_convolutional_network():
    made = trainings("convolutional", units=4)
    network = made.first[0]
    functions = unit_statistics("convolutional", 4, 60)
    given = {"incoming": (), "outgoing": (), "active": made.data, "right": made.data}

    @jit
    def measured(network):
        return {name: functions[name][0](network, *data) for name, data in given.items()}

    statistics = measured(network)
    assert statistics["incoming"].shape == (4, 9 * 4 + 1)
    assert statistics["outgoing"].shape == (4, 4 * 16)
    assert statistics["active"].shape == (4,)

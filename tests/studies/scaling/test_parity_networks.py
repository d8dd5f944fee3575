from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest

from dynascope.studies.scaling.emergence_time import EmergenceTime
from dynascope.studies.scaling.parity_networks import SkillReading, gaussian_network
from dynascope.tasks import SparseParity

PARITY = SparseParity(skills=2, bits=5, relevant_bits=2, target_scale=4.0)


def half_of_each(parity):
    """Half of every skill, and nothing else."""

    def network(inputs):
        skill, bits = inputs[:, : parity.skills], inputs[:, parity.skills :]
        signs = np.stack([np.prod(1 - 2 * np.asarray(bits)[:, own], axis=1) for own in parity.relevant], axis=1)
        return (parity.target_scale / 2 * np.sum(np.asarray(skill) * signs, axis=1))[:, None]

    return network


@pytest.mark.parametrize(("quantity", "expected"), [("strength", 0.5), ("skill_loss", 0.25)])
def test_readings_are_in_units_of_the_targets(quantity, expected):
    whole = SkillReading(PARITY, quantity)
    network = half_of_each(PARITY)

    def pure(inputs):
        return jax.pure_callback(network, jax.ShapeDtypeStruct((len(inputs), 1), inputs.dtype), inputs)

    np.testing.assert_allclose(whole(pure), expected, rtol=1e-6)


@pytest.mark.slow
def test_more_than_sixteen_bits_are_sampled():
    parity = dataclasses.replace(PARITY, bits=17)
    reading = SkillReading(parity, "strength", samples=1000)
    network = gaussian_network((parity.input_dimension, 8, 1), 1.0, seed=1)
    again = SkillReading(dataclasses.replace(parity), "strength", samples=1000)
    assert (reading, hash(reading)) == (again, hash(again))
    np.testing.assert_array_equal(reading(network), again(network))
    assert np.all(reading(network) != dataclasses.replace(reading, samples=999)(network))


def test_networks_start_gaussian_but_for_the_bias_of_the_output():
    network = gaussian_network((30, 500, 1), 0.02, seed=4)
    for leaf in (*network.weights, network.biases[0]):
        assert leaf.dtype == np.float32
        # Four standard errors of a standard deviation of as many numbers.
        assert leaf.std() == pytest.approx(0.02, rel=4 / np.sqrt(2 * leaf.size))
    assert network.biases[1] == 0
    other = gaussian_network((30, 500, 1), 0.02, seed=5)
    assert np.abs(other.weights[0] - network.weights[0]).min() > 0


def test_a_result_in_the_published_setting_has_its_fields():
    import json

    fields = json.loads(EmergenceTime(paper=True, seed=3).attributes()["parameters"])
    assert (fields["paper"], fields["width"], fields["bits"], fields["seed"]) == (True, 1000, 32, 3)

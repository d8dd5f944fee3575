from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest

from dynascope.studies.scaling.gaussian_mlp import gaussian_mlp
from dynascope.studies.scaling.skill_reading import SkillReading
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
    network = gaussian_mlp((parity.input_dimension, 8, 1), 1.0, seed=1)
    again = SkillReading(dataclasses.replace(parity), "strength", samples=1000)
    assert (reading, hash(reading)) == (again, hash(again))
    np.testing.assert_array_equal(reading(network), again(network))
    assert np.all(reading(network) != dataclasses.replace(reading, samples=999)(network))

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies.symmetry.attention_symmetry.layers import VARIANTS, attention, charge_matrices, layer
from dynascope.studies.symmetry.attention_symmetry.study import AttentionSymmetry

STUDY = AttentionSymmetry(width=2, tokens=3, samples=20, draws=4, times=100, steps=20)


@pytest.fixture(scope="module")
def observed():
    return STUDY.observe().record


@pytest.mark.slow
def test_training_and_the_program_have_the_predicted_charges(observed):
    expected = np.array([[3, 3], [1, 1], [3, 3], [0, 0], [0, 0]])
    np.testing.assert_array_equal(observed["conserved_charges"], expected)
    np.testing.assert_array_equal(observed["program_symmetries"], expected)
    assert STUDY.compared(observed, STUDY.predict().record).verdict.outcome == "agree"


@pytest.mark.slow
def test_another_number_of_charges_is_refuted(observed):
    predicted = STUDY.predict().record
    # As if a constant bias broke nothing.
    wrong = predicted["conserved_charges"].copy()
    wrong.loc[{"layer": "constant"}] = 3
    assert STUDY.compared(observed, predicted.assign(conserved_charges=wrong)).verdict.outcome == "disagree"


@pytest.mark.slow
def test_a_defect_along_another_direction_fails_its_check(observed):
    predicted = STUDY.predict().record
    wrong = predicted.assign(defects=-predicted["defects"])
    # A violated identity points to an error in the measurement.
    assert STUDY.compared(observed, wrong).verdict.outcome == "undecided"


@pytest.mark.slow
def test_an_optimiser_that_changes_its_side_is_refuted(observed):
    found = {name: (each.dims, each.to_numpy()) for name, each in observed.data_vars.items()}
    axes, distance = found["distance"]
    claims = {each.name: each.outcome for each in STUDY.claimed(found | {"distance": (axes, distance[::-1])})}
    assert claims["rotation, heavy ball"] == claims["rotation, Adam"] == "does not hold"


def test_the_bias_of_the_keys_would_cancel_and_draws_average():
    network = layer(VARIANTS["resampled"], 3, 5, seed=0)
    inputs = np.random.default_rng(1).normal(size=(4, 6))
    with jax.enable_x64(True):
        both = network(inputs).reshape(4, 5, 6)
        for place in range(5):
            one = {name: each[[place]] for name, each in network.constants.items()}
            np.testing.assert_allclose(
                attention(network.weights, inputs, **one), np.sqrt(5) * both[:, place], atol=1e-12
            )


def test_charges_of_learned_biases_contain_the_sum_of_both():
    network = layer(VARIANTS["constant and learned"], 3, 4, seed=0)
    without = layer(VARIANTS["constant"], 3, 4, seed=0)
    with jax.enable_x64(True):
        difference = charge_matrices(network) - charge_matrices(without)
    total = network.weights["value bias"] + network.constants["value_biases"][0]
    np.testing.assert_allclose(difference[1], jnp.outer(total, total), atol=1e-12)


def test_too_few_draws_are_rejected():
    with pytest.raises(InputError, match="draws is 4, and width is 5"):
        dataclasses.replace(STUDY, width=5)

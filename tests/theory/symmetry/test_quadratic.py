from __future__ import annotations

import numpy as np
import pytest
from charged_networks import BATCH_NORM, CHANNELS, NEURONS, RELU, descend
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory import SGD
from dynascope.theory.symmetry import quadratic_charge, quadratic_charge_from_gradients

HYPERPARAMETERS = {"learning_rate": 0.1, "weight_decay": 0.01}
ROUNDING = 1e-13  # of charges of order one over some tens of steps
DIAGONALS = np.transpose(NEURONS)


def batched(weights, k):
    shares = np.roll([0.5, 0.5, 0.0, 0.0, 0.0], k)
    return RELU.gradient(weights, shares)


def projected(random, weights, generator):
    """A gradient of a loss that does not change along the generator, and nothing else."""
    slope, field = random.normal(size=len(weights)), generator @ weights
    return slope - field * (field @ slope) / (field @ field)


def test_the_charges_at_the_start_are_the_published_ones():
    published = [-1.7877563803886, -0.8592755447880, -0.1605307280172, -1.8328770216567]
    np.testing.assert_allclose([RELU.start**2 @ each for each in NEURONS], published, rtol=0, atol=6e-14)
    slope = RELU.gradient(RELU.start)
    inner, outer = (slope**2 @ np.maximum(sign * NEURONS[0], 0) for sign in (-1, 1))
    assert [inner, outer] == pytest.approx([0.219206180239315, 0.466435985145176], rel=1e-14)
    assert slope @ slope == pytest.approx(3.111960037037346, rel=1e-14)
    assert BATCH_NORM.loss(RELU.start) == pytest.approx(0.616616521880, abs=6e-13)
    assert BATCH_NORM.gradient(RELU.start) ** 2 @ CHANNELS[0] == pytest.approx(0.007151285757692, rel=1e-12)


@pytest.mark.parametrize(("momentum", "charge"), [(0.0, -1.608726384453), (0.9, -3.347398862924)])
def test_neurons_follow_the_law_and_end_where_published(momentum, charge):
    run = descend(lambda weights, _: RELU.gradient(weights), RELU.start, 50, **HYPERPARAMETERS, momentum=momentum)
    charges, steps = run.charge(DIAGONALS), run.displacements(DIAGONALS)
    found = quadratic_charge(charges[0], steps, SGD(**HYPERPARAMETERS, momentum=momentum), steps=np.arange(50))
    np.testing.assert_allclose(found, charges, rtol=0, atol=ROUNDING)
    assert found[50, 0] == pytest.approx(charge, abs=6e-13)


@pytest.mark.parametrize(("momentum", "norm"), [(0.0, 2.008971338653), (0.9, 1.142598777119)])
def test_weights_before_a_batch_norm_follow_the_law_and_end_where_published(momentum, norm):
    gradient = BATCH_NORM.gradient
    run = descend(lambda weights, _: gradient(weights), RELU.start, 50, **HYPERPARAMETERS, momentum=momentum)
    charges = run.charge(CHANNELS[0])
    assert charges[0] == pytest.approx(2.2185902021, abs=6e-11)
    found = quadratic_charge(charges[0], run.displacements(CHANNELS[0]), SGD(**HYPERPARAMETERS, momentum=momentum))
    np.testing.assert_allclose(found, charges, rtol=0, atol=ROUNDING)
    assert found[50] == pytest.approx(norm, abs=6e-13)


@pytest.mark.parametrize("dampening", [0.0, 0.3])
def test_the_law_holds_of_batches_and_of_dampening(dampening):
    chosen = HYPERPARAMETERS | {"momentum": 0.8}
    run = descend(batched, RELU.start, 60, **chosen, dampening=dampening)
    charges = run.charge(DIAGONALS)
    found = quadratic_charge(charges[0], run.displacements(DIAGONALS), SGD(**chosen), dampening=dampening)
    np.testing.assert_allclose(found, charges, rtol=0, atol=ROUNDING)


def test_norms_of_gradients_tell_the_charges_of_plain_descent():
    run = descend(batched, RELU.start, 60, **HYPERPARAMETERS)
    charges = run.charge(DIAGONALS)
    found = quadratic_charge_from_gradients(charges[0], run.gradients**2 @ DIAGONALS, SGD(**HYPERPARAMETERS))
    np.testing.assert_allclose(found, charges, rtol=0, atol=ROUNDING)
    powers = (1 - 0.001) ** (2 * np.arange(59, -1, -1))
    written_out = 0.999**120 * charges[0] + 0.01 * powers @ (run.gradients**2 @ DIAGONALS)
    np.testing.assert_allclose(found[-1], written_out, rtol=1e-12)


@given(
    seed=st.integers(0, 10**6),
    learning_rate=st.floats(1e-3, 0.3),
    weight_decay=st.floats(0, 1),
    momentum=st.floats(0, 0.97),
)
def test_any_symmetric_generator_and_any_gradients_along_which_nothing_changes(
    seed, learning_rate, weight_decay, momentum
):
    random = np.random.default_rng(seed)
    generator = random.normal(size=(6, 6))
    generator = generator + generator.T
    chosen = {"learning_rate": learning_rate, "weight_decay": weight_decay, "momentum": momentum}
    run = descend(lambda weights, _: projected(random, weights, generator), random.normal(size=6), 20, **chosen)
    charges = np.einsum("ki,ij,kj->k", run.weights, generator, run.weights)
    moved = np.diff(run.weights, axis=0)
    found = quadratic_charge(charges[0], np.einsum("ki,ij,kj->k", moved, generator, moved), SGD(**chosen))
    # The projection is rounded too, and momentum keeps 1/(1 − β) of it.
    np.testing.assert_allclose(found, charges, rtol=0, atol=1e-12 * np.abs(run.weights).max() ** 2 / (1 - momentum))


def test_another_decay_of_some_weights_breaks_the_law():
    decay = np.where(NEURONS[0] > 0, 0.0, 0.01) * np.ones((50, 1))
    run = descend(batched, RELU.start, 50, learning_rate=0.1, weight_decay=decay, momentum=0.9)
    charges = run.charge(NEURONS[0])
    found = quadratic_charge(charges[0], run.displacements(NEURONS[0]), SGD(**HYPERPARAMETERS, momentum=0.9))
    assert np.abs(found - charges).max() > 1e-2


def test_a_hundred_thousand_tiny_steps_add_up():
    found = quadratic_charge(1.0, np.full(10**5, 1e-12), SGD(0.1, momentum=0.9))
    # Constant steps add (1 + β)/(1 − β) of themselves, but for the first tens in which momentum gets going.
    assert found[-1] - 1 == pytest.approx(19e-12 * 1e5, rel=1e-3)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: quadratic_charge(1.0, 2.0, SGD(0.1)), "displacements"),
        (lambda: quadratic_charge(np.ones(2), np.ones((3, 4)), SGD(0.1)), "initial"),
        (lambda: quadratic_charge(1.0, [1.0], SGD(-0.1)), "learning_rate"),
        (lambda: quadratic_charge(1.0, [1.0], SGD(0.1, weight_decay=-1.0)), "weight_decay"),
        (lambda: quadratic_charge(1.0, [1.0], SGD(0.1, momentum=1.0)), "momentum"),
        (lambda: quadratic_charge(1.0, [1.0, 1.0], SGD(0.1), steps=[0, 10]), "steps"),
        (lambda: quadratic_charge(1.0, [1.0, 1.0], SGD(0.1), steps=[0, 1, 2]), "steps"),
        (lambda: quadratic_charge_from_gradients(1.0, [1.0], SGD(0.1, momentum=0.9)), "momentum"),
        (lambda: quadratic_charge_from_gradients(1.0, [1.0, np.nan], SGD(0.1)), "gradients"),
        (lambda: quadratic_charge_from_gradients(1.0, [1.0, 1.0], SGD(0.1), steps=[0, 2]), "steps"),
    ],
)
def test_bad_input_is_refused_by_name(call, argument):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.argument == argument

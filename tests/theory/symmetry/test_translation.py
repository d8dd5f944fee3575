from __future__ import annotations

import numpy as np
import pytest
from charged_networks import COLUMNS, RELU, decayed_rates, descend
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory import SGD
from dynascope.theory.symmetry import scheduled_translation, translation_charge

HYPERPARAMETERS = {"learning_rate": 0.1, "weight_decay": 0.01}
# Sums of a few weights of order one over some tens of steps, each of which rounds them.
ROUNDING = 1e-13


def full(weights, _):
    return RELU.gradient(weights)


@pytest.mark.parametrize(("momentum", "charge"), [(0.0, 0.9512056281970317), (0.9, 0.6438566190152928)])
def test_the_unit_charge_after_fifty_steps_is_the_published_one(momentum, charge):
    assert translation_charge(50, 1.0, SGD(**HYPERPARAMETERS, momentum=momentum)) == pytest.approx(charge, rel=1e-14)


def test_the_network_starts_where_it_is_published():
    assert RELU.loss(RELU.start) == pytest.approx(1.085788754887, abs=6e-13)
    sums = [0.4108141688399, 0.4074907812495, 0.0957864943664, -0.2884071018019, 1.9011275718441]
    np.testing.assert_allclose([RELU.start @ each for each in COLUMNS], sums, rtol=0, atol=6e-14)


@pytest.mark.parametrize(("momentum", "charge"), [(0.0, 0.390768749544), (0.9, 0.264505421793)])
def test_columns_before_a_softmax_follow_the_law_and_end_where_published(momentum, charge):
    run = descend(full, RELU.start, 50, **HYPERPARAMETERS, momentum=momentum)
    sums = run.weights @ np.transpose(COLUMNS)
    found = translation_charge(np.arange(51), sums[0], SGD(**HYPERPARAMETERS, momentum=momentum))
    np.testing.assert_allclose(found, sums, rtol=0, atol=ROUNDING)
    assert found[50, 0] == pytest.approx(charge, abs=6e-13)


def test_dampening_spares_the_first_step_as_in_pytorch():
    run = descend(full, RELU.start, 30, **HYPERPARAMETERS, momentum=0.9, dampening=0.4)
    sums = run.weights @ np.transpose(COLUMNS)
    found = translation_charge(np.arange(31), sums[0], SGD(**HYPERPARAMETERS, momentum=0.9), dampening=0.4)
    np.testing.assert_allclose(found, sums, rtol=0, atol=ROUNDING)
    later = translation_charge(np.arange(31), sums[0], SGD(0.06, weight_decay=0.01, momentum=0.9))
    assert np.abs(later - sums).max() > 1e-4


@pytest.mark.parametrize("optimizer", ["heavy_ball", "nesterov", "decoupled"])
def test_schedules_of_every_optimiser_are_followed(optimizer):
    schedule = decayed_rates(25) | {"dampening": 0.0 if optimizer == "nesterov" else 0.3}
    run = descend(full, RELU.start, 25, **schedule, optimizer=optimizer)
    sums = run.weights @ np.transpose(COLUMNS)
    found = scheduled_translation(sums[0], optimizer=optimizer, **schedule)
    np.testing.assert_allclose(found, sums, rtol=0, atol=ROUNDING)


@given(shrinking=st.floats(0, 3), momentum=st.floats(0, 0.99), dampening=st.floats(0, 1))
def test_the_closed_form_is_the_recursion_for_real_complex_and_negative_roots(shrinking, momentum, dampening):
    chosen = {"weight_decay": shrinking, "momentum": momentum}
    step_by_step = scheduled_translation(1.0, np.ones(40), **chosen, dampening=dampening)
    found = translation_charge(np.arange(41), 1.0, SGD(1.0, **chosen), dampening=dampening)
    # Forty steps round by 1e-16 each, of roots of modulus up to two near the double ones.
    np.testing.assert_allclose(found, step_by_step, rtol=1e-9, atol=1e-11 * np.abs(step_by_step).max())


@pytest.mark.parametrize("momentum", [0.0, 0.25, 0.81])
@pytest.mark.parametrize("nearness", [0.0, 1e-14, -1e-14, 1e-9, -1e-9])
def test_roots_that_are_double_or_nearly_so_lose_no_digits(momentum, nearness):
    shrinking = (1 - np.sqrt(momentum)) ** 2 * (1 + nearness)
    step_by_step = scheduled_translation(1.0, np.ones(30), weight_decay=shrinking, momentum=momentum)
    found = translation_charge(np.arange(31), 1.0, SGD(1.0, weight_decay=shrinking, momentum=momentum))
    np.testing.assert_allclose(found, step_by_step, rtol=1e-11, atol=1e-14)


def test_a_trillion_steps_of_tiny_decay_end_at_the_exponential():
    found = translation_charge(1e12, 1.0, SGD(1.0, weight_decay=1e-13, momentum=0.9))
    # z = 1 − 1e-12 up to its square, and n ln z is rounded to 1e-16.
    assert found == pytest.approx(np.exp(-1), rel=1e-10)
    assert translation_charge(1e12, 1.0, SGD(1.0)) == 1


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: translation_charge(1.5, 1.0, SGD(0.1)), "steps"),
        (lambda: translation_charge(-1, 1.0, SGD(0.1)), "steps"),
        (lambda: translation_charge(1, np.nan, SGD(0.1)), "initial"),
        (lambda: translation_charge(1, 1.0, SGD(0.0)), "learning_rate"),
        (lambda: translation_charge(1, 1.0, SGD(0.1, weight_decay=-1e-9)), "weight_decay"),
        (lambda: translation_charge(1, 1.0, SGD(0.1, momentum=1.0)), "momentum"),
        (lambda: translation_charge(1, 1.0, SGD(0.1), dampening=1.1), "dampening"),
        (lambda: scheduled_translation(1.0, [0.1, 0.0]), "learning_rate"),
        (lambda: scheduled_translation(1.0, [0.1, 0.1], momentum=[0.5]), "momentum"),
        (lambda: scheduled_translation(1.0, [0.1], optimizer="AdamW"), "optimizer"),
        (lambda: scheduled_translation(1.0, [0.1], optimizer="nesterov", momentum=0.5, dampening=0.1), "dampening"),
    ],
)
def test_bad_input_is_refused_by_name(call, argument):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.argument == argument

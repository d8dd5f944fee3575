from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory.interventions import (
    AlignmentCoefficients,
    alignment_fixed_point,
    alignment_primitive,
    kolen_pollack_gap,
)

SEEDS = st.integers(0, 2**31)
PARTS = ("decay", "amplification", "null", "sparse", "self_alignment")


def layer(seed, inputs=4, outputs=3):
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(20, inputs)) @ draw.normal(size=(inputs, inputs))
    return x, x.T @ x / len(x), draw.normal(size=(inputs, outputs))


def gradient(coefficients, x, w, b):
    return sum(getattr(coefficients, name) * alignment_primitive(name, x, w, b).gradient for name in PARTS)


@given(seed=SEEDS, parts=st.lists(st.floats(0, 2), min_size=5, max_size=5), inputs=st.integers(1, 5))
def test_the_gradient_of_every_regularizer_vanishes_at_its_fixed_point(seed, parts, inputs):
    coefficients = AlignmentCoefficients(parts[0] + 0.1, *parts[1:])
    x, moment, w = layer(seed, inputs)
    b, rates = alignment_fixed_point(coefficients, w, moment)
    size = rates.max() * np.abs(b).max() + 1
    np.testing.assert_allclose(gradient(coefficients, x, w, b), 0, atol=1e-11 * size)


@given(seed=SEEDS)
def test_the_fixed_points_of_the_rules_are_their_closed_forms(seed):
    _, c, w = layer(seed)
    alpha, beta, gamma = np.random.default_rng(seed).uniform(0.2, 2, size=3)
    rules = {
        "weight mirror": ({"amplification": alpha, "decay": beta}, alpha / beta * c @ w),
        "symmetric alignment": ({"self_alignment": alpha, "decay": beta}, alpha / beta * w),
        "information alignment": (
            {"amplification": alpha, "decay": beta, "null": gamma},
            alpha * c @ w @ np.linalg.inv(beta * np.eye(3) + gamma * w.T @ c @ w),
        ),
    }
    for parts, expected in rules.values():
        found = alignment_fixed_point(AlignmentCoefficients(**parts), w, c).backward
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())


@given(seed=SEEDS)
def test_activation_alignment_recovers_the_weights_for_inputs_of_any_invertible_moment(seed):
    _, _, w = layer(seed)
    root = np.random.default_rng(seed).normal(size=(4, 4))
    moment = root @ root.T + 0.1 * np.eye(4)
    found = alignment_fixed_point(AlignmentCoefficients(amplification=2.0, sparse=0.5), w, moment).backward
    np.testing.assert_allclose(found, 4 * w, atol=1e-9 * np.linalg.cond(moment))


@given(seed=SEEDS, beta=st.floats(0.1, 2), gamma=st.floats(0.1, 2))
def test_information_alignment_bounds_the_singular_values_for_white_inputs(seed, beta, gamma):
    _, _, w = layer(seed)
    found = alignment_fixed_point(AlignmentCoefficients(beta, 1.0, gamma), w, np.ones(4)).backward
    values, mapped = (np.linalg.svd(each, compute_uv=False) for each in (w, found))
    np.testing.assert_allclose(mapped, np.sort(values / (beta + gamma * values**2))[::-1], rtol=1e-10)
    assert mapped.max() <= (1 + 1e-12) / (2 * np.sqrt(beta * gamma))


def test_gradient_descent_contracts_with_the_stated_rates():
    coefficients = AlignmentCoefficients(0.3, 1.0, 0.5, 0.2)
    x, moment, w = layer(0)
    target, rates = alignment_fixed_point(coefficients, w, moment)
    rate, b = 1 / rates.max(), np.zeros_like(w)
    for _ in range(50):
        b = b - rate * gradient(coefficients, x, w, b)
    left, right = (np.linalg.eigh(each)[1] for each in (moment, w.T @ moment @ w))
    modes = left.T @ (b - target) @ right
    expected = -(left.T @ target @ right) * (1 - rate * rates) ** 50
    np.testing.assert_allclose(modes, expected, atol=1e-12)


@given(seed=SEEDS, rate=st.floats(0.01, 0.5), decay=st.floats(0, 1), steps=st.integers(0, 30))
def test_equal_updates_with_decay_contract_the_gap_whatever_the_gradients(seed, rate, decay, steps):
    draw = np.random.default_rng(seed)
    w, b = draw.normal(size=(2, 3, 2))
    expected = kolen_pollack_gap(w - b, steps, learning_rate=rate, weight_decay=decay)
    for _ in range(steps):
        update = draw.normal(size=(3, 2))
        w, b = (each - rate * (update + decay * each) for each in (w, b))
    np.testing.assert_allclose(w - b, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: alignment_fixed_point(AlignmentCoefficients(1.0), np.ones((3, 2)), np.ones(2)), "input_moment"),
        (
            lambda: alignment_fixed_point(AlignmentCoefficients(1.0), np.ones((2, 2)), [[1.0, 2], [0, 1]]),
            "input_moment",
        ),
        (lambda: alignment_fixed_point(AlignmentCoefficients(), np.ones((3, 2)), np.ones(3)), "coefficients"),
        # Without decay, an input that is always zero leaves its feedback weights free.
        (lambda: alignment_fixed_point(AlignmentCoefficients(0, 1, 0, 1), np.ones((2, 2)), [1, 0]), "coefficients"),
        (lambda: kolen_pollack_gap(1.0, 5, learning_rate=-1.0, weight_decay=0.1), "learning_rate"),
    ],
)
def test_bad_input_is_rejected_by_name(call, argument):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.argument == argument

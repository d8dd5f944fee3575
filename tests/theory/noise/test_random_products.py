from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory import SGD
from dynascope.theory.noise import (
    collapse_exponent,
    heavy_ball_collapse_exponent,
    random_product_exponent,
    step_matrices,
)


def test_in_one_dimension_it_is_the_mean_of_the_logarithm():
    hessians = np.array([-3.0, 1.0]).reshape(2, 1, 1)
    for rate in (0.5, 0.8):
        found = random_product_exponent(step_matrices(hessians, SGD(rate)))
        expected = collapse_exponent(hessians.ravel(), learning_rate=rate)
        assert found.exponent == pytest.approx(expected, abs=4 * found.standard_error)
        assert found.standard_error < 0.01


def test_of_one_matrix_it_is_the_logarithm_of_the_spectral_radius():
    matrix = step_matrices([[[3.0]]], SGD(0.2, momentum=0.5))
    radius = np.abs(np.linalg.eigvals(matrix[0])).max()
    found = random_product_exponent(matrix, factors=4000)
    assert found.exponent == pytest.approx(np.log(radius), abs=1e-3)  # what turning adds over so many factors


def test_steps_near_zero_are_products_of_the_step_matrices():
    random = np.random.default_rng(0)
    hessians = random.normal(size=(6, 3, 3))
    hessians += hessians.transpose(0, 2, 1)
    matrices = step_matrices(hessians, SGD(0.1, momentum=0.7, weight_decay=0.2))
    place, moved = random.normal(size=3), np.zeros(3)
    state = np.concatenate([place, moved])
    for hessian, matrix in zip(hessians, matrices, strict=True):
        moved = 0.7 * moved - 0.1 * (hessian @ place + 0.2 * place)
        place = place + moved
        state = matrix @ state
    np.testing.assert_allclose(state, np.concatenate([place, moved]), rtol=1e-13)


def test_momentum_follows_its_leading_order_where_noise_is_small():
    # η s/√(1 − β²) at 0.06 of 1 − β, where the noise term is right to about 5 percent; the mean curvature is zero.
    momentum, deviation = 0.5, 1.0
    rate = 0.06 * (1 - momentum) * np.sqrt(1 - momentum**2)
    curvatures = np.array([-1.0, 1.0]).reshape(2, 1, 1)
    found = random_product_exponent(step_matrices(curvatures, SGD(rate, momentum=momentum)), factors=20000, seed=1)
    order = heavy_ball_collapse_exponent(0.0, deviation, learning_rate=rate, momentum=momentum)
    assert found.exponent == pytest.approx(order, abs=0.05 * abs(order) + 4 * found.standard_error)
    assert found.exponent < -4 * found.standard_error


def test_products_that_vanish_have_no_finite_exponent():
    assert random_product_exponent(np.zeros((2, 2, 2))).exponent == -np.inf
    assert random_product_exponent([[[0.0, 1.0], [0.0, 0.0]]]).exponent == -np.inf


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10**6), size=st.floats(-100, 100))
def test_a_factor_adds_its_logarithm_and_a_rotation_nothing(seed, size):
    random = np.random.default_rng(seed)
    matrices = random.normal(size=(3, 2, 2))
    turn = np.linalg.qr(random.normal(size=(2, 2)))[0]
    found = random_product_exponent(matrices, factors=400)
    scaled = random_product_exponent(10**size * matrices, factors=400)
    assert scaled.exponent == pytest.approx(found.exponent + size * np.log(10), rel=1e-9, abs=1e-9)
    turned = random_product_exponent(turn @ matrices @ turn.T, factors=400)
    # Other first vectors.
    assert turned.exponent == pytest.approx(
        found.exponent, abs=5 * np.hypot(found.standard_error, turned.standard_error)
    )


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: random_product_exponent(np.zeros((2, 2, 3))), "matrices"),
        (lambda: random_product_exponent(np.zeros((0, 2, 2))), "matrices"),
        (lambda: random_product_exponent(np.ones((1, 1, 1)), factors=5), "factors"),
        (lambda: step_matrices(np.ones((1, 1, 2)), SGD(0.1)), "hessians"),
        (lambda: step_matrices(np.ones((1, 1, 1)), SGD(0.1, momentum=1.0)), "momentum"),
        (
            lambda: heavy_ball_collapse_exponent(0.0, 1.0, learning_rate=0.1, momentum=0.9),
            "curvature_deviation",
        ),
    ],
)
def test_bad_input_is_refused_by_name(call, argument):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.argument == argument

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory.noise import collapse_rate, normal_growth_bounds, random_product_exponent


def symmetric(random, *shape):
    matrices = random.normal(size=(*shape, shape[-1]))
    return (matrices + np.swapaxes(matrices, -1, -2)) / 2


def growth(direction, hessian, noise):
    """The rate in one direction."""
    n = direction / np.linalg.norm(direction)
    moved = noise @ n
    return -n @ hessian @ n + np.sum(moved**2) / 2 - np.sum((moved @ n) ** 2)


def test_in_one_dimension_both_bounds_are_the_rate():
    found = normal_growth_bounds([[-1.0]], [[[1.5]], [[0.7]]])
    assert found.most == pytest.approx(collapse_rate(-1.0, 1.5**2 + 0.7**2, learning_rate=1.0), abs=1e-8)
    assert found.least == pytest.approx(found.most, abs=1e-8)


def test_without_noise_the_bounds_are_the_ends_of_the_spectrum():
    found = normal_growth_bounds(np.diag([-1.0, 2.0]), np.zeros((1, 2, 2)))
    assert found == (-2.0, 1.0)


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), size=st.floats(0.1, 3))
def test_no_direction_grows_faster_or_slower_than_the_bounds(seed, size):
    random = np.random.default_rng(seed)
    hessian, noise = symmetric(random, 3), size * symmetric(random, 2, 3)
    found = normal_growth_bounds(hessian, noise)
    rates = [growth(random.normal(size=3), hessian, noise) for _ in range(300)]
    assert found.least <= min(rates)
    assert max(rates) <= found.most + 1e-12


def test_in_two_dimensions_the_bound_is_near_the_largest_rate():
    random = np.random.default_rng(1)
    hessian, noise = symmetric(random, 2), symmetric(random, 2, 2)
    angles = np.linspace(0, np.pi, 2000)
    largest = max(growth(np.array([np.cos(a), np.sin(a)]), hessian, noise) for a in angles)
    found = normal_growth_bounds(hessian, noise)
    # The bound is by the dual of a problem that is not convex, so that a gap may be left.
    assert largest <= found.most <= largest + 0.5


def test_the_exponent_of_small_steps_lies_between_the_bounds():
    random, rate = np.random.default_rng(2), 1e-2
    hessian, noise = symmetric(random, 2), symmetric(random, 1, 2)
    signs = np.array([-1.0, 1.0])
    batches = np.eye(2) - rate * hessian + np.sqrt(rate) * signs[:, None, None] * noise
    found = random_product_exponent(batches, factors=3000)
    bounds = normal_growth_bounds(hessian, noise)
    # Up to the order of the step and four standard errors.
    slack = 4 * found.standard_error / rate + 5 * rate
    assert bounds.least - slack <= found.exponent / rate <= bounds.most + slack


@pytest.mark.parametrize(
    ("hessian", "noise", "argument"),
    [
        ([[1.0, 2.0], [0.0, 1.0]], np.zeros((1, 2, 2)), "hessian"),
        (np.eye(2), np.zeros((1, 3, 3)), "noise"),
        (np.eye(2), [[[0.0, 1.0], [0.0, 0.0]]], "noise"),
    ],
)
def test_bad_input_is_refused_by_name(hessian, noise, argument):
    with pytest.raises(InputError) as caught:
        normal_growth_bounds(hessian, noise)
    assert caught.value.argument == argument

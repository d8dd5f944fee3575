from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.tasks import regression

COVARIANCE = np.array([[2.0, 0.6, 0.0], [0.6, 1.0, -0.3], [0.0, -0.3, 0.5]])
MAP = np.array([[1.0, 0.0], [-2.0, 1.0], [0.0, 3.0]])


@given(st.integers(1, 6), st.integers(1, 3), st.integers(0, 6), st.sampled_from([0.0, 0.5]), st.integers(0, 2**32 - 1))
def test_exact_moments_are_exact(d, c, spare, noise, seed):
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(d, rng.integers(1, d + 1)))  # also covariances that are not of full rank
    covariance, linear_map = factor @ factor.T, rng.normal(size=(d, c))
    task = regression(
        samples=max(2, d + c + spare),
        input_covariance=covariance,
        target_map=linear_map,
        noise=noise,
        seed=seed,
        exact_moments=True,
    )
    size = np.abs(covariance).max()
    # Rounding; the square root of a zero eigenvalue is only known to 1e-8, but enters the moments squared.
    np.testing.assert_allclose(task.input_moment, covariance, atol=1e-12 * size)
    np.testing.assert_allclose(task.cross_moment, linear_map.T @ covariance, atol=1e-7 * size)
    power = np.trace(linear_map.T @ covariance @ linear_map) + c * noise**2
    assert task.target_power == pytest.approx(power, rel=1e-6, abs=1e-7 * size)


def test_moments_converge_to_the_given_ones_without_being_exact():
    task = regression(samples=20_000, input_covariance=COVARIANCE, target_map=MAP, noise=0.5)
    assert not np.allclose(task.input_moment, COVARIANCE, atol=1e-6)
    # A second moment of n Gaussian samples is off by about √(2/n)·Σ = 0.02; five times that.
    np.testing.assert_allclose(task.input_moment, COVARIANCE, atol=0.1)
    residual = task.targets - task.inputs @ MAP
    np.testing.assert_allclose(residual.T @ residual / task.samples, 0.25 * np.eye(2), atol=0.0125)


def test_without_noise_the_targets_are_the_map_of_the_inputs():
    task = regression(samples=7, input_covariance=COVARIANCE, target_map=MAP, exact_moments=True)
    np.testing.assert_allclose(task.targets, task.inputs @ MAP, atol=1e-14 * np.abs(task.targets).max())


def test_a_vector_of_variances_is_a_diagonal_covariance_and_a_vector_map_has_one_target():
    one = regression(samples=9, input_covariance=[4.0, 1.0], target_map=[1.0, 2.0], seed=3)
    other = regression(samples=9, input_covariance=np.diag([4.0, 1.0]), target_map=[[1.0], [2.0]], seed=3)
    np.testing.assert_array_equal(one.inputs, other.inputs)
    np.testing.assert_array_equal(one.targets, other.targets)


def test_a_draw_depends_on_the_seed_alone():
    first, again, other = (
        regression(samples=5, input_covariance=[1.0], target_map=[1.0], seed=seed).inputs for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


def test_the_description_says_what_was_drawn():
    exact = regression(samples=4, input_covariance=[1.0, 1.0], target_map=[1.0, 1.0], noise=0.5, exact_moments=True)
    plain = regression(samples=4, input_covariance=[1.0, 1.0], target_map=[1.0, 1.0])
    assert [("exactly" in each.description[0], "0.5" in each.description[1]) for each in (exact, plain)] == [
        (True, True),
        (False, False),
    ]


@pytest.mark.parametrize(
    ("arguments", "argument", "problem"),
    [
        ({"input_covariance": [[1.0, 0.5], [0.4, 1.0]]}, "input_covariance", "is not symmetric"),
        ({"input_covariance": [[1.0, 2.0], [2.0, 1.0]]}, "input_covariance", "has the eigenvalue -1: give a positive"),
        ({"input_covariance": [1.0, -2.0]}, "input_covariance", "has the eigenvalue -2"),
        ({"input_covariance": np.zeros((2, 2))}, "input_covariance", "is zero"),
        ({"input_covariance": []}, "input_covariance", "is zero"),
        ({"input_covariance": np.ones((2, 3))}, "input_covariance", r"has shape \(2, 3\): .* shape \(2, 2\)"),
        ({"input_covariance": 1.0}, "input_covariance", r"has shape \(\)"),
        ({"input_covariance": [[1.0, np.nan], [np.nan, 1.0]]}, "input_covariance", "2 values that are not finite"),
        ({"target_map": [[1.0], [2.0], [3.0]]}, "target_map", r"has shape \(3, 1\)"),
        ({"target_map": [1.0]}, "target_map", r"has shape \(1,\)"),
        ({"target_map": [1.0, np.inf]}, "target_map", "1 value that is not finite"),
        ({"noise": -0.1}, "noise", "noise is -0.1"),
        ({"noise": np.nan}, "noise", "noise is nan"),
        ({"samples": 1}, "samples", "samples is 1: choose an integer of at least 2"),
        ({"samples": 0, "exact_moments": True}, "samples", "samples is 0: choose an integer of at least 2"),
        (
            {"samples": 2, "exact_moments": True, "noise": 1.0},
            "samples",
            "samples is 2: choose at least 3 for exact moments",
        ),
    ],
)
def test_bad_arguments_are_refused_by_name(arguments, argument, problem):
    good = {"samples": 10, "input_covariance": [1.0, 2.0], "target_map": [1.0, 1.0]}
    with pytest.raises(InputError, match=problem) as caught:
        regression(**{**good, **arguments})
    assert caught.value.argument == argument


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("argument", ["input_covariance", "target_map"])
def test_rows_of_unequal_length_are_refused_by_name(argument):
    good = {"samples": 10, "input_covariance": [1.0, 2.0], "target_map": [1.0, 1.0]}
    with pytest.raises(InputError, match=f"{argument} is not an array of real numbers"):
        regression(**{**good, argument: [[1.0], [2.0, 3.0]]})

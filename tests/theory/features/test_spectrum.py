from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from dynascope.errors import InputError
from dynascope.theory.features.spectrum import eigenspectrum, mode_flow, training_flow

GOLDEN = np.array([[1, 0], [1, 1], [0, 2], [-1, 1], [2, -1]])
# More samples than features, as many, fewer, and a feature matrix of rank two.
SHAPES = ((9, 4), (5, 5), (4, 9), (6, 5))


@pytest.fixture
def _double():
    with jax.enable_x64(True):
        yield


def drawn(shape: tuple[int, int], seed: int = 0) -> np.ndarray:
    draw = np.random.default_rng(seed)
    features = draw.normal(size=shape)
    return features if shape != (6, 5) else features[:, :2] @ draw.normal(size=(2, 5))


def test_the_golden_spectrum_comes_out():
    spectrum = eigenspectrum(GOLDEN)
    np.testing.assert_allclose(spectrum.intensity, [1.8, 1.0], rtol=1e-14)
    first = np.abs(spectrum.eigenfeatures(GOLDEN)[:, 0])
    np.testing.assert_allclose(first, [0.5270462766947, 0, 1.054092553389, 1.054092553389, 1.581138830084], atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_eigenfeatures_diagonalise_the_operator_and_give_the_features_back(shape):
    features = drawn(shape)
    spectrum = eigenspectrum(features)
    e, n = spectrum.eigenfeatures(features), len(features)
    np.testing.assert_allclose(e.T @ e / n, np.eye(len(spectrum.intensity)), atol=1e-12)
    np.testing.assert_allclose(features @ features.T / n @ e, spectrum.intensity * e, atol=1e-12)
    np.testing.assert_allclose((e * np.sqrt(spectrum.intensity)) @ spectrum.directions.T, features, atol=1e-12)


def test_it_does_not_depend_on_how_many_times_the_samples_are_seen():
    features = drawn((7, 3))
    once, twice = eigenspectrum(features), eigenspectrum(np.concatenate([features, features]))
    np.testing.assert_allclose(twice.intensity, once.intensity, rtol=1e-12)
    np.testing.assert_allclose(twice.directions, once.directions, atol=1e-12)


@given(st.integers(-140, 140))
@settings(max_examples=10)
def test_it_goes_with_the_square_of_the_features_from_tiny_to_huge(power):
    spectrum = eigenspectrum(10.0**power * GOLDEN)
    np.testing.assert_allclose(spectrum.intensity, 10.0 ** (2 * power) * np.array([1.8, 1.0]), rtol=1e-12)


def test_directions_below_the_tolerance_are_dropped():
    features = np.diag([1.0, 1e-3])
    assert len(eigenspectrum(features).intensity) == 2
    assert len(eigenspectrum(features, relative_tolerance=1e-2).intensity) == 1


@pytest.mark.parametrize("shape", SHAPES)
def test_the_flow_is_that_of_the_differential_equation(shape):
    features, draw = drawn(shape), np.random.default_rng(1)
    n, p = shape
    y, start, times = draw.normal(size=n), draw.normal(size=p), np.array([0.0, 0.3, 2.0, 10.0])
    flow = training_flow(times, features, y, initial_weights=start, learning_rate=0.7)
    direct = solve_ivp(
        lambda _, w: -0.7 * features.T @ (features @ w - y) / n, (0, 10), start, t_eval=times, rtol=1e-10, atol=1e-12
    )
    # The tolerance of the solver, accumulated.
    np.testing.assert_allclose(flow.weights, direct.y.T, atol=1e-8)
    np.testing.assert_allclose(flow.outputs, flow.weights @ features.T, atol=1e-12)
    np.testing.assert_allclose(flow.loss, np.mean((flow.outputs - y) ** 2, axis=1) / 2, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_flow_from_zero_ends_at_the_least_squares_solution_of_least_norm(shape):
    features = drawn(shape)
    y = np.random.default_rng(2).normal(size=shape[0])
    end = training_flow(np.array([1e9]), features, y).weights[0]
    np.testing.assert_allclose(end, np.linalg.pinv(features) @ y, atol=1e-9)


def test_what_the_samples_do_not_show_is_left_as_it_was():
    features = drawn((6, 5))
    hidden = np.linalg.svd(features)[2][-1]
    end = training_flow(np.array([0.0, 1e6]), features, np.ones(6), initial_weights=hidden).weights
    np.testing.assert_allclose(end @ hidden, 1.0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.usefixtures("_double")
def test_the_population_flow_is_that_of_the_differential_equation():
    rho, target, start = np.array([2.0, 0.1, 0.0]), np.array([1.0, -1.0, 0.5]), np.array([0.2, 0.0, 0.1])
    times, step = np.array([0.0, 0.5, 3.0]), 1e-6
    flow = mode_flow(times, rho, target, initial_coefficients=start, unreachable_power=0.3, learning_rate=0.7)
    later = mode_flow(times + step, rho, target, initial_coefficients=start, learning_rate=0.7)
    speed = (later.coefficients - flow.coefficients) / step
    # Differences at 1e-6 keep six digits.
    np.testing.assert_allclose(speed, 0.7 * rho * (target - flow.coefficients), atol=1e-5)
    np.testing.assert_allclose(flow.coefficients[0], start)
    np.testing.assert_allclose(flow.loss, 0.5 * np.sum((flow.coefficients - target) ** 2, axis=1) + 0.15, rtol=1e-14)


@pytest.mark.usefixtures("_double")
def test_the_smallest_learned_fraction_keeps_its_digits():
    np.testing.assert_allclose(mode_flow(1e-20, np.array([0.5]), np.array([1.0])).learned_fraction, 5e-21, rtol=1e-14)


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("features", lambda: eigenspectrum(np.zeros((3, 2)))),
        ("features", lambda: eigenspectrum([[np.nan, 1.0]])),
        ("features", lambda: eigenspectrum([1.0, 2.0])),
        ("features", lambda: eigenspectrum(GOLDEN).eigenfeatures(np.ones((2, 3)))),
        ("relative_tolerance", lambda: eigenspectrum(GOLDEN, relative_tolerance=0.0)),
        ("times", lambda: training_flow([-1.0], GOLDEN, np.ones(5))),
        ("targets", lambda: training_flow([1.0], GOLDEN, np.ones(4))),
        ("initial_weights", lambda: training_flow([1.0], GOLDEN, np.ones(5), initial_weights=np.ones(3))),
        ("learning_rate", lambda: training_flow([1.0], GOLDEN, np.ones(5), learning_rate=0.0)),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_bad_input_is_refused_by_name(argument, call):
    with pytest.raises(InputError) as refusal:
        call()
    assert refusal.value.argument == argument


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        ("times", {"times": -1.0}),
        ("learning_rate", {"learning_rate": 0.0}),
        ("target_coefficients", {"target_coefficients": np.ones(3)}),
        ("initial_coefficients", {"initial_coefficients": np.ones(3)}),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_bad_input_of_the_flow_is_refused_by_name(argument, change):
    with pytest.raises(InputError) as refusal:
        mode_flow(**{"times": 1.0, "intensity": np.ones(2), "target_coefficients": np.ones(2)} | change)
    assert refusal.value.argument == argument

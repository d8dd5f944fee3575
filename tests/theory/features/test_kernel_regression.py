from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.theory.features.kernel_regression import KernelRegression
from dynascope.theory.features.kernel_regression import kernel_regression_error as error_of_arrays

FIFTY = np.arange(1, 51) ** -1.5
TARGET = np.pad([1.0, 0.5, 0.25], (0, 47))


def kernel_regression_error(intensity, coefficients, samples, **others) -> KernelRegression:
    others = {name: np.asarray(value) for name, value in others.items()}
    return jax.device_get(error_of_arrays(np.asarray(intensity), np.asarray(coefficients), samples, **others))


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


# Golden numbers of the ledger.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ridge", "golden"),
    [
        (0.0, [0.067050287834, 0.937162954175, 0.320480333539, 1.768739646885, 0.202475266948, 0.102475266948, 0.0]),
        (
            0.1,
            [
                0.083712170822,
                0.922754239478,
                0.274182087113,
                1.584805537327,
                0.191559469974,
                0.091559469974,
                0.0027335462,
            ],
        ),
    ],
)
def test_the_golden_power_law_comes_out(ridge, golden):
    found = kernel_regression_error(FIFTY, TARGET, 10, ridge=ridge, noise_variance=0.1)
    errors = found.overfitting_coefficient, found.noisy_mse, found.clean_mse, found.training_mse
    numbers = [found.effective_ridge, found.learnability[0], found.learnability[9], *errors]
    np.testing.assert_allclose(numbers, golden, rtol=1e-9, atol=1e-10)
    assert float(found.test_loss) == float(found.clean_mse) / 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tail", "strong", "golden"),
    [
        (100 / 1995, True, [0.975837418318, 1.064314495131, 0.506114516675, 0.13559362802]),
        (100 / 1995, False, [0.975837418318, 1.064314495131, 0.048856855848, 0.487216747548]),
        (1 / 1995, True, [0.010019569584, 1.104116227636, 0.990079826287, 0.009424788441]),
        (1 / 1995, False, [0.010019569584, 1.104116227636, 0.04764391021, 0.510077299893]),
    ],
)
def test_the_golden_overfitting_comes_out_with_multiplicities_and_without(tail, strong, golden):
    place = 0 if strong else 9
    spectrum, target = np.where(np.arange(2000) < 5, 1.0, tail), np.zeros(2000)
    target[place] = 0.5**0.5
    whole = kernel_regression_error(spectrum, target, 100, noise_variance=0.09)
    block = [0.5**0.5, 0.0] if strong else [0.0, 0.5**0.5]
    grouped = kernel_regression_error([1.0, tail], block, 100, noise_variance=0.09, multiplicity=[5, 1995])
    for found, mode in ((whole, place), (grouped, 0 if strong else 1)):
        numbers = found.effective_ridge, found.overfitting_coefficient, found.learnability[mode], found.clean_mse
        np.testing.assert_allclose(numbers, golden, rtol=1e-9)


# Limits and degenerate branches.


@pytest.mark.slow
def test_more_samples_than_modes_without_ridge_are_ordinary_regression():
    found = kernel_regression_error([1.0, 0.3, 0.0], [1.0, -2.0, 0.0], 8, noise_variance=0.4)
    assert float(found.effective_ridge) == 0
    np.testing.assert_allclose(found.learnability, [1, 1, 0])
    errors = found.overfitting_coefficient, found.clean_mse, found.training_mse
    np.testing.assert_allclose(errors, [8 / 6, 0.4 * 2 / 6, 0.4 * 6 / 8], rtol=1e-14)
    np.testing.assert_allclose(found.coefficient_variance, [0.4 / 6, 0.4 / 6, 0], rtol=1e-14)


@pytest.mark.slow
def test_what_the_modes_cannot_express_acts_as_noise():
    noise = kernel_regression_error([1.0, 0.3], [1.0, 0.5], 8, noise_variance=0.4)
    outside = kernel_regression_error([1.0, 0.3], [1.0, 0.5], 8, noise_variance=0.1, unreachable_power=0.3)
    silent = kernel_regression_error([1.0, 0.3, 0.0], [1.0, 0.5, 0.3**0.5], 8, noise_variance=0.1)
    for found in (outside, silent):
        np.testing.assert_allclose(found.noisy_mse, noise.noisy_mse, rtol=1e-14)
        np.testing.assert_allclose(found.training_mse, noise.training_mse, rtol=1e-14)
        np.testing.assert_allclose(found.clean_mse, noise.noisy_mse - 0.1, rtol=1e-14)


def test_as_many_samples_as_modes_is_infinite_with_noise_and_exact_without():
    noisy = kernel_regression_error([1.0, 0.3], [1.0, 0.5], 2, noise_variance=0.1)
    assert np.isinf([noisy.noisy_mse, noisy.clean_mse, noisy.overfitting_coefficient]).all()
    assert float(noisy.training_mse) == 0
    assert "infinite" in noisy.warnings[0]
    exact = kernel_regression_error([1.0, 0.3], [1.0, 0.5], 2)
    assert float(exact.noisy_mse) == float(exact.clean_mse) == float(exact.training_mse) == 0
    np.testing.assert_array_equal(exact.coefficient_variance, 0)


@pytest.mark.slow
def test_each_side_of_the_threshold_joins_the_degenerate_branch():
    # A ridge of 1e-12 moves nothing by more than its root; a mode far below the ridge is not there.
    args = ([1.0, 0.5], 5)
    exact = kernel_regression_error([1.0, 0.3], *args, noise_variance=0.1)
    for other in (
        kernel_regression_error([1.0, 0.3], *args, noise_variance=0.1, ridge=1e-12),
        kernel_regression_error([1.0, 0.3, 1e-20], [1.0, 0.5, 0.0], 5, noise_variance=0.1, ridge=1e-12),
    ):
        for name in ("noisy_mse", "clean_mse", "training_mse"):
            np.testing.assert_allclose(getattr(other, name), getattr(exact, name), rtol=1e-5)


def test_a_kernel_of_zero_predicts_zero():
    for ridge in (0.0, 0.5):
        found = kernel_regression_error([0.0, 0.0], [1.0, 2.0], 4, ridge=ridge, noise_variance=0.3)
        np.testing.assert_allclose([found.noisy_mse, found.training_mse, found.clean_mse], [5.3, 5.3, 5.0], rtol=1e-14)
        np.testing.assert_array_equal(found.coefficient_mean, 0)


@pytest.mark.slow
def test_a_very_large_ridge_learns_nothing_and_is_the_effective_ridge_over_the_samples():
    found = kernel_regression_error(FIFTY, TARGET, 10, ridge=1e12)
    np.testing.assert_allclose(found.effective_ridge, 1e11, rtol=1e-9)
    np.testing.assert_allclose([found.noisy_mse, found.training_mse], np.sum(TARGET**2), rtol=1e-9)


@pytest.mark.slow
def test_near_the_threshold_it_warns():
    assert kernel_regression_error(FIFTY, TARGET, 10).warnings == ()
    assert "scatter" in kernel_regression_error(np.ones(10), np.ones(10), 9.5).warnings[0]


# Properties.

spectra = st.lists(st.floats(-12, 3).map(lambda power: 10.0**power), min_size=6, max_size=6)


@pytest.mark.slow
@given(spectra, st.floats(0.3, 20), st.floats(1e-6, 1e6))
@settings(max_examples=12)
def test_it_is_invariant_to_the_unit_of_the_kernel_and_to_the_order_of_modes(spectrum, samples, unit):
    one = kernel_regression_error(spectrum, np.arange(6.0), samples, ridge=0.1, noise_variance=0.1)
    other = kernel_regression_error(
        unit * np.array(spectrum)[::-1], np.arange(6.0)[::-1], samples, ridge=0.1 * unit, noise_variance=0.1
    )
    np.testing.assert_allclose(other.effective_ridge, unit * one.effective_ridge, rtol=1e-9)
    np.testing.assert_allclose(other.clean_mse, one.clean_mse, rtol=1e-8)
    np.testing.assert_allclose(other.coefficient_mean[::-1], one.coefficient_mean, rtol=1e-8)


@pytest.mark.slow
def test_a_learning_curve_is_one_call():
    samples = np.array([5.0, 20.0, 80.0])
    curve = kernel_regression_error(FIFTY, TARGET, samples, ridge=0.1, noise_variance=0.1)
    assert curve.noisy_mse.shape == (3,)
    assert curve.learnability.shape == (3, 50)
    for n, error in zip(samples, curve.noisy_mse, strict=True):
        one = kernel_regression_error(FIFTY, TARGET, n, ridge=0.1, noise_variance=0.1)
        np.testing.assert_allclose(error, one.noisy_mse, rtol=1e-12)


@pytest.mark.slow
def test_the_numbers_keep_the_dtype_and_agree_in_single_precision():
    double = kernel_regression_error(FIFTY, TARGET, 10, ridge=0.1, noise_variance=0.1)
    with jax.enable_x64(False):
        known = kernel_regression_error(FIFTY, TARGET, 10, ridge=0.1, noise_variance=0.1)
        held = error_of_arrays(jnp.asarray(FIFTY), TARGET, 10, ridge=0.1, noise_variance=0.1)
    np.testing.assert_array_equal(known.noisy_mse, double.noisy_mse)
    assert held.noisy_mse.dtype == np.float32
    np.testing.assert_allclose(held.noisy_mse, double.noisy_mse, rtol=1e-5)


# Derivatives.


@jit
def _error(point):
    """The error of three modes, and its derivatives backward and forward."""

    def error(point):
        rho, v, m, (n, ridge, noise) = point[:3], point[3:6], point[6:9], point[9:]
        return error_of_arrays(rho, v, n, ridge=ridge, noise_variance=noise, multiplicity=m).clean_mse

    return error(point), jax.grad(error)(point), jax.jacfwd(error)(point)


def check_derivatives(point, places):
    _, backward, forward = jax.device_get(_error(point))
    step = 1e-4
    moved = [(_error(point + step * each)[0], _error(point - step * each)[0]) for each in np.eye(12)[places]]
    differences = [float(after - before) / (2 * step) for after, before in moved]
    # Central differences at 1e-4 keep five digits.
    np.testing.assert_allclose(backward[places], differences, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(forward[places], differences, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("samples", "ridge"), [(2.0, 0.1), (2.5, 1e-3), (7.0, 0.2)])
def test_all_derivatives_are_those_of_finite_differences(samples, ridge):
    point = np.array([1.0, 0.3, 0.1, 1.0, 0.5, 0.2, 1.0, 2.0, 1.0, samples, ridge, 0.2])
    check_derivatives(point, slice(None))


@pytest.mark.slow
@pytest.mark.parametrize("samples", [2.0, 7.0])
def test_without_ridge_the_derivative_in_the_spectrum_is_right_on_both_sides_of_the_threshold(samples):
    point = np.array([1.0, 0.3, 0.1, 1.0, 0.5, 0.2, 1.0, 1.0, 1.0, samples, 0.0, 0.2])
    check_derivatives(point, slice(3))


# Simulation.


@pytest.mark.slow
@pytest.mark.parametrize(("ridge", "noise"), [(0.0, 0.2), (0.5, 0.2)])
def test_regression_on_gaussian_features_has_these_errors_and_coefficients(ridge, noise):
    modes, n, trials = 120, 40, 400
    spectrum, target = np.arange(1, modes + 1) ** -1.2, np.arange(1, modes + 1) ** -1.0
    draw = np.random.default_rng(0)
    e = draw.normal(size=(trials, n, modes))
    y = e @ target + noise**0.5 * draw.normal(size=(trials, n))
    scaled = e * spectrum**0.5
    dual = np.linalg.solve(scaled @ scaled.mT + ridge * np.eye(n), y[..., None])[..., 0]
    learned = spectrum * np.einsum("tnk,tn->tk", e, dual)
    clean = np.sum((learned - target) ** 2, axis=1)
    training = np.mean((ridge * dual) ** 2, axis=1)
    theory = kernel_regression_error(spectrum, target, n, ridge=ridge, noise_variance=noise)
    # Three standard errors of the means are 2 %, and at 40 samples the theory is a few percent off.
    assert np.mean(clean) == pytest.approx(float(theory.clean_mse), rel=0.06)
    assert np.mean(training) == pytest.approx(float(theory.training_mse), rel=0.06, abs=1e-20)
    np.testing.assert_allclose(np.mean(learned, axis=0), theory.coefficient_mean, atol=0.03)
    np.testing.assert_allclose(np.mean(np.var(learned, axis=0)[:20] / theory.coefficient_variance[:20]), 1.0, atol=0.06)


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        ("intensity", {"intensity": [1.0, -0.1]}),
        ("intensity", {"intensity": [1.0, np.nan]}),
        ("intensity", {"intensity": 1.0}),
        ("coefficients", {"coefficients": [1.0, 2.0, 3.0]}),
        ("samples", {"samples": 0}),
        ("ridge", {"samples": np.ones(3), "ridge": np.ones(2)}),
        ("ridge", {"ridge": -1.0}),
        ("noise_variance", {"noise_variance": -1.0}),
        ("unreachable_power", {"unreachable_power": -1.0}),
        ("multiplicity", {"multiplicity": [-1.0, 1.0]}),
        ("multiplicity", {"multiplicity": [1.0, 1.0, 1.0]}),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_bad_input_is_refused_by_name(argument, change):
    with pytest.raises(InputError) as refusal:
        kernel_regression_error(**{"intensity": [1.0, 0.5], "coefficients": [1.0, 1.0], "samples": 3} | change)
    assert refusal.value.argument == argument

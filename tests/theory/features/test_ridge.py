from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.theory.features.ridge import effective_ridge, learnability


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("last", [1e-300, 1e-12, 1e-3])
def test_a_spectrum_of_any_depth_is_solved(last):
    # Two modes and one sample: ρ₁ρ₂ = κ².
    np.testing.assert_allclose(effective_ridge(np.array([1.0, last]), 1), last**0.5, rtol=1e-10)


spectra = st.lists(st.floats(-12, 3).map(lambda power: 10.0**power), min_size=6, max_size=6)


@pytest.mark.slow
@given(spectra, st.floats(0.3, 20), st.one_of(st.just(0.0), st.floats(1e-8, 1e3)))
@settings(max_examples=12)
def test_the_learnabilities_and_the_ridge_share_the_samples(spectrum, samples, ridge):
    spectrum = np.array(spectrum)
    kappa = float(effective_ridge(spectrum, samples, ridge=ridge))
    shared = float(np.sum(learnability(spectrum, samples, ridge=ridge)))
    if kappa == 0:
        assert ridge == 0
        assert shared == pytest.approx(6)
        assert samples >= 6
    else:
        assert shared + ridge / kappa == pytest.approx(samples, rel=1e-9)


@pytest.mark.slow
def test_without_ridge_the_derivative_in_the_ridge_is_one_sided():
    def kappa(ridge):
        return effective_ridge(np.array([1.0, 0.3]), 5.0, ridge=ridge)

    both = jit(jax.value_and_grad(kappa))
    assert float(both(0.0)[1]) == pytest.approx(float(both(1e-9)[0]) / 1e-9, rel=1e-6)


@pytest.mark.slow
def test_the_derivative_in_the_spectrum_is_that_of_the_formula():
    rho, ridge = np.array([1.0, 0.3, 0.1, 0.02]), 0.05
    kappa = float(effective_ridge(rho, 2, ridge=ridge))
    formula = kappa / (rho + kappa) ** 2 / (np.sum(rho / (rho + kappa) ** 2) + ridge / kappa**2)
    derivative = jit(jax.jacfwd(lambda each: effective_ridge(each, 2, ridge=ridge)))(rho)
    np.testing.assert_allclose(derivative, formula, rtol=1e-12)


@pytest.mark.slow
def test_without_ridge_and_with_as_many_samples_as_modes_the_derivatives_are_finite():
    rho = np.array([1.0, 0.3])
    slopes = jax.grad(lambda rho, ridge: effective_ridge(rho, 2, ridge=ridge), argnums=(0, 1))
    spectrum, ridge = jax.device_get(jit(slopes)(rho, 0.0))
    np.testing.assert_array_equal(spectrum, 0)
    assert np.isfinite(ridge)
    assert ridge > 1e300


@pytest.mark.slow
def test_more_samples_leave_less_of_an_effective_ridge():
    kappa = effective_ridge(np.arange(1, 31) ** -2.0, np.array([1.0, 5.0, 20.0, 29.0, 30.0, 50.0]))
    assert np.all(np.diff(kappa)[:4] < 0)
    np.testing.assert_array_equal(kappa[4:], 0)


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("intensity", lambda: learnability(np.array([-1.0]), 2)),
        ("samples", lambda: learnability(np.ones(2), 0)),
        ("ridge", lambda: effective_ridge(np.ones(2), 1, ridge=np.nan)),
        ("multiplicity", lambda: effective_ridge(np.ones(2), 1, multiplicity=np.ones(3))),
    ],
)
def test_bad_input_is_refused_by_name(argument, call):
    with pytest.raises(InputError) as refusal:
        call()
    assert refusal.value.argument == argument

from __future__ import annotations

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.theory.scaling_laws import skill_integral


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


def integrated(beta, contrast, lower):
    """The integral over y = x^β by adaptive quadrature in short pieces."""
    middle = np.log(contrast)
    start = max(middle, lower)
    edges = [lower, *np.linspace(max(lower, middle - 20), start, 21), *np.linspace(start, start + 25, 26)]
    edges = np.unique(np.maximum(edges, lower)) ** beta
    return (
        sum(
            quad(lambda y: expit(middle - y ** (1 / beta)) ** 2, low, high, epsabs=0, epsrel=1e-13)[0]
            for low, high in pairwise(edges)
        )
        / beta
    )


def test_golden():
    found = skill_integral(np.array([0.3 / 1.3, 0.375, 0.9 / 1.9]), 99.0)
    # Golden numbers are stored with 13 digits.
    np.testing.assert_allclose(found, [5.644300761161, 4.174716642224, 3.756733845399], rtol=1e-12)


@pytest.mark.parametrize("lower", [0.0, 1e-6, 0.3, 6.0, 40.0, 300.0])
def test_agrees_with_adaptive_quadrature_on_its_whole_domain(lower):
    beta, contrast = np.array([0.1, 0.23, 0.375, 0.474, 0.7])[:, None], np.array([2, 99, 1e4, 1e8])
    exact = np.vectorize(integrated)(beta, contrast, lower)
    np.testing.assert_allclose(skill_integral(beta, contrast, lower), exact, rtol=5e-11)


def test_large_contrast_and_large_lower_limit():
    # Terms of μ⁻⁴ and of e^−x₀ are left out of the two expansions.
    mu, beta = np.log(1e8), 0.375
    series = mu**beta / beta * (1 - beta / mu + np.pi**2 * beta * (beta - 1) / 6 / mu**2)
    np.testing.assert_allclose(skill_integral(beta, 1e8), series, rtol=2e-4)
    np.testing.assert_allclose(skill_integral(beta, 99.0, 40.0), 99**2 / 2 * 40 ** (beta - 1) * np.exp(-80), rtol=1e-2)


def test_derivatives_are_those_of_the_integral():
    derivatives = jit(jax.grad(skill_integral, argnums=(0, 1, 2)))
    for point in [(0.375, 99.0, 0.7), (0.6, 5.0, 3.0), (0.375, 99.0, 0.0)]:
        found = derivatives(*map(float, point))
        for place in range(3 if point[2] else 2):
            step = 1e-4 * point[place]
            shifted = [list(point), list(point)]
            shifted[0][place] -= step
            shifted[1][place] += step
            low, high = (float(skill_integral(*each)) for each in shifted)
            # Central differences are good to the square of the step.
            np.testing.assert_allclose(found[place], (high - low) / (2 * step), rtol=1e-6)
    # By the lower limit it is the integrand.
    beta, contrast, lower = 0.375, 99.0, 0.7
    slope = -(lower ** (beta - 1)) / (1 + np.exp(lower) / contrast) ** 2
    np.testing.assert_allclose(derivatives(beta, contrast, lower)[2], slope, rtol=1e-10)
    assert derivatives(0.375, 99.0, 0.0)[2] == 0


def test_numbers_of_numpy_have_all_digits_and_arrays_of_jax_keep_their_type():
    arguments = [np.float32(each) for each in (0.375, 99, 0)]
    assert skill_integral(*arguments).dtype == np.float64
    np.testing.assert_allclose(skill_integral(*arguments), 4.174716642224, rtol=1e-12)
    assert skill_integral(*map(jnp.asarray, arguments)).dtype == jnp.float32


@pytest.mark.parametrize(
    ("argument", "arguments"),
    [
        ("exponent", (0.0, 9.0)),
        ("exponent", (1.0, 9.0)),
        ("contrast", (0.5, 0.0)),
        ("contrast", (0.5, np.nan)),
        ("lower", (0.5, 9.0, -1.0)),
    ],
)
def test_bad_input_is_refused_by_name(argument, arguments):
    with pytest.raises(InputError) as refusal:
        skill_integral(*arguments)
    assert refusal.value.argument == argument

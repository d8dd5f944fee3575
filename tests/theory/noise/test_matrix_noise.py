from __future__ import annotations

import numpy as np
import pytest
import scipy.special
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory.noise import collapse_rate, matrix_noise_exponent

ONE = {"learning_rate": 1e-3, "noise_variance": 1e3}


def simulated(n, m, *, rate=2e-3, steps=5000, runs=200):
    """The growth in runs of u ← u + ηZv, v ← v + ηZᵀu, and its standard error."""
    random, deviation = np.random.default_rng(n + 10 * m), np.sqrt(1 / rate)
    u, v, grown = random.normal(size=(runs, m)), random.normal(size=(runs, n)), np.zeros(runs)
    for step in range(steps):
        z = rate * deviation * random.normal(size=(runs, m, n))
        u, v = u + np.einsum("rmn,rn->rm", z, v), v + np.einsum("rmn,rm->rn", z, u)
        norm = np.sqrt(np.sum(u**2, axis=1) + np.sum(v**2, axis=1))
        u, v = u / norm[:, None], v / norm[:, None]
        if step >= steps // 5:
            grown += np.log(norm)
    rates = grown / (rate * (steps - steps // 5))
    return rates.mean(), rates.std() / np.sqrt(runs)


def test_equal_dimensions_have_the_golden_exponents():
    # symmetry_sgd 5.4
    assert [matrix_noise_exponent(n, n, **ONE) for n in (1, 2, 3, 6)] == [-0.5, 0.0, 0.5, 2.0]
    # With one input and one output u + v and u − v are alone, and the curvature of each is the noise.
    assert matrix_noise_exponent(1, 1, **ONE) == collapse_rate(0.0, ONE["noise_variance"], learning_rate=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "m"), [(2, 2), (3, 3), (1, 4), (5, 2)])
def test_simulated_neurons_grow_and_shrink_at_the_exponent(n, m):
    found, error = simulated(n, m)
    # Four standard errors, and the order of the step, ης² times ten for these sizes.
    assert matrix_noise_exponent(n, m, **ONE) == pytest.approx(found, abs=4 * error + 2e-2 * (n + m) / 2)


@given(n=st.integers(1, 12), m=st.integers(1, 12))
def test_other_dimensions_are_ratios_of_functions_of_tricomi(n, m):
    found = matrix_noise_exponent(n, m, **ONE)
    assert found == matrix_noise_exponent(m, n, **ONE)
    low, high = sorted((n, m))
    if low < high:
        z = (high - low) / 2
        ratio = scipy.special.hyperu(low / 2 + 1, (low + high) / 2 + 1, z) / scipy.special.hyperu(
            low / 2, (low + high) / 2, z
        )
        assert found == pytest.approx(low / 4 * ((high - low) * ratio - 2), abs=1e-9)


def test_many_dimensions_are_computed_as_well():
    found = [matrix_noise_exponent(n, m, **ONE) for n, m in ((1, 10**6), (1000, 1001), (10, 785))]
    assert np.isfinite(found).all()
    # Between n = m of both; and next to equal dimensions, the mean of the two.
    assert found[1] == pytest.approx((499 + 499.5) / 2, rel=1e-3)


def test_bad_input_is_refused_by_name():
    for name, bad in {"inputs": 0, "learning_rate": 0.0, "noise_variance": -1.0}.items():
        with pytest.raises(InputError) as caught:
            matrix_noise_exponent(**{"inputs": 2, "outputs": 2, **ONE, name: bad})
        assert caught.value.argument == name

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from dynascope.errors import InputError
from dynascope.theory.margins import margin_shares, normalised_margin, seminorm

Z = np.array([[1.0, 0.2], [10.0, -1.0], [0.5, 0.4]])
RATES = np.array([1.0, 0.5, 0.5])


def margins_and_slopes(theta):
    a, u, v = theta
    return Z @ [a, u * v], np.column_stack([Z[:, 0], Z[:, 1] * v, Z[:, 1] * u])


def test_along_gradient_flow_the_margin_never_falls_and_the_norm_grows_as_theory_says():
    def rate(_, theta):
        q, slopes = margins_and_slopes(theta)
        return np.exp(-q) @ slopes

    times = np.geomspace(1, 3000, 400)
    found = solve_ivp(rate, (0, times[-1]), [1.5, 0.6, -0.5], t_eval=times, method="LSODA", rtol=1e-10, atol=1e-12).y.T
    q = np.array([margins_and_slopes(theta)[0] for theta in found])
    curve = normalised_margin(q, found, RATES)
    assert (np.diff(curve) > -1e-9).all()
    assert curve[-1] > curve[0]
    squared = seminorm(found, RATES) ** 2 / 2
    rates = np.gradient(squared, times, edge_order=2)
    np.testing.assert_allclose(rates[1:-1], np.sum(q * np.exp(-q), axis=1)[1:-1], rtol=2e-3)


def test_the_share_of_an_unneeded_weight_of_a_high_rate_falls_as_solved():
    # One datum (1, 1), a(S) = S, u v = u₀² exp(2S) at S = ∫ L dt = 4.
    u = 0.5 * np.exp(4.0)
    found = margin_shares([1.0, u, u], [4.0, u, u], RATES)
    assert found.shares[0] == pytest.approx(0.005338746845, abs=1e-12)
    assert found.rates.tolist() == [1.0, 0.5]


@given(seed=st.integers(0, 10**6), growth=st.floats(0, 3))
def test_growing_at_the_rates_changes_shares_not_and_the_norm_by_one_factor(seed, growth):
    random = np.random.default_rng(seed)
    theta = random.normal(size=3)
    grown = np.exp(growth * RATES) * theta
    before, after = (margin_shares(margins_and_slopes(each)[1], each, RATES).shares for each in (theta, grown))
    np.testing.assert_allclose(after, before, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(after.sum(axis=1), 1, rtol=1e-9)
    assert seminorm(grown, RATES) >= seminorm(theta, RATES) * np.exp(growth / 2) * (1 - 1e-12)


def test_margins_beyond_the_exponential_are_fine():
    assert normalised_margin([1e6, 2e6], [1e6, 0.0, 0.0], RATES) == pytest.approx(1.0, rel=1e-12)
    assert seminorm([1e300, 0.0, 0.0], RATES) == pytest.approx(1e300)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: normalised_margin([-0.1, 5.0], [1.0], [1.0]), "margins"),
        (lambda: normalised_margin([5.0], [1.0, 1.0], [1.0]), "parameters"),
        (lambda: seminorm([1.0], [-1.0]), "rates"),
        (lambda: seminorm([1.0], [0.0]), "rates"),
        (lambda: margin_shares([1.0, 2.0], [1.0], [1.0]), "gradients"),
        (lambda: margin_shares([0.0], [1.0], [1.0]), "gradients"),
    ],
)
def test_bad_input_is_refused_by_name(call, argument):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.argument == argument

from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.theory import LayerRates
from dynascope.theory.scalar_networks.growth import growth_factor
from dynascope.theory.scalar_networks.passage_time import time_to_reach
from dynascope.theory.transfer import reversal_time, reversal_trajectory

# Golden numbers are stored with 12 digits, so 1e-10 leaves room for their last ones.
GOLDEN = 1e-10

strengths = st.floats(0.2, 3)
balances = st.one_of(st.just(0.0), st.floats(1e-4, 5), st.floats(-5, -1e-4))
times = np.linspace(0, 3, 7)


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


def integrated(strength, balance, *, rates=LayerRates()):
    """The layers a, b of one mode, from convergence at the strength, trained on its negative."""
    omega = np.hypot(strength, balance / 2)
    rescale = (rates.second / rates.first) ** 0.25
    start = [np.sqrt(omega - balance / 2) / rescale, np.sqrt(omega + balance / 2) * rescale]

    def velocity(_, layers):
        a, b = layers
        return [-rates.first * b * (a * b + strength), -rates.second * a * (a * b + strength)]

    a, b = solve_ivp(velocity, (0, times[-1]), start, "DOP853", times, rtol=1e-12, atol=1e-14).y
    return a * b


def test_reversal_golden():
    np.testing.assert_allclose(reversal_time(1.5, 0.2), 0.922840710953, rtol=GOLDEN)
    np.testing.assert_allclose(reversal_trajectory(1.0, 1.5, 0.2).strength, -0.0231718196572, rtol=GOLDEN)


@settings(max_examples=12, deadline=None)
@given(strengths, balances, st.floats(0.3, 2), st.floats(0.3, 2))
def test_trajectory_agrees_with_direct_integration(strength, balance, first_rate, second_rate):
    rates = LayerRates(first_rate, second_rate)
    expected = integrated(strength, balance, rates=rates)
    # The saddle amplifies the integrator's error in the balance by up to exp(2 s √(η₁η₂) t).
    np.testing.assert_allclose(reversal_trajectory(times, strength, balance, rates=rates).strength, expected, atol=1e-7)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(strengths, balances)
def test_is_the_growth_factor_of_the_converged_mode(strength, balance):
    omega = np.hypot(strength, balance / 2)
    growing, shrinking = (omega + strength) / 2, balance**2 / (8 * (omega + strength))
    mode = growth_factor(times, -strength, growing, shrinking, 2.0)
    reversal = reversal_trajectory(times, strength, balance)
    np.testing.assert_allclose(reversal.strength, mode.strength, rtol=0, atol=1e-12)
    np.testing.assert_allclose(reversal.residual, mode.residual, rtol=1e-11)
    if balance:
        passage = time_to_reach(0.0, -strength, growing, shrinking, 2.0)
        np.testing.assert_allclose(reversal_time(strength, balance), passage, rtol=1e-11)


@settings(max_examples=12, deadline=None)
@given(strengths, balances.filter(bool), st.floats(0.3, 2), st.floats(0.3, 2))
def test_the_mode_is_zero_at_the_reversal_time(strength, balance, first_rate, second_rate):
    rates = LayerRates(first_rate, second_rate)
    time = reversal_time(strength, balance, rates=rates)
    # The crossing is as steep as 2 s |λ|/2 or more, so rounding in the time hardly shows.
    np.testing.assert_allclose(reversal_trajectory(time, strength, balance, rates=rates).strength, 0, atol=1e-12)


@settings(max_examples=12, deadline=None)
@given(strengths, balances)
def test_the_sign_of_the_balance_does_not_matter_and_that_of_the_mode_mirrors(strength, balance):
    path = reversal_trajectory(times, strength, balance)
    np.testing.assert_array_equal(reversal_trajectory(times, strength, -balance).strength, path.strength)
    np.testing.assert_array_equal(reversal_trajectory(times, -strength, balance).strength, -path.strength)
    np.testing.assert_array_equal(reversal_time(-strength, -balance), reversal_time(strength, balance))


@settings(max_examples=12, deadline=None)
@given(strengths, balances)
def test_the_mode_falls_from_its_strength_and_the_residual_completes_it(strength, balance):
    path = reversal_trajectory(times, strength, balance)
    assert path.strength[0] == pytest.approx(strength, rel=1e-14)
    assert np.all(np.diff(path.strength) < 0)
    np.testing.assert_allclose(path.strength + path.residual, -strength, rtol=1e-12)


def test_balanced_layers_never_reverse():
    assert reversal_time(1.5, 0.0) == np.inf
    path = reversal_trajectory(np.array([1.0, 1e2, 1e6]), 1.5, 0.0)
    decayed = np.exp(-3.0)
    np.testing.assert_allclose(path.strength[0], 1.5 * decayed / (2 - decayed), rtol=1e-14)
    assert np.all(path.strength >= 0)
    np.testing.assert_allclose(path.residual[1:], -1.5, rtol=1e-14)


@pytest.mark.parametrize("balance", [1e-6, 1e-12, 1e-100, 1e-300])
def test_the_time_grows_as_the_logarithm_of_a_vanishing_balance(balance):
    time = reversal_time(1.5, balance)
    # What is left out is of order |λ|/s.
    np.testing.assert_allclose(time, (np.log(3.0) - np.log(balance)) / 3.0, rtol=1e-6)
    around = reversal_trajectory(np.array([0.5, 1.0, 2.0, 4.0]) * float(time), 1.5, balance).strength
    assert around[0] > 0
    # At 2 t₀ the rich and the lazy path have the weights 2 and 1, so that θ = −s/3.
    np.testing.assert_allclose(around[1:], [0.0, -0.5, -1.5], atol=1e-5)


@pytest.mark.parametrize("balance", [-1e4, 1e8, 1e150])
def test_lazy_limit(balance):
    # Corrections are of order (s/λ)².
    np.testing.assert_allclose(reversal_time(1.5, balance), np.log(2) / abs(balance), rtol=1e-7)
    late = times / abs(balance)
    expected = 1.5 * (2 * np.exp(-times) - 1)
    np.testing.assert_allclose(reversal_trajectory(late, 1.5, balance).strength, expected, atol=1e-6)


def test_a_mode_of_zero_strength_stays_there_and_has_no_reversal_time():
    path = reversal_trajectory(times, 0.0, np.array([[0.0], [2.0]]))
    np.testing.assert_array_equal(path.strength, 0)
    np.testing.assert_array_equal(path.residual, 0)
    with pytest.raises(InputError, match="strength is zero") as refusal:
        reversal_time(np.array([1.0, 0.0]), 1.0)
    assert refusal.value.argument == "strength"


@jit
def strength_and_slopes(strength, balance):
    def value(strength, balance):
        return reversal_trajectory(0.8, strength, balance).strength

    return value(strength, balance), jax.jacfwd(value, (0, 1))(strength, balance)


@pytest.mark.parametrize(("strength", "balance"), [(1.5, 0.2), (1.5, -3.0), (1.5, 0.0), (0.0, 0.7), (0.0, 0.0)])
def test_derivatives_are_finite_and_those_of_the_formula(strength, balance):
    def value(strength, balance):
        return float(strength_and_slopes(strength, balance)[0])

    exact = strength_and_slopes(strength, balance)[1]
    step = 1e-5
    by_strength = (value(strength + step, balance) - value(strength - step, balance)) / (2 * step)
    by_balance = (value(strength, balance + step) - value(strength, balance - step)) / (2 * step)
    # Central differences are right to the square of the step, and ω has a kink of order of it at s = λ = 0.
    np.testing.assert_allclose(exact, (by_strength, by_balance), atol=1e-4)


def test_arguments_broadcast_and_compile():
    batch = jit(reversal_trajectory)(times[:, None, None], np.array([[1.0], [2.0]]), np.array([0.1, 1.0, -1.0]))
    assert batch.strength.shape == (7, 2, 3)
    single = reversal_trajectory(times, 2.0, -1.0)
    # The compiler may reorder operations.
    np.testing.assert_allclose(batch.strength[:, 1, 2], single.strength, atol=1e-13)
    traced = jax.vmap(reversal_time, (None, 0))(1.5, np.array([0.0, 0.2]))
    np.testing.assert_allclose(traced, [np.inf, 0.922840710953], rtol=GOLDEN)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"times": -1.0}, "times"),
        ({"times": np.nan}, "times"),
        ({"strength": np.inf}, "strength"),
        ({"balance": np.nan}, "balance"),
        ({"rates": LayerRates(first=0.0)}, "rates.first"),
        ({"rates": LayerRates(second=-1.0)}, "rates.second"),
    ],
)
def test_bad_input_is_refused_by_name(arguments, name):
    with pytest.raises(InputError) as refusal:
        reversal_trajectory(**{"times": 1.0, "strength": 1.0, "balance": 1.0} | arguments)
    assert refusal.value.argument == name
    if name != "times":
        with pytest.raises(InputError) as refusal:
            reversal_time(**{"strength": 1.0, "balance": 1.0} | arguments)
        assert refusal.value.argument == name


def test_values_outside_the_domain_give_nan_where_they_are_traced():
    path = jit(lambda *arguments: reversal_trajectory(*arguments[:3], rates=LayerRates(first=arguments[3])))
    time = jit(lambda *arguments: reversal_time(*arguments[:2], rates=LayerRates(first=arguments[2])))
    assert np.isfinite(path(1.0, 1.5, 0.2, 1.0)).all()
    for outside in ((-1.0, 1.5, 0.2, 1.0), (1.0, np.inf, 0.2, 1.0), (1.0, 1.5, 0.2, 0.0)):
        assert np.isnan(path(*outside)).all()
    for outside in ((0.0, 0.2, 1.0), (1.5, np.inf, 1.0), (1.5, 0.2, -1.0)):
        assert np.isnan(time(*outside))

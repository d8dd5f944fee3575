from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from dynascope.errors import InputError
from dynascope.theory.margins import log_time, margin_at_time, normalised_time


def test_the_loss_of_two_layers_falls_faster_than_one_over_time():
    late = log_time([50.0, 400.0], largest_rate=0.5, value=1.0)
    np.testing.assert_allclose(2 * np.exp(late - [50, 400]) * late, [0.92725, 0.98577], atol=5e-6)


def test_that_of_a_linear_network_falls_as_one_over_time():
    np.testing.assert_allclose(log_time([30.0, 1e6], start=1e-3), [30.0, 1e6], rtol=1e-12)


@pytest.mark.parametrize(("factors", "start"), [(1, 0.5), (2, 0.5), (3, 0.7)])
def test_a_product_of_equal_factors_follows_it(factors, start):
    # q = uᵏ with its own cost: λ = 1/k and P = ½ k u² at u = 1. Both clocks at once.
    def rate(_, state):
        u = state[:factors]
        slope = np.prod(u) / u
        return [*slope, np.exp(np.prod(u))]

    u0 = np.full(factors, start ** (1 / factors))

    def reached(_, state):
        return np.prod(state[:factors]) - 20.0

    vars(reached)["terminal"] = True
    found = solve_ivp(rate, (0, 100), [*u0, 0.0], method="DOP853", rtol=1e-12, atol=1e-14, events=reached)
    options = {"largest_rate": 1 / factors, "value": factors / 2, "start": start}
    assert found.t[-1] == pytest.approx(float(normalised_time(20.0, **options)), rel=1e-8)
    assert np.log(found.y[-1, -1]) == pytest.approx(float(log_time(20.0, **options)), abs=1e-8)


def test_deep_networks_reach_every_margin_in_a_finite_normalised_time():
    late = normalised_time([1e4, 1e8, 1e16], largest_rate=0.25, value=1.0)
    np.testing.assert_allclose(late, 0.25 * (1 - np.array([1e-2, 1e-4, 1e-8])), rtol=1e-12)


@given(
    margin=st.floats(1.5, 1e6), rate=st.floats(0.05, 1), value=st.floats(1e-3, 1e3), start=st.sampled_from([1e-4, 1.0])
)
def test_the_margin_at_a_time_is_its_inverse(margin, rate, value, start):
    options = {"largest_rate": rate, "value": value, "start": start}
    later = log_time([margin, 1.01 * margin], **options)
    assert later[1] > later[0]
    assert margin_at_time(later[0], **options) == pytest.approx(margin, rel=1e-9)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: log_time(1.0), "margin"),
        (lambda: log_time(5.0, largest_rate=1.5), "largest_rate"),
        (lambda: normalised_time(5.0, value=0.0), "value"),
        (lambda: margin_at_time(5.0, start=0.0), "start"),
    ],
)
def test_bad_input_is_refused_by_name(call, argument):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.argument == argument

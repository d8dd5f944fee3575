from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gamma

from dynascope.errors import InputError
from dynascope.theory import SGD
from dynascope.theory.noise import (
    anomalous_exponent,
    diffusion_window,
    displacement_exponent,
    power_law_displacement,
    stationary_displacement,
)

MODES = 100_000


@pytest.mark.parametrize("power", [1.5, 2.0, 3.0])
def test_exponents_of_exact_sums_are_those_of_theory_in_the_window(power):
    spectrum = np.arange(1.0, MODES + 1) ** -power
    settings = {"learning_rate": 0.01, "momentum": 0.9}
    window = diffusion_window(power=power, modes=MODES, **settings)
    found = displacement_exponent(spectrum, spectrum, SGD(**settings), first=window.first, last=window.last)
    assert abs(found - 1 / power) < 0.02
    assert window.exponent == anomalous_exponent(power) == pytest.approx(1 / power)
    assert 10 < window.first_time < window.last_time / 3 < MODES**power / 3


def test_shallow_spectra_diffuse_as_usual():
    window = diffusion_window(power=0.5, modes=MODES, learning_rate=0.01)
    spectrum = np.arange(1.0, MODES + 1) ** -0.5
    found = displacement_exponent(spectrum, spectrum, SGD(0.01), first=window.first, last=window.last)
    assert abs(found - 1) < 0.02


@pytest.mark.parametrize("power", [4.0, 8.0, 12.0, 15.0, 300.0])
def test_steep_spectra_keep_to_the_exponent_in_the_window_though_their_modes_rest_one_by_one(power):
    spectrum = np.arange(1.0, 1001) ** -power
    for momentum in (0.0, 0.9):
        settings = {"learning_rate": 0.01, "momentum": momentum}
        window = diffusion_window(power=power, modes=1000, **settings)
        ends = np.geomspace(window.first, window.last, 9).astype(int).tolist()
        for first, last in itertools.pairwise(ends):
            found = displacement_exponent(spectrum, spectrum, SGD(**settings), first=first, last=last)
            assert abs(found - 1 / power) < 0.02


@pytest.mark.parametrize("modes", [1000, MODES, 2**62])
@pytest.mark.parametrize("power", [30.0, 70.0])
def test_where_modes_rest_too_far_apart_there_is_no_window(power, modes):
    with pytest.raises(InputError, match="no sufficiently wide range of steps") as caught:
        diffusion_window(power=power, modes=modes, learning_rate=0.01)
    assert caught.value.argument == "modes"


def test_of_more_modes_than_can_be_counted_in_floating_point_numbers_there_is_a_window():
    window = diffusion_window(power=300.0, modes=2**62, learning_rate=0.01)
    assert (window.exponent, window.last) == (1 / 300, 2**50)


def test_outside_of_the_window_the_slope_is_another():
    spectrum = np.arange(1.0, 1001) ** -2.0
    window = diffusion_window(power=2.0, modes=1000, learning_rate=0.01)
    beyond = {"first": 10 * window.last, "last": 100 * window.last}
    assert displacement_exponent(spectrum, spectrum, SGD(0.01), **beyond) < 0.45


@given(power=st.floats(0.1, 3.0), logarithm=st.floats(1.0, 6.0), modes=st.integers(20, 2000))
def test_the_closed_form_is_the_sum(power, logarithm, modes):
    tau = 10**logarithm
    spectrum = np.arange(1.0, modes + 1) ** -power
    expected = -np.expm1(-tau * spectrum).sum()
    # As its docstring says of τ ≥ 10; close to p = 1/2, 1/3, … two gammas cancel.
    assert power_law_displacement(tau, power=power, modes=modes) == pytest.approx(expected, rel=6e-3)


def test_far_inside_of_the_window_it_is_the_three_terms_of_the_ledger():
    tau, power = 1000.0, 2.0
    three = gamma(1 - 1 / power) * tau ** (1 / power) - 0.5 - tau * MODES ** (1 - power) / (power - 1)
    assert power_law_displacement(tau, power=power, modes=MODES) == pytest.approx(three, rel=1e-6)


def test_exact_sums_are_the_closed_form_where_momentum_is_forgotten():
    spectrum, rate, momentum = np.arange(1.0, 2001) ** -2.0, 0.001, 0.9
    steps = np.array([50_000, 500_000])
    sums = stationary_displacement(spectrum, spectrum, steps, SGD(rate, momentum=momentum))
    unit = rate / (1 - momentum)
    expected = unit * power_law_displacement(steps * unit, power=2.0, modes=2000)
    # Momentum takes 1/(1 − β) of the steps, and the rate ηh/4 of the first modes.
    np.testing.assert_allclose(sums, expected, rtol=2e-3)


@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"power": 1.0}, "modes"),
        ({"modes": 10}, "modes"),
        ({"power": 0.0}, "power"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"largest_curvature": 400.0}, "largest_curvature"),
    ],
)
def test_bad_input_is_refused_by_name(changes, argument):
    with pytest.raises(InputError) as caught:
        diffusion_window(**{"power": 2.0, "modes": 1000, "learning_rate": 0.01, "momentum": 0.9} | changes)
    assert caught.value.argument == argument

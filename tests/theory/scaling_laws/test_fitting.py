from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.tasks.parity.skills import skill_frequencies
from dynascope.theory.scaling_laws import MisfitWarning, fit, missing_loss, power_laws, time_law, time_window
from dynascope.theory.skills.multilinear import training_loss

MODEL = {"target_scale": 1.0, "initial_strength": 0.01}
RESOURCE = np.geomspace(1, 1e4, 41)


def curve(alpha, skills=50_000):
    window = time_window(alpha, skills, **MODEL)
    times = np.geomspace(*window, int(12 * np.log10(window[1] / window[0])))
    return times, training_loss(times, skill_frequencies(skills, alpha), **MODEL), window


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(st.floats(0.05, 2), st.floats(1e-3, 1e3), st.floats(0, 0.1))
def test_a_power_law_is_found_whatever_the_known_constant(exponent, prefactor, floor):
    found = fit(prefactor * RESOURCE**-exponent + floor, RESOURCE, floor=floor)
    # Rounding of the loss above its floor.
    precision = 1e-12 + 1e-13 * floor / (prefactor * 1e4**-exponent)
    np.testing.assert_allclose([found.exponent, found.prefactor / prefactor], [exponent, 1], rtol=30 * precision)
    lowered = fit(prefactor * RESOURCE**-exponent, RESOURCE, floor=0.0, window=(10, 1e3))
    assert lowered.window == (10.0, 1000.0)
    assert lowered.points == 21


@pytest.mark.slow
@pytest.mark.parametrize(
    ("alpha", "raw", "corrected"),
    [(0.3, -0.26457, -0.23018), (0.6, -0.37953, -0.37491), (0.9, -0.47411, -0.47368)],
)
def test_the_missing_skills_bias_the_exponent_and_can_be_put_back(alpha, raw, corrected):
    times, loss, window = curve(alpha)
    theory = power_laws(alpha, **MODEL).time
    missing = missing_loss(alpha, 50_000, target_scale=1.0)
    plain = fit(loss, times, window=window, floor=0.0)
    found = fit(loss, times, window=window, floor=0.0, missing=missing)
    # The ledger's values are of another window, from which the biased exponent differs more.
    np.testing.assert_allclose(plain.exponent, -raw, rtol=0.07)
    np.testing.assert_allclose(found.exponent, -corrected, rtol=2e-3)
    np.testing.assert_allclose(found.exponent, theory.exponent, rtol=5e-3)
    # A_T is that of infinitely many skills, whose P(k) are smaller by what is missing.
    np.testing.assert_allclose(found.prefactor, theory.prefactor, rtol=0.05)
    assert plain.exponent > theory.exponent


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.3, 0.6, 0.9])
def test_the_automatic_window_leaves_out_what_is_no_power_law(alpha):
    times = np.geomspace(1e-2, 1e12, 113)
    loss = training_loss(times, skill_frequencies(50_000, alpha), **MODEL)
    found = fit(loss, times, floor=0.0, missing=missing_loss(alpha, 50_000, target_scale=1.0))
    np.testing.assert_allclose(found.exponent, alpha / (alpha + 1), rtol=0.02)
    assert found.window[0] > 0.2
    assert found.window[1] < 1e12
    assert found.slope_spread[0] <= found.exponent <= found.slope_spread[1]


def test_runs_are_averaged_before_their_logarithm():
    generator = np.random.default_rng(1)
    losses = 2 * RESOURCE**-0.5 * generator.choice([0.01, 1.99], (4000, 1))
    found = fit(losses, RESOURCE, floor=0.0)
    # The mean of the factor is one to 1.6 %, that of its logarithm −1.96.
    np.testing.assert_allclose(found.prefactor, 2, rtol=0.08)
    assert found.runs == 4000
    assert found.prefactor_interval[0] < 2 < found.prefactor_interval[1]


@pytest.mark.parametrize("runs", [1, 3])
def test_what_scatters_about_the_floor_is_no_power_law(runs):
    steps = np.geomspace(10, 1e7, 150)
    clean = time_law(steps, 0.6, neurons=300, **MODEL)
    noise = np.random.default_rng(0).normal(size=(runs, 150))
    found = fit(clean * np.exp(0.01 * noise), steps, floor=float(clean[-1]))
    # The last skills that there are neurons for are learned at 2 η S P(300) T = ln c, where T = 5e4, and the loss above
    # the floor falls faster from a tenth of it.
    assert found.window[1] < 1e4
    np.testing.assert_allclose(found.exponent, 0.375, rtol=0.1)


def test_linear_records_weigh_no_more_than_logarithmic_ones():
    steps = np.arange(1, 20_001)
    found = fit(steps**-0.3, steps, floor=0.0)
    assert found.points <= 20 * np.log10(20_000) + 1
    np.testing.assert_allclose(found.exponent, 0.3)


def test_a_short_window_is_warned_of_and_a_long_one_is_not():
    with pytest.warns(UserWarning, match="decades"):
        fit(RESOURCE**-0.5, RESOURCE, floor=0.0, window=(1, 5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(RESOURCE**-0.5, RESOURCE, floor=0.0)


@pytest.mark.parametrize(
    ("argument", "losses", "resource", "options"),
    [
        ("window", RESOURCE**-0.5, RESOURCE, {"window": (1.0, 1.3), "floor": 0.0}),
        ("losses", [1.0, 0.5], [1.0, 2.0], {}),
        ("window", RESOURCE**-0.5, RESOURCE, {"window": (5.0, 1.0)}),
        ("resource", [1.0, 0.5, 0.2], [1.0, 1.0, 2.0], {}),
        ("resource", [1.0, 0.5, 0.2], [0.0, 1.0, 2.0], {}),
        ("losses", [1.0, np.nan, 0.2], [1.0, 2.0, 3.0], {}),
        ("losses", [1.0, 0.2], [1.0, 2.0, 3.0], {}),
        ("losses", np.empty((0, 3)), [1.0, 2.0, 3.0], {}),
        ("floor", RESOURCE**-0.5, RESOURCE, {"floor": 0.02, "window": (1.0, 1e4)}),
        ("floor", RESOURCE**-0.5, RESOURCE, {"floor": -1.0}),
        ("floor", RESOURCE**-0.5, RESOURCE, {"floor": 10.0}),
        ("missing", RESOURCE**-0.5, RESOURCE, {"missing": np.inf}),
        ("confidence", RESOURCE**-0.5, RESOURCE, {"confidence": 1.0}),
    ],
)
def test_bad_input_is_refused_by_name(argument, losses, resource, options):
    with pytest.raises(InputError) as refusal:
        fit(losses, resource, **options)
    assert refusal.value.argument == argument


def test_a_floor_of_which_nothing_is_known_is_warned_of():
    resource = np.geomspace(1, 100, 12)
    losses = resource**-0.1 * np.exp(0.05 * np.random.default_rng(0).normal(size=12))
    with pytest.warns(UserWarning, match="do not determine the floor"):
        fit(losses, resource)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(RESOURCE**-0.5 * np.exp(0.01 * np.random.default_rng(0).normal(size=41)), RESOURCE)


def test_a_misfit_of_one_run_is_warned_of():
    bent = RESOURCE**-0.5 * np.exp(0.1 * np.sin(np.log(RESOURCE)))
    with pytest.warns(MisfitWarning, match="too narrow"):
        fit(bent, RESOURCE)


def test_what_is_printed_fits_a_terminal_and_has_no_arrays():
    lines = repr(fit(2 * RESOURCE**-0.5 + 0.1, RESOURCE)).splitlines()
    assert max(map(len, lines)) < 80
    assert any("exponent 0.5 (0.5 to 0.5)" in line for line in lines)

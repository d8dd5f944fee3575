from __future__ import annotations

import functools

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.special import hyp2f1

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.theory.deep_modes import deep_mode_limit, saddle_escape_time, strength_at, time_to_strength
from dynascope.theory.scalar_networks import mode_strength

TIMES = np.array([0.0, 0.1, 0.5, 1.0, 3.0])

every_depth = pytest.mark.parametrize("depth", [1, 2, 3])
targets = st.one_of(st.just(0.0), st.floats(-2, 2), st.floats(-1e-7, 1e-7))
starts = st.one_of(st.just(0.0), st.floats(1e-3, 3), st.floats(-3, -1e-3))


def integrated(times, target, start, depth):
    def velocity(_, s):
        return depth * np.abs(s) ** (2 - 2 / depth) * (target - s)

    path = solve_ivp(velocity, (0, times[-1]), [start], "DOP853", times, rtol=1e-12, atol=1e-14)
    return path.y[0]


@functools.cache
def strength_and_slopes(depth):
    """The strength and its derivatives for rows of a time, a target and a start."""
    return jit(jax.vmap(jax.value_and_grad(lambda values: strength_at(*values, depth=depth).strength)))


@every_depth
@pytest.mark.parametrize("size", [1e-300, 1e-200, 1.0, 1e150])
def test_a_strength_beyond_the_start_or_the_limit_is_never_reached_however_small_all_are(depth, size):
    size = size if depth < 3 else size**0.5
    strength, target, start = size * np.array([[3.0, 0.5, -1.0, 3.0], [2.0, 2.0, 1.0, 1.0], [1.0, 1.0, 2.0, 2.0]])
    with jax.enable_x64(True):
        alone = time_to_strength(strength, target, start, depth=depth, unreachable="infinity")
        traced = jit(lambda *mode: time_to_strength(*mode, depth=depth))(strength, target, start)
        with pytest.raises(InputError, match="which the mode never reaches"):
            time_to_strength(strength, target, start, depth=depth)
    np.testing.assert_array_equal(alone, np.inf)
    np.testing.assert_array_equal(traced, np.inf)


@functools.cache
def time_and_slopes(depth):
    """The time and its derivatives for rows of a strength, a target and a start."""
    return jit(
        jax.vmap(jax.value_and_grad(lambda values: time_to_strength(*values, depth=depth, unreachable="infinity")))
    )


def five_times(*rows, **options):
    """`time_to_strength` at five strengths with a target and a start for each, so that each depth has one program."""
    rows = (np.atleast_1d(np.asarray(row, float)) for row in rows)
    return time_to_strength(*(np.pad(row, (0, 5 - len(row)), mode="edge") for row in rows), **options)


@pytest.mark.slow
def test_times_golden():
    times = [np.asarray(five_times(1.0, 2.0, 0.01, depth=depth))[0] for depth in (2, 3, 4)]
    # Golden numbers are stored with 12 digits behind the point.
    np.testing.assert_allclose(times, [1.323326206181, 1.977558579612, 2.393285413978], rtol=0, atol=1e-11)


@pytest.mark.slow
def test_strengths_golden():
    known = {3: [0.0528021181796, 1.06796860509], 2: [0.430587920503, 1.87484111374]}
    for depth, strengths in known.items():
        found = jax.device_get(strength_at(np.array([1.0, 2.0, 3.0, 4.0, 5.0]), 2.0, 0.01, depth=depth))
        # Golden numbers are stored with 12 digits.
        np.testing.assert_allclose(found.strength[:2], strengths, rtol=1e-11)
        np.testing.assert_allclose(found.residual[:2], 2 - np.array(strengths), rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("depth", [1, 2, 3, 6])
@settings(max_examples=10, deadline=None)
@given(targets, starts)
def test_strength_agrees_with_direct_integration(depth, target, start):
    found = strength_at(TIMES, target, start, depth=depth)
    # The integrator is good to about 1e-10.
    expected = integrated(TIMES, target, start, depth)
    np.testing.assert_allclose(found.strength, expected, rtol=0, atol=1e-8)
    np.testing.assert_allclose(found.residual, target - expected, rtol=0, atol=1e-8)


@pytest.mark.slow
@every_depth
@settings(max_examples=10, deadline=None)
@given(targets, starts.filter(bool), st.lists(st.floats(0.01, 0.99), min_size=5, max_size=5))
def test_time_and_strength_are_inverse(depth, target, start, parts):
    end = float(deep_mode_limit(target, start, depth=depth).strength)
    strength = start + np.array(parts) * (end - start)
    time = five_times(strength, target, start, depth=depth)
    # Where a mode hardly moves, its strength has the digits of the start.
    np.testing.assert_allclose(strength_at(time, target, start, depth=depth).strength, strength, rtol=1e-10, atol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("depth", [3, 9])
def test_the_closed_form_is_that_of_the_hypergeometric_function(depth):
    sigma, start = 1.7, 1e-4
    strength = np.array([2e-4, 0.01, 0.3, 1.5, 1.69])
    a, c = strength ** (1 / depth), sigma ** (1 / depth)

    def integral(x):
        return x**2 / 2 * hyp2f1(1, 2 / depth, 1 + 2 / depth, x**depth)

    waiting = ((start ** (1 / depth)) ** (2 - depth) - a ** (2 - depth)) / (depth - 2)
    rising = c ** (2 - depth) * (integral(a / c) - integral(start ** (1 / depth) / c))
    times = five_times(strength, sigma, start, depth=depth)
    # A difference of waiting times, with the rounding of the longer one.
    np.testing.assert_allclose(times, (waiting + rising) / sigma, rtol=1e-11)


@pytest.mark.slow
def test_two_layers_are_a_balanced_mode():
    start = np.sqrt(1e-3)
    mode = mode_strength(TIMES, 1.5, 1.0, start, start)
    np.testing.assert_allclose(strength_at(TIMES, 1.5, 1e-3, depth=2).strength, mode.strength, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("depth", [3, 6])
def test_tiny_starts_and_endless_times_keep_their_digits(depth):
    start = 1e-12
    escape = float(saddle_escape_time(1.0, start, depth=depth))
    times = np.append([0.5 * escape, 1.001 * escape], np.array([1e3, 1e6, 1e12]) + 2 * escape)
    found = jax.device_get(strength_at(times, 1.0, start, depth=depth))
    # On the plateau s^(2/L−1) falls linearly, to half of it at half of the time.
    np.testing.assert_allclose(found.strength[0], start * 0.5 ** (-depth / (depth - 2)), rtol=1e-6)
    assert 0 <= found.residual[1] < 1e-3
    np.testing.assert_array_equal(found.strength[2:], 1.0)
    np.testing.assert_array_equal(found.residual[3:], 0.0)
    # Close to the end the residual falls as e^(−L t), long after σ − s has no digits left.
    fine = strength_at(np.linspace(30.0, 50.0, 5), 1.0, 0.5, depth=depth).residual
    fine = np.asarray(fine)
    np.testing.assert_allclose(fine[-1] / fine[0], np.exp(-20 * depth), rtol=1e-10)


@pytest.mark.slow
def test_a_trapped_mode_decays_as_a_power_of_time():
    times = np.geomspace(1e8, 1e12, 5)
    for depth in (3, 6):
        strength = np.asarray(strength_at(times, -1.0, 0.5, depth=depth).strength)
        # s ~ t^(−L/(L−2)), with corrections of the order of s.
        np.testing.assert_allclose(np.log10(strength[1] / strength[0]), -depth / (depth - 2), rtol=1e-3)


def test_limits_name_what_happens():
    end = deep_mode_limit([2.0, -2.0, 0.0, 2.0, 2.0, -1.0], [0.1, 0.1, 0.1, 0.0, 2.0, -3.0], depth=4)
    assert end.status.tolist() == ["converges", "saddle", "power law", "static", "static", "converges"]
    np.testing.assert_array_equal(end.strength, [2, 0, 0, 0, 2, -1])
    assert deep_mode_limit([-2.0, 0.0], 0.1, depth=1).status.tolist() == ["converges", "converges"]


@pytest.mark.slow
@every_depth
def test_times_end_where_the_mode_rests(depth):
    times = five_times([0.5, 1.0, 2.0], [1.0, 1.0, 2.0], [0.5, 0.2, 2.0], depth=depth)
    np.testing.assert_array_equal(np.asarray(times)[:3], [0, np.inf, 0])
    missed = [(0.1, 1.0, 0.2), (1.5, 1.0, 0.2), (0.5, 1.0, 2.0)] + [(0.1, 1.0, 0.0), (-0.1, -1.0, 0.1)] * (depth > 1)
    assert np.all(np.asarray(five_times(*zip(*missed, strict=True), depth=depth, unreachable="infinity")) == np.inf)
    for strength, target, start in missed:
        with pytest.raises(InputError, match="which the mode never reaches"):
            time_to_strength(strength, target, start, depth=depth)
    if depth > 1:
        np.testing.assert_array_equal(strength_at(TIMES, 1.0, 0.0, depth=depth).strength, 0)


@pytest.mark.slow
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_derivatives_agree_with_finite_differences(depth):
    cases = np.array([[0.7, 1.2, 0.1], [0.4, 1.0, 2.0], [0.6, -0.8, 0.9], [0.6, 0.0, 0.9], [0.5, -1.0, -0.2]])

    def differences(function, cases):
        steps = 1e-5 * np.eye(3)
        moved = [(np.asarray(function(cases + step)[0]), np.asarray(function(cases - step)[0])) for step in steps]
        return np.stack([(after - before) / 2e-5 for after, before in moved], axis=-1)

    function = strength_and_slopes(depth)
    strength, gradient = function(cases)
    # Central differences: the square of the step.
    np.testing.assert_allclose(gradient, differences(function, cases), rtol=1e-6, atol=1e-9)

    reached = np.concatenate([np.asarray(strength)[:, None], cases[:, 1:]], axis=1)
    function = time_and_slopes(depth)
    _, gradient = function(reached)
    np.testing.assert_allclose(gradient, differences(function, reached), rtol=1e-5, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("depth", [2, 3])
def test_derivatives_are_finite_at_fixed_points(depth):
    # The last one is as good as the one before.
    values = np.array([[2.0, 1.0, 1.0], [2.0, 1.0, 0.0], [2.0, -1.0, 0.0], [2.0, 0.0, 0.0], [2.0, 0.0, 0.0]])
    _, by_target, by_start = np.asarray(strength_and_slopes(depth)(values)[1]).T
    comes_back = np.exp(-2 * depth)
    np.testing.assert_allclose(by_start[0], comes_back, rtol=1e-12)
    np.testing.assert_allclose(by_target[0], 1 - comes_back, rtol=1e-12)
    # Away from zero a mode grows as e^(2σt) for two layers, and by a power above.
    np.testing.assert_allclose(by_start[1:], np.exp([4, -4, 0, 0]) if depth == 2 else 1, rtol=1e-12)
    np.testing.assert_array_equal(by_target[1:], 0)


@pytest.mark.slow
def test_arguments_broadcast_and_compile():
    times, modes = np.linspace(0, 4, 5)[:, None], np.array([3.0, 2.0, -1.0])
    together = jit(lambda t, s: strength_at(t, s, 0.01, depth=3).strength)(times, modes)
    assert together.shape == (5, 3)
    alone = [np.asarray(strength_at(times[:, 0], s, 0.01, depth=3).strength) for s in modes]
    np.testing.assert_allclose(together, np.stack(alone, axis=1), rtol=1e-13)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("depth", lambda: strength_at(1.0, 1.0, 0.1, depth=0)),
        ("depth", lambda: strength_at(1.0, 1.0, 0.1, depth=-2)),
        ("times", lambda: strength_at(-1.0, 1.0, 0.1, depth=3)),
        ("target", lambda: strength_at(1.0, np.nan, 0.1, depth=3)),
        ("initial_strength", lambda: deep_mode_limit(1.0, np.inf, depth=3)),
        ("unreachable", lambda: time_to_strength(0.5, 1.0, 0.1, depth=3, unreachable="zero")),
        ("target", lambda: time_to_strength(np.ones(2), np.ones(3), 0.1, depth=3)),
    ],
)
def test_bad_input_is_refused_by_name(argument, call):
    with pytest.raises(InputError) as refusal:
        call()
    assert refusal.value.argument == argument


@every_depth
@pytest.mark.parametrize("unit", [1e-120, 1e-80, 1e120])
def test_strengths_in_other_units_give_the_same(depth, unit):
    duration = unit ** (2 / depth - 2)
    here, there = strength_at(TIMES, 1.0, 0.1, depth=depth), strength_at(TIMES * duration, unit, unit / 10, depth=depth)
    # Powers of 120 digits round to 1e-13.
    np.testing.assert_allclose(there.strength / unit, here.strength, rtol=1e-12)
    np.testing.assert_allclose(there.residual / unit, here.residual, rtol=1e-12)
    passage = time_to_strength(0.5 * unit, unit, unit / 10, depth=depth)
    np.testing.assert_allclose(passage / duration, time_to_strength(0.5, 1.0, 0.1, depth=depth), rtol=1e-12)

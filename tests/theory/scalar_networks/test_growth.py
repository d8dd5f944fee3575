from __future__ import annotations

import decimal
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.theory.scalar_networks.growth import GrowthFactor, growth_factor, growth_limit
from dynascope.validation.arrays import real_array

GRID = 6 * 4 * 4 * 4 * 2  # points at which derivatives are taken at once
# Golden numbers are stored with 12 digits, so 1e-10 leaves room for their last ones.
GOLDEN = 1e-10

targets = st.one_of(st.just(0.0), st.floats(-3, 3).filter(lambda s: abs(s) > 1e-6))
sizes = st.one_of(st.just(0.0), st.floats(1e-6, 3))
rates = st.floats(0.2, 3)


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


def integrated_log_growth(times, target, growing, shrinking, rate):
    def velocity(_, log_growth):
        return rate * (target - growing * np.exp(log_growth) + shrinking * np.exp(-log_growth))

    return solve_ivp(velocity, (0, times[-1]), [0.0], "DOP853", times, rtol=1e-12, atol=1e-13).y[0]


def numbers(arguments, log_scale=0.0):
    return jnp.stack(growth_factor(*arguments, log_scale=log_scale))


@jit
@jax.vmap
def values_and_derivatives(points):
    """The numbers, and their derivatives backward and forward."""

    def solution(point):
        return numbers(point[:5], point[5])

    return solution(points), jax.jacrev(solution)(points), jax.jacfwd(solution)(points)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(targets, sizes, sizes, rates)
def test_agrees_with_direct_integration(target, growing, shrinking, rate):
    times = np.linspace(0, 4, 6)
    log_growth = integrated_log_growth(times, target, growing, shrinking, rate)
    grown, shrunk = growing * np.exp(log_growth), shrinking * np.exp(-log_growth)
    solution = growth_factor(times, target, growing, shrinking, rate)
    # The integrator keeps 12 digits a step; errors in ln g are amplified by C g and D/g.
    np.testing.assert_allclose(solution.log_growth, log_growth, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(solution.strength, grown - shrunk, rtol=0, atol=1e-9 * (1 + grown + shrunk).max())
    np.testing.assert_allclose(
        solution.residual, target - grown + shrunk, rtol=0, atol=1e-9 * (1 + grown + shrunk).max()
    )


@pytest.mark.slow
def test_one_dimensional_network_with_layer_rates_golden():
    solution = growth_factor(np.array([0.1, 0.3]), 0.6, 1.5 * 0.2281, 1.5 * 0.0521, 12.0)
    np.testing.assert_allclose(solution.growth, [1.36455806945, 1.750580014527], rtol=GOLDEN)
    np.testing.assert_allclose(solution.strength, [0.409612254135, 0.554318605233], rtol=GOLDEN)
    np.testing.assert_allclose(np.exp(growth_limit(0.6, 1.5 * 0.2281, 1.5 * 0.0521).log_growth), 1.875408233842, GOLDEN)


@pytest.mark.slow
def test_scalar_network_golden():
    a, b = np.array([0.5, -0.3, 0.2]), np.array([0.1, 0.4, -0.6])
    growing, shrinking = np.sum((a + b) ** 2) / 4, np.sum((a - b) ** 2) / 4
    solution = growth_factor(1.0, 1.0, growing, shrinking, 2.0)
    np.testing.assert_allclose(solution.growth, 4.790520302418, GOLDEN)
    np.testing.assert_allclose(solution.strength, 0.567423486416, GOLDEN)
    first, second = solution.layers((a + b) / 2, (a - b) / 2)
    np.testing.assert_allclose(first, [0.747995087502, -0.05047411084, -0.254990405571], GOLDEN)
    np.testing.assert_allclose(second, [0.565240347929, 0.269346683412, -0.620499884716], GOLDEN)
    np.testing.assert_allclose(np.exp(growth_limit(1.0, growing, shrinking).log_growth), 7.8569542625, GOLDEN)


def test_scalar_network_with_output_scale_golden():
    a, b = np.array([0.5, -0.2]), np.array([0.1, 0.4])
    growing, shrinking = np.sum((a + b) ** 2) / 5.2, np.sum((a - b) ** 2) / 5.2
    solution = growth_factor(1.0, 1.5, growing, shrinking, 2 * 0.8 / 1.3)
    np.testing.assert_allclose(solution.strength, 0.38240055292, GOLDEN)
    np.testing.assert_allclose(solution.growth, 5.220237980217, GOLDEN)
    np.testing.assert_allclose(np.exp(growth_limit(1.5, growing, shrinking).log_growth), 19.566440291674, GOLDEN)


@pytest.mark.parametrize(
    ("target", "size", "limit"),
    [(3.0, 2.0, 2.0), (3.0, 0.2**2 * 2, 37.526647730625), (30.0, 2.0, 15.066372975211), (3.0, 0.2, 15.066372975211)],
)
def test_richness_golden(target, size, limit):
    # Four neurons of size one, two aligned and two not: C = D = 2, then smaller weights, larger target, larger Z.
    np.testing.assert_allclose(np.exp(growth_limit(target, size, size).log_growth), limit, GOLDEN)


@pytest.mark.slow
def test_logistic_when_nothing_shrinks():
    times = np.concatenate([np.linspace(0, 12, 50), [12.5]])
    solution = growth_factor(times, 2.0, 1e-6, 0.0, 1.5)
    logistic = 2 / (1 + (2 / 1e-6 - 1) * np.exp(-3 * times))
    np.testing.assert_allclose(solution.strength, logistic, rtol=1e-13)
    np.testing.assert_allclose(solution.residual, (2 - 1e-6) / (1 + 1e-6 / 2 * np.expm1(3 * times)), rtol=1e-13)


def test_exponential_and_power_laws_when_one_part_is_absent():
    times = np.array([0.0, 0.3, 7.0, 20.0, 50.0, 1e6])
    np.testing.assert_allclose(growth_factor(times, 0.0, 0.0, 0.5, 2.0).growth, 1 + times, rtol=1e-14)
    np.testing.assert_allclose(growth_factor(times, 0.0, 0.5, 0.0, 2.0).strength, 0.5 / (1 + times), rtol=1e-14)
    unmoved = growth_factor(times, 3.0, 0.0, 0.0, 2.0)
    np.testing.assert_array_equal(unmoved.strength, 0)
    np.testing.assert_array_equal(unmoved.residual, 3)
    times = np.array([0.0, 0.3, 1.0, 2.0, 5.0, 7.0])
    np.testing.assert_allclose(growth_factor(times, 2.0, 0.0, 0.5, 1.0).growth, 1.25 * np.exp(2 * times) - 0.25, 1e-13)


@pytest.mark.parametrize(("target", "grows"), [(2.0, True), (-2.0, False)])
def test_stays_at_the_saddle_for_huge_times(target, grows):
    times = np.array([1e3, 1e4, 1e6, 1e7, 1e9, 1e12])
    solution = growth_factor(times, target, 0.0 if grows else 0.5, 0.5 if grows else 0.0, 1.0)
    np.testing.assert_allclose(np.abs(solution.log_growth), 2 * times, rtol=1e-3)
    np.testing.assert_array_equal(solution.strength, 0)
    # A weight that starts at zero stays there although g has left the floating-point range.
    assert all(np.all(np.asarray(part) == 0) for part in solution.layers(0.0, 0.0))


def test_tiny_start_escapes_when_the_logistic_says():
    # C = exp(-1380), far below the smallest number; after the dwell the mode is logistic around t = 1380/(k S).
    times = np.array([0.0, 600.0, 690.0, 700.0, 800.0, 1e6])
    solution = growth_factor(times, 1.0, 1.0, 1.0, 2.0, log_scale=-690.0)
    # Numbers of order 1400 in exponents cost three of the sixteen digits.
    np.testing.assert_allclose(np.asarray(solution.strength)[1:], 1 / (1 + np.exp(1380 - 2 * times[1:])), rtol=1e-11)
    np.testing.assert_allclose(
        solution.residual, 1 / (1 + np.exp(np.minimum(2 * times - 1380, 700))), rtol=1e-11, atol=1e-300
    )
    np.testing.assert_allclose(np.asarray(solution.layers(np.exp(-690.0), 0.0)[0])[-1], 1.0, rtol=1e-12)


@settings(max_examples=12, deadline=None)
@given(targets, sizes, sizes, rates, st.floats(0, 2), st.floats(0, 5))
def test_restarting_midway_changes_nothing(target, growing, shrinking, rate, first, second):
    midway = growth_factor(first, target, growing, shrinking, rate)
    restarted = growth_factor(second, target, growing * midway.growth, shrinking * midway.inverse_growth, rate)
    straight = growth_factor(first + second, target, growing, shrinking, rate)
    # ln g may reach 45 here, and the dwell at a saddle amplifies rounding by g.
    np.testing.assert_allclose(midway.log_growth + restarted.log_growth, straight.log_growth, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(restarted.strength, straight.strength, rtol=1e-9, atol=1e-12)


@settings(max_examples=12, deadline=None)
@given(targets, sizes, sizes, rates, st.floats(0, 1e6))
def test_swapping_the_parts_mirrors_the_flow(target, growing, shrinking, rate, time):
    one = growth_factor(time, target, growing, shrinking, rate)
    other = growth_factor(time, -target, shrinking, growing, rate)
    # The two are the same computation, except at S = 0 and C = D, where ln g = 0 is a difference of rounded numbers.
    for quantity, mirrored in zip(one, other, strict=True):
        np.testing.assert_allclose(quantity, -mirrored, rtol=1e-15, atol=1e-15)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(targets, sizes, sizes, st.floats(-5, 0))
def test_strength_is_monotone_and_reaches_its_limit(target, growing, shrinking, log_scale):
    times = np.concatenate([np.linspace(0, 10, 50), [1e12]])
    solution = growth_factor(times, target, growing, shrinking, 1.0, log_scale=log_scale)
    solution = GrowthFactor(*map(np.asarray, solution))
    limit = growth_limit(target, growing, shrinking, log_scale=log_scale)
    steps = np.diff(solution.strength) * np.sign(limit.strength - solution.strength[0])
    assert steps.min() >= -1e-14 * (1 + growing + shrinking)
    # Only the power law, ±1/(k t), is still on its way at t = 1e12.
    np.testing.assert_allclose(solution.strength[-1], limit.strength, rtol=1e-12, atol=2e-12)
    if limit.status == "converges":
        np.testing.assert_allclose(solution.log_growth[-1], limit.log_growth, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(
    ("target", "growing", "shrinking", "log_growth", "strength", "status"),
    [
        (1.0, 0.5, 0.25, np.log(1 + np.sqrt(1.5)), 1.0, "converges"),
        (-1.0, 0.25, 0.5, -np.log(1 + np.sqrt(1.5)), -1.0, "converges"),
        (0.0, 0.5, 2.0, np.log(2), 0.0, "converges"),
        (1.0, 0.5, 0.0, np.log(2), 1.0, "converges"),
        (-1.0, 0.0, 0.5, -np.log(2), -1.0, "converges"),
        (1.0, 0.0, 0.5, np.inf, 0.0, "saddle"),
        (-1.0, 0.5, 0.0, -np.inf, 0.0, "saddle"),
        (0.0, 0.0, 0.5, np.inf, 0.0, "power law"),
        (0.0, 0.5, 0.0, -np.inf, 0.0, "power law"),
        (1.0, 0.0, 0.0, 0.0, 0.0, "static"),
        (0.25, 0.5, 0.25, 0.0, 0.25, "static"),
    ],
)
def test_limit_in_every_branch(target, growing, shrinking, log_growth, strength, status):
    limit = growth_limit(target, growing, shrinking)
    np.testing.assert_allclose(limit.log_growth, log_growth, rtol=1e-14)
    assert limit.strength == strength
    assert limit.status == status


@pytest.mark.slow
def test_values_and_gradients_are_finite_at_every_degenerate_point():
    sizes = [0.0, 1e-300, 1e-12, 0.5]
    grid = itertools.product([0, 1e-9, 1, 700, 1e6, 1e12], [-2, -1e-300, 0, 0.5], sizes, sizes, [1], [0, -690])
    points = np.array(list(grid), dtype=float)
    assert len(points) == GRID
    assert all(np.isfinite(each).all() for each in values_and_derivatives(points))


@pytest.mark.slow
def test_gradients_agree_with_finite_differences():
    points = [
        (1.0, 1.0, 0.3, 0.2, 1.3),
        (1.0, -1.0, 0.3, 0.2, 1.3),
        (0.05, 1.0, 0.3, 0.2, 1.3),
        (20.0, 1.0, 1e-8, 1e-3, 1.0),
        (1.0, 1.0, 0.0, 0.5, 1.0),
        (1.0, 1.0, 0.5, 0.0, 1.0),
        (1.0, -1.0, 0.5, 0.0, 1.0),
        (1.0, 0.0, 0.5, 0.0, 1.0),
        (1.0, 0.0, 0.0, 0.0, 1.0),
        (0.0, 1.0, 0.2, 0.3, 1.0),
    ]
    points = np.array(points)
    many = np.append(points, np.zeros((len(points), 1)), axis=1)
    gradients = np.asarray(values_and_derivatives(np.resize(many, (GRID, 6)))[1])[: len(points), :, :5]
    steps = 1e-4 * np.where(points == 0, [1.0, 1.0, 1e-2, 1.0, 1.0], points)
    # Times, C and D cannot be negative: one-sided differences of second order, whose error is the step squared.
    moved = points[:, None, None] + np.arange(3)[:, None, None] * steps[:, None, None] * np.eye(5)
    shifted = np.stack(growth_factor(*np.moveaxis(moved, -1, 0)), axis=1)
    differences = (-3 * shifted[:, :, 0] + 4 * shifted[:, :, 1] - shifted[:, :, 2]) / (2 * steps[:, None])
    np.testing.assert_allclose(gradients, differences, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_broadcasts_compiles_and_follows_the_dtype():
    times = np.linspace(0, 3, 6)[:, None]
    targets = np.array([-1.0, 0.0, 2.0])
    together = growth_factor(times, targets, 0.3, 0.2, 1.0)
    assert isinstance(together, GrowthFactor)
    assert together.strength.shape == (6, 3)
    compiled = jit(growth_factor)(times, targets, 0.3, 0.2, 1.0)
    np.testing.assert_allclose(compiled.strength, together.strength, rtol=1e-14)
    alone = [growth_factor(times[:, 0], target, 0.3, 0.2, 1.0).strength for target in targets]
    np.testing.assert_allclose(np.stack(alone, axis=1), together.strength, rtol=1e-14)
    assert isinstance(together.strength, np.ndarray)
    held = growth_factor(jnp.asarray(times, jnp.float32), jnp.asarray(targets, jnp.float32), 0.3, 0.2, 1.0)
    assert isinstance(held.strength, jax.Array)
    assert held.strength.dtype == jnp.float32
    np.testing.assert_allclose(held.strength, together.strength, rtol=1e-5, atol=1e-6)


@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from(["times", "target", "growing", "shrinking", "rate", "log_scale"]),
    st.sampled_from([-1.0, np.nan, np.inf, -np.inf]),
)
def test_bad_input_is_refused_by_name(name, value):
    good = {"times": 1.0, "target": 1.0, "growing": 0.5, "shrinking": 0.5, "rate": 1.0, "log_scale": 0.0}
    if value == -1.0 and name in ("target", "log_scale"):
        assert bool(jnp.isfinite(growth_factor(**{**good, name: value}).strength))
        return
    with pytest.raises(InputError) as refusal:
        growth_factor(**{**good, name: value})
    assert refusal.value.argument == name


def test_rate_of_zero_is_refused_and_bounds_are_named():
    with pytest.raises(InputError, match="choose finite numbers above 0"):
        growth_factor(1.0, 1.0, 0.5, 0.5, 0.0)
    with pytest.raises(InputError, match=r"growing (is|contains) -0\.5"):
        growth_limit(1.0, np.array([0.5, -0.5]), 0.5)
    with pytest.raises(InputError, match="above 0 and below 1"):
        real_array("fraction", 1.0, above=0, below=1)
    for value in (1j, "one", None, [1, [2, 3]], True):
        with pytest.raises(InputError, match="count is not real"):
            real_array("count", value)
    assert real_array("count", [1, 2]).dtype == jnp.float64


def _in_many_digits(time, target, growing, shrinking, rate):
    """ln g and ln g∞ in sixty digits."""
    with decimal.localcontext(prec=60):
        t, s, c, d, k = (decimal.Decimal(float(each)) for each in (time, target, growing, shrinking, rate))
        r = (s * s + 4 * c * d).sqrt()
        decayed = (-k * r * t).exp()
        elapsed = (1 - decayed) / r
        now = ((1 + decayed + (2 * d + s) * elapsed) / (1 + decayed + (2 * c - s) * elapsed)).ln()
        return float(now), float((((s + r) / (2 * c)) if s > 0 else 2 * d / (r - s)).ln())


def test_small_growth_keeps_its_digits_at_early_times_and_near_a_fixed_point():
    random = np.random.default_rng(0)
    growing, shrinking = 10 ** random.uniform(-6, 2, (2, 300))
    # Half of the targets are where the flow starts, up to a few digits, as those of lazy networks are.
    near = (growing - shrinking) * (1 + 10 ** random.uniform(-12, -1, 300))
    target = np.where(np.arange(300) % 2, near, random.choice([-1, 1], 300) * 10 ** random.uniform(-3, 2, 300))
    times, rate = 10 ** random.uniform(-12, 0, 300), 10 ** random.uniform(-1, 1, 300)
    with np.errstate(over="raise"):
        expected = [_in_many_digits(*each) for each in zip(times, target, growing, shrinking, rate, strict=True)]
    now, end = np.transpose(expected)
    np.testing.assert_allclose(growth_factor(times, target, growing, shrinking, rate).log_growth, now, rtol=1e-12)
    np.testing.assert_allclose(growth_limit(target, growing, shrinking).log_growth, end, rtol=1e-12)

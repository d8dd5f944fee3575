from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.theory.scalar_networks import emergence_time, linear_mode_strength, mode_strength, saturation_time

# Golden numbers are stored with 12 digits, so 1e-10 leaves room for their last ones.
GOLDEN = 1e-10

targets = st.one_of(st.just(0.0), st.floats(-3, 3))
weights = st.one_of(st.sampled_from([0.0, 0.5, -0.5]), st.floats(-1.5, 1.5).filter(lambda w: abs(w) > 1e-6))
powers = st.floats(0.2, 2)


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(targets, powers, weights, weights, powers)
def test_agrees_with_direct_integration(target, power, a, b, rate):
    times = np.linspace(0, 4, 6)

    def velocity(_, state):
        return rate * power * (target - state[0] * state[1]) * state[::-1]

    trained = solve_ivp(velocity, (0, 4), [a, b], "DOP853", times, rtol=1e-12, atol=1e-14).y
    mode = mode_strength(times, target, power, a, b, rate)
    # A start within rounding of the saddle's path (a = −b) leaves it like exp(k S t) ≤ 1e20 in the integrator only.
    assume(abs(a + np.sign(target) * b) > 1e-6 or target == 0)
    np.testing.assert_allclose(mode.output_weight, trained[0], rtol=0, atol=1e-9)
    np.testing.assert_allclose(mode.input_weight, trained[1], rtol=0, atol=1e-9)
    np.testing.assert_allclose(mode.residual, target - trained[0] * trained[1], rtol=0, atol=1e-8)


def test_unequal_start_golden():
    mode = mode_strength(2.0, 1.0, 0.7, 0.5, -0.2)
    np.testing.assert_allclose(mode.output_weight, 0.643328177061, GOLDEN)
    np.testing.assert_allclose(mode.input_weight, 0.451520922439, GOLDEN)
    np.testing.assert_allclose(mode.strength, 0.290476131937, GOLDEN)


@pytest.mark.slow
def test_balanced_start_golden():
    start = np.sqrt(1e-3)
    np.testing.assert_allclose(mode_strength(3.0, 2.0, 0.7, start, start).strength, 1.379776822599, GOLDEN)
    np.testing.assert_allclose(emergence_time(2.0, 0.7, start, start, fraction=0.05), 1.662844055476, GOLDEN)
    np.testing.assert_allclose(saturation_time(2.0, 0.7, start, start, fraction=0.05), 2.103170699405, GOLDEN)
    np.testing.assert_allclose(emergence_time(5.0, 1.0, 0.01, 0.01), 0.787531930504, GOLDEN)
    np.testing.assert_allclose(saturation_time(5.0, 1.0, 0.01, 0.01), 0.588887795833, GOLDEN)


def test_unconstrained_features_golden():
    # Features and classifier trained together on 40 samples of 4 balanced classes: S = √(n/C), rate 1/n.
    start = np.sqrt(1e-3)
    mode = mode_strength(60.0, np.sqrt(40 / 4), 1.0, start, start, 1 / 40)
    np.testing.assert_allclose(mode.strength, 2.550709998652, GOLDEN)


@settings(max_examples=12, deadline=None)
@given(targets, powers, weights, weights, st.floats(0, 20))
def test_difference_of_squares_is_conserved(target, power, a, b, time):
    mode = mode_strength(time, target, power, a, b)
    charge = mode.output_weight**2 - mode.input_weight**2
    size = float(mode.output_weight**2 + mode.input_weight**2)
    np.testing.assert_allclose(charge, a**2 - b**2, rtol=0, atol=1e-12 * (1 + size))
    np.testing.assert_allclose(mode.output_weight * mode.input_weight, mode.strength, rtol=0, atol=1e-12 * (1 + size))


@settings(max_examples=12, deadline=None)
@given(targets, powers, weights, weights, st.floats(0, 1e6))
def test_flipping_a_layer_and_the_target_flips_the_strength(target, power, a, b, time):
    mode, flipped = mode_strength(time, target, power, a, b), mode_strength(time, -target, power, a, -b)
    # Where they vanish, up to the rounding of what they are the differences of.
    size = float(np.sqrt(a**2 + b**2 + mode.output_weight**2 + mode.input_weight**2))
    np.testing.assert_allclose(flipped.strength, -mode.strength, rtol=1e-12, atol=1e-300 + 1e-15 * size**2)
    np.testing.assert_allclose(flipped.input_weight, -mode.input_weight, rtol=1e-12, atol=1e-300 + 1e-15 * size)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(targets, powers, weights, weights)
def test_loss_never_increases(target, power, a, b):
    residual = np.abs(mode_strength(np.linspace(0, 30, 60), target, power, a, b).residual)
    assert np.diff(residual).max() <= 1e-14 * (1 + residual[0])


@pytest.mark.slow
def test_smallest_starts_neither_underflow_nor_overflow():
    # R₀ = 1e-600, which emerges at ln(ε/(1 − ε)·1e600)/(2 S).
    expected = (np.log(0.05 / 0.95) + 600 * np.log(10)) / 2
    np.testing.assert_allclose(emergence_time(1.0, 1.0, 1e-300, 1e-300), expected, rtol=1e-13)
    np.testing.assert_allclose(mode_strength(expected, 1.0, 1.0, 1e-300, 1e-300).strength, 0.05, rtol=1e-11)
    # A start with one layer at zero puts half of the scale in the growing part: R₀ → (scale/2)².
    np.testing.assert_allclose(emergence_time(1.0, 1.0, 1e-300, 0.0), expected + np.log(2), rtol=1e-13)
    late = mode_strength(1e9, 1.0, 1.0, np.array([1e-300, 0.0, 1e-300]), np.array([0.0, 0.0, -1e-300]))
    np.testing.assert_allclose(late.output_weight, [1, 0, 0], atol=1e-12)
    np.testing.assert_allclose(late.residual, [0, 1, 1], atol=1e-12)


@pytest.mark.slow
def test_gradients_are_finite_at_every_degenerate_start():
    weights = [0.0, 1e-300, 0.5, -0.5]
    grid = [[t, s, a, b] for t in (0, 1, 1e6) for s in (-1, 0, 2) for a in weights for b in weights]
    derivative = jax.jacrev(lambda p: jnp.stack(mode_strength(p[0], p[1], 1.0, p[2], p[3])))
    assert bool(jnp.all(jnp.isfinite(jit(jax.vmap(derivative))(jnp.array(grid, dtype=float)))))


@jit
@jax.value_and_grad
def strength_and_gradient(start):
    return mode_strength(1.2, 0.8, 0.7, *start).strength


@pytest.mark.slow
@pytest.mark.parametrize("start", [(0.5, -0.2), (0.4, 0.4), (0.4, -0.4), (0.0, 0.3)])
def test_gradients_agree_with_finite_differences(start):
    _, gradient = strength_and_gradient(np.array(start))
    steps = 1e-5 * np.eye(2)
    near = [[np.asarray(strength_and_gradient(start + sign * step)[0]) for sign in (1, -1)] for step in steps]
    differences = [(after - before) / 2e-5 for after, before in near]
    # Central differences: the square of the step.
    np.testing.assert_allclose(gradient, differences, rtol=1e-7, atol=1e-9)


@settings(max_examples=12, deadline=None)
@given(st.floats(0.2, 3), st.sampled_from([-1, 1]), weights, weights, st.floats(0.02, 0.4))
def test_emergence_and_saturation_are_where_the_strength_says(size, sign, a, b, fraction):
    target = sign * size
    emerged = float(emergence_time(target, 0.7, a, b, fraction=fraction))
    finished = emerged + float(saturation_time(target, 0.7, a, b, fraction=fraction))
    if a == -sign * b:
        assert emerged == finished == np.inf
        return
    for time, share in ((emerged, fraction), (finished, 1 - fraction)):
        strength = float(mode_strength(time, target, 0.7, a, b).strength) / target
        if time == 0:
            assert a * b / target >= share * (1 - 1e-14)
        else:
            assert strength == pytest.approx(share, rel=1e-9)


@pytest.mark.slow
def test_times_mark_modes_that_are_learned_already_or_never():
    a, b = np.array([1.0, 0.4, 0.4]), np.array([0.99, 0.4, -0.4])
    np.testing.assert_array_equal(emergence_time(1.0, 1.0, a, b), [0, 0, np.inf])
    saturated = np.asarray(saturation_time(1.0, 1.0, a, b))
    assert saturated[0] == 0
    # From R₀ = 0.16 S the clock starts at zero.
    np.testing.assert_allclose(saturated[1], np.log(19 * 0.84 / 0.16) / 2, rtol=1e-13)
    assert saturated[2] == np.inf


@pytest.mark.slow
def test_emergence_time_has_its_derivative():
    gradient = jit(jax.grad(lambda a: emergence_time(2.0, 0.7, a, a)))(0.03)
    # τ = ln(S/a² − 1)/(2 λ S) + constant.
    np.testing.assert_allclose(gradient, -2 * 2 / 0.03**3 / (2 / 0.03**2 - 1) / 2.8, rtol=1e-12)


def test_linear_mode_approaches_without_emergence():
    times = np.array([0.0, 1e-9, 1.0, 1e6])
    strength = linear_mode_strength(times, 2.0, 0.5, 0.1)
    np.testing.assert_allclose(strength, [0, 1e-10, 2 * (1 - np.exp(-0.05)), 2], rtol=1e-9)


@pytest.mark.parametrize(
    ("argument", "arguments"),
    [
        ("target", {"target": np.array([1.0, 0.0])}),
        ("fraction", {"fraction": 0.5}),
        ("fraction", {"fraction": 0.0}),
        ("input_power", {"input_power": 0.0}),
        ("learning_rate", {"learning_rate": -1.0}),
        ("initial_output_weight", {"initial_output_weight": np.nan}),
        ("initial_input_weight", {"initial_input_weight": np.inf}),
    ],
)
def test_bad_input_is_refused_by_name(argument, arguments):
    good = {"target": 1.0, "input_power": 1.0, "initial_output_weight": 0.1, "initial_input_weight": 0.1}
    with pytest.raises(InputError) as refusal:
        saturation_time(**{**good, **arguments})
    assert refusal.value.argument == argument


def test_negative_times_are_refused():
    for strength in (lambda: mode_strength(-1.0, 1.0, 1.0, 0.1, 0.1), lambda: linear_mode_strength(-1.0, 1.0, 1.0)):
        with pytest.raises(InputError, match=r"times (is|contains) -1"):
            strength()

from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.theory.scalar_networks import mode_strength
from dynascope.theory.scalar_networks.scalar import Setting, equivalent_scalings, scalar_limit, scalar_trajectory

GOLDEN = Setting(1.0, np.array([0.5, -0.3, 0.2]), np.array([0.1, 0.4, -0.6]))
TIMES = np.linspace(0.0, 3.0, 4)

seeds = st.integers(0, 10**6)
positive = st.floats(0.3, 2)
signed = st.sampled_from([-1.5, -0.6, 0.7, 2.0])
targets = st.one_of(st.just(0.0), st.floats(-2, 2))


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


def drawn(seed, target=1.0, power=1.0, divisor=1.0):
    return Setting(target, *np.random.default_rng(seed).normal(size=(2, 4)), power, divisor)


def trained(setting, times, learning_rate=1.0):
    """Weights of both layers by direct integration, each of shape (times, neurons)."""
    target, a, b, power, divisor = setting

    def velocity(_, weights):
        a, b = weights.reshape(2, -1)
        pull = learning_rate * power * (target - a @ b / divisor) / divisor
        return pull * np.concatenate([b, a])

    path = solve_ivp(velocity, (0, times[-1]), np.concatenate([a, b]), "DOP853", times, rtol=1e-12, atol=1e-14).y
    return np.split(path.T, 2, axis=1)


@pytest.mark.slow
def test_weights_and_growth_golden():
    run = scalar_trajectory(GOLDEN, 1.0)
    # Golden numbers are stored with 12 digits.
    np.testing.assert_allclose(np.exp(run.log_growth), 4.790520302418, rtol=1e-11)
    np.testing.assert_allclose(run.strength, 0.567423486416, rtol=1e-11)
    np.testing.assert_allclose(run.output_weights, [0.747995087502, -0.05047411084, -0.254990405571], rtol=1e-10)
    np.testing.assert_allclose(run.input_weights, [0.565240347929, 0.269346683412, -0.620499884716], rtol=1e-10)
    end = scalar_limit(GOLDEN)
    np.testing.assert_allclose(end.growth, 7.8569542625, rtol=1e-11)
    np.testing.assert_allclose(end.rate, 2.16418575913, rtol=1e-11)


@pytest.mark.parametrize("dial", ["target", "output", "input", "weights"])
def test_every_dial_gives_the_golden_growth(dial):
    np.testing.assert_allclose(
        scalar_limit(equivalent_scalings(GOLDEN, 10.0)[dial].setting).growth, 75.503934344, rtol=1e-11
    )


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(seeds, targets, positive, signed, positive)
def test_agrees_with_direct_integration(seed, target, power, divisor, rate):
    setting = drawn(seed, target, power, divisor)
    run = scalar_trajectory(setting, TIMES, learning_rate=rate)
    a, b = trained(setting, TIMES, rate)
    # The integrator is good to about 1e-11; a path near the saddle spreads its error.
    np.testing.assert_allclose(run.output_weights, a, rtol=0, atol=1e-8)
    np.testing.assert_allclose(run.input_weights, b, rtol=0, atol=1e-8)
    strength = np.sum(a * b, axis=1) / divisor
    np.testing.assert_allclose(run.strength, strength, rtol=0, atol=1e-8)
    np.testing.assert_allclose(run.residual, target - strength, rtol=0, atol=1e-8)
    np.testing.assert_allclose(run.loss, power * (target - strength) ** 2 / 2, rtol=0, atol=1e-8)


@pytest.mark.slow
def test_a_single_neuron_is_a_mode():
    run = scalar_trajectory(Setting(-0.8, np.array([0.5]), np.array([-0.2]), 0.7), TIMES)
    mode = mode_strength(TIMES, -0.8, 0.7, 0.5, -0.2)
    # The same kernel, called with the same numbers up to rounding.
    np.testing.assert_allclose(run.strength, mode.strength, rtol=1e-13)
    np.testing.assert_allclose(run.output_weights[:, 0], mode.output_weight, rtol=1e-13)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(seeds, targets.filter(lambda s: abs(s) > 0.1), positive, signed, st.floats(0.1, 10))
def test_the_four_dials_give_one_path_in_their_own_clocks(seed, target, power, divisor, factor):
    setting = drawn(seed, target, power, divisor)
    dials = equivalent_scalings(setting, factor)
    leader = scalar_trajectory(dials["target"].setting, TIMES)
    for scaled, clock in dials.values():
        run = scalar_trajectory(scaled, TIMES / clock)
        # Sums of rounding errors, which grow with the residual's distance from where it started.
        np.testing.assert_allclose(run.log_growth, leader.log_growth, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(
            run.strength / scaled.target, leader.strength / (factor * target), rtol=1e-9, atol=1e-9
        )
        np.testing.assert_allclose(run.loss / run.loss[0], leader.loss / leader.loss[0], rtol=1e-8, atol=1e-13)
        np.testing.assert_allclose(
            scalar_limit(scaled).log_growth, scalar_limit(setting._replace(target=factor * target)).log_growth
        )


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(seeds, targets, positive, signed)
def test_the_limit_is_where_the_trajectory_goes_at_the_rate_it_says(seed, target, power, divisor):
    setting = drawn(seed, target, power, divisor)
    end = scalar_limit(setting)
    assume(end.rate > 0.05)
    late = scalar_trajectory(setting, np.array([30.0, 31.0]) / end.rate)
    # e⁻³⁰ = 1e-13 of what was to be learned is left, times a factor from the dwell at the saddle.
    np.testing.assert_allclose(late.output_weights[-1], end.output_weights, rtol=0, atol=1e-8)
    np.testing.assert_allclose(late.log_growth[-1], end.log_growth, rtol=0, atol=1e-8)
    np.testing.assert_allclose(late.residual[1] / late.residual[0], np.exp(-1), rtol=1e-6)
    np.testing.assert_allclose(np.sum(end.output_weights * end.input_weights) / divisor, target, rtol=0, atol=1e-10)
    assert str(end.status) == "converges"


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(seeds, targets, signed)
def test_the_mirror_image_is_equally_rich(seed, target, divisor):
    setting = drawn(seed, target, 1.0, divisor)
    mirror = setting._replace(target=-target, input_weights=-setting.input_weights)
    np.testing.assert_allclose(scalar_limit(mirror).richness, scalar_limit(setting).richness, rtol=1e-12, atol=1e-14)
    turned = setting._replace(divisor=-divisor, input_weights=-setting.input_weights)
    np.testing.assert_allclose(
        scalar_trajectory(turned, TIMES).strength, scalar_trajectory(setting, TIMES).strength, rtol=1e-12
    )


def test_the_final_growth_loses_no_digits_for_either_sign():
    # SZ/N = ±1e12, where the printed form of γ₊ for S < 0 would be a difference of equal numbers.
    small = np.array([3e-7, -1e-7]), np.array([1e-7, 2e-7])
    up, down = scalar_limit(Setting(1.0, *small)), scalar_limit(Setting(-1.0, *small))
    growing, shrinking = ((small[0] + small[1]) ** 2).sum() / 4, ((small[0] - small[1]) ** 2).sum() / 4
    np.testing.assert_allclose(up.log_growth, -np.log(growing), rtol=1e-12)
    np.testing.assert_allclose(down.log_growth, np.log(shrinking), rtol=1e-12)


def test_limits_name_what_happens():
    a = np.array([[0.5, 1.0], [0.5, 1.0], [0.5, 1.0], [0.0, 0.0], [1.0, 1.0], [0.5, 1.0]])
    b = np.array([[-0.5, -1.0], [0.5, 1.0], [0.5, 1.0], [0.0, 0.0], [1.0, 1.0], [0.5, -1.0]])
    end = scalar_limit(Setting(np.array([1.0, -1.0, 0.0, 3.0, 2.0, 1.0]), a, b))
    assert end.status.tolist() == ["saddle", "saddle", "power law", "static", "static", "converges"]
    np.testing.assert_allclose(end.strength, [0, 0, 0, 0, 2, 1])
    np.testing.assert_array_equal(end.log_growth[:5], [np.inf, -np.inf, -np.inf, 0, 0])
    np.testing.assert_array_equal(end.output_weights[[0, 1, 2, 3]], 0)
    np.testing.assert_allclose(end.rate, [2, 2, 0, 0, 0, 2 * np.sqrt(1 + 4 * 0.25)])


@pytest.mark.slow
def test_nothing_to_learn_decays_exponentially_or_as_a_power():
    times = np.array([0.0, 10.0, 1000.0])
    power = scalar_trajectory(Setting(0.0, np.array([1.0]), np.array([1.0])), times)
    # θ' = −2 θ² from θ = 1.
    np.testing.assert_allclose(power.strength, 1 / (1 + 2 * times), rtol=1e-12)
    decay = scalar_trajectory(Setting(0.0, np.array([1.0, 0.5]), np.array([1.0, -0.5])), times)
    rate = scalar_limit(Setting(0.0, np.array([1.0, 0.5]), np.array([1.0, -0.5]))).rate
    np.testing.assert_allclose(rate, 4 * np.sqrt(0.25), rtol=1e-12)
    assert abs(float(decay.strength[1])) < 3 * np.exp(-10 * rate)


@pytest.mark.slow
def test_tiny_starts_do_not_underflow():
    tiny = 1e-300 * np.array([0.5, -0.3]), 1e-300 * np.array([0.1, 0.4])
    log_growing = np.log(((0.5 + 0.1) ** 2 + (0.4 - 0.3) ** 2) / 4) - 600 * np.log(10)
    end = scalar_limit(Setting(1.0, *tiny))
    np.testing.assert_allclose(end.log_growth, -log_growing, rtol=1e-12)
    np.testing.assert_allclose(np.sum(end.output_weights * end.input_weights), 1.0, rtol=1e-10)
    half = scalar_trajectory(Setting(1.0, *tiny), -log_growing / 2)
    # θ = C e^{2t}/(1 + C e^{2t}) = ½; the exponent of 1400 multiplies rounding.
    np.testing.assert_allclose(half.strength, 0.5, rtol=1e-11)


@pytest.mark.slow
def test_settings_and_times_are_batched():
    weights = np.random.default_rng(0).normal(size=(2, 3, 1, 4))
    run = scalar_trajectory(Setting(np.array([1.0, -1.0]), *weights, divisor=-2.0), TIMES)
    assert run.output_weights.shape == (3, 2, 4, 4)
    assert run.loss.shape == (3, 2, 4)
    alone = scalar_trajectory(Setting(-1.0, weights[0, 2, 0], weights[1, 2, 0], divisor=-2.0), TIMES[3])
    np.testing.assert_allclose(run.input_weights[2, 1, 3], alone.input_weights, rtol=1e-13)
    mapped = jax.vmap(lambda a, b: scalar_trajectory(Setting(1.0, a, b, divisor=-2.0), TIMES).strength)(
        *weights[:, :, 0]
    )
    np.testing.assert_allclose(mapped, run.strength[:, 0], rtol=1e-13)


@pytest.mark.slow
def test_the_final_loss_has_its_gradient():
    @jit
    @jax.value_and_grad
    def loss(a):
        return scalar_trajectory(GOLDEN._replace(output_weights=a), 1.0).loss

    a = GOLDEN.output_weights
    differences = [(float(loss(a + step)[0]) - float(loss(a - step)[0])) / 2e-5 for step in 1e-5 * np.eye(3)]
    # Central differences: the square of the step.
    np.testing.assert_allclose(loss(a)[1], differences, rtol=1e-7)
    assert np.isfinite(loss(-GOLDEN.input_weights)[1]).all()


@pytest.mark.parametrize(
    ("argument", "setting"),
    [
        ("setting.divisor", GOLDEN._replace(divisor=0.0)),
        ("setting.divisor", GOLDEN._replace(divisor=np.nan)),
        ("setting.input_power", GOLDEN._replace(input_power=0.0)),
        ("setting.input_power", GOLDEN._replace(input_power=-1.0)),
        ("setting.target", GOLDEN._replace(target=np.inf)),
        ("setting.output_weights", GOLDEN._replace(output_weights=np.array([np.nan, 0.0, 0.0]))),
        ("setting.input_weights", GOLDEN._replace(input_weights=np.ones(2))),
        ("setting.divisor", GOLDEN._replace(target=np.ones(2), divisor=np.ones(3))),
    ],
)
def test_a_bad_setting_is_refused_by_name(argument, setting):
    for call in (
        lambda: scalar_trajectory(setting, TIMES),
        lambda: scalar_limit(setting),
        lambda: equivalent_scalings(setting, 2.0),
    ):
        with pytest.raises(InputError) as refusal:
            call()
        assert refusal.value.argument == argument


@pytest.mark.parametrize("factor", [0.0, -1.0, np.inf, np.nan])
def test_a_factor_outside_the_domain_leaves_no_number_that_it_changes_where_it_is_traced(factor):
    dials = jit(lambda c: equivalent_scalings(GOLDEN, c))(factor)
    for name, changed in {"target": [0], "output": [4], "input": [0, 3], "weights": [1, 2]}.items():
        setting, clock = dials[name]
        assert np.isnan(clock)
        for place, part in enumerate(setting):
            assert np.all(np.isnan(part)) == (place in changed)


@pytest.mark.parametrize("place", range(5))
def test_a_part_of_a_setting_that_is_infinite_is_none_in_any_scaling_where_it_is_traced(place):
    name = Setting._fields[place]
    scaled = jit(lambda part: equivalent_scalings(GOLDEN._replace(**{name: part}), 2.0))(np.inf * np.abs(GOLDEN[place]))
    for setting, _ in scaled.values():
        assert np.all(np.isnan(setting[place]))


def test_other_bad_input_is_refused_by_name():
    for argument, call in (
        ("times", lambda: scalar_trajectory(GOLDEN, -1.0)),
        ("times", lambda: scalar_trajectory(GOLDEN, np.ones((2, 2)))),
        ("learning_rate", lambda: scalar_trajectory(GOLDEN, TIMES, learning_rate=0.0)),
        ("factor", lambda: equivalent_scalings(GOLDEN, 0.0)),
        ("setting.target", lambda: jit(lambda target: scalar_limit(GOLDEN._replace(target=target)).rate)(1.0)),
    ):
        with pytest.raises(InputError) as refusal:
            call()
        assert refusal.value.argument == argument

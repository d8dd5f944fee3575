from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.theory import LayerRates
from dynascope.theory.line_inputs import LineData, LineNetwork, line_limit, line_trajectory, time_scale

# Golden numbers are stored with 12 digits behind the point.
GOLDEN = {"rtol": 0, "atol": 1e-11}

FIRST = np.array([[0.3, 0.1], [-0.5, 0.2], [0.2, 0.4]]).T
SECOND = np.array([0.4, -0.2, 0.1])
DATA = LineData(np.array([0.6, 0.8]), 2.0, 0.6)
RATES = {"multiplier": 1.5, "rates": LayerRates(2.0, 0.5)}
NETWORK = LineNetwork(FIRST, SECOND, **RATES)
TIMES = np.linspace(0, 2, 5)

seeds = st.integers(0, 10**6)
positive = st.floats(0.3, 2)
slopes = st.one_of(st.just(0.0), st.floats(-2, 2))


def layers(seed, *, dimension=2, width=3):
    draw = np.random.default_rng(seed)
    return draw.normal(size=(dimension, width)), draw.normal(size=width)


@pytest.mark.slow
def test_weights_slope_and_time_scale_golden():
    # The last time fills up the number that other tests have, for one program.
    run = jax.device_get(line_trajectory(NETWORK, DATA, np.array([0.1, 0.3, 0.3, 0.3, 0.3]), prefactor=1.0))
    np.testing.assert_allclose(run.strength[:2], [0.409612254135, 0.554318605233], **GOLDEN)
    np.testing.assert_allclose(run.second[1], [0.452653638779, -0.227745047281, 0.166346955614], **GOLDEN)
    np.testing.assert_allclose(run.first[1, :, 0], [0.44230396586, 0.289738621146], **GOLDEN)
    np.testing.assert_allclose(time_scale(NETWORK, DATA, prefactor=1.0).time, 0.121949698814, **GOLDEN)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(seeds, slopes, positive, positive, positive, positive)
def test_trajectory_agrees_with_direct_integration(
    line_samples, integrate, seed, slope, multiplier, first_rate, second_rate, prefactor
):
    inputs, targets, data = line_samples(slope, seed=seed)
    network = LineNetwork(*layers(seed), multiplier, LayerRates(first_rate, second_rate))
    run = line_trajectory(network, data, TIMES, prefactor=prefactor)
    trained_first, trained_second = integrate(network, inputs, targets, TIMES, prefactor=prefactor)
    # The integrator is good to about 1e-10 after two units of time.
    np.testing.assert_allclose(run.first, trained_first, rtol=0, atol=1e-8)
    np.testing.assert_allclose(run.second, trained_second, rtol=0, atol=1e-8)
    outputs = multiplier * np.einsum("nd,tdh,th->tn", inputs, trained_first, trained_second)
    np.testing.assert_allclose(run.loss, prefactor * np.mean((outputs - targets) ** 2, axis=1), rtol=0, atol=1e-7)
    np.testing.assert_allclose(run.residual, data.target - run.strength, rtol=0, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("dimension", "width"), [(1, 1), (3, 2), (4, 30)])
def test_trajectory_agrees_with_direct_integration_at_any_width(line_samples, integrate, dimension, width):
    (first, second), (inputs, targets, data) = (
        layers(1, dimension=dimension, width=width),
        line_samples(-1.2, dimension=dimension),
    )
    run = line_trajectory(LineNetwork(first, second, **RATES), data, TIMES, prefactor=1.0)
    trained_first, trained_second = integrate(
        LineNetwork(first, second, **RATES), inputs, targets, TIMES, prefactor=1.0
    )
    np.testing.assert_allclose(run.first, trained_first, rtol=0, atol=1e-8)
    np.testing.assert_allclose(run.second, trained_second, rtol=0, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("slope", [1.0, 0.0, -1.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_parallel_and_opposite_layers_agree_with_direct_integration(line_samples, integrate, sign, slope):
    inputs, targets, data = line_samples(slope)
    data = data._replace(target=slope)
    # Growing or shrinking parts vanish for v = ±c² u; what W does across the line must not matter.
    across = np.array([-data.direction[1], data.direction[0]])
    along = sign * 2.0 * SECOND
    first = np.outer(data.direction, along) + np.outer(across, [0.3, 0.1, -0.2])
    run = line_trajectory(LineNetwork(first, SECOND, **RATES), data, TIMES, prefactor=1.0)
    trained_first, trained_second = integrate(
        LineNetwork(first, SECOND, **RATES), inputs, targets, TIMES, prefactor=1.0
    )
    # At the saddle rounding errors of the integrator grow like exp(t/t_c) = e^12 by the end.
    np.testing.assert_allclose(run.first, trained_first, rtol=0, atol=1e-7)
    np.testing.assert_allclose(run.second, trained_second, rtol=0, atol=1e-7)
    end = line_limit(LineNetwork(first, SECOND, **RATES), data, prefactor=1.0)
    assert end.status == ("power law" if slope == 0 else "converges" if slope * sign > 0 else "saddle")
    np.testing.assert_allclose(end.strength, slope if slope * sign > 0 else 0.0, atol=1e-12)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(seeds, st.floats(-2, 2))
def test_conserved_quantities_are_conserved_and_what_lies_across_the_line_rests(line_samples, seed, slope):
    (first, second), (_, _, data) = layers(seed), line_samples(slope, seed=seed)
    run = line_trajectory(LineNetwork(first, second, **RATES), data, TIMES, prefactor=1.0)
    along = np.einsum("d,tdh->th", data.direction, run.first)
    charge = 2 * np.asarray(run.second) ** 2 - along**2 / 2
    np.testing.assert_allclose(charge, np.broadcast_to(charge[0], charge.shape), rtol=0, atol=1e-12)
    across = np.array([-data.direction[1], data.direction[0]])
    frozen = np.einsum("d,tdh->th", across, run.first)
    np.testing.assert_allclose(frozen, np.broadcast_to(across @ first, frozen.shape), rtol=0, atol=1e-12)
    np.testing.assert_allclose(run.strength, 1.5 * np.sum(along * run.second, axis=1), rtol=0, atol=1e-11)


@pytest.mark.slow
def test_the_output_across_the_line_moves_although_the_first_layer_rests_there():
    run = line_trajectory(NETWORK, DATA, TIMES, prefactor=1.0)
    across = np.einsum("d,tdh,th->t", [-0.8, 0.6], run.first, run.second)
    assert abs(across[2] - across[0]) > 0.01


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(seeds, st.floats(-2, 2))
def test_the_trajectory_ends_at_the_limit(line_samples, seed, slope):
    assume(abs(slope) > 0.1)
    (first, second), (_, _, data) = layers(seed), line_samples(slope, seed=seed)
    end = line_limit(LineNetwork(first, second, **RATES), data, prefactor=1.0)
    network = LineNetwork(first, second, **RATES)
    times = 60 * time_scale(network, data, prefactor=1.0).time
    late = line_trajectory(network, data, times, prefactor=1.0)
    for name in ("first", "second", "strength", "loss"):
        # After sixty time scales less than e⁻⁶⁰ is left to go.
        np.testing.assert_allclose(getattr(late, name), getattr(end, name), rtol=1e-9, atol=1e-11)
    assert end.status == "converges"


@pytest.mark.slow
def test_the_distance_to_the_end_falls_at_the_time_scale():
    scale = time_scale(NETWORK, DATA, prefactor=1.0)
    np.testing.assert_allclose(1 / scale.time**2, scale.target_rate**2 + scale.initial_rate**2, rtol=1e-12)
    late = float(20 * scale.time)
    residual = line_trajectory(NETWORK, DATA, np.array([late, late + float(scale.time)]), prefactor=1.0).residual
    # Corrections are of the order e⁻²⁰.
    np.testing.assert_allclose(residual[1] / residual[0], np.exp(-1), rtol=1e-7)


@pytest.mark.slow
def test_time_scale_is_infinite_where_the_approach_is_a_power_law():
    parallel = np.outer(DATA.direction, SECOND)
    scale = time_scale(LineNetwork(parallel, SECOND), DATA._replace(target=np.array([0.0, 1.0])))
    assert scale.status.tolist() == ["power law", "exponential"]
    assert np.isinf(scale.time[0])
    strength = np.asarray(
        line_trajectory(LineNetwork(parallel, SECOND), DATA._replace(target=0.0), np.array([1e5, 2e5])).strength
    )
    # θ = 1/(k t + 1/θ₀): doubling the time halves it up to 1/(k θ₀ t).
    np.testing.assert_allclose(strength[1] / strength[0], 0.5, rtol=1e-4)


@pytest.mark.slow
def test_a_network_at_its_target_or_without_weights_is_static():
    start = float(line_trajectory(LineNetwork(FIRST, SECOND), DATA, 0.0).strength)
    rest = line_limit(LineNetwork(FIRST, SECOND), DATA._replace(target=start))
    assert rest.status == "static"
    np.testing.assert_allclose(rest.second, SECOND, rtol=1e-14)
    assert rest.loss < 1e-30
    nothing = line_limit(LineNetwork(0 * FIRST, 0 * SECOND), DATA)
    assert nothing.status == "static"
    np.testing.assert_allclose(nothing.loss, 0.36, rtol=1e-12)


@pytest.mark.slow
def test_exchanging_the_roles_of_the_layers_changes_nothing():
    data = LineData(np.ones(1), 2.0, 0.6)
    along = np.array([[0.3, -0.1, 0.7]])
    run = line_trajectory(LineNetwork(along, SECOND, rates=LayerRates(2.0, 0.5)), data, TIMES)
    swapped = line_trajectory(LineNetwork(SECOND[None], along[0], rates=LayerRates(0.5, 2.0)), data, TIMES)
    np.testing.assert_allclose(run.first[:, 0], swapped.second, rtol=1e-12)
    np.testing.assert_allclose(run.strength, swapped.strength, rtol=1e-12)


@pytest.mark.slow
def test_tiny_starts_keep_their_digits():
    scales = np.array([1e-8, 1e-200])
    end = line_limit(LineNetwork(scales[:, None, None] * FIRST, scales[:, None] * SECOND), DATA)
    np.testing.assert_allclose(end.second[0], end.second[1], rtol=1e-7)
    np.testing.assert_allclose(end.strength, 0.6, rtol=1e-12)


@pytest.mark.slow
def test_many_starts_in_leading_axes_are_each_alone():
    first, second = np.stack([FIRST, -2 * FIRST]), np.stack([SECOND, SECOND])
    rates = np.array([1.0, 3.0])
    both = line_trajectory(LineNetwork(first, second, rates=LayerRates(rates)), DATA, TIMES)
    for i in range(2):
        alone = line_trajectory(LineNetwork(first[i], second[i], rates=LayerRates(rates[i])), DATA, TIMES)
        for one, many in zip(alone, both, strict=True):
            np.testing.assert_allclose(one, many[i], rtol=1e-12)
        np.testing.assert_allclose(
            line_limit(LineNetwork(first, second), DATA).second[i],
            line_limit(LineNetwork(first[i], second[i]), DATA).second,
        )


@pytest.mark.slow
def test_it_compiles_vectorises_and_differentiates():
    @jit
    @jax.vmap
    @jax.value_and_grad
    def slope(second, target):
        return line_trajectory(LineNetwork(FIRST, second), DATA._replace(target=target), 0.5).strength

    steps = 1e-6 * np.concatenate([np.eye(3), -np.eye(3), np.zeros((2, 3))])
    targets = np.array([0.6] * 6 + [0.3, 1.0])
    many = np.asarray(slope(SECOND + steps, targets)[0])
    alone = line_trajectory(LineNetwork(FIRST, SECOND), DATA._replace(target=targets[6:]), 0.5)
    np.testing.assert_allclose(many[6:], alone.strength)
    gradient = np.asarray(slope(np.stack([SECOND, *np.zeros((7, 3))]), np.full(8, 0.6))[1])
    # Central differences with a step of 1e-6 are good to about 1e-9.
    np.testing.assert_allclose(gradient[0], (many[:3] - many[3:6]) / 2e-6, atol=1e-8)
    assert np.isfinite(gradient[-1]).all()


@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"multiplier": 0.0}, "network.multiplier"),
        ({"multiplier": -1.0}, "network.multiplier"),
        ({"rates": LayerRates(first=0.0)}, "network.rates.first"),
        ({"rates": LayerRates(second=np.nan)}, "network.rates.second"),
        ({"prefactor": -0.5}, "prefactor"),
        ({"times": [-1.0]}, "times"),
        ({"times": [[1.0]]}, "times"),
        ({"first": FIRST.T}, "network.first"),
        ({"first": np.stack([FIRST, FIRST])}, "network.second"),
        ({"second": SECOND[:, None]}, "network.first"),
        ({"second": [np.inf, 0.0, 0.0]}, "network.second"),
        ({"rates": LayerRates(np.ones(2), np.ones(3))}, "network.rates.second"),
        ({"data": DATA._replace(power=0.0)}, "data.power"),
        ({"data": DATA._replace(direction=np.ones(2))}, "data.direction"),
        ({"data": DATA._replace(unexplained=-1.0)}, "data.unexplained"),
        ({"data": DATA._replace(target=np.nan)}, "data.target"),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_bad_input_is_refused_by_name(changes, argument):
    parts = {"first": FIRST, "second": SECOND, "data": DATA, "times": TIMES, **changes}
    network = LineNetwork(*(parts.pop(name) for name in ("first", "second")))
    network = network._replace(**{name: parts.pop(name) for name in ("multiplier", "rates") if name in parts})
    with pytest.raises(InputError) as refusal:
        line_trajectory(network=network, **parts)
    assert refusal.value.argument == argument


def test_a_limit_of_traced_weights_is_refused():
    with pytest.raises(InputError, match="traced"):
        jit(lambda second: line_limit(LineNetwork(FIRST, second), DATA).strength)(SECOND)

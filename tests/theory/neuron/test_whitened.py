from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.theory import LayerRates
from dynascope.theory.neuron.whitened import neuron_imbalance, neuron_limit, neuron_trajectory

# Golden numbers are stored with about twelve digits.
GOLDEN = {"rtol": 0, "atol": 1e-11}
TARGET = np.array([1.0, -0.5, 0.25])
START = (0.3, np.array([0.2, -0.1, 0.4]))
FLIPPING = (0.1, np.array([0.5, 1.5, -1.0]))
EAST = np.array([1.0, 0.0, 0.0])
RATES = LayerRates(first=2.0, second=0.5)
TIMES = np.array([0.0, 0.1, 0.5, 1.5, 4.0])
# √(η_w/η_a) ‖w‖ for w = β* or −β*, with which a neuron is balanced.
BALANCED = float(np.sqrt(RATES.second / RATES.first) * np.linalg.norm(TARGET))

# Output weight, weights, target: every special case of the formula.
CASES = {
    "upstream": (2.0, np.array([0.3, 0.2, -0.5]), TARGET),
    "downstream": (-0.2, np.array([0.5, 1.5, 1.0]), TARGET),
    "balanced": (1.0, np.array([2.0, 0.0, 0.0]), TARGET),
    "no output weight": (0.0, np.array([0.4, 1.0, 0.3]), TARGET),
    "no input weights": (0.7, np.array([0.0, 0.0, 0.0]), TARGET),
    "sign flip": (*FLIPPING, TARGET),
    "aligned": (0.3, np.array([2.0, -1.0, 0.5]), TARGET),
    "opposite": (0.3, np.array([-2.0, 1.0, -0.5]), TARGET),
    "balanced and opposite": (BALANCED, -TARGET, TARGET),
    "orthogonal": (0.0, np.array([0.5, 1.0, 0.0]), TARGET),
    "fitted": (0.5, 2 * TARGET, TARGET),
    "at zero": (0.0, np.array([0.0, 0.0, 0.0]), TARGET),
    "no target, upstream": (1.5, np.array([0.3, 0.1, 0.0]), np.zeros(3)),
    "no target, downstream": (0.2, np.array([0.3, 1.1, 0.0]), np.zeros(3)),
    "no target, balanced": (1.0, np.array([1.2, 1.6, 0.0]), np.zeros(3)),
    "nothing at all": (0.0, np.array([0.0, 0.0, 0.0]), np.zeros(3)),
}
STATUS = dict.fromkeys(CASES, "converges") | {
    "balanced and opposite": "saddle",
    "orthogonal": "static",
    "fitted": "static",
    "at zero": "static",
    "no target, balanced": "power law",
    "nothing at all": "static",
}

seeds = st.integers(0, 10**6)


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def padded(times):
    """As many times as TIMES has, for which there is a program; the last one again and again."""
    return np.pad(times, (0, len(TIMES) - len(times)), mode="edge")


def trained(a, w, target, times=TIMES, *, rates=LayerRates()):
    def velocity(_, theta):
        missing = theta[0] * theta[1:] - target
        return np.append(-rates.second * theta[1:] @ missing, -rates.first * theta[0] * missing)

    path = solve_ivp(
        velocity, (0, times[-1]), np.append(a, w), method="DOP853", t_eval=times, rtol=1e-12, atol=1e-14
    ).y.T
    return path[:, 0], path[:, 1:]


def drawn(seed, kind, dimension=3):
    draw = np.random.default_rng(seed)
    target, w = draw.normal(size=(2, dimension))
    # Numbers of Python, for which there is one program.
    rates = LayerRates(*np.exp(0.5 * draw.normal(size=2)).tolist()[::-1])
    even = np.sqrt(rates.second / rates.first) * np.linalg.norm(w)
    a = draw.choice([-1, 1]) * {"upstream": 2 * even, "balanced": even, "downstream": 0.3 * even, "zero": 0.0}[kind]
    return float(a), w, target, rates


@pytest.mark.slow
def test_upstream_and_downstream_golden():
    run = jax.device_get(neuron_trajectory(*START, TARGET, padded([1.0, 3.0])))
    np.testing.assert_allclose(run.output_weight[:2], [0.686133339873, 1.03385687299], **GOLDEN)
    np.testing.assert_allclose(run.weights[0], [0.576684221554, -0.288342110777, 0.418417370396], **GOLDEN)
    np.testing.assert_allclose(run.weights[1], [0.941926387012, -0.470963193506, 0.282539175421], **GOLDEN)
    np.testing.assert_allclose(run.excess_loss[:2], [0.228937786548, 0.0013148845626], **GOLDEN)
    np.testing.assert_allclose(neuron_limit(*START, TARGET).output_weight, 1.04269555319, **GOLDEN)
    np.testing.assert_allclose(neuron_imbalance(*START), -0.12, **GOLDEN)


@pytest.mark.slow
def test_sign_flip_golden():
    run = jax.device_get(neuron_trajectory(*FLIPPING, TARGET, padded([1.0, 10.0]), rates=RATES))
    np.testing.assert_allclose(run.output_weight[:2], [-0.101383680291, -0.533919911346], **GOLDEN)
    np.testing.assert_allclose(run.weights[0], [0.446240232388, 1.513870745369, -1.005076924336], **GOLDEN)
    np.testing.assert_allclose(run.weights[1], [-1.848391335351, 0.970472807502, -0.491847423726], **GOLDEN)
    np.testing.assert_allclose(run.excess_loss[:2], [0.617269350743, 3.30165008854e-4], **GOLDEN)
    np.testing.assert_allclose(neuron_imbalance(*FLIPPING, rates=RATES), -1.73, **GOLDEN)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["upstream", "balanced", "downstream", "zero"])
@settings(max_examples=6, deadline=None)
@given(seed=seeds)
def test_any_start_agrees_with_direct_integration(kind, seed):
    a, w, target, rates = drawn(seed, kind)
    run = neuron_trajectory(a, w, target, TIMES, rates=rates)
    outputs, weights = trained(a, w, target, rates=rates)
    # The integrator is good to about 1e-10 after four units of time.
    np.testing.assert_allclose(run.output_weight, outputs, rtol=0, atol=1e-7)
    np.testing.assert_allclose(run.weights, weights, rtol=0, atol=1e-7)
    np.testing.assert_allclose(run.coefficients, outputs[:, None] * weights, rtol=0, atol=1e-7)
    loss = ((outputs[:, None] * weights - target) ** 2).sum(axis=1) / 2
    np.testing.assert_allclose(run.excess_loss, loss, rtol=0, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_special_starts_agree_with_direct_integration_and_their_limit(case):
    start = CASES[case]
    run, limit = neuron_trajectory(*start, TIMES, rates=RATES), neuron_limit(*start, rates=RATES)
    outputs, weights = trained(*start, rates=RATES)
    # The integrator is good to about 1e-10 after four units of time.
    np.testing.assert_allclose(run.output_weight, outputs, rtol=0, atol=1e-9)
    np.testing.assert_allclose(run.weights, weights, rtol=0, atol=1e-9)
    assert limit.status == STATUS[case]
    # At 1e300 also the power law 1/√t is below rounding.
    late = jax.device_get(neuron_trajectory(*start, np.full(5, 1e300), rates=RATES))
    np.testing.assert_allclose(late.output_weight[0], limit.output_weight, rtol=0, atol=1e-14)
    np.testing.assert_allclose(late.weights[0], limit.weights, rtol=0, atol=1e-14)
    np.testing.assert_allclose(late.excess_loss[0], limit.excess_loss, rtol=0, atol=1e-14)
    np.testing.assert_allclose(late.coefficients[0], limit.coefficients, rtol=0, atol=1e-14)


@jit
def derivatives(*arguments):
    """Of all that `neuron_trajectory` returns, over seven times of which the first two are TIMES[2] and TIMES[4]."""
    times = np.array([0.5, 4.0, 0.0, 1e-300, 40.0, 1e3, 1e12])

    def run(a, w, target, output_rate, weight_rate):
        return neuron_trajectory(a, w, target, times, rates=LayerRates(first=weight_rate, second=output_rate))

    return jax.jacrev(run, range(5))(*arguments)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_derivatives_are_those_of_the_integrated_flow_and_finite_at_all_scales_of_time(case):
    a, w, target = CASES[case]
    found = jax.device_get(derivatives(a, w, target, 0.5, 2.0))
    assert all(np.isfinite(value).all() for value in jax.tree.leaves(found))
    step = 1e-5

    def moved(direction):
        outputs, weights = trained(a + direction[0], w + direction[1:], target, rates=RATES)
        return np.column_stack([outputs, weights])[[2, 4]]

    numerical = np.stack([(moved(step * e) - moved(-step * e)) / (2 * step) for e in np.eye(4)], axis=-1)
    # Central differences with steps of 1e-5 of a flow that amplifies them up to a hundred times.
    near = {"rtol": 0, "atol": 1e-6 * (1 + np.abs(numerical).max())}
    np.testing.assert_allclose(found.output_weight[0][:2], numerical[:, 0, 0], **near)
    np.testing.assert_allclose(found.output_weight[1][:2], numerical[:, 0, 1:], **near)
    np.testing.assert_allclose(found.weights[0][:2], numerical[:, 1:, 0], **near)
    np.testing.assert_allclose(found.weights[1][:2], numerical[:, 1:, 1:], **near)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(seed=seeds, size=st.integers(-300, -20))
def test_tiny_starts_grow_as_their_linearisation_and_then_learn(seed, size):
    a, w, target, _ = drawn(seed, "downstream")
    s = np.linalg.norm(target)
    growing = (a + w @ target / s) / 2
    early = (-np.log(10.0) * size - 30) / s
    run = jax.device_get(neuron_trajectory(10.0**size * a, 10.0**size * w, target, padded([early, early + 60 / s])))
    # A start of 1e-300 waits for seven hundred units of phase, whose rounding is amplified.
    np.testing.assert_allclose(run.output_weight[0], growing * np.exp(-30), rtol=1e-11)
    np.testing.assert_allclose(run.coefficients[1], target, rtol=0, atol=1e-10)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(seed=seeds, kind=st.sampled_from(["upstream", "balanced", "downstream", "zero"]))
def test_imbalance_is_conserved_and_loss_never_increases(seed, kind):
    a, w, target, rates = drawn(seed, kind)
    run = jax.device_get(neuron_trajectory(a, w, target, TIMES, rates=rates))
    scale = (a**2 + w @ w) * 10
    np.testing.assert_allclose(
        neuron_imbalance(run.output_weight, run.weights, rates=rates),
        neuron_imbalance(a, w, rates=rates),
        rtol=0,
        atol=1e-13 * scale,
    )
    assert np.all(np.diff(run.excess_loss) <= 1e-14 * run.excess_loss[0])


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(seed=seeds, kind=st.sampled_from(["upstream", "downstream", "zero"]))
def test_rotations_reflections_and_restarts_change_nothing(seed, kind):
    a, w, target, rates = drawn(seed, kind)
    rotation, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))
    run = jax.device_get(neuron_trajectory(a, w, target, TIMES, rates=rates))
    turned = neuron_trajectory(a, rotation @ w, rotation @ target, TIMES, rates=rates)
    mirrored = neuron_trajectory(-a, -w, target, TIMES, rates=rates)
    later = padded(TIMES[2:] - TIMES[2])
    restarted = jax.device_get(
        neuron_trajectory(float(run.output_weight[2]), run.weights[2], target, later, rates=rates)
    )
    # Roundings amplified by escape from near the saddle, at worst by a few thousand within four units of time.
    near = {"rtol": 0, "atol": 1e-9}
    np.testing.assert_allclose(turned.weights, run.weights @ rotation.T, **near)
    np.testing.assert_allclose(mirrored.output_weight, -run.output_weight, **near)
    np.testing.assert_allclose(restarted.weights[:3], run.weights[2:], **near)


@pytest.mark.slow
def test_late_loss_keeps_its_relative_precision():
    s = np.linalg.norm(TARGET)
    # Balanced and aligned: β = σ β̂* with logistic σ.
    size, times = 0.1, padded([1.0, 20.0, 150.0])
    run = neuron_trajectory(size**0.5, size**0.5 * TARGET / s, TARGET, times)
    decay = (s / size - 1) * np.exp(-2 * s * times)
    np.testing.assert_allclose(run.excess_loss, (s * decay / (1 + decay)) ** 2 / 2, rtol=1e-12)


@pytest.mark.slow
def test_whitened_samples_are_learned_along_the_same_path():
    draw = np.random.default_rng(3)
    x = np.linalg.qr(draw.normal(size=(7, 3)))[0] * np.sqrt(7)
    y = draw.normal(size=7)

    def velocity(_, theta):
        error = x @ theta[1:] * theta[0] - y
        return -np.append((x @ theta[1:]) @ error, theta[0] * x.T @ error) / 7

    path = solve_ivp(velocity, (0, 2), np.append(*START), method="DOP853", t_eval=[0.5, 2], rtol=1e-12, atol=1e-14).y.T
    run = jax.device_get(neuron_trajectory(*START, x.T @ y / 7, padded([0.5, 2.0])))
    # The integrator's tolerance with room to spare.
    np.testing.assert_allclose(run.weights[:2], path[:, 1:], rtol=0, atol=1e-9)
    loss = np.mean((path[:, :1] * path[:, 1:] @ x.T - y) ** 2, axis=1) / 2
    best = (np.mean(y**2) - np.sum((x.T @ y / 7) ** 2)) / 2
    np.testing.assert_allclose(run.excess_loss[:2], loss - best, rtol=0, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("dimension", "batch"), [(1, ()), (5, (2, 3))])
def test_batches_agree_with_single_neurons_whatever_their_shape(dimension, batch):
    draw = np.random.default_rng(0)
    a, w = draw.normal(size=batch), draw.normal(size=(*batch, dimension))
    target, rate = draw.normal(size=dimension), np.exp(draw.normal(size=batch[-1:]))
    run = jax.device_get(neuron_trajectory(a, w, target, TIMES, rates=LayerRates(first=rate)))
    assert run.output_weight.shape == run.excess_loss.shape == (*batch, 5)
    assert run.weights.shape == run.coefficients.shape == (*batch, 5, dimension)
    last = (-1,) * len(batch)
    outputs, weights = trained(a[last], w[last], target, rates=LayerRates(first=rate[last[-1:]]))
    np.testing.assert_allclose(run.output_weight[last], outputs, rtol=0, atol=1e-9)
    np.testing.assert_allclose(run.weights[last], weights, rtol=0, atol=1e-9)
    single = neuron_trajectory(a, w, target, TIMES[3], rates=LayerRates(first=rate))
    np.testing.assert_allclose(single.weights, run.weights[..., 3, :], rtol=0, atol=1e-14)
    assert single.output_weight.shape == batch


@pytest.mark.slow
def test_many_neurons_are_followed_in_blocks_to_the_same_end():
    draw = np.random.default_rng(0)
    a, w, times = draw.normal(size=70), draw.normal(size=(70, 3)), np.linspace(0, 3, 1000)
    run = jax.device_get(neuron_trajectory(a, w, TARGET, times))
    for neuron in (0, 49, 50, 69):
        alone = neuron_trajectory(float(a[neuron]), w[neuron], TARGET, times)
        np.testing.assert_allclose(run.weights[neuron], alone.weights, rtol=0, atol=1e-14)


@pytest.mark.slow
def test_it_compiles_maps_and_follows_the_dtype():
    batch = np.array([0.3, -0.3]), np.array([[0.2, -0.1, 0.4], [1.0, 2.0, 3.0]])
    mapped = jit(jax.vmap(lambda a, w: neuron_trajectory(a, w, TARGET, TIMES)))(*batch)
    direct = neuron_trajectory(*batch, TARGET, TIMES)
    np.testing.assert_allclose(mapped.weights, direct.weights, rtol=0, atol=1e-14)
    single = neuron_trajectory(*(jnp.asarray(value, jnp.float32) for value in (*batch, TARGET, TIMES)))
    assert single.weights.dtype == np.float32
    # The roundings of the arguments and of the answer, as it is computed in 64 bits.
    np.testing.assert_allclose(single.weights, direct.weights, rtol=0, atol=3e-6)


@pytest.mark.slow
def test_a_neuron_caught_by_the_saddle_keeps_the_norm_that_imbalance_asks_for():
    # c₊ = 0 with weights across the target: A = −(e_p/e_A) p.
    w = np.array([0.6, 1.0, 0.0])
    a = -0.35
    for _ in range(100):
        half = (a**2 - w @ w) / 2
        omega = np.hypot(half, 1)
        a = -(omega - half) * w[0]
        a, w = a / np.hypot(a, w[0]) * 0.7, np.array([w[0] / np.hypot(a, w[0]) * 0.7, 1.0, 0.0])
    a = float(a)
    limit = neuron_limit(a, w, EAST)
    assert limit.status == "saddle"
    # c₊ vanishes to rounding only.
    np.testing.assert_allclose(limit.weights, [0, np.sqrt(w @ w - a**2), 0], rtol=0, atol=1e-9)
    assert limit.excess_loss == 0.5
    late = neuron_trajectory(a, w, EAST, np.full(5, 1e6))
    np.testing.assert_allclose(late.weights, np.tile(limit.weights, (5, 1)), rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "rates", "name"),
    [
        ((np.nan, np.ones(3), TARGET, TIMES), {}, "initial_output"),
        ((1.0, 1.0, TARGET, TIMES), {}, "initial_weights"),
        ((1.0, np.array([1.0, np.inf, 0.0]), TARGET, TIMES), {}, "initial_weights"),
        ((1.0, np.ones(2), TARGET, TIMES), {}, "target"),
        ((1.0, np.ones(3), "east", TIMES), {}, "target"),
        ((1.0, np.ones(3), TARGET, -TIMES), {}, "times"),
        ((1.0, np.ones(3), TARGET, TIMES[None]), {}, "times"),
        ((1.0, np.ones(3), TARGET, np.array([np.inf])), {}, "times"),
        ((np.ones(2), np.ones((3, 3)), TARGET, TIMES), {}, "initial_output"),
        ((1.0, np.ones(3), TARGET, TIMES), {"rates": LayerRates(second=0.0)}, "rates.second"),
        ((1.0, np.ones(3), TARGET, TIMES), {"rates": LayerRates(first=-1.0)}, "rates.first"),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_bad_input_is_refused_by_name(arguments, rates, name):
    with pytest.raises(InputError, match=name) as failure:
        neuron_trajectory(*arguments, **rates)
    assert failure.value.argument == name
    assert failure.value.remedy


@pytest.mark.usefixtures("unchecked_types")
def test_imbalance_is_accurate_where_it_is_small_and_refuses_bad_input():
    np.testing.assert_allclose(neuron_imbalance(1.0 + 1e-12, EAST), 2e-12, rtol=1e-3)
    assert neuron_imbalance(
        np.ones(4), np.ones((4, 3)), rates=LayerRates(first=np.full(4, 4.0))
    ).tolist() == pytest.approx([1.0] * 4)
    with pytest.raises(InputError, match="weights"):
        neuron_imbalance(1.0, 2.0)
    with pytest.raises(InputError, match=r"rates\.second"):
        neuron_imbalance(1.0, np.ones(1), rates=LayerRates(second=-2.0))
    with pytest.raises(InputError, match="output"):
        neuron_imbalance(np.ones(2), np.ones((3, 2)))


@jit
def compiled(a, w, time, rate):
    return neuron_trajectory(a, w, TARGET, time, rates=LayerRates(second=rate))


@jit
def compiled_imbalance(a, w, rate):
    return neuron_imbalance(a, w, rates=LayerRates(second=rate))


@pytest.mark.slow
@pytest.mark.parametrize(
    "change", [{"a": np.inf}, {"w": np.array([np.nan, 1.0, 0.0])}, {"time": -1.0}, {"rate": 0.0}, {"rate": -2.0}]
)
def test_values_outside_the_domain_give_nan_where_they_are_traced(change):
    given = {"a": 0.3, "w": np.ones(3), "time": 1.0, "rate": 0.5}
    state = given | change
    assert all(np.isfinite(each).all() for each in compiled(**given | {"time": np.full(4, given["time"])}))
    time = state.pop("time")
    assert all(np.isnan(each).all() for each in compiled(**state, time=np.full(4, time)))
    assert np.isnan(compiled_imbalance(**state)) == ("time" not in change)


@pytest.mark.slow
def test_a_time_outside_the_domain_leaves_the_others_alone():
    run = compiled(a=0.3, w=np.ones(3), time=np.array([1.0, -1.0, np.inf, 2.0]), rate=1.0)
    assert np.isnan(run.weights).all(axis=1).tolist() == [False, True, True, False]
    assert np.isnan(run.excess_loss).tolist() == [False, True, True, False]


@pytest.mark.slow
def test_a_python_number_takes_the_precision_of_the_arrays_it_meets():
    arrays = [jnp.asarray(each, jnp.float32) for each in (0.3, np.ones(3), TARGET)]

    def dtype(*times, **rates):
        # What a call would give, of which nothing is computed.
        return jax.eval_shape(lambda: neuron_trajectory(*arrays, *times, **rates)).weights.dtype

    assert dtype(2.0, rates=LayerRates(second=0.5)) == np.float32
    assert dtype(np.float64(2.0)) == np.float64
    assert dtype(TIMES) == np.float64

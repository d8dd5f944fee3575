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
from dynascope.theory.neuron.function_space import function_space_flow, preconditioner

# The start and the data of the ledger's golden numbers.
INPUTS = np.array([[1.0, 2.0, 0.0, 1.0], [0.0, 1.0, -1.0, 1.0], [0.0, 0.0, 0.0, 0.0]])
TARGETS = np.array([1.0, 2.0, 0.0])
START = 0.5 * np.array([0.3, -0.2, 0.4, 0.1])
TIMES = np.linspace(0.0, 12.0, 25)


COMPILED = jit(function_space_flow)


def followed(times, inputs, targets, start, imbalance, rates=LayerRates()):
    """The flow by one program, in which JAX sees no value."""
    arguments = [np.asarray(each, float) for each in (times, inputs, targets, start, imbalance)]
    return jax.device_get(COMPILED(*arguments, rates=LayerRates(*(np.asarray(each, float) for each in rates))))


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def trained(x, y, a, w, rates, times=TIMES):
    """The path of the weights themselves."""

    def velocity(_, theta):
        gradient = x.T @ (x @ (theta[0] * theta[1:]) - y) / len(x)
        return np.append(-rates.second * theta[1:] @ gradient, -rates.first * theta[0] * gradient)

    start = np.append(a, w)
    # The error allowed besides is below the smallest start.
    tolerance = {"rtol": 1e-12, "atol": 1e-14 * min(1.0, np.abs(start).max())}
    path = solve_ivp(velocity, (0, times[-1]), start, method="DOP853", t_eval=times, **tolerance).y.T
    return path[:, 0], path[:, 1:]


def drawn(seed, kind):
    """Data of full, low and higher rank than samples, and a start of one of the three kinds of imbalance."""
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(3, 4))
    if draw.random() < 0.5:
        x[2] = x[0] - x[1]
    y = draw.normal(size=3)
    output_rate, weight_rate = np.exp(0.5 * draw.normal(size=2))
    w = draw.normal(size=4) * {"upstream": 0.3, "balanced": 0.5, "downstream": 1.5}[kind]
    size = {"upstream": 1.5, "balanced": np.sqrt(output_rate / weight_rate) * np.linalg.norm(w), "downstream": 0.2}
    a = draw.choice([-1, 1]) * size[kind]
    imbalance = 0.0 if kind == "balanced" else weight_rate * a**2 - output_rate * w @ w
    return x, y, a, w, imbalance, LayerRates(first=weight_rate, second=output_rate)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["upstream", "balanced", "downstream"])
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_map_follows_that_of_the_trained_weights(kind, seed):
    x, y, a, w, imbalance, rates = drawn(seed, kind)
    outputs, weights = trained(x, y, a, w, rates=rates)
    path = followed(TIMES, x, y, a * w, imbalance, rates=rates)
    size = np.abs(outputs[:, None] * weights).max()
    # Steps of 1e-11, interpolated between them.
    np.testing.assert_allclose(path.coefficients, outputs[:, None] * weights, rtol=0, atol=1e-7 * size)
    np.testing.assert_array_equal(path.reversed, outputs * a < 0)
    residual = (outputs[:, None] * weights) @ x.T - y
    np.testing.assert_allclose(path.loss, np.mean(residual**2, axis=1) / 2, rtol=1e-6, atol=1e-12)


@pytest.mark.slow
def test_it_passes_through_zero_when_the_output_weight_changes_its_sign():
    y, w = np.array([2.0, -1.0, 1.5]), np.array([-1.0, 0.5, -0.6, 0.2])
    x, a = np.eye(3, 4), 0.3
    outputs, weights = trained(x, y, a, w, LayerRates(first=2.0, second=0.5))
    path = followed(TIMES, x, y, a * w, 2 * a**2 - 0.5 * w @ w, rates=LayerRates(first=2.0, second=0.5))
    assert outputs[-1] < 0 < outputs[0]
    np.testing.assert_array_equal(path.reversed, outputs < 0)
    np.testing.assert_allclose(path.coefficients, outputs[:, None] * weights, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-9, 1e-4, 1e4])
def test_starts_of_every_size_keep_their_digits(scale):
    """A balanced start leaves the saddle at zero exponentially; a large one is nearly linear regression."""
    x, y, w = np.eye(3, 4), np.array([1.0, -0.5, 0.3]), np.array([1.0, 0.5, -0.6, 0.2])
    a, w = (scale, 0.1 * w / scale) if scale > 1 else (scale * np.linalg.norm(w), scale * w)
    times = TIMES * (10 / scale**2 if scale > 1 else 12)
    outputs, weights = trained(x, y, a, w, LayerRates(), times)
    path = followed(times, x, y, a * w, a**2 - w @ w if scale > 1 else 0.0)
    np.testing.assert_allclose(path.coefficients, outputs[:, None] * weights, atol=1e-7)


@pytest.mark.slow
def test_a_start_far_below_the_imbalance_keeps_its_digits():
    start = np.array([3e-40, -4e-40, 0.0, 0.0])
    path = followed(TIMES, INPUTS, TARGETS, start, -5.0)
    np.testing.assert_allclose(path.coefficients[0], start, rtol=1e-14)
    # The start is forgotten but for its direction, as long as that is not the target's.
    other = followed(TIMES, INPUTS, TARGETS, 1e20 * start, -5.0)
    np.testing.assert_allclose(path.coefficients[5:], other.coefficients[5:], atol=1e-9)


@pytest.mark.slow
def test_a_zero_start_moves_when_the_imbalance_is_positive():
    outputs, weights = trained(INPUTS, TARGETS, 0.8, np.zeros(4), LayerRates())
    path = followed(TIMES, INPUTS, TARGETS, np.zeros(4), 0.64)
    np.testing.assert_allclose(path.coefficients, outputs[:, None] * weights, atol=1e-8)


@pytest.mark.slow
def test_starts_are_batched_and_times_may_come_in_any_order_or_alone():
    starts, imbalances = np.stack([START, -2 * START, START]), np.array([-0.3, 0.0, 0.7])
    several = jax.device_get(function_space_flow(TIMES, INPUTS, TARGETS, starts, imbalances))
    shuffled = jax.device_get(function_space_flow(TIMES[::-1], INPUTS, TARGETS[:, None], starts, imbalances))
    np.testing.assert_array_equal(several.coefficients, shuffled.coefficients[:, ::-1])
    alone = jax.device_get(function_space_flow(float(TIMES[7]), INPUTS, TARGETS, starts[1], float(imbalances[1])))
    assert (alone.coefficients.shape, alone.loss.shape) == ((4,), ())
    # The last step before the end is another one.
    np.testing.assert_allclose(several.coefficients[1, 7], alone.coefficients, atol=1e-8)


@pytest.mark.slow
def test_its_slope_in_the_imbalance_is_that_between_neighbours():
    @jit
    @jax.value_and_grad
    def loss(imbalance):
        return function_space_flow(1.0, INPUTS, TARGETS, START, imbalance).loss

    step = 1e-4
    (above, _), (below, _), (_, slope) = (loss(np.asarray(0.3 + change)) for change in (step, -step, 0.0))
    # Central differences of a function known to 1e-11.
    np.testing.assert_allclose(slope, (above - below) / (2 * step), rtol=1e-5)


def test_golden_preconditioner():
    matrix = preconditioner(START, -0.05)
    np.testing.assert_allclose(matrix[0, :2], [0.34, -0.06], rtol=0, atol=1e-12)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(
    a=st.floats(-3, 3).filter(lambda a: abs(a) > 1e-3),
    w=st.lists(st.floats(-3, 3), min_size=3, max_size=3).filter(lambda w: np.linalg.norm(w) > 1e-3),
    rates=st.tuples(st.floats(0.1, 10), st.floats(0.1, 10)),
)
def test_the_preconditioner_is_that_of_the_weights(a, w, rates):
    w = np.array(w)
    imbalance = rates[1] * a**2 - rates[0] * w @ w
    matrix = preconditioner(a * w, imbalance, rates=LayerRates(first=rates[1], second=rates[0]))
    expected = rates[1] * a**2 * np.eye(3) + rates[0] * np.outer(w, w)
    # The imbalance itself is a difference, rounded to 1e-16 of the larger part.
    np.testing.assert_allclose(matrix, expected, rtol=0, atol=1e-12 * np.linalg.norm(expected))


def test_the_preconditioner_keeps_its_digits_at_both_extremes():
    beta = np.array([3e-6, 4e-6])
    size, direction = 5e-6, np.outer([0.6, 0.8], [0.6, 0.8])
    # The smaller part is κ²‖β‖²/|δ| to leading order, far below the rounding of |δ|.
    upstream, downstream = preconditioner(beta, 1e6), preconditioner(beta, -1e6)
    np.testing.assert_allclose(upstream, 1e6 * np.eye(2), rtol=1e-15, atol=1e-16)
    across = np.array([0.8, -0.6])
    np.testing.assert_allclose(downstream, 1e6 * direction, rtol=1e-12)
    np.testing.assert_allclose(preconditioner(np.array([size, 0.0]), -1e6)[1, 1], size**2 / 1e6, rtol=1e-12)
    assert abs(across @ np.asarray(downstream) @ across) < 1e-9


@pytest.mark.slow
def test_the_preconditioner_of_the_zero_map():
    np.testing.assert_array_equal(preconditioner(np.zeros(2), 0.7), 0.7 * np.eye(2))
    np.testing.assert_array_equal(jit(jax.jacobian(preconditioner))(np.zeros(2), 0.7), np.zeros((2, 2, 2)))
    for imbalance in (0.0, -0.7):
        with pytest.raises(InputError) as refusal:
            preconditioner(np.zeros(2), imbalance)
        assert refusal.value.argument == "coefficients"
        assert np.isnan(jit(preconditioner)(np.zeros(2), imbalance)).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"times": [-1.0]}, "times"),
        ({"times": [[1.0]]}, "times"),
        ({"times": 1e9}, "times"),
        ({"inputs": np.ones(4)}, "inputs"),
        ({"inputs": INPUTS * np.nan}, "inputs"),
        ({"targets": np.ones(2)}, "targets"),
        ({"targets": np.ones((3, 2))}, "targets"),
        ({"coefficients": np.ones(3)}, "coefficients"),
        ({"coefficients": 1.0}, "coefficients"),
        ({"coefficients": np.zeros(4)}, "coefficients"),
        ({"imbalance": np.inf}, "imbalance"),
        ({"rates": LayerRates(second=0.0)}, "rates.second"),
        ({"rates": LayerRates(first=-1.0)}, "rates.first"),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_bad_input_is_refused_by_name(change, argument):
    good = {"times": 1.0, "inputs": INPUTS, "targets": TARGETS, "coefficients": START, "imbalance": -0.05}
    with pytest.raises(InputError) as refusal:
        function_space_flow(**good | change)
    assert refusal.value.argument == argument


def test_values_outside_the_domain_give_nan_where_they_are_traced():
    times = np.append(TIMES[:-1], -1.0)
    inside = followed(times, INPUTS, TARGETS, START, -0.1)
    np.testing.assert_array_equal(np.isfinite(inside.loss), times >= 0)
    np.testing.assert_array_equal(np.isfinite(inside.coefficients), np.tile(times[:, None] >= 0, 4))
    for start, rate in ((np.zeros(4), 1.0), (START, 0.0)):
        path = followed(TIMES, INPUTS, TARGETS, start, -0.1, rates=LayerRates(second=rate))
        assert np.isnan(path.loss).all()
        assert np.isnan(path.coefficients).all()
    matrix = jit(lambda delta, rate: preconditioner(START, delta, rates=LayerRates(first=rate)))
    assert np.isfinite(matrix(-0.1, 1.0)).all()
    assert np.isnan(matrix(np.inf, 1.0)).all()
    assert np.isnan(matrix(-0.1, -1.0)).all()

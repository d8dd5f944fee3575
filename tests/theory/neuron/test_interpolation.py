from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.linalg import null_space

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.theory import LayerRates
from dynascope.theory.neuron.function_space import preconditioner
from dynascope.theory.neuron.interpolation import implicit_bias_objective, interpolator

# The ledger's golden numbers.
INPUTS = np.array([[1.0, 2.0, 0.0, 1.0], [0.0, 1.0, -1.0, 1.0]])
TARGETS = np.array([1.0, 2.0])
OUTPUT, WEIGHTS, IMBALANCE = 0.5, np.array([0.3, -0.2, 0.4, 0.1]), -0.05
CURVATURE = jit(jax.hessian(implicit_bias_objective))
SLOPE = jit(jax.grad(implicit_bias_objective))


@jit
def several_ends(x, y, outputs, starts, rate):
    """Where neurons end, and the slope of the squared length of each end in its output weight, as one program."""

    def power(outputs):
        end = interpolator(x, y[:, None], outputs, starts, rates=LayerRates(second=rate))
        return jnp.sum(end.coefficients**2), end

    slope, end = jax.grad(power, has_aux=True)(outputs)
    return slope, end


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def trained(x, y, a, w, rates=LayerRates(), time=1000.0):
    """The weights after training, a and w."""

    def velocity(_, theta):
        gradient = x.T @ (x @ (theta[0] * theta[1:]) - y)
        return np.append(-rates.second * theta[1:] @ gradient, -rates.first * theta[0] * gradient)

    end = solve_ivp(velocity, (0, time), np.append(a, w), method="LSODA", rtol=1e-12, atol=1e-14).y[:, -1]
    return end[0], end[1:]


def drawn(seed, *, rank=2, samples=3, dimension=4):
    """Inputs of a given rank with singular values between one and two, targets in their range, and a start."""
    draw = np.random.default_rng(seed)
    left, _ = np.linalg.qr(draw.normal(size=(samples, rank)))
    right, _ = np.linalg.qr(draw.normal(size=(dimension, rank)))
    x = left * draw.uniform(1, 2, size=rank) @ right.T
    y = x @ draw.normal(size=dimension)
    w = draw.normal(size=dimension)
    # Numbers of Python, for which there is one program.
    second, first = np.exp(0.5 * draw.normal(size=2)).tolist()
    return x, y, float(draw.normal() * draw.choice([0.1, 1.0])), w, LayerRates(first, second)


@pytest.mark.slow
def test_golden_interpolator():
    end = interpolator(INPUTS, TARGETS, OUTPUT, WEIGHTS)
    golden = [-0.179373261549, 0.102393225657, -0.923019964108, 0.974586810234]
    np.testing.assert_allclose(end.coefficients, golden, rtol=0, atol=1e-9)
    np.testing.assert_allclose(end.output_weight, 1.15470053838, rtol=0, atol=1e-9)
    assert (str(end.status), end.warnings, bool(end.sign_changed)) == ("converges", (), False)


def test_golden_objective():
    start = OUTPUT * WEIGHTS
    psi = 0.774596669241
    objective = implicit_bias_objective(start, start, IMBALANCE)
    np.testing.assert_allclose(objective, 0.153206469257 - psi * np.linalg.norm(start), rtol=0, atol=1e-9)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_it_is_where_training_ends(seed):
    x, y, a, w, rates = drawn(seed)
    end = interpolator(x, y, a, w, rates=rates)
    output, weights = trained(x, y, a, w, rates=rates)
    # A start close to the stable manifold of the saddle takes longer than the training here.
    if np.linalg.norm(x @ (output * weights) - y) < 1e-8:
        np.testing.assert_allclose(end.coefficients, output * weights, rtol=0, atol=1e-7)
        np.testing.assert_allclose(end.output_weight, output, rtol=0, atol=1e-7)
        assert bool(end.sign_changed) == (output * a < 0)
        assert str(end.status) == "converges"


@pytest.mark.slow
@pytest.mark.parametrize("singular", [[1.0, 1.0, 1.0], [1.0, 1.5, 2.0]], ids=["whitened", "general"])
@pytest.mark.parametrize("a", [0.3, -0.3, 0.0])
def test_the_output_weight_ends_with_the_sign_that_training_gives_it(a, singular):
    """Downstream starts that point away from the target, by the closed form and by following the flow."""
    y, w = np.array([2.0, -1.0, 1.5]), np.array([-1.0, 0.5, -0.6])
    x, w = np.diag(singular) @ np.eye(3, 4), np.append(w, 0.4)
    output, weights = trained(x, y, a, w)
    end = interpolator(x, y, a, w)
    assert output < 0
    assert bool(end.sign_changed) == (a > 0)
    np.testing.assert_allclose(end.output_weight, output, rtol=0, atol=1e-9)
    np.testing.assert_allclose(end.coefficients, output * weights, rtol=0, atol=1e-9)


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_it_minimises_the_objective_among_the_maps_that_fit(seed):
    x, y, a, w, rates = drawn(seed)
    end = interpolator(x, y, a, w, rates=rates)
    imbalance = rates.first * a**2 - rates.second * w @ w
    start = a * w * (-1 if end.sign_changed else 1)

    def objective(beta):
        return implicit_bias_objective(beta, start, imbalance, rates=rates)

    beta = np.asarray(end.coefficients)
    unseen = null_space(x)
    np.testing.assert_allclose(x @ beta, y, atol=1e-12)
    # The gradient along the unseen directions vanishes up to the rounding of its parts.
    slope = SLOPE(beta, start, imbalance, rates=rates)
    np.testing.assert_allclose(slope @ unseen, 0, atol=1e-10 * float(np.linalg.norm(slope)))
    for step in np.random.default_rng(seed).normal(size=(3, unseen.shape[1])):
        assert objective(beta + unseen @ step) > objective(beta)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(
    beta=st.lists(st.floats(-2, 2), min_size=3, max_size=3).filter(lambda beta: np.linalg.norm(beta) > 0.05),
    imbalance=st.floats(-3, 3),
    rates=st.tuples(st.floats(0.2, 5), st.floats(0.2, 5)),
)
def test_training_is_mirror_descent_on_the_potential_in_another_time(beta, imbalance, rates):
    """∇²Ψ M = κ² √(R + δ) I; a linear term leaves the second derivatives as they are."""
    beta, rates = np.array(beta), LayerRates(first=rates[1], second=rates[0])
    kappa_square = rates.second * rates.first
    curvature = CURVATURE(beta, np.ones(3), imbalance, rates=rates)
    radius = np.sqrt(imbalance**2 + 4 * kappa_square * beta @ beta)
    clock = kappa_square * np.sqrt(radius + imbalance)
    product = np.asarray(curvature) @ np.asarray(preconditioner(beta, imbalance, rates=rates))
    # The second derivatives of √(R + δ) lose digits where R is close to |δ|.
    np.testing.assert_allclose(product / clock, np.eye(3), rtol=0, atol=1e-7)


@pytest.mark.parametrize("size", [1e-160, 1e-3])
@pytest.mark.parametrize("imbalance", [2.0, 0.0, -2.0])
def test_the_objective_at_and_near_zero(imbalance, size):
    beta = np.array([size, 0.0])
    radius = np.hypot(imbalance, 2 * size)
    expected = (radius - 2 * imbalance) * np.sqrt(radius + imbalance) / 3
    if imbalance < 0:
        # √(R + δ) = 2‖β‖/√(R − δ), where the difference itself has no digits left.
        expected = (radius - 2 * imbalance) * 2 * size / np.sqrt(radius - imbalance) / 3
    across = implicit_bias_objective(beta, np.array([0.0, 1.0]), imbalance)
    np.testing.assert_allclose(across, expected, rtol=1e-12)
    flat = implicit_bias_objective(np.zeros(2), np.array([0.0, 1.0]), imbalance)
    np.testing.assert_allclose(flat, -(max(imbalance, 0) ** 1.5) * 2**0.5 / 3)


def test_limits_of_the_objective():
    """Far upstream (δ ≫ 0) the squared distance from the start, far downstream the length along it."""
    beta, start = np.array([0.6, -0.3, 0.2]), np.array([0.1, 0.2, -0.2])
    other = np.array([0.4, 0.5, -0.1])

    def gap(imbalance):
        values = implicit_bias_objective(np.stack([beta, other]), start, imbalance)
        return float(values[0] - values[1])

    def square(beta):
        return (beta - start) @ (beta - start)

    def length(beta):
        return np.linalg.norm(beta) - start @ beta / np.linalg.norm(start)

    # What is left out is of relative order (‖β‖/δ)², and the difference of large numbers costs six digits.
    np.testing.assert_allclose(gap(1e3) * np.sqrt(2e3), square(beta) - square(other), rtol=1e-5)
    np.testing.assert_allclose(gap(-1e3) / np.sqrt(2e3), length(beta) - length(other), rtol=1e-5)


@pytest.mark.slow
def test_the_extremes_keep_the_start_and_forget_it():
    least = np.linalg.pinv(INPUTS) @ TARGETS
    unseen = np.eye(4) - np.linalg.pinv(INPUTS) @ INPUTS
    lazy = interpolator(INPUTS, TARGETS, 1e3, 1e-3 * WEIGHTS)
    np.testing.assert_allclose(lazy.coefficients, least + unseen @ WEIGHTS, atol=1e-5)
    rich = interpolator(INPUTS, TARGETS, 1e-6, 1e-6 * WEIGHTS)
    np.testing.assert_allclose(rich.coefficients, least, atol=1e-5)


@pytest.mark.slow
def test_targets_out_of_reach_are_fitted_in_least_squares_with_a_warning():
    x, y, a, w, rates = drawn(3)
    noisy = y + 0.5 * null_space(x.T)[:, 0]
    end = interpolator(x, noisy, a, w, rates=rates)
    assert "least-squares" in end.warnings[0]
    np.testing.assert_allclose(end.unexplained, 0.25 / 3, rtol=1e-12)
    output, weights = trained(x, noisy, a, w, rates=rates)
    np.testing.assert_allclose(end.coefficients, output * weights, atol=1e-7)
    np.testing.assert_allclose(end.coefficients, interpolator(x, y, a, w, rates=rates).coefficients, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("a", "w", "y", "status"),
    [
        (0.0, [0.0, 0.0], [1.0, 0.0], "static"),
        (0.0, [0.0, 1.0], [1.0, 0.0], "static"),
        (-1.0, [1.0, 0.0], [1.0, 0.0], "saddle"),
        (1.0, [1.0, 0.0], [0.0, 0.0], "power law"),
        (1.0, [2.0, 0.0], [0.0, 0.0], "converges"),
        (2.0, [0.5, 0.0], [1.0, 0.0], "static"),
        (0.0, [1.0, 0.0], [1.0, 0.0], "converges"),
    ],
)
def test_degenerate_starts_say_what_becomes_of_them(a, w, y, status):
    y, w = np.append(y, 0.0), np.append(w, [0.0, 0.0])
    end = interpolator(np.eye(3, 4), y, a, w)
    assert str(end.status) == status
    learned = status == "converges" or a * w[0] == 1
    np.testing.assert_allclose(end.coefficients, np.append(y, 0.0) if learned else np.zeros(4), atol=1e-12)
    assert bool(end.warnings) == (not learned and any(y))


@pytest.mark.slow
def test_starts_are_batched_and_the_function_can_be_compiled():
    x, y, _, w, _ = drawn(5)
    outputs, starts = np.array([-0.5, 0.0, 2.0]), np.stack([w, w, -w])
    _, several = several_ends(x, y, outputs, starts, 1.0)
    coefficients = np.asarray(several.coefficients)
    for i in range(3):
        alone = interpolator(x, y, float(outputs[i]), starts[i])
        np.testing.assert_allclose(coefficients[i], alone.coefficients, rtol=0, atol=1e-12)


@pytest.mark.slow
def test_it_is_differentiable():
    step = 1e-5
    # A sample of zeros changes nothing.
    x, y, starts = np.append(INPUTS, np.zeros((1, 4)), axis=0), np.append(TARGETS, 0.0), np.tile(WEIGHTS, (3, 1))
    slopes, ends = several_ends(x, y, 2 + step * np.array([-1.0, 0.0, 1.0]), starts, 1.0)
    power = np.sum(np.asarray(ends.coefficients) ** 2, axis=1)
    # The error of central differences is of order step².
    np.testing.assert_allclose(np.asarray(slopes)[1], (power[2] - power[0]) / (2 * step), rtol=1e-8)


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"inputs": np.ones(4)}, "inputs"),
        ({"targets": [1.0, np.nan]}, "targets"),
        ({"targets": np.ones(3)}, "targets"),
        ({"initial_output": np.inf}, "initial_output"),
        ({"initial_weights": np.ones(3)}, "initial_weights"),
        ({"rates": LayerRates(second=0.0)}, "rates.second"),
        ({"rates": LayerRates(first=[1.0, -1.0])}, "rates.first"),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_bad_input_of_the_interpolator_is_refused_by_name(change, argument):
    good = {"inputs": INPUTS, "targets": TARGETS, "initial_output": OUTPUT, "initial_weights": WEIGHTS}
    with pytest.raises(InputError) as refusal:
        interpolator(**good | change)
    assert refusal.value.argument == argument


@pytest.mark.parametrize("imbalance", [0.0, -1.0])
@pytest.mark.usefixtures("unchecked_types")
def test_the_objective_needs_the_direction_of_the_start(imbalance):
    with pytest.raises(InputError) as refusal:
        implicit_bias_objective(np.ones(2), np.zeros(2), imbalance)
    assert refusal.value.argument == "initial_coefficients"
    assert np.isfinite(implicit_bias_objective(np.ones(2), np.zeros(2), 1.0))
    with pytest.raises(InputError):
        implicit_bias_objective(np.ones(2), np.ones(3), 1.0)


@pytest.mark.slow
def test_values_outside_the_domain_give_nan_where_they_are_traced():
    x, y, _, w, _ = drawn(5)

    def end(y, a, rate):
        return several_ends(x, y, np.full(3, a), np.tile(w, (3, 1)), rate)[1]

    assert np.isfinite(end(y, 0.5, 1.0).coefficients).all()
    for outside in ((y, np.nan, 1.0), (y, 0.5, -1.0)):
        found = end(*outside)
        assert np.isnan(found.coefficients).all()
        assert np.isnan(found.output_weight).all()
        assert np.isfinite(found.fitted_power).all()
    assert np.isnan(end(y * np.inf, 0.5, 1.0).fitted_power).all()
    w = w[:2]
    objective = jit(lambda delta, rate: implicit_bias_objective(w, w, delta, rates=LayerRates(second=rate)))
    assert np.isfinite(objective(-0.1, 1.0))
    assert np.isnan(objective(-0.1, 0.0))
    assert np.isnan(objective(np.inf, 1.0))

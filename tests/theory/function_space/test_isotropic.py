from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.theory import LayerRates
from dynascope.theory.function_space import isotropic_flow, isotropic_preconditioner, preconditioner_matrix
from dynascope.theory.function_space.isotropic import trace_drift

GOLDEN = np.array([[1.0, 0.2], [0.0, -0.5], [0.3, 0.4]])
TIMES = np.linspace(0.0, 6.0, 13)
FIRST_RATE, SECOND_RATE = 0.7, 1.6
KAPPA = float(np.sqrt(FIRST_RATE * SECOND_RATE))  # a number of Python, for which there is one program


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def isotropic_layers(beta, imbalance, width, seed=0):
    """Layers of the map with η₁ A Aᵀ − η₂ Wᵀ W = δ I."""
    left, sizes, right = np.linalg.svd(beta)
    half, ratio = abs(imbalance) / (2 * KAPPA), (FIRST_RATE / SECOND_RATE) ** 0.25
    if imbalance == 0:
        modes = len(sizes)
        hidden = np.linalg.qr(np.random.default_rng(seed).normal(size=(width, modes)))[0]
        first = (left[:, :modes] * np.sqrt(sizes)) @ hidden.T
        second = (hidden * np.sqrt(sizes)) @ right[:modes]
    else:
        large = np.sqrt(np.hypot(np.pad(sizes, (0, width - len(sizes))), half) + half)
        basis = right.T if imbalance > 0 else left
        square = (basis * large) @ basis.T
        other = beta @ np.linalg.inv(square) if imbalance > 0 else np.linalg.inv(square) @ beta
        first, second = (other, square) if imbalance > 0 else (square, other)
    return first * ratio, second / ratio


def trained(first, second, x, y):
    """The map of the weights themselves over time."""
    split = first.size

    def velocity(_, theta):
        w, a = theta[:split].reshape(first.shape), theta[split:].reshape(second.shape)
        gradient = x.T @ (x @ w @ a - y) / len(x)
        return np.concatenate([-FIRST_RATE * (gradient @ a.T).ravel(), -SECOND_RATE * (w.T @ gradient).ravel()])

    start = np.concatenate([first.ravel(), second.ravel()])
    path = solve_ivp(velocity, (0, TIMES[-1]), start, method="DOP853", t_eval=TIMES, rtol=1e-12, atol=1e-14).y.T
    return path[:, :split].reshape(-1, *first.shape) @ path[:, split:].reshape(-1, *second.shape)


@pytest.mark.parametrize(("imbalance", "width"), [(0.5, 2), (-0.5, 3)])
def test_it_gives_the_golden_numbers(imbalance, width):
    matrix = isotropic_preconditioner(GOLDEN, imbalance, width)
    rows = [2.479338067215, 1.535314590466, 1.756973982689, 2.113624182048, 1.169600705299, 1.391260097522]
    np.testing.assert_allclose(matrix.sum(axis=1), rows, atol=1e-9)
    values = [0.866402190165, 1.232804380331, 1.383599726517, 1.750001916682, 1.750001916682, 2.267199453034]
    np.testing.assert_allclose(np.linalg.eigvalsh(matrix), values, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("imbalance", "width"), [(0.9, 2), (-0.9, 3), (0.0, 2), (0.0, 5)])
@pytest.mark.parametrize("white", [True, False])
def test_the_function_moves_as_that_of_the_trained_weights(imbalance, width, white):
    draw = np.random.default_rng(width)
    x = np.linalg.qr(draw.normal(size=(6, 3)))[0] * np.sqrt(6) * (1.0 if white else np.array([1.0, 0.7, 0.0]))
    y, beta = draw.normal(size=(6, 2)), 0.4 * draw.normal(size=(3, 2))
    first, second = isotropic_layers(beta, imbalance, width)
    matrix = preconditioner_matrix(first, second, rates=LayerRates(FIRST_RATE, SECOND_RATE))
    # Inverting the square layer costs a few digits.
    np.testing.assert_allclose(isotropic_preconditioner(beta, imbalance, width, rate=KAPPA), matrix, atol=1e-12)
    found = isotropic_flow(TIMES, x, y, beta, imbalance, width, rate=KAPPA)
    # Steps of 1e-10, interpolated between them.
    np.testing.assert_allclose(found.coefficients, trained(first, second, x, y), rtol=0, atol=1e-7)
    residual = found.coefficients.swapaxes(-1, -2) @ x.T - y.T
    np.testing.assert_allclose(found.loss, np.sum(np.asarray(residual) ** 2, axis=(1, 2)) / 12, rtol=1e-9)


def test_null_directions_keep_half_the_imbalance_however_small_the_map():
    matrix = isotropic_preconditioner(1e-170 * GOLDEN, -3.0, 3)
    np.testing.assert_allclose(matrix, 3.0 * np.eye(6), rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize(("imbalance", "width"), [(0.5, 1), (0.5, 3), (-0.5, 2), (-0.5, 4)])
def test_widths_for_which_the_function_does_not_tell_its_motion_are_refused(imbalance, width):
    with pytest.raises(InputError) as caught:
        isotropic_preconditioner(GOLDEN, imbalance, width)
    assert caught.value.argument == "width"
    with pytest.raises(InputError):
        isotropic_flow(TIMES, np.eye(3), np.ones((3, 2)), GOLDEN, imbalance, width)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"coefficients": np.ones(3)}, "coefficients"),
        ({"coefficients": np.full((3, 2), np.nan)}, "coefficients"),
        ({"times": [0.0, -1.0]}, "times"),
        ({"times": [1.0, 1.0]}, "times"),
        ({"inputs": np.eye(2)}, "inputs"),
        ({"targets": np.ones((3, 1))}, "targets"),
        ({"rate": 0.0}, "rate"),
        ({"coefficients": np.zeros((3, 2)), "imbalance": 0.0}, "coefficients"),
    ],
)
def test_bad_input_is_named(change, argument):
    good = {"coefficients": GOLDEN, "imbalance": 0.5, "width": 2, "times": TIMES, "inputs": np.eye(3)}
    with pytest.raises(InputError) as caught:
        isotropic_flow(**good | {"targets": np.ones((3, 2))} | change)
    assert caught.value.argument == argument


@pytest.mark.slow
def test_balanced_layers_never_learn_more_than_the_rank_of_their_start():
    times = np.array([0.0, 5.0, 25.0])
    target = np.diag([2.0, 1.5, 1.0])
    inputs = np.eye(3) * 3**0.5
    start = 0.3 * np.outer([1.0, 0.4, 0.2], [0.8, 0.5, -0.3])
    path = isotropic_flow(times, inputs, inputs @ target, start, 0.0, 1).coefficients
    sizes = np.linalg.svd(path[-1])[1]
    assert sizes[0] == pytest.approx(2.0, abs=1e-6)
    assert np.all(sizes[1:] < 1e-9)
    with pytest.raises(InputError, match="rank"):
        isotropic_flow(times, inputs, inputs @ target, np.eye(3), 0.0, 1)


@pytest.mark.slow
def test_the_zero_map_leaves_by_the_imbalance():
    inputs, target = np.eye(6, 3) * 6**0.5, np.array([[1.0, 0.0], [0.0, 0.5], [0.0, 0.0]])
    for delta, width in ((0.5, 2), (-0.5, 3)):
        path = isotropic_flow(np.linspace(0, 60, 13), inputs, inputs @ target, np.zeros((3, 2)), delta, width)
        np.testing.assert_allclose(np.asarray(path.coefficients)[-1], target, atol=1e-8)


@pytest.mark.parametrize("width", [0, -1])
def test_a_width_that_is_none_is_refused(width):
    with pytest.raises(InputError, match="width"):
        isotropic_preconditioner(np.eye(2), 0.0, width)


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked_types")
def test_values_outside_the_domain_give_nan_where_they_are_traced():
    matrix = jit(lambda beta, delta, rate: isotropic_preconditioner(beta, delta, 2, rate=rate))
    assert np.isfinite(matrix(GOLDEN, 0.5, 1.0)).all()
    # Two hidden neurons, three inputs, two outputs: the flow in function space is closed for a positive imbalance only.
    for outside in ((GOLDEN, -0.5, 1.0), (GOLDEN, 0.5, 0.0), (GOLDEN * np.inf, 0.5, 1.0)):
        assert np.isnan(matrix(*outside)).all()
    flow = jit(lambda times, beta, delta: isotropic_flow(times, np.eye(3), np.ones((3, 2)), beta, delta, 2))
    assert np.isfinite(flow(np.array([0.0, 1.0]), GOLDEN, 0.5).loss).all()
    for outside in ((TIMES[:2] * 0, GOLDEN, 0.5), (np.array([0.0, 1.0]), np.zeros((3, 2)), 0.0)):
        assert all(np.isnan(each).all() for each in flow(*outside))


@pytest.mark.usefixtures("unchecked_types")
def test_a_map_of_a_rank_that_the_layers_cannot_have_gives_nan_where_it_is_traced():
    matrix = jit(lambda beta: isotropic_preconditioner(beta, 0.0, 1))
    assert np.isfinite(matrix(np.ones((2, 2)))).all()
    assert np.isnan(matrix(np.eye(2))).all()


def test_small_steps_of_descent_add_to_the_trace_what_the_path_says():
    # One input, one output: f = b, layers √((b² + δ²/4)^½ ± δ/2).
    delta, step, target = 0.6, 1e-4, 1.0
    second = np.sqrt(np.hypot(0.1, delta / 2) + delta / 2)
    first = 0.1 / second
    trace = second**2 - first**2
    path = []
    for _ in range(30_000):
        missed = first * second - target
        path.append((first * second, missed))
        first, second = first - step * missed * second, second - step * missed * first
    beta, gradients = np.array(path)[:, :, None, None].swapaxes(0, 1)
    drift = trace_drift(step * np.arange(len(beta)), beta, gradients, delta)
    np.testing.assert_allclose((second**2 - first**2 - trace) / step, drift, rtol=1e-3)

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.networks.balanced_linear import balanced_linear
from dynascope.theory import LayerRates
from dynascope.theory.balanced import balanced_limit, gram, product
from dynascope.theory.balanced.convergence import slowest_rate

TURN = np.array([[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]])


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


def test_golden_sharpness():
    first, second = np.array([[1.0, 0, 0], [0, 0.5, 0]]).T, (TURN @ np.diag([2**0.5, 1.25**0.5])).T
    end = balanced_limit(first, second, np.array([[1, 0.5, -0.25], [0, -1, 0.5]]).T)
    assert end.sharpness == pytest.approx(2.93736668622, abs=1e-10)
    assert end.largest_stable_step == pytest.approx(2 / end.sharpness)
    assert end.status == "converges"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "balance"), [((3, 2, 4), 0.7), ((4, 2, 2), -1.3), ((3, 8, 2), 0.0), ((4, 2, 3), 0.0), ((3, 1, 3), 0.5)]
)
def test_it_is_where_the_solution_goes(shape, balance):
    network = balanced_linear(*shape, balance=balance, scale=0.7, seed=5)
    target = np.random.default_rng(1).normal(size=(shape[0], shape[2]))
    end = balanced_limit(network.first, network.second, target)
    late = jax.device_get(gram(network.first, network.second, target, np.array([300.0])))
    for mine, theirs in zip((end.first, end.product, end.second), late, strict=False):
        np.testing.assert_allclose(mine, theirs[0], atol=1e-9)
    # The best map of the rank that the hidden layer has.
    left, sizes, right = np.linalg.svd(target)
    kept = min(shape)
    np.testing.assert_allclose(end.product, (left[:, :kept] * sizes[:kept]) @ right[:kept], atol=1e-9)


@pytest.mark.slow
def test_errors_decay_at_the_slowest_rate():
    network = balanced_linear(3, 3, 3, balance=0.4, scale=0.5, seed=6)
    target = np.diag([2.0, 1.2, 0.8])
    end = balanced_limit(network.first, network.second, target)
    errors = [
        np.linalg.norm(p - target) for p in gram(network.first, network.second, target, np.array([8.0, 9.0])).product
    ]
    # 2 √(λ²/4 + s²) of the weakest mode; other modes have died out to 1e-3 of it.
    assert end.decay_rates[0] == pytest.approx(2 * np.sqrt(0.04 + 0.64), abs=1e-9)
    assert np.log(errors[0] / errors[1]) == pytest.approx(end.decay_rates[0], rel=5e-3)


@pytest.mark.parametrize("rates", [(1.0, 1.0), (0.5, 3.0)])
def test_descent_is_stable_up_to_the_largest_step(rates):
    ratio = (rates[0] / rates[1]) ** 0.25
    network = balanced_linear(3, 2, 2, balance=0.9, scale=0.8, seed=7)
    layers = [network.first * ratio, network.second / ratio]
    target = np.random.default_rng(2).normal(size=(3, 2))
    end = balanced_limit(*layers, target, rates=LayerRates(*rates))

    def distance(step):
        factor = np.linalg.svd(np.block([[end.first, end.product], [end.product.T, end.second]]))
        rows = factor[0][:, :2] * np.sqrt(factor[1][:2])
        w1, w2 = rows[:3] + 1e-6, rows[3:].T - 2e-6
        for _ in range(400):
            error = w1 @ w2 - target
            w1, w2 = w1 - step * rates[0] * error @ w2.T, w2 - step * rates[1] * w1.T @ error
        return np.linalg.norm(w1 @ w2 - target)

    assert distance(0.97 * end.largest_stable_step) < 1e-9
    assert not distance(1.03 * end.largest_stable_step) < 1e-3


def test_the_sharpness_is_that_of_the_hessian_also_when_the_map_is_out_of_reach():
    network = balanced_linear(3, 1, 3, balance=0.3, scale=0.8, seed=8)
    target = np.diag([2.0, 1.5, 1.0])
    end = balanced_limit(network.first, network.second, target)
    first = end.first[:, 0] / np.sqrt(end.first[0, 0])
    second = end.product[0] / first[0]
    weights = np.concatenate([first, second])

    def excess(vector):
        return jnp.sum((jnp.outer(vector[:3], vector[3:]) - target) ** 2) / 2

    assert end.sharpness == pytest.approx(np.linalg.eigvalsh(jit(jax.hessian(excess))(weights))[-1], rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_the_sign_of_the_determinant_is_an_obstruction_of_exact_balance(seed):
    network = balanced_linear(2, 3, 2, scale=0.7, seed=seed)
    target = np.random.default_rng(seed + 10).normal(size=(2, 2))
    end = balanced_limit(network.first, network.second, target)
    crossed = np.linalg.det(network.first @ network.second) * np.linalg.det(target) < 0
    assert end.status == ("saddle" if crossed else "converges")
    if crossed:
        assert end.loss == pytest.approx(np.linalg.svd(target)[1][-1] ** 2 / 2, rel=1e-9)
        assert end.reachability < 1e-10


@pytest.mark.slow
def test_modes_without_a_target_decay_as_a_power():
    network = balanced_linear(2, 2, 2, scale=0.7, seed=1)
    target = np.outer([1.0, 0.0], [1.0, 0.0])
    end = balanced_limit(network.first, network.second, target)
    assert end.status == "power law"
    late = gram(network.first, network.second, target, np.array([200.0, 400.0])).product
    errors = [np.linalg.norm(each - end.product) for each in late]
    assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.02)


def test_the_imbalance_of_an_approximate_limit_is_shown():
    first, second = np.array([[1.0, 0.2], [0.0, 0.7]]), np.array([[1.1, 0.0], [0.4, 0.5]])
    with pytest.raises(InputError, match="approximate"):
        balanced_limit(first, second, np.eye(2))
    with pytest.warns(UserWarning, match="differs from λ I by"):
        found = balanced_limit(first, second, np.eye(2), approximate=True).balance
    difference = second @ second.T - first.T @ first
    mean = np.trace(difference) / 2
    size = np.sum(first**2) + np.sum(second**2)
    assert found.value == pytest.approx(mean, abs=1e-14)
    assert found.error == pytest.approx(np.linalg.norm(difference - mean * np.eye(2)) / size, rel=1e-12)


def test_the_sharpness_of_layers_too_wide_for_a_hessian_takes_no_time():
    network = balanced_linear(300, 300, 300, balance=0.6, seed=1)
    end = balanced_limit(network.first, network.second, np.eye(300))
    # The Hessian has the side 180 000; its largest eigenvalue is 2ω, as in each mode.
    assert end.sharpness == pytest.approx(2 * np.hypot(0.3, 1), rel=1e-9)


@pytest.mark.slow
def test_a_start_at_rest_stays():
    end = balanced_limit(np.zeros((2, 2)), np.zeros((2, 2)), np.eye(2))
    assert end.status == "static"
    assert end.loss == pytest.approx(1.0)


@pytest.mark.parametrize(("inputs", "outputs"), [(3, 3), (4, 2), (2, 4)])
def test_networks_converge_at_least_at_the_slowest_rate(inputs, outputs):
    balance, strengths = np.array([0.6]), np.array([2.0, 1.0, 1.0])[: min(inputs, outputs)]
    target = np.zeros((inputs, outputs))
    np.fill_diagonal(target, strengths)
    network = balanced_linear(inputs, min(inputs, outputs), outputs, balance=0.6, seed=1)
    rate = slowest_rate(inputs, outputs, 1.0, balance)
    learned = np.asarray(product(network.first, network.second, target, np.array([8.0, 10.0]) / rate))
    missed = np.linalg.norm(learned - target, axis=(-2, -1))
    # An exponential of that rate at least, once nothing else is left.
    assert np.log(missed[0] / missed[1]) > 1.9

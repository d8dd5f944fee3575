from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import solve_continuous_lyapunov, solve_discrete_lyapunov

from dynascope.errors import InputError
from dynascope.theory import SGD
from dynascope.theory.noise import discrete_stationary_moments, stationary_covariance

CHOSEN = {"learning_rate": 0.1, "momentum": 0.7, "weight_decay": 0.1, "batch_size": 3}


def matrices(seed, size=3):
    random = np.random.default_rng(seed)
    hessian, noise = random.normal(size=(2, size, size))
    return hessian @ hessian.T / size, noise @ noise.T


def whole(found):
    return np.block([[found.position, found.cross], [found.cross.T, found.velocity]])


@given(seed=st.integers(0, 999), momentum=st.floats(0, 0.95))
def test_pairs_of_modes_solve_the_whole_equation(seed, momentum):
    hessian, noise = matrices(seed)
    chosen, eye = CHOSEN | {"momentum": momentum}, np.eye(3)
    steep, rate = hessian + 0.1 * eye, 0.1
    step = np.block([[eye - rate * steep, rate * momentum * eye], [-steep, momentum * eye]])
    pushed = np.vstack([rate * eye, eye])
    expected = solve_discrete_lyapunov(step, pushed @ noise @ pushed.T / 3, method="direct")
    found = whole(stationary_covariance(hessian, noise, SGD(**chosen)))
    # The equation of all pairs has the condition of the slowest mode squared.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * np.abs(expected).max())
    pull = 2 / (rate * (1 + momentum))
    flow = np.block([[0 * eye, eye], [-pull * steep, -pull * (1 - momentum) * eye]])
    drawn = np.zeros((6, 6))
    drawn[3:, 3:] = 4 / ((1 + momentum) ** 2 * rate * 3) * noise
    expected = solve_continuous_lyapunov(flow, -drawn)
    found = whole(stationary_covariance(hessian, noise, SGD(**chosen), time="continuous"))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * np.abs(expected).max())


def test_noise_that_commutes_gives_the_moments_of_modes():
    curvature, spread = np.array([0.2, 1.0, 2.0]), np.array([0.3, 0.1, 0.5])
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    found = stationary_covariance(turn * curvature @ turn.T, turn * spread @ turn.T, SGD(**CHOSEN))
    known = discrete_stationary_moments(SGD(**CHOSEN), curvature=curvature, noise=spread)
    for part, expected in zip(found, (known.position_variance, known.covariance, known.velocity_variance), strict=True):
        np.testing.assert_allclose(turn.T @ part @ turn, np.diag(expected), rtol=0, atol=1e-14)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"hessian": [[1.0, 2.0], [0.0, 1.0]]}, "hessian"),
        ({"hessian": [[1.0]]}, "noise"),
        ({"hessian": -np.eye(2)}, "curvature"),
        ({"noise": [[1.0, 2.0], [2.0, 1.0]]}, "noise"),
        ({"time": "often"}, "time"),
    ],
)
def test_bad_input_is_refused_by_name(changes, argument):
    with pytest.raises(InputError) as caught:
        stationary_covariance(**{"hessian": np.eye(2), "noise": np.eye(2), "sgd": SGD(**CHOSEN)} | changes)
    assert caught.value.argument == argument

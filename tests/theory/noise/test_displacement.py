from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import solve_discrete_lyapunov

from dynascope.errors import InputError
from dynascope.theory import SGD
from dynascope.theory.noise import displacement_exponent, stationary_displacement, velocity_correlation

GOLDEN = SGD(0.05, momentum=0.9, weight_decay=0.1, batch_size=8)


def test_golden_numbers():
    found = stationary_displacement(2.0, 0.7, [1, 10, 100], GOLDEN)
    np.testing.assert_allclose(found, [0.001184032476, 0.034225092566, 0.021409653640], rtol=0, atol=6e-13)
    # R_0 … R_3 of the ledger, as 2 (R_0 − R_k).
    r = np.array([0.010712674786, 0.010120658548, 0.008525174786, 0.006194096048])
    np.testing.assert_allclose(stationary_displacement(2.0, 0.7, [0, 1, 2, 3], GOLDEN), 2 * (r[0] - r), atol=3e-12)
    assert velocity_correlation(2.0, 0.7, 0, GOLDEN) == pytest.approx(0.473612990528, abs=6e-13)


def moments(h: float, noise: float, rate: float, momentum: float, steps: int) -> tuple[float, float]:
    """The displacement and the correlation of velocities of one mode, by powers of the matrix of a step."""
    matrix = np.array([[1 - rate * h, rate * momentum], [-h, momentum]])
    kick = np.array([[rate], [1.0]])
    stationary = solve_discrete_lyapunov(matrix, noise * kick @ kick.T)
    later = np.linalg.matrix_power(matrix, steps) @ stationary
    return 2 * (stationary[0, 0] - later[0, 0]), later[1, 1]


@given(
    h=st.floats(0.05, 6.0),
    rate=st.floats(0.01, 0.3),
    momentum=st.floats(0.0, 0.95),
    steps=st.integers(0, 300),
    batch=st.integers(1, 9),
)
def test_they_are_those_of_the_lyapunov_equation(h, rate, momentum, steps, batch):
    sgd = SGD(rate, momentum=momentum, batch_size=batch, samples=10)
    share = (10 - batch) / (batch * 9)
    displaced, correlated = moments(h, share, rate, momentum, steps)
    size = moments(h, share, rate, momentum, 0)[1]
    # The Lyapunov equation of a matrix that nearly keeps its states loses five digits.
    assert stationary_displacement(h, 1.0, steps, sgd) == pytest.approx(displaced, rel=1e-9, abs=1e-9)
    assert velocity_correlation(h, 1.0, steps, sgd) == pytest.approx(correlated, rel=1e-9, abs=1e-9 * size)


def test_simulated_steps_go_as_far_and_correlate_as_much():
    curvature, noise = np.array([0.0, 0.2, 3.0]), np.array([0.3, 1.0, 2.0])
    sgd = SGD(0.1, momentum=0.8, batch_size=4)
    draw, runs = np.random.default_rng(0), 20_000
    # From rest long ago: velocities and the position of modes that have one.
    a, v = np.zeros((runs, 3)), np.zeros((runs, 3))
    path = []
    for step in range(331):
        if step >= 300:
            path.append((a, v))
        v = 0.8 * v - curvature * a - np.sqrt(noise / 4) * draw.normal(size=(runs, 3))
        a = a + 0.1 * v
    for k in (1, 5, 30):
        moved = np.sum((path[k][0] - path[0][0]) ** 2, axis=1)
        together = np.sum(path[k][1] * path[0][1], axis=1)
        for found, expected in (
            (moved, stationary_displacement(curvature, noise, k, sgd)),
            (together, velocity_correlation(curvature, noise, k, sgd)),
        ):
            # Six comparisons at four standard errors: one in two thousand would fail by chance, and the seed is fixed.
            assert abs(found.mean() - expected) < 4 * found.std() / np.sqrt(runs)


def test_flat_modes_diffuse_and_velocities_of_others_cancel_over_all_lags():
    sgd = SGD(0.05, momentum=0.9, batch_size=8)
    step = 0.05**2 * 0.7 / 8 / 0.1**2
    far = stationary_displacement(0.0, 0.7, [10**6, 10**6 + 1000], sgd)
    assert far[1] - far[0] == pytest.approx(1000 * step, rel=1e-9)
    assert stationary_displacement(1e-14, 0.7, 10**6, sgd) == pytest.approx(far[0], rel=1e-6)
    lags = velocity_correlation(0.5, 0.7, np.arange(2000), sgd)
    assert 2 * lags.sum() - lags[0] == pytest.approx(0, abs=1e-12 * lags[0])
    lags = velocity_correlation(0.0, 0.7, np.arange(2000), sgd)
    assert 2 * lags.sum() - lags[0] == pytest.approx(0.7 / 8 / 0.1**2, rel=1e-12)


def test_the_exponent_goes_from_two_over_one_to_zero():
    sgd = SGD(1e-3, momentum=0.999, batch_size=1)
    assert displacement_exponent(0.0, 1.0, sgd, first=1, last=10) == pytest.approx(2, abs=0.01)
    assert displacement_exponent(0.0, 1.0, sgd, first=10**6, last=10**7) == pytest.approx(1, abs=0.01)
    assert displacement_exponent(1.0, 1.0, sgd, first=10**6, last=10**7) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"curvature": -0.2}, "curvature"),
        ({"sgd": SGD(3.0)}, "learning_rate"),
        ({"first": 0}, "first"),
        ({"last": 5}, "last"),
        ({"noise": 0.0}, "noise"),
        ({"noise": -1.0}, "noise"),
    ],
)
def test_bad_input_is_refused_by_name(changes, argument):
    usual = {"curvature": 2.0, "noise": 0.7, "sgd": GOLDEN, "first": 5, "last": 50}
    with pytest.raises(InputError) as caught:
        displacement_exponent(**usual | changes)
    assert caught.value.argument == argument

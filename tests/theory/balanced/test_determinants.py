from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from dynascope.networks.balanced_linear import balanced_linear
from dynascope.theory import LayerRates
from dynascope.theory.balanced import balanced_limit, gram, loss, product
from dynascope.theory.balanced.determinants import distance_kept

TIMES = np.array([1.0, 12.0])
TARGET = np.array([[1.5, 0.4], [0.3, -0.8]])
WEAKEST = np.linalg.svd(TARGET, compute_uv=False)[-1]


def layers(sign: float, *, width: int = 2, balance: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Balanced layers whose map has a determinant of that sign."""
    network = balanced_linear(2, width, 2, balance=balance, scale=0.5, seed=2)
    first, second = np.array(network.first), np.array(network.second)
    if np.linalg.det(first @ second) * sign < 0:
        second[:, 0] *= -1
    return first, second


def integrated(first: np.ndarray, second: np.ndarray, time: float) -> float:
    """½‖W₁W₂ − Σ‖² by direct integration of gradient flow."""

    def velocity(_, weights):
        one, two = weights[: first.size].reshape(first.shape), weights[first.size :].reshape(second.shape)
        error = one @ two - TARGET
        return -np.concatenate([(error @ two.T).ravel(), (one.T @ error).ravel()])

    start = np.concatenate([first.ravel(), second.ravel()])
    end = solve_ivp(velocity, (0, time), start, "DOP853", rtol=1e-12, atol=1e-14).y[:, -1]
    found = end[: first.size].reshape(first.shape) @ end[first.size :].reshape(second.shape)
    return float(np.sum((found - TARGET) ** 2)) / 2


@pytest.mark.parametrize("width", [2, 3])
def test_training_stops_at_the_loss_that_the_warning_tells(width):
    first, second = layers(+1, width=width)  # and that of the target is negative
    assert distance_kept(first, second, TARGET) == pytest.approx(WEAKEST)
    message = rf"differ in sign.* stops at a saddle, where ½‖W₁W₂ − Σ‖² is at least {WEAKEST**2 / 2:.4g}"
    with pytest.warns(UserWarning, match=message):
        ends = loss(first, second, TARGET, TIMES)
    # The weakest mode is what stays; the others have come within exp(−2 s t) of theirs.
    assert ends[-1] == pytest.approx(WEAKEST**2 / 2, rel=1e-4)
    assert integrated(first, second, TIMES[-1]) == pytest.approx(ends[-1], rel=1e-9)
    assert balanced_limit(first, second, TARGET).loss == pytest.approx(WEAKEST**2 / 2)


def test_the_remedy_of_the_warning_reaches_the_target():
    first, second = layers(+1)
    second[:, 1] *= -1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert loss(first, second, TARGET, TIMES)[-1] < 1e-6
        product(*layers(-1), TARGET, TIMES)


def test_of_many_members_it_says_how_many():
    members = [layers(sign) for sign in (+1, -1, +1)]
    first, second = (np.stack(each) for each in zip(*members, strict=True))
    with pytest.warns(UserWarning, match="of 2 of 3 members differ in sign"):
        gram(first, second, TARGET, TIMES)


def test_layers_that_differ_in_size_may_change_the_sign_and_are_not_warned_of():
    first, second = layers(+1, balance=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert loss(first, second, TARGET, np.array([40.0]))[-1] < 1e-9


def test_maps_without_full_rank_and_those_that_are_not_square_are_kept_from_nothing():
    line = np.array([[0.1], [0.2]])
    assert distance_kept(line, line.T, TARGET) == 0
    assert distance_kept(*layers(+1), np.outer([1.0, 2.0], [1.0, -1.0])) == 0
    assert distance_kept(np.eye(3)[:, :2], np.eye(2), np.ones((3, 2))) == 0
    assert distance_kept(np.zeros((2, 2)), np.zeros((2, 2)), TARGET) == 0


def test_with_other_rates_the_flow_stops_at_the_same_saddle():
    first, second = layers(+1)
    ratio = 4**0.25
    with pytest.warns(UserWarning, match="stops at a saddle"):
        expected = product(first, second, TARGET, 2 * TIMES)
    with pytest.warns(UserWarning, match="stops at a saddle"):
        found = product(first * ratio, second / ratio, TARGET, TIMES, rates=LayerRates(first=4.0))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)

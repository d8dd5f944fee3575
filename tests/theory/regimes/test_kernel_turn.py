from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from linear_training import B, trained

from dynascope.errors import InputError
from dynascope.theory.regimes import kernel_turn

COVARIANCE = np.array([[1.5, 0.4, 0.0], [0.4, 0.8, 0.2], [0.0, 0.2, 0.3]])


def distances(start, end, covariance=COVARIANCE):
    """Kernel distances between two matrices M, without and with the data."""

    def distance(product):
        return 1 - product(start, end) / np.sqrt(product(start, start) * product(end, end))

    on_data = lambda p, q: np.trace(p @ covariance @ q @ covariance)  # noqa: E731
    return distance(lambda p, q: np.sum(p * q)), distance(on_data)


def test_golden_turn():
    turn = kernel_turn(COVARIANCE, B)
    numbers = [*turn.target, turn.cosine, turn.weight_distance, turn.kernel_distance]
    expected = [1.0952380952, -1.8571428571, 2.2380952381, 0.7944816888, 0.0614664744, 0.0225125996]
    np.testing.assert_allclose(numbers, expected, rtol=0, atol=6e-11)


@pytest.mark.slow
def test_a_small_network_turns_by_the_predicted_distances():
    times = np.linspace(0, 60, 6001)
    w, a, maps = trained(1e-7, times, COVARIANCE)
    target = np.linalg.solve(COVARIANCE, B)
    missing = maps - target
    used = 1 - np.einsum("ti,ij,tj->t", missing, COVARIANCE, missing) / (target @ COVARIANCE @ target)
    early = int(np.argmax(used >= 1e-3))
    matrices = [a[place] @ a[place] * np.eye(3) + w[place].T @ w[place] for place in (early, -1)]
    turn = kernel_turn(COVARIANCE, B)
    # At 0.1 % of the loss, the kernel has turned by a part of this order.
    np.testing.assert_allclose(distances(*matrices), [turn.weight_distance, turn.kernel_distance], rtol=2e-3)


@given(seed=st.integers(0, 1000), d=st.integers(2, 5))
def test_distances_are_those_of_the_matrices_and_vanish_for_eigenvectors(seed, d):
    rng = np.random.default_rng(seed)
    factor, b = rng.normal(size=(d, 2 * d)), rng.normal(size=d)
    covariance = factor @ factor.T / d
    turn = kernel_turn(covariance, b)
    start, end = (np.eye(d) + np.outer(v, v) / (v @ v) for v in (b, turn.target))
    expected = distances(start, end, covariance)
    np.testing.assert_allclose([turn.weight_distance, turn.kernel_distance], expected, rtol=0, atol=1e-12)
    aligned = kernel_turn(covariance, np.linalg.eigh(covariance)[1][:, 0])
    assert max(aligned.weight_distance, aligned.kernel_distance) < 1e-20


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((np.diag([1.0, -1.0]), [1.0, 0.0]), "covariance"),
        (([[1.0, 0.5], [0.0, 1.0]], [1.0, 0.0]), "covariance"),
        ((np.eye(2), [0.0, 0.0]), "correlation"),
        ((np.eye(2), [1.0]), "correlation"),
    ],
)
def test_bad_input_is_refused_by_name(arguments, name):
    with pytest.raises(InputError) as caught:
        kernel_turn(*arguments)
    assert caught.value.argument == name

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory import SGD
from dynascope.theory.noise import gaussian_input_moments

HESSIAN, MINIMUM = np.diag([1.5, 0.4, 0.05]), np.array([1.0, -2.0, 0.5])
PLAIN = {"label_noise": 0.25, "sgd": SGD(0.1, batch_size=2)}


def second_moment(found):
    away = found.position - MINIMUM
    return found.position_covariance + np.outer(away, away)


def test_the_second_moment_is_the_published_one():
    found = gaussian_input_moments(60, HESSIAN, MINIMUM, **PLAIN)
    published = [0.008216349765, 0.040301844331, 0.144422999824]
    np.testing.assert_allclose(np.diag(second_moment(found)), published, rtol=0, atol=6e-13)


@given(rate=st.floats(0.01, 0.2), batch=st.integers(1, 9), noise=st.floats(0, 1))
def test_without_momentum_it_is_the_recursion_of_the_second_moment(rate, batch, noise):
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    h = turn @ HESSIAN @ turn.T
    c = np.outer(MINIMUM, MINIMUM)
    for _ in range(10):
        drawn = (h @ c @ h + np.trace(h @ c) * h + noise * h) / batch
        c = c - rate * (h @ c + c @ h) + rate**2 * (h @ c @ h + drawn)
    found = gaussian_input_moments(10, h, MINIMUM, SGD(rate, batch_size=batch), label_noise=noise)
    np.testing.assert_allclose(second_moment(found), c, rtol=0, atol=1e-12)
    assert found.loss == pytest.approx((np.trace(h @ c) + noise) / 2, rel=1e-11)


def test_runs_with_momentum_and_decay_have_the_moments():
    random, runs = np.random.default_rng(0), 20_000
    chosen = PLAIN | {"sgd": SGD(0.1, momentum=0.5, weight_decay=0.1, batch_size=2)}
    weights, velocity = np.zeros((2, runs, 3))
    for _ in range(15):
        x = random.normal(size=(runs, 2, 3)) * np.sqrt(np.diag(HESSIAN))
        wrong = np.einsum("rsd,rd->rs", x, weights - MINIMUM) - 0.5 * random.normal(size=(runs, 2))
        velocity = 0.5 * velocity - np.einsum("rsd,rs->rd", x, wrong) / 2 - 0.1 * weights
        weights = weights + 0.1 * velocity
    found = gaussian_input_moments(15, HESSIAN, MINIMUM, **chosen)
    spread = np.diag(found.position_covariance)
    # Four deviations of a mean and of a variance whose kurtosis is below six.
    assert (np.abs(weights.mean(0) - found.position) < 4 * np.sqrt(spread / runs)).all()
    np.testing.assert_allclose(weights.var(0), spread, rtol=4 * np.sqrt(5 / runs))
    np.testing.assert_allclose(velocity.var(0), np.diag(found.velocity_covariance), rtol=4 * np.sqrt(5 / runs))


@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"hessian": -HESSIAN}, "hessian"),
        ({"minimum": [1.0]}, "minimum"),
        ({"label_noise": -1.0}, "label_noise"),
        ({"sgd": SGD(2.0)}, "learning_rate"),
        ({"sgd": SGD(0.1, samples=10)}, "samples"),
    ],
)
def test_bad_input_is_refused_by_name(changes, argument):
    with pytest.raises(InputError) as caught:
        gaussian_input_moments(**{"steps": 1, "hessian": HESSIAN, "minimum": MINIMUM} | PLAIN | changes)
    assert caught.value.argument == argument

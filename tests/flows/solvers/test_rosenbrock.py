from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.errors import DivergenceError
from dynascope.flows.solvers.adaptive import StiffFlow, integrate_adaptively
from dynascope.flows.solvers.rosenbrock import ROSENBROCK, rosenbrock_step

RATES = np.array([1.0, 1e6])


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


def logistic(y):
    return y * (1 - y)


def logistic_inverse(y):
    return lambda shift: lambda right: right / (shift - 1 + 2 * y)


class Decay(StiffFlow):
    """y_k' = −rate_k y_k³."""

    rates: np.ndarray

    def start(self, state):
        return state

    def velocity(self, moving, state):
        return -self.rates * moving**3

    def inverse(self, shift, state):
        return lambda right: right / (shift + 3 * self.rates * state**2)

    def size(self, change, state):
        return jnp.max(jnp.abs(change))

    def moved(self, moving, state):
        return moving

    def statistics(self, state):
        return {"loss": jnp.sum(state**2), "descent_rate": jnp.sum(self.rates * state**4), "seen": state}


def followed(state=(1.0, 1.0), **changes):
    usual = {"duration": 10.0, "tolerance": 1e-5}
    return integrate_adaptively(Decay(RATES), np.array(state), ROSENBROCK, **{**usual, **changes})[0]


def test_a_step_is_of_order_four_and_its_error_of_order_three():
    errors, estimates = [], []
    for step in (0.2, 0.1):
        end, wrong = rosenbrock_step(logistic, logistic_inverse(jnp.array([0.3])), jnp.array([0.3]), step)
        errors.append(abs(float(end[0]) - 1 / (1 + 7 / 3 * np.exp(-step))))
        estimates.append(abs(float(wrong[0])))
    # Of one step the errors are an order higher; they approach it from either side.
    assert np.log2(errors[0] / errors[1]) == pytest.approx(5, abs=0.3)
    assert np.log2(estimates[0] / estimates[1]) == pytest.approx(4, abs=0.3)
    assert estimates[0] > errors[0]


@pytest.fixture(scope="module")
def record():
    return followed()


def test_rates_that_differ_by_a_million_take_no_more_steps_than_one(record):
    # y³ decays as 1/√(1 + 2kt). Explicit steps are of 1e-6 at the start and would be many thousands.
    expected = 1 / np.sqrt(1 + 2 * RATES * record["time"][:, None])
    np.testing.assert_allclose(record["seen"], expected, rtol=0, atol=1e-4)
    assert len(record["time"]) < 200


def test_every_step_is_recorded_once_up_to_the_end(record):
    assert record["time"][0] == 0
    assert record["time"][-1] == 10
    assert np.all(np.diff(record["time"]) > 0)
    assert all(len(values) == len(record["time"]) for values in record.values())


def test_it_goes_on_from_a_later_time():
    half = followed(duration=4.0)
    rest = followed(half["seen"][-1], start=4.0)
    assert rest["time"][0] == 4
    np.testing.assert_allclose(rest["seen"][-1], 1 / np.sqrt(1 + 20 * RATES), rtol=0, atol=1e-4)


def test_too_many_steps_and_a_start_that_is_not_finite_are_told():
    with pytest.raises(DivergenceError, match="max_steps") as caught:
        followed(max_steps=10)
    assert 0 < caught.value.time < 10
    with pytest.raises(DivergenceError, match="underflowed at time 0"):
        followed((np.nan, np.nan))

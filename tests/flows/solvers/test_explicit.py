from __future__ import annotations

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.errors import DivergenceError
from dynascope.flows.solvers.adaptive import StiffFlow, integrate_adaptively
from dynascope.flows.solvers.explicit import ERROR, POINTS, TSITOURAS, tsitouras_step


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


class Power(StiffFlow):
    """y' = −rate yᵖ."""

    rate: np.ndarray
    power: np.ndarray

    def start(self, state):
        return state

    def velocity(self, moving, state):
        return -self.rate * moving**self.power

    def inverse(self, shift, state):
        raise NotImplementedError

    def size(self, change, state):
        return jnp.abs(change)

    def moved(self, moving, state):
        return moving

    def statistics(self, state):
        return {"loss": state**2 / 2, "descent_rate": self.rate * state ** (self.power + 1)}


def followed(rate=2.0, power=1.0, *, farthest=4.0, **options):
    flow, method = Power(np.asarray(rate), np.asarray(power)), TSITOURAS._replace(farthest=farthest)
    return integrate_adaptively(flow, np.asarray(1.0), method, **{"duration": 5.0, "tolerance": 1e-10, **options})


def test_the_numbers_are_those_of_diffrax():
    tableau = diffrax.Tsit5.tableau
    for own, theirs in zip(POINTS[1:], tableau.a_lower, strict=True):
        np.testing.assert_allclose(own, theirs, rtol=1e-15)
    # Theirs is the solution of order four less that of order five, which is as large.
    np.testing.assert_allclose(ERROR, -tableau.b_error, rtol=1e-14)


def test_a_step_is_of_order_five_and_its_error_of_order_four():
    ends = [tsitouras_step(lambda y: -(y**2), None, jnp.ones(1), step) for step in (0.05, 0.025)]
    exact = [1 / (1 + step) for step in (0.05, 0.025)]
    errors = [abs(float(end[0]) - there) for (end, _), there in zip(ends, exact, strict=True)]
    estimates = [abs(float(wrong[0])) for _, wrong in ends]
    # Of one step the errors are an order higher; they approach it from either side.
    assert np.log2(errors[0] / errors[1]) == pytest.approx(6, abs=0.5)
    assert np.log2(estimates[0] / estimates[1]) == pytest.approx(5, abs=0.5)
    assert estimates[0] > errors[0]


def test_every_step_is_recorded_once_up_to_the_end_whatever_a_call_of_the_program_takes():
    (record, state), (pieces, _) = followed(), followed(at_once=8)
    assert record["time"][0] == 0
    assert record["time"][-1] == 5
    np.testing.assert_allclose(record["loss"], np.exp(-4 * record["time"]) / 2, rtol=0, atol=1e-9)
    np.testing.assert_allclose(float(state), np.exp(-10), rtol=0, atol=1e-9)
    # The next step does not begin anew with each call.
    np.testing.assert_allclose(pieces["time"], record["time"], rtol=1e-12)


def test_smaller_tolerances_and_shorter_ways_take_more_steps():
    steps = [len(followed(**options)[0]["time"]) for options in ({"tolerance": 1e-3}, {}, {"farthest": 1e-3})]
    assert steps[0] < steps[1] < steps[2]
    assert steps[2] > 1000


def test_divergence_tells_the_time():
    # y' = y² from 1 leaves the finite numbers at time 1.
    with pytest.raises(DivergenceError, match="max_steps") as caught:
        followed(rate=-1.0, power=2.0, max_steps=1000)
    assert caught.value.time == pytest.approx(1, abs=0.01)

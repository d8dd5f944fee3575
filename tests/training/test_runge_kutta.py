import equinox as eqx
import numpy as np
import pytest

from dynascope.networks import DeepLinear, TwoLayer
from dynascope.tasks import Task
from dynascope.training import Descent, descend, runge_kutta

CURVATURES = np.array([0.5, 1.0, 2.0])
TASK = Task(np.diag(np.sqrt(3 * CURVATURES)), np.zeros((3, 1)))
LINE = DeepLinear((3, 1), seed=1)
ONE = Task([[1.0], [1.0]], [[1.0], [1.0]])
PRODUCT = TwoLayer(1, 1, 1).with_neurons(np.array([[0.1, 0.1]]))
STEPS = [0, 5, 10]


class Doubling(eqx.Module):
    """A rate that doubles after so many steps."""

    first: np.ndarray
    period: np.ndarray

    def __call__(self, steps):
        return self.first * 2.0 ** (steps // self.period)


def taylor(z):
    """The Taylor polynomial of fourth order of e^−z."""
    return 1 - z + z**2 / 2 - z**3 / 6 + z**4 / 24


def test_a_step_on_a_quadratic_loss_is_a_polynomial_of_fourth_order_at_any_rate():
    for rate in (0.3, 1.0):
        end = descend(TASK, LINE, Descent(runge_kutta, learning_rate=rate, steps=10, save=STEPS), return_networks=True)[
            1
        ]
        expected = LINE.weights[0][:, 0] * taylor(rate * CURVATURES) ** 10
        # Rounding, of ten steps.
        np.testing.assert_allclose(end.weights[0][:, 0], expected, rtol=1e-12)


@pytest.mark.slow
def test_the_error_falls_as_the_fourth_power_of_the_rate():
    # Both weights w follow ẇ = w (1 − w²), so that s = w² is s₀ e^(2t)/(1 − s₀ + s₀ e^(2t)).
    growth, start = np.exp(2 * 2.0), 0.1**2
    flow = (1 - start * growth / (1 - start + start * growth)) ** 2 / 2
    errors = []
    for steps in (10, 20, 40):
        run = descend(ONE, PRODUCT, Descent(runge_kutta, learning_rate=2.0 / steps, steps=steps, save=[0, 5, steps]))
        errors.append(abs(float(run["loss"][-1]) - flow))
    # Up to the next order, which is smaller by the rate.
    np.testing.assert_allclose(np.divide(errors[:-1], errors[1:]), 16, rtol=0.2)


@pytest.mark.slow
def test_the_rate_may_change_with_the_steps():
    rates = 0.1 * 2.0 ** (np.arange(10) // 4)
    schedule = Doubling(np.array(0.1), np.array(4))
    record, end = descend(
        TASK, LINE, Descent(runge_kutta, learning_rate=schedule, steps=10, save=STEPS), return_networks=True
    )
    expected = LINE.weights[0][:, 0] * np.prod(taylor(np.multiply.outer(rates, CURVATURES)), axis=0)
    np.testing.assert_allclose(end.weights[0][:, 0], expected, rtol=1e-12)
    np.testing.assert_allclose(record["time"], np.concatenate([[0], np.cumsum(rates)])[STEPS], rtol=1e-12)
    np.testing.assert_allclose(record["applied_rate"][1:], rates[[4, 9]], rtol=1e-12)


def test_members_of_an_ensemble_have_their_own_rates():
    rates = [0.3, 1.0]
    ends = descend(TASK, LINE, Descent(runge_kutta, learning_rate=rates, steps=10, save=STEPS), return_networks=True)[1]
    for own, rate in zip(ends.weights[0], rates, strict=True):
        expected = LINE.weights[0][:, 0] * taylor(rate * CURVATURES) ** 10
        np.testing.assert_allclose(own[:, 0], expected, rtol=1e-12)


def test_it_asks_for_the_loss_as_a_function():
    method = runge_kutta(0.1)
    with pytest.raises(TypeError, match="value_fn"):
        method.update(np.ones(2), method.init(np.ones(2)), np.ones(2))

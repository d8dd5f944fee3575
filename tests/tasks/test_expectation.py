import numpy as np
import pytest

from dynascope.flows import GradientFlow, gradient_flow
from dynascope.networks import DiagonalLinear
from dynascope.tasks import Expectation, Task
from dynascope.training import Descent, descend

# Whitened inputs, so that the loss is a distance between coefficients.
SAMPLES = Task(np.vstack([np.eye(2), -np.eye(2)]) * 2**0.5, np.array([[2.0], [1.0], [-2.0], [-1.0]]) * 2**0.5)
EXPECTATION = Expectation(lambda network: ((network.coefficients - np.array([2.0, 1.0])) ** 2).sum() / 2, "formula")


@pytest.mark.slow
def test_training_on_a_formula_is_training_on_its_samples():
    runs = [
        gradient_flow(task, DiagonalLinear(2), GradientFlow(duration=5.0, save=5), scale=0.1)
        for task in (SAMPLES, EXPECTATION)
    ]
    np.testing.assert_allclose(runs[0]["loss"], runs[1]["loss"], rtol=1e-7)
    assert runs[1].attrs["task"] == "formula"


def test_descent_takes_a_formula_too():
    runs = [
        descend(task, DiagonalLinear(2), Descent(learning_rate=0.1, steps=20, save=[0, 20]), scale=0.1)
        for task in (SAMPLES, EXPECTATION)
    ]
    np.testing.assert_allclose(runs[0]["loss"], runs[1]["loss"], rtol=1e-9)

from __future__ import annotations

import numpy as np
import pytest

from dynascope import compare
from dynascope.record import make_record

TIME = np.linspace(0, 8, 801)
THEORY = make_record(
    {"loss": (["time"], np.exp(-TIME))},
    {"time": TIME},
    attributes={"loss_tolerance": 1e-4, "loss_maximum_tolerance": 1e-4, "initial_loss": 1.0, "output_dimension": 1},
)


@pytest.mark.parametrize("rate", [0.001, 0.01, 0.05])
def test_descent_agrees_with_the_flow_as_closely_as_its_steps_allow(rate):
    losses = (1 - rate) ** np.arange(int(4 / rate))
    tree = compare(losses, THEORY, learning_rate=rate, loss="squared")
    assert tree.attrs["verdict"] == "agree"
    wrong = compare(losses, THEORY, learning_rate=2 * rate, loss="squared")
    assert wrong.attrs["verdict"] == "disagree"


def test_of_steps_that_are_too_large_nothing_is_concluded():
    losses = 0.7 ** np.arange(20)
    assert compare(losses, THEORY, learning_rate=0.36, loss="squared").attrs["verdict"] == "undecided"

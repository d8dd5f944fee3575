from __future__ import annotations

import numpy as np
import pytest

from dynascope import compare
from dynascope.comparison import user_curve
from dynascope.results import make_record

TIME = np.linspace(0, 8, 801)
THEORY = make_record(
    {"loss": (["time"], np.exp(-TIME))},
    {"time": TIME},
    attributes={"loss_tolerance": 1e-4, "loss_maximum_tolerance": 1e-4, "initial_loss": 1.0, "output_dimension": 1},
)


@pytest.mark.parametrize("rate", [0.001, 0.01, 0.05])
def test_descent_agrees_with_the_flow_as_closely_as_its_steps_allow(rate):
    losses = (1 - rate) ** np.arange(int(4 / rate))
    tree = compare(user_curve(losses, learning_rate=rate, loss="squared"), THEORY)
    assert tree.verdict.outcome == "agree"
    wrong = compare(user_curve(losses, learning_rate=2 * rate, loss="squared"), THEORY)
    assert wrong.verdict.outcome == "disagree"


def balanced_pair(start, rate, steps):
    """Losses of descent on ½ (1 − w²)² in both factors w, and the theory of its flow: w² is logistic."""
    weight, losses = start, []
    for _ in range(steps):
        losses.append((1 - weight**2) ** 2 / 2)
        weight += rate * weight * (1 - weight**2)
    time = np.linspace(0, rate * steps, 4001)
    loss = (1 / (1 + start**2 / (1 - start**2) * np.exp(2 * time))) ** 2 / 2
    limits = {"loss_tolerance": 1e-4, "loss_maximum_tolerance": 1e-4, "initial_loss": 0.5, "output_dimension": 1}
    return np.array(losses), make_record({"loss": (["time"], loss)}, {"time": time}, attributes=limits)


@pytest.mark.parametrize("start", [0.3, 1e-2, 1e-5])
@pytest.mark.parametrize("rate", [0.002, 0.02])
def test_descent_from_a_small_start_lags_by_many_steps_and_agrees(start, rate):
    losses, theory = balanced_pair(start, rate, int((4 - np.log(start)) / rate))
    lag = np.argmax(losses < 0.25) - np.interp(-0.25, -theory["loss"], theory["time"]) / rate
    # A quarter of the logarithm of how much faster the loss falls at most than first, here by (8 / 27) / w(0)².
    assert lag == pytest.approx(-np.log(start) / 2, abs=1.0)
    assert compare(user_curve(losses, learning_rate=rate, loss="squared"), theory).verdict.outcome == "agree"
    # Twice the larger rate may lag so far that nothing can be judged.
    possible = {"disagree"} if rate < 0.01 else {"disagree", "undecided"}
    for wrong in (rate / 2, 2 * rate):
        assert compare(user_curve(losses, learning_rate=wrong, loss="squared"), theory).verdict.outcome in possible


@pytest.mark.parametrize("momentum", [0.5, 0.9])
def test_descent_with_momentum_agrees_as_closely_as_its_steps_allow(momentum):
    weight, velocity, losses = 0.01, 0.0, []
    rate = 0.002 * (1 - momentum)
    for _ in range(4300):
        losses.append((1 - weight**2) ** 2 / 2)
        velocity = momentum * velocity - weight * (1 - weight**2)
        weight -= rate * velocity
    _, theory = balanced_pair(0.01, 0.002, 4300)
    given = {"momentum": momentum, "loss": "squared"}
    assert compare(user_curve(np.array(losses), learning_rate=rate, **given), theory).verdict.outcome == "agree"
    possible = {"disagree"} if momentum < 0.9 else {"disagree", "undecided"}
    for wrong in (rate / 2, 2 * rate):
        assert compare(user_curve(np.array(losses), learning_rate=wrong, **given), theory).verdict.outcome in possible


def test_of_steps_that_are_too_large_nothing_is_concluded():
    losses = 0.7 ** np.arange(20)
    assert compare(user_curve(losses, learning_rate=0.36, loss="squared"), THEORY).verdict.outcome == "undecided"

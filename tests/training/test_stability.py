from __future__ import annotations

import itertools

import numpy as np
import pytest

from dynascope.errors import DivergenceError
from dynascope.flows import deadline
from dynascope.networks import TwoLayer
from dynascope.tasks import Task
from dynascope.training import Descent, descend, stable_rate

TASK = Task(np.eye(2) * 2**0.5, np.diag([3.0, 1.0]) * 2**0.5)


@pytest.mark.slow
def test_rates_below_the_stable_one_converge_and_rates_above_do_not():
    network = TwoLayer(2, 4, 2)
    run = {"scale": 0.1, "steps": 60}
    stable = stable_rate(TASK, network, learning_rate=1.5, **run)
    assert stable == pytest.approx(1 / 3, rel=0.05)
    assert descend(TASK, network, Descent(learning_rate=0.9 * stable, steps=300), scale=0.1)["loss"][-1] < 1e-3
    with pytest.raises(DivergenceError):
        descend(TASK, network, Descent(learning_rate=3 * stable, steps=300), scale=0.1)


@pytest.mark.slow
def test_a_busy_machine_finds_the_same_rate(monkeypatch):
    arguments = {"scale": 0.1, "learning_rate": 1.5, "steps": 60}
    alone = stable_rate(TASK, TwoLayer(2, 4, 2), **arguments)
    hours = itertools.count(step=3600.0)
    monkeypatch.setattr(deadline.time, "monotonic", lambda: next(hours))
    assert stable_rate(TASK, TwoLayer(2, 4, 2), **arguments) == alone


def test_what_takes_too_many_steps_is_not_tried():
    assert stable_rate(TASK, TwoLayer(2, 4, 2), scale=0.1, learning_rate=1e-8, steps=10**8) is None

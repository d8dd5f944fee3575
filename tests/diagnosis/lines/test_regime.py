from __future__ import annotations

import numpy as np
import pytest

from dynascope.diagnosis.lines.regime import regime
from dynascope.diagnosis.run_facts import RunFacts
from dynascope.results import make_record

STEPS = [0, 1, 10, 100, 1000]
LOSS = [np.nan, 1.0, 0.5, 0.05, 0.01]


def run(distances: list[float], losses: list[float] = LOSS, criterion: str = "MSELoss") -> RunFacts:
    values = {"kernel_distance": (["step"], distances), "mean_loss": (["step"], losses)}
    return RunFacts(make_record(values, {"step": STEPS}), criterion=criterion)


@pytest.mark.parametrize(
    ("distances", "state"),
    [
        ([0.0, 1e-4, 1e-3, 2e-3, 3e-3], "lazy"),
        ([0.0, 1e-2, 0.1, 0.3, 0.4], "rich"),
        ([0.0, 1e-3, 1e-2, 0.05, 0.06], "undecided"),
        ([0.0, 1e-4, 1e-3, 2e-3, 0.3], "delayed rich"),
    ],
)
def test_the_kernel_distance_when_most_of_the_loss_is_gone_decides(distances, state):
    line = regime(run(distances))
    assert line.state == state
    assert line.number == pytest.approx(distances[3])  # the loss is 0.05 at step 100


def test_a_loss_that_explodes_is_unstable_and_one_that_stays_is_not_measured():
    distances = [0.0, 0.1, 0.2, 0.3, 0.4]
    assert regime(run(distances, [np.nan, 1.0, 5.0, 5.0, 2.0])).state == "unstable"
    assert regime(run(distances, [np.nan, 1.0, 1.0, 1.0, 1.0])).state == "not measured"
    assert regime(run(distances, [np.nan, 1.0, 0.99, 0.98, 0.97])).state == "not measured"


def test_the_advised_factor_follows_the_square_of_the_output_scale():
    line = regime(run([0.0, 1e-4, 5e-4, 1e-3, 1e-3]))
    assert "multiply the outputs by about 0.1 " in line.action  # √(0.001/0.1)
    assert "smaller initial weights" in regime(run([0.0, 0.0, 0.0, 0.0, 0.0], criterion="CrossEntropyLoss")).action

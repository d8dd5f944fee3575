from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from dynascope.diagnosis.lines.nearest_model import nearest_model, solvable_model
from dynascope.diagnosis.run_facts import RunFacts
from dynascope.results import make_record

DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(50, 3))
Y = X @ DRAW.normal(size=(3, 2))


def line(module: torch.nn.Module, *, squared: bool = True, batch_size: int | None = None):
    text = solvable_model(X, Y, module, learning_rate=None, batch_size=batch_size, squared=squared)
    record = make_record({"mean_loss": (["step"], [1.0])}, {"step": [0]})
    return nearest_model(RunFacts(record.assign_attrs(solvable_model=text)))


def linear(*widths: int) -> torch.nn.Module:
    torch.manual_seed(0)
    pairs = itertools.pairwise(widths)
    return torch.nn.Sequential(*(torch.nn.Linear(n, m, bias=False) for n, m in pairs)).double()


def test_a_theory_that_applies_is_named():
    module = linear(3, 2)
    found = line(module)
    assert found.state == "applies"
    assert "predict" in found.action


def test_the_assumption_that_fails_has_its_number_and_limit():
    found = line(linear(3, 2), batch_size=10)
    assert found.state == "almost applies"
    assert "full batches" in found.sentence
    assert found.number == pytest.approx(0.8)  # 40 of 50 samples are omitted
    assert found.threshold == 0


def test_networks_and_losses_without_a_theory_are_said_not_to_be_covered():
    convolution = torch.nn.Sequential(torch.nn.Unflatten(1, (1, 3)), torch.nn.Conv1d(1, 2, 2), torch.nn.Flatten())
    assert line(convolution.double()).state == "does not apply"
    assert "squared loss" in line(linear(3, 2), squared=False).sentence


def test_without_a_recorded_model_nothing_is_claimed():
    record = make_record({"mean_loss": (["step"], [1.0])}, {"step": [0]})
    assert nearest_model(RunFacts(record)).state == "not measured"

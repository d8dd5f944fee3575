"""What a prediction needs is told before it begins, and refused where it does not fit."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dynascope.cli.progress import step
from dynascope.errors import InputError
from dynascope.flows import progress_listener
from dynascope.networks import DiagonalLinear, TwoLayer
from dynascope.prediction import predict
from dynascope.prediction.case import Case
from dynascope.prediction.cost import announce_needs
from dynascope.prediction.theories.catalogue import THEORIES
from dynascope.tasks import Task

TASK = Task(np.eye(2) * 2**0.5, np.diag([4.0, 1.0]) * 2**0.5)
CASE = Case(TASK, TwoLayer(2, 3, 2), scale=1e-4)
LINEAR = next(theory for theory in THEORIES if theory.name == "linear-staircase")


def told_of(operations: float, memory: float) -> list[str]:
    said: list[str] = []
    theory = dataclasses.replace(LINEAR, operations=lambda case: operations, memory=lambda case: memory)
    with progress_listener(lambda *_: None, announced=said.append):
        announce_needs(theory, CASE)
    return said


def test_what_is_small_is_not_told():
    assert told_of(9e9, 9e8) == []


@pytest.mark.parametrize(
    ("operations", "memory", "words"),
    [
        (2e10, 0, "2e+10 operations, about 20 seconds"),
        (3e11, 0, "about 5 minutes"),
        (7.2e12, 0, "about 2 hours"),
        (0, 2e9, "2 GB of memory"),
    ],
)
def test_what_takes_long_or_much_is_told(operations, memory, words):
    (sentence,) = told_of(operations, memory)
    assert "linear-staircase" in sentence
    assert words in sentence


def test_more_inputs_than_memory_are_rejected_with_the_bytes(monkeypatch):
    task, network = Task(np.eye(2, 1500), [[1.0], [0.5]]), DiagonalLinear(1500)
    monkeypatch.setenv("DYNASCOPE_MEMORY", "100MB")
    with pytest.raises(InputError, match=r"diagonal-staircase .* needs 384 MB, but only 100 MB is allowed") as refused:
        predict(task, network, scale=1e-4)
    assert refused.value.argument == "task"


@pytest.mark.parametrize("theory", THEORIES, ids=[theory.name for theory in THEORIES])
def test_every_theory_that_samples_are_given_to_says_what_it_needs(theory):
    case = Case(TASK, DiagonalLinear(2), scale=1e-4) if "diagonal" in theory.network else CASE
    if theory.fits(case):
        assert theory.operations(case) > 0
        assert theory.memory(case) > 0


def test_on_a_console_it_is_told_once(capsys):
    theory = dataclasses.replace(LINEAR, operations=lambda case: 1e12)
    with step("Predicting"):
        announce_needs(theory, CASE)
        announce_needs(theory, CASE)
    lines = capsys.readouterr().err.splitlines()
    assert len([line for line in lines if "The theory linear-staircase needs" in line]) == 1


def test_only_the_theory_that_is_used_is_announced(monkeypatch):
    x = np.random.default_rng(0).normal(size=(20, 3)) * [3.0, 1.0, 0.5]
    said: list[str] = []
    monkeypatch.setattr("dynascope.prediction.cost._LONG", 0.0)
    with progress_listener(lambda *_: None, announced=said.append):
        found = predict(Task(x, x[:, :1]), TwoLayer(3, 2000, 1), scale=10.0)
    assert found.record.attrs["theory_name"] == "kernel-regression"
    assert len(said) == 1
    assert "kernel-regression" in said[0]


@pytest.mark.parametrize("power", [-149, -80, -50, 50, 80, 149])
@pytest.mark.parametrize("network", ["linear", "diagonal", "relu"])
def test_units_in_which_a_flow_is_no_number_are_refused_by_name(power, network):
    x = np.random.default_rng(7).normal(size=(20, 3))
    with pytest.raises(InputError, match="choose units in which") as refused:
        predict(Task(x * 10.0**power, x[:, :1] * 10.0**power), network, scale=1e-4, jumps=1)
    assert refused.value.argument == "task"


@pytest.mark.parametrize("power", [-19, -7, 19])
def test_in_other_units_jumps_are_at_the_same_times_in_these_units(power):
    draw, unit = np.random.default_rng(7), 10.0**power
    x = draw.normal(size=(20, 3))
    y = x @ draw.normal(size=(3, 1))
    times = [
        predict(Task(x * each, y * each), "diagonal", scale=1e-4, curve=False)["jump_time"].to_numpy() * each**2
        for each in (1.0, unit)
    ]
    # Sums of a hundred terms, rounded.
    np.testing.assert_allclose(*times, rtol=1e-12)

"""Schedules decide at which steps a run is measured."""

import math

import pytest

from dynascope.diagnosis.schedule import AtSteps, Every, EveryEpoch, LogSpaced, as_schedule
from dynascope.errors import InputError


def due(schedule, steps):
    return [step for step in range(steps) if schedule.due(step, None)]


def test_every_n_steps():
    assert due(Every(4), 13) == [0, 4, 8, 12]


def test_listed_steps():
    assert due(AtSteps((7, 2)), 10) == [2, 7]


@pytest.mark.parametrize("per_decade", [1, 3, 16, 50])
def test_log_spaced_steps_are_the_rounded_powers_of_ten(per_decade):
    powers = {round(10 ** (k / per_decade)) for k in range(4 * per_decade + 1)}
    assert due(LogSpaced(per_decade), 10_001) == sorted({0} | powers)


def test_log_spaced_steps_stay_on_the_powers_at_large_steps():
    n = 16
    step = round(10 ** (133 / n))
    assert LogSpaced(n).due(step, None)
    assert not LogSpaced(n).due(step + 1, None)
    assert math.isclose(n * math.log10(step), 133, abs_tol=1e-6)


def test_epochs():
    assert [EveryEpoch(3).due(100, epoch) for epoch in (1, 2, 3, 4, 6)] == [False, False, True, False, True]
    assert not EveryEpoch(1).due(0, None)


@pytest.mark.parametrize(
    ("short", "schedule"),
    [
        (5, Every(5)),
        ("log", LogSpaced(16)),
        ("epochs", EveryEpoch(1)),
        ([9, 3], AtSteps((3, 9))),
        (LogSpaced(2), LogSpaced(2)),
    ],
)
def test_short_forms(short, schedule):
    assert as_schedule(short) == schedule


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("wrong", ["often", [], [1.5], True, [[1]]])
def test_unknown_short_forms_are_rejected(wrong):
    with pytest.raises(InputError) as error:
        as_schedule(wrong)
    assert error.value.argument == "schedule"


@pytest.mark.parametrize("make", [Every, EveryEpoch, LogSpaced])
@pytest.mark.usefixtures("unchecked_types")
def test_periods_must_be_positive(make):
    with pytest.raises(InputError):
        make(0)

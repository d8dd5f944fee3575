from __future__ import annotations

import numpy as np

from dynascope.flows import diagonal_flow
from dynascope.flows.solvers import by_stiffness
from dynascope.tasks import Task

DRAW = np.random.default_rng(0)
INPUTS = DRAW.normal(size=(30, 3))
PLAIN = Task(INPUTS, INPUTS @ [[1.0], [-0.5], [0.3]])
UNITS = Task(INPUTS * [300.0, 1.0, 0.1], PLAIN.targets)


def steps_of(monkeypatch):
    """Which solvers are called, and with what."""
    called = []
    for name in ("follow", "follow_stiffly"):
        usual = getattr(by_stiffness, name)

        def noted(*arguments, name=name, usual=usual, **options):
            called.append(name)
            return usual(*arguments, **options)

        monkeypatch.setattr(by_stiffness, name, noted)
    return called


def curve(task, **options):
    return diagonal_flow(task, scale=1e-3, duration=60.0, tolerance=1e-7, **options)


def test_few_equations_are_solved_implicitly_and_many_only_where_explicit_steps_are_too_many(monkeypatch):
    called = steps_of(monkeypatch)
    small = curve(UNITS)
    assert called == ["follow_stiffly"]
    monkeypatch.setattr(by_stiffness, "_FEW", 2)
    monkeypatch.setattr(by_stiffness, "_PATIENCE", 5000)
    curve(PLAIN)
    assert called[1:] == ["follow"]
    handed_over = curve(UNITS)
    assert called[2:] == ["follow", "follow_stiffly"]
    # From the 5000th explicit step on; both within 1e-6, and read between the 4000 times that are kept.
    times = np.geomspace(1e-3, 60, 300)
    there = [np.interp(times, each["time"], each["loss"]) for each in (small, handed_over)]
    np.testing.assert_allclose(*there, rtol=0, atol=1e-3 * float(small["loss"][0]))
    assert np.all(np.diff(handed_over["time"]) > 0)


def test_a_solver_that_is_named_is_used(monkeypatch):
    called = steps_of(monkeypatch)
    explicit, stiff = (curve(PLAIN, solver=solver) for solver in ("explicit", "stiff"))
    assert called == ["follow", "follow_stiffly"]
    times = np.linspace(0, 60, 300)
    there = [np.interp(times, each["time"], each["loss"]) for each in (explicit, stiff)]
    np.testing.assert_allclose(*there, rtol=0, atol=1e-3 * float(stiff["loss"][0]))

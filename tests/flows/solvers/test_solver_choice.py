from __future__ import annotations

import numpy as np
import pytest

from dynascope.flows import diagonal_flow, linear_flow
from dynascope.flows.exact import neuron_bundles
from dynascope.flows.solvers import solver_choice
from dynascope.flows.solvers.explicit import TSITOURAS
from dynascope.flows.solvers.rosenbrock import ROSENBROCK
from dynascope.tasks import Task

DRAW = np.random.default_rng(0)
INPUTS = DRAW.normal(size=(30, 3))
PLAIN = Task(INPUTS, INPUTS @ [[1.0], [-0.5], [0.3]])
UNITS = Task(INPUTS * [300.0, 1.0, 0.1], PLAIN.targets)


def steps_of(monkeypatch):
    """By which steps flows are followed, one after the other."""
    called = []
    usual = solver_choice.integrate_adaptively

    def noted(flow, state, method, **options):
        called.append({ROSENBROCK: "stiff", TSITOURAS: "explicit"}[method])
        return usual(flow, state, method, **options)

    monkeypatch.setattr(solver_choice, "integrate_adaptively", noted)
    return called


def curve(task, **options):
    return diagonal_flow(task, scale=1e-3, duration=60.0, tolerance=1e-7, **options)


def test_few_equations_are_solved_implicitly_and_many_only_where_explicit_steps_are_too_many(monkeypatch):
    called = steps_of(monkeypatch)
    small = curve(UNITS)
    assert called == ["stiff"]
    monkeypatch.setattr(solver_choice, "_FEW", 2)
    monkeypatch.setattr(solver_choice, "_PATIENCE", 5000)
    curve(PLAIN)
    assert called[1:] == ["explicit"]
    handed_over = curve(UNITS)
    assert called[2:] == ["explicit", "stiff"]
    # From the 5000th explicit step on; both within 1e-6, and read between the 4000 times that are kept.
    times = np.geomspace(1e-3, 60, 300)
    there = [np.interp(times, each["time"], each["loss"]) for each in (small, handed_over)]
    np.testing.assert_allclose(*there, rtol=0, atol=1e-3 * float(small["loss"][0]))
    assert np.all(np.diff(handed_over["time"]) > 0)


def test_linear_networks_on_small_tables_are_followed_explicitly_as_long_as_that_takes_few_steps(monkeypatch):
    called = steps_of(monkeypatch)
    first, second = DRAW.normal(size=(3, 4)), DRAW.normal(size=(4, 1))
    options = {"scale": 1e-3, "duration": 60.0, "tolerance": 1e-6}
    explicit = linear_flow(PLAIN, first, second, **options)
    assert called == ["explicit"]
    monkeypatch.setattr(neuron_bundles, "_PATIENCE", 10)
    monkeypatch.setattr(solver_choice, "_AT_ONCE", 10)
    handed_over = linear_flow(PLAIN, first, second, **options)
    assert called[1:] == ["explicit", "stiff"]
    assert np.all(np.diff(handed_over["time"]) > 0)
    times = np.geomspace(1e-3, 60, 300)
    there = [np.interp(times, each["time"], each["loss"]) for each in (explicit, handed_over)]
    # Steps of 1e-6, read between the 4000 times that are kept.
    np.testing.assert_allclose(*there, rtol=0, atol=1e-5 * float(explicit["loss"][0]))


def test_a_solver_that_is_named_is_used(monkeypatch):
    called = steps_of(monkeypatch)
    explicit, stiff = (curve(PLAIN, solver=solver) for solver in ("explicit", "stiff"))
    assert called == ["explicit", "stiff"]
    times = np.linspace(0, 60, 300)
    there = [np.interp(times, each["time"], each["loss"]) for each in (explicit, stiff)]
    np.testing.assert_allclose(*there, rtol=0, atol=1e-3 * float(stiff["loss"][0]))


@pytest.mark.slow
def test_more_inputs_than_samples_are_followed_by_the_samples_and_alike():
    draw = np.random.default_rng(1)
    inputs = draw.normal(size=(5, 12))
    few = Task(inputs, inputs[:, :2] @ [[1.0], [-0.5]])
    # Every sample four times, in which case their moments, which are the same, are fewer.
    many = Task(np.tile(inputs, (4, 1)), np.tile(few.targets, (4, 1)))
    times = np.geomspace(1e-3, 60, 300)
    there = [
        np.interp(times, each["time"], each["loss"])
        for task in (few, many)
        for solver in ("explicit", "stiff")
        for each in [curve(task, solver=solver)]
    ]
    for each in there[1:]:
        # Steps of 1e-7, read between the 4000 times that are kept.
        np.testing.assert_allclose(each, there[0], rtol=0, atol=1e-3 * there[0][0])


def test_a_flow_that_may_take_so_many_operations_ends_after_these_and_says_how_many_it_took(monkeypatch):
    monkeypatch.setattr(solver_choice, "_FEW", 2)
    for solver in ("explicit", "stiff"):
        whole = curve(UNITS, solver=solver)
        most = whole.attrs["operations"] / 3
        ended = [curve(UNITS, solver=solver, operations=most, partial=True) for _ in range(2)]
        assert ended[0]["time"][-1] < whole["time"][-1]
        # It ends after a piece of its steps.
        assert ended[0].attrs["operations"] < whole.attrs["operations"]
        np.testing.assert_array_equal(ended[0]["loss"], ended[1]["loss"])

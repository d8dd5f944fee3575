"""Probes run within a time budget, and failing ones are named once."""

import dataclasses
import types
import warnings

import numpy as np
import pytest
from snapshots import probe, snapshot

from dynascope.diagnosis import RecorderWarning, probe_runner
from dynascope.diagnosis.probe_runner import ProbeRunner
from dynascope.errors import InputError


class Clock:
    now = 0.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(probe_runner, "time", types.SimpleNamespace(monotonic=clock.monotonic))
    return clock


def timed(clock, name, seconds):
    def measure(_):
        clock.now += seconds
        return {name: ([], clock.now)}

    return probe(name, measure)


def always(_):
    return True


def broken(_):
    raise ValueError("no such thing")


def test_without_a_limit_every_due_probe_runs(clock):
    runner = ProbeRunner([timed(clock, "one", 100.0), timed(clock, "two", 100.0)], max_overhead=None, strict=False)
    runner.first(snapshot())
    for _ in range(3):
        assert runner.row(snapshot(), always)[1] == {"one": 100.0, "two": 100.0}


def test_a_probe_that_is_not_due_is_nan(clock):
    runner = ProbeRunner([timed(clock, "one", 1.0), timed(clock, "two", 1.0)], max_overhead=None, strict=False)
    runner.first(snapshot())
    row, seconds = runner.row(snapshot(), lambda probe: probe.name == "two")
    assert np.isnan(row["one"])
    assert seconds == {"two": 1.0}


def test_the_budget_thins_expensive_probes_and_never_cheaper_ones(clock):
    runner = ProbeRunner([timed(clock, "slow", 2.0), timed(clock, "fast", 0.001)], max_overhead=0.1, strict=False)
    runner.first(snapshot())
    ran = {"slow": 0, "fast": 0}
    for _ in range(1000):
        clock.now += 1.0
        for name in runner.row(snapshot(), always)[1]:
            ran[name] += 1
    share = 2.0 * ran["slow"] / clock.now
    assert ran["fast"] == 1000
    assert 0.04 < share < 0.06  # half of the budget, because the rest is left to cheaper probes


def test_a_probe_without_a_limit_is_never_skipped(clock):
    free = dataclasses.replace(timed(clock, "free", 20.0), limited=False)
    runner = ProbeRunner([free, timed(clock, "limited", 20.0)], max_overhead=0.01, strict=False)
    runner.first(snapshot())
    rows = [runner.row(snapshot(), always)[1] for _ in range(5)]
    assert [*rows[0]] == ["free", "limited"]
    assert [[*row] for row in rows[1:]] == [["free"]] * 4


def test_the_first_snapshot_is_free(clock):
    runner = ProbeRunner([timed(clock, "slow", 60.0)], max_overhead=0.01, strict=False)
    runner.first(snapshot())
    assert runner.row(snapshot(), always)[1] == {"slow": 60.0}
    assert runner.row(snapshot(), always)[1] == {}


def test_a_probe_that_fails_at_first_is_dropped_and_named():
    runner = ProbeRunner(
        [probe("broken", broken), probe("good", lambda _: {"a": ([], 1.0)})], max_overhead=None, strict=False
    )
    with pytest.warns(RecorderWarning, match="'broken'.*no such thing") as found:
        first = runner.first(snapshot())
    assert len(found) == 1
    assert list(first) == ["a"]
    assert [each.name for each in runner.probes] == ["good"]


def test_a_probe_that_measures_nothing_at_first_is_dropped():
    runner = ProbeRunner([probe("empty", lambda _: {})], max_overhead=None, strict=False)
    assert runner.first(snapshot()) == {}
    assert runner.probes == []


def test_a_probe_that_fails_later_is_nan_and_named_once():
    healthy = True

    def measure(_):
        return {"a": (["layer"], np.ones(3, np.float32))} if healthy else broken(_)

    runner = ProbeRunner([probe("fragile", measure)], max_overhead=None, strict=False)
    runner.first(snapshot())
    healthy = False
    with pytest.warns(RecorderWarning, match="'fragile'") as found:
        rows = [runner.row(snapshot(), always) for _ in range(3)]
    assert len(found) == 1
    for row, seconds in rows:
        assert row["a"].shape == (3,)
        assert row["a"].dtype == np.float32
        assert np.isnan(row["a"]).all()
        assert seconds == {}
    healthy = True
    assert runner.row(snapshot(), always)[0]["a"].tolist() == [1, 1, 1]


def test_strict_runners_raise_the_error_of_the_probe():
    runner = ProbeRunner([probe("broken", broken)], max_overhead=None, strict=True)
    with pytest.raises(ValueError, match="no such thing"):
        runner.first(snapshot())


def test_notes_warn_once_and_raise_if_strict():
    runner = ProbeRunner([], max_overhead=None, strict=False)
    with pytest.warns(RecorderWarning):
        runner.note("the layer is odd")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        runner.note("the layer is odd")
    with pytest.raises(InputError, match="the layer is odd"):
        ProbeRunner([], max_overhead=None, strict=True).note("the layer is odd")

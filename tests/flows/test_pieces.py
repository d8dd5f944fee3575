from __future__ import annotations

import numpy as np
import pytest

from dynascope.flows import pieces

TIMES = np.linspace(0.0, 10.0, 21)


class Line:
    """A flow whose weight is the time, made so far in a piece as its solver is said to get."""

    def __init__(self, monkeypatch, **reach):
        self.reach, self.made, self.now = reach, [], 0.0
        monkeypatch.setattr(pieces.time, "monotonic", lambda: self.now)

    def __call__(self, begin, weights, solver, length):
        assert weights == begin
        self.made.append(solver)
        self.now += 1.0
        end = np.minimum(begin + self.reach[solver], 10.0)
        # What lies before the piece, or after it, is not to be looked at.
        curves = {"loss": np.where((begin <= TIMES) & (end >= TIMES), TIMES, end if end == 10.0 else -1.0)}
        result = {
            "curves": curves,
            "weights": end,
            "stop_time": np.asarray(end),
            "failure": np.asarray(2 if end < 10 else -1),
        }
        return result, bool(end < 10.0)


def test_pieces_join_to_the_whole(monkeypatch):
    line = Line(monkeypatch, explicit=3.0)
    times, result = pieces.in_pieces(line, np.zeros(()), TIMES, 10.0, 10**6, ["explicit"])
    assert len(line.made) == 4
    np.testing.assert_array_equal(times, TIMES)
    np.testing.assert_array_equal(result["curves"]["loss"], TIMES)
    assert result["failure"] == -1


def test_a_deadline_ends_it_after_the_piece_with_no_failure(monkeypatch):
    line = Line(monkeypatch, explicit=3.0)
    monkeypatch.setattr(pieces, "overdue", lambda: line.now >= 2.0)
    times, result = pieces.in_pieces(line, np.zeros(()), TIMES, 10.0, 10**6, ["explicit"])
    np.testing.assert_array_equal(times, TIMES[TIMES <= 6.0])
    np.testing.assert_array_equal(result["curves"]["loss"], times)
    assert result["failure"] == -1


def test_too_many_steps_are_a_failure(monkeypatch):
    _, result = pieces.in_pieces(Line(monkeypatch, explicit=3.0), np.zeros(()), TIMES, 10.0, 2000, ["explicit"])
    assert result["failure"] == 2


@pytest.mark.parametrize(("stiff", "most"), [(0.5, "stiff"), (0.02, "explicit")])
def test_the_solver_that_gets_farther_makes_most_of_a_long_way(monkeypatch, stiff, most):
    line = Line(monkeypatch, explicit=0.1, stiff=stiff)
    pieces.in_pieces(line, np.zeros(()), TIMES, 10.0, 10**6, ["explicit", "stiff"])
    assert line.made[0] == "explicit"
    assert {"explicit", "stiff"} == set(line.made)
    assert line.made.count(most) > 0.7 * len(line.made)

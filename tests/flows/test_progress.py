from __future__ import annotations

import contextlib
import itertools
import threading

import numpy as np
import pytest

from dynascope.flows import progress_listener, report_progress, track
from dynascope.networks.two_layer import TwoLayer
from dynascope.tasks import Task
from dynascope.training import Descent, descend

TASK = Task(np.eye(2), np.diag([2.0, 1.0]), name="two modes")


@pytest.fixture
def told():
    """What was told, to who listens for the whole test."""
    heard: list[tuple[float, float, str]] = []
    with progress_listener(lambda *each: heard.append(each)):
        yield heard


def test_what_is_told_is_heard_inside_and_not_after():
    heard = []
    with progress_listener(lambda *each: heard.append(each)):
        report_progress(1, 2, "steps")
    report_progress(2, 2, "steps")
    assert heard == [(1, 2, "steps")]


def test_the_inner_of_two_listeners_hears_and_then_the_outer_again(told):
    inner = []
    with progress_listener(lambda *each: inner.append(each)):
        report_progress(1, 9, "steps")
    report_progress(2, 9, "steps")
    assert (inner, told) == ([(1, 9, "steps")], [(2, 9, "steps")])


def test_what_an_item_tells_counts_as_a_part_of_it(told):
    for _ in track(["first", "second"], "networks"):
        report_progress(250, 1000, "steps")
    assert told == [(done, 2, "networks") for done in (0, 0.25, 1, 1.25, 2)]


def test_loops_within_loops_are_parts_of_parts(told):
    for _ in track([1, 2], "scales"):
        for _ in track([1, 2, 3, 4], "seeds"):
            report_progress(1, 2, "steps")
    assert told[:5] == [(done, 2, "scales") for done in (0, 0, 0.125, 0.25, 0.375)]
    assert [done for done, *_ in told] == sorted(done for done, *_ in told)
    assert told[-1] == (2, 2, "scales")


def test_an_item_is_not_done_before_its_end_whatever_is_told_inside(told):
    for _ in track(["only"], "networks"):
        report_progress(10, 10, "steps")
        report_progress(0, 0, "steps")
    assert [done for done, *_ in told] == [0, 0.99, 0, 1]


def test_a_loop_that_is_left_leaves_nothing_behind(told):
    for _ in track([1, 2], "networks"):
        break
    with contextlib.suppress(ZeroDivisionError):
        for _ in track([1, 2], "networks"):
            _ = 1 / 0
    report_progress(3, 4, "steps")
    assert told[-1] == (3, 4, "steps")


def test_nobody_has_to_listen_to_a_loop():
    assert list(track((1, 2, 3), "scales")) == [1, 2, 3]
    assert list(track((), "scales")) == []


def test_another_thread_has_its_own_listener(told):
    thread = threading.Thread(target=report_progress, args=(1, 2, "steps"))
    thread.start()
    thread.join()
    assert told == []


def test_descent_tells_its_steps_to_the_listener(told):
    method = Descent(learning_rate=0.01, steps=40, save=[0, 40])
    descend(TASK, TwoLayer(2, 4, 2), method)
    alone = list(told)
    assert alone[-1] == (40, 40, "steps")
    told.clear()
    for _ in track([1], "runs"):
        descend(TASK, TwoLayer(2, 4, 2), method)
    shares = [done for done, *_ in told]
    assert (shares[0], shares[-2:]) == (0, [0.99, 1])
    assert all(earlier <= later for earlier, later in itertools.pairwise(shares))

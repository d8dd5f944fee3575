from __future__ import annotations

import numpy as np
import pytest

from dynascope.alternating.events import Event, Jumps, listed


def event(time, loss, growth=1.0):
    return Event(time, loss, growth, [0], [], np.ones(1), np.zeros(1))


def grouped(events, *, initial_loss=1.0, **options):
    jumps = Jumps(**{"tie": 1.0, "least_drop": 1e-3, "least_growth": 1e-3, "unit": None, **options})
    loss = initial_loss
    for each in events:
        jumps.append(each, loss)
        loss = each.loss
    return [[each.time for each in group] for group in jumps.groups]


def test_events_within_an_e_fold_of_the_first_make_one_jump():
    # The e-fold of the last event is one half.
    assert grouped([event(10, 0.5), event(10.9, 0.4), event(11.5, 0.1)]) == [[10, 10.9], [11.5]]
    assert grouped([event(10, 0.5, 2.0), event(10.4, 0.4, 2.0), event(10.6, 0.1, 2.0)]) == [[10, 10.4], [10.6]]


def test_an_event_without_a_drop_belongs_to_the_jump_before():
    assert grouped([event(10, 0.5), event(20, 0.4995), event(30, 0.1)]) == [[10, 20], [30]]


def test_exponential_growth_may_be_judged_by_all_the_time_before():
    # With a rate of next to nothing the last e-fold is long, but ten e-folds in a time of 20 are two each.
    slow = [event(10, 0.5), event(20, 0.1, 1e-3)]
    assert grouped(slow) == [[10, 20]]
    assert grouped(slow, unit=10.0) == [[10], [20]]


@pytest.mark.parametrize(("count", "words"), [(2, "0, 1"), (10, "0, 1, 2, 3, 4, 5, 6, 7 and 2 more")])
def test_long_lists_are_cut(count, words):
    assert listed(range(count)) == words

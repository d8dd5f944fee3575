from __future__ import annotations

import numpy as np
import pytest

from dynascope.alternating.lockstep import Call, run_together
from dynascope.flows import progress_listener


def scaled(common, x, power):
    return {"x": common * x**power}


def until(limit, x):
    x, steps = np.asarray(x, float), 0
    while x < limit:
        answer = yield Call(scaled, (x,), (1,))
        x, steps = np.asarray(answer["x"]), steps + 1
    return float(x), steps


@pytest.mark.parametrize("together", [1, 2, 5])
def test_every_run_ends_as_it_would_alone(together):
    starts = [1.0, 3.0, 100.0, 7.0, 0.5]
    found = run_together([until(50, x) for x in starts], np.asarray(2.0), together=together)
    assert found == [run_together([until(50, x)], np.asarray(2.0))[0] for x in starts]
    assert found[2] == (100.0, 0)


def test_calls_of_other_shapes_and_settings_keep_apart():
    def run(x, power):
        answer = yield Call(scaled, (np.asarray(x),), (power,))
        return np.asarray(answer["x"]).tolist()

    cases = [([1.0, 2.0], 1), ([1.0, 2.0, 3.0], 1), ([3.0, 1.0], 2), ([5.0, 5.0], 1)]
    found = run_together([run(*case) for case in cases], np.asarray(1.0), together=3)
    assert found == [[1.0, 2.0], [1.0, 2.0, 3.0], [9.0, 1.0], [5.0, 5.0]]


def test_equal_calls_that_fill_no_batch_have_their_own_answers():
    def program(common, x):
        return common * x

    def run(x):
        return float((yield Call(program, (np.asarray(x),))))

    assert run_together([run(float(x)) for x in range(5)], np.asarray(2.0), together=4) == [0, 2, 4, 6, 8]


@pytest.mark.parametrize(("limits", "expected"), [((5.0, 20.0), [1, 2]), ((5.0,), [])])
def test_how_many_of_several_runs_have_ended_is_told(limits, expected):
    told = []
    with progress_listener(lambda *each: told.append(each)):
        run_together([until(limit, 1.0) for limit in limits], 2.0)
    assert told == [(done, 2, "members") for done in expected]

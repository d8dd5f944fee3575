"""The comparison of two recordings finds a change, and passes what recordings of the same code differ by."""

from __future__ import annotations

import collections
import copy

import baseline
import numpy as np
import pytest

VALUES = np.linspace(-1.0, 3.0, 50)


def report(error: float = 0.25, values: np.ndarray = VALUES, sentence: str = "It took 3 steps.") -> dict:
    check = {"verdict": "agree", "agreement": {"loss": {"error": error, "tolerance": 1.0}}, "curve": list(values)}
    arrays = {"/observed/loss": baseline.summary(values)}
    return {"exit": 0, "json": dict(baseline.flat(check)), "record": arrays, "page": ["Title", sentence]}


def found(after: dict, *before: dict) -> list[str]:
    return list(baseline.differences(list(before) or [report()], after, collections.Counter()))


def test_equal_reports_do_not_differ():
    assert found(report()) == []
    assert found(report(error=0.25 * (1 + 1e-12), values=VALUES * (1 + 1e-12))) == []


@pytest.mark.parametrize("place", range(0, 50, 7))
def test_one_entry_of_an_array_is_found(place):
    changed = VALUES.copy()
    changed[place] += 1e-6
    assert [line.split(":")[0] for line in found(report(values=changed))] == ["json/curve", "record/observed/loss"]


def test_a_sign_a_verdict_an_exit_code_and_a_missing_quantity_are_found():
    assert len(found(report(values=-VALUES))) == 2
    assert len(found(report(error=-0.25))) == 1
    for part, name in (("json", "/verdict"), ("json", "/agreement/loss/error"), ("record", "/observed/loss")):
        after = copy.deepcopy(report())
        del after[part][name]
        assert len(found(after)) == 1
    assert len(found(report() | {"exit": 1})) == 1


def test_noise_of_the_code_before_is_allowed_and_no_more():
    before = report(), report(error=0.25 + 1e-6)
    assert found(report(error=0.25 + 2e-6), *before) == []
    assert len(found(report(error=0.25 + 9e-6), *before)) == 1


def test_text_is_compared_and_unstable_numbers_are_not():
    assert len(found(report(sentence="It took 4 steps."))) == 1
    before = report(), report(sentence="It took 5 steps.")
    assert found(report(sentence="It took 4 steps."), *before) == []
    assert len(found(report(sentence="It took 4 hours."), *before)) == 1


def test_errors_that_are_rounding_may_differ():
    assert found(report(error=1e-14), report(error=3e-11)) == []

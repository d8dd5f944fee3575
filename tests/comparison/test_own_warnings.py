from __future__ import annotations

import re

import numpy as np
import pytest

from dynascope.comparison.own_warnings import fastest_growth, told_of_jumps, told_of_times
from dynascope.record import StaircaseView, make_record


def view(degree=2, **columns):
    values = {"jump_time": [1.0, 2.0], "loss_before": [1.0, 0.5], "loss_after": [0.5, 0.0], **columns}
    return StaircaseView(
        make_record(
            {name: (["jump"], each) for name, each in values.items()}, {"jump": [1, 2]}, attributes={"degree": degree}
        )
    )


def test_jumps_of_one_reason_are_told_together():
    told = list(told_of_jumps(["a", "", "b", "a"]))
    assert [re.findall(r"\d", each) for each in told] == [["1", "4"], ["3"]]
    assert [each.rpartition(" ")[2] for each in told] == ["a.", "b."]


def test_jumps_whose_reasons_differ_only_in_numbers_are_told_together():
    reasons = [f"the curve was logged every {gap} steps there" for gap in (60, 50, 7.5)]
    (told,) = told_of_jumps(reasons)
    assert re.findall(r"[\d.]*\d", told) == ["1", "3", "7.5", "60"]


@pytest.mark.parametrize(
    ("ratios", "told"),
    [
        ([2.0], True),
        ([0.5, 0.55], True),
        ([10.0, 9.0, np.nan], True),
        ([2.0, 1.0], False),
        ([1.2, 1.25], False),
        ([], False),
    ],
)
def test_a_factor_between_all_times_is_taken_for_that_of_the_learning_rate(ratios, told):
    said = list(told_of_times(np.array(ratios), 0.12))
    assert len(said) == told
    assert not told or "learning rate" in said[0]


def test_what_is_within_the_tolerance_is_no_mistake():
    assert not list(told_of_times(np.array([1.6]), 0.7))


def test_the_fastest_growth_is_that_of_the_theory_or_of_the_first_jump():
    assert fastest_growth(view(accelerated_time=[0.5, 2.0])) == 2
    assert fastest_growth(view(accelerated_time=[0.5, 2.0], growth_rate=[3.0, 4.0])) == 4
    assert fastest_growth(view(accelerated_time=[np.inf, np.nan])) == 0


@pytest.mark.parametrize("degree", [3, 4])
def test_what_blows_up_has_no_rate(degree):
    assert fastest_growth(view(degree, accelerated_time=[0.5, 2.0])) == 0

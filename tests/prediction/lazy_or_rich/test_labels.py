from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.prediction import label_of_run
from dynascope.prediction.lazy_or_rich.labels import Movement, label_of


@pytest.mark.parametrize(
    ("run", "doubled", "label"),
    [
        ((0.01, 0.01), (0.005, 0.005), "lazy"),
        ((0.01, 0.01), (0.009, 0.009), "undecided"),  # S is small and does not fall
        ((0.001, 0.001), (0.001, 0.001), "lazy"),
        ((0.06, 0.06), (0.04, 0.04), "rich"),
        ((0.06, 0.06), (0.02, 0.02), "undecided"),  # S is large and falls
        ((0.03, 0.03), (0.02, 0.02), "undecided"),
        ((0.01, 0.2), (0.005, 0.15), "delayed rich"),
        ((0.1, 0.2), (0.09, 0.15), "rich"),
    ],
)
def test_labels_follow_the_definition(run, doubled, label):
    assert label_of(Movement(*run), Movement(*doubled)) == label


def test_growth_of_the_loss_is_unstable_and_missing_distances_decide_nothing():
    assert label_of(Movement(0.3, 0.3, growth=4.1), Movement(0.3, 0.3)) == "unstable"
    nothing = Movement(math.nan, math.nan)
    assert label_of(nothing, nothing) == "undecided"
    assert label_of(Movement(0.3, 0.3), nothing) == "undecided"


@given(st.floats(0, 1))
def test_a_single_run_is_decided_only_if_most_pairs_of_runs_would_be(distance):
    label = label_of_run(distance)
    pair = {label_of(Movement(distance, distance), Movement(distance / by, distance / by)) for by in (1.01, 1.6, 4.0)}
    assert label == "undecided" or label in pair

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.interventions.rounds import (
    kept_after_each_round,
    largest_scores,
    pruned_in_rounds,
    require_reachable,
)


@given(seed=st.integers(0, 10**6), keep=st.integers(0, 30), levels=st.integers(1, 40))
def test_ties_are_kept_in_the_order_of_the_network(seed, keep, levels):
    draw = np.random.default_rng(seed)
    scores, mask = draw.integers(levels, size=30).astype(float), draw.uniform(size=30) < 0.8
    scores[draw.uniform(size=30) < 0.2] = -np.inf
    kept = np.flatnonzero(largest_scores(scores, keep, mask))
    places = np.flatnonzero(mask)
    expected = places[np.argsort(-scores[places], kind="stable")[:keep]]
    assert kept.tolist() == sorted(expected)


@given(weights=st.integers(1, 10**6), compression=st.floats(1, 1e4), rounds=st.integers(1, 20))
def test_the_schedule_falls_and_ends_at_the_requested_number(weights, compression, rounds):
    kept = kept_after_each_round(weights, compression, rounds)
    assert sorted(kept, reverse=True) == kept
    assert kept[-1] == round(weights * compression**-1.0)


def test_scores_that_are_not_finite_are_rejected():
    with pytest.raises(InputError, match="some weights are not finite"):
        pruned_in_rounds(lambda _: [np.array([np.nan, np.inf, -np.inf])], [(3,)], [1])


def test_a_compression_beyond_one_weight_per_layer_is_unreachable():
    require_reachable(5.0, [5, 5], allow_collapse=False)
    with pytest.raises(InputError, match=r"leaves fewer weights \(1\) than layers \(2\)") as error:
        require_reachable(8.0, [5, 5], allow_collapse=False)
    assert error.value.argument == "compression"
    require_reachable(8.0, [5, 5], allow_collapse=True)

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.comparison.interval import median_interval, student_half
from dynascope.errors import InputError


@pytest.mark.slow
@pytest.mark.parametrize("runs", [5, 6, 8, 9, 12, 17, 40])
@pytest.mark.parametrize("draw", ["normal", "exponential", "standard_cauchy"])
def test_the_interval_covers_the_median_at_least_as_often_as_it_says_whatever_the_distribution(runs, draw):
    trials, truth = 2000, np.log(2) if draw == "exponential" else 0.0
    drawn = getattr(np.random.default_rng(0), draw)(size=(trials, runs))
    covered = np.mean([low <= truth <= high for low, high in map(median_interval, drawn)])
    # Three standard errors of a share near 95 % of as many trials.
    assert covered > 0.95 - 3 * np.sqrt(0.95 * 0.05 / trials)
    # Ranks are whole: at 8 runs the next narrower pair would cover 93 %, and this one covers 99 %.
    assert covered <= 0.995 or runs == 5


def test_of_two_ranks_the_inner_one_would_not_do():
    values = np.arange(1.0, 21.0)
    # P(Binomial(20, 1/2) <= 5) = 0.0207, P(... <= 6) = 0.0577: ranks 6 and 15.
    assert median_interval(values) == (6.0, 15.0)
    # P(... <= 7) = 0.1316, P(... <= 8) = 0.2517.
    assert median_interval(values, 0.5) == (8.0, 13.0)


@given(st.lists(st.floats(-1e6, 1e6), min_size=0, max_size=5))
def test_of_fewer_than_six_runs_nothing_is_known_with_95_percent(runs):
    assert median_interval(np.array(runs)) == (-np.inf, np.inf)


@given(st.lists(st.floats(-1e6, 1e6), min_size=6, max_size=30), st.floats(0.1, 0.96))
def test_it_turns_with_the_runs_and_holds_their_middle(runs, confidence):
    low, high = median_interval(np.array(runs), confidence)
    assert low <= np.median(runs) <= high
    assert median_interval(-np.array(runs)[::-1], confidence) == (-high, -low)


def test_what_is_only_known_to_be_larger_leaves_the_lower_end_as_it_is():
    seen = np.array([3.0, 1.0, 2.0, 6.0, 4.0, 5.0, 7.0])
    later = np.where(seen > 5, np.inf, seen)
    assert median_interval(seen) == (1.0, 7.0)
    assert median_interval(later) == (1.0, np.inf)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, float("nan")])
def test_a_confidence_that_is_none_is_named(confidence):
    for call in (lambda: median_interval(np.arange(8.0), confidence), lambda: student_half(1.0, 8, confidence)):
        with pytest.raises(InputError) as caught:
            call()
        assert caught.value.argument == "confidence"

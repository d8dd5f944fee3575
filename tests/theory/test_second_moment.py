from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.theory.assumptions import SMALL_START, UNCORRELATED_INPUTS, WHITE_INPUTS
from dynascope.theory.second_moment import distance_from_white, largest_correlation, require_moment

TURN = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]


def test_distances_know_no_units_and_no_axes_where_they_should_not():
    moment = TURN @ np.diag([1.0, 2.0, 3.0]) @ TURN.T
    assert distance_from_white(moment) == pytest.approx(0.5)
    assert distance_from_white(1e-200 * moment) == pytest.approx(0.5)
    assert largest_correlation(moment) > 0.1
    assert largest_correlation(np.diag([1.0, 2.0, 0.0])) == 0
    # A constant factor on one input leaves correlations what they are.
    scale = np.diag([1e3, 1.0, 1e-3])
    assert largest_correlation(scale @ moment @ scale) == pytest.approx(largest_correlation(moment))


def test_inputs_that_are_all_zero_are_not_white():
    assert distance_from_white(np.zeros((2, 2))) == 1


def test_what_is_near_passes_what_is_not_quite_warns_and_what_is_far_is_refused(recwarn):
    require_moment(np.eye(3), [WHITE_INPUTS], "a.b")
    require_moment(np.diag([1.0, 1 + 1e-7]), [WHITE_INPUTS], "a.b")
    assert not recwarn.list
    with pytest.warns(UserWarning, match=r"a\.b .*deviation is 0\.1 "):
        require_moment(np.diag([1.1, 0.9]), [WHITE_INPUTS], "a.b")
    with pytest.raises(InputError, match=r"a\.b .*deviation is 0\.5 ") as caught:
        require_moment(np.diag([1.5, 0.5]), [WHITE_INPUTS], "a.b")
    assert caught.value.argument == "covariance"
    assert caught.value.value == pytest.approx(0.5)
    assert "whitened()" in str(caught.value.remedy)


def test_white_inputs_of_another_power_are_told_by_what_to_divide():
    with pytest.raises(InputError, match=r"deviation is 3 \(4\): divide the inputs by 2"):
        require_moment(4 * np.eye(2), [WHITE_INPUTS], "a.b")
    require_moment(4 * np.eye(2), [UNCORRELATED_INPUTS], "a.b")


def test_only_what_is_assumed_is_looked_at():
    skewed = np.array([[1.0, 0.9], [0.9, 1.0]])
    require_moment(skewed, [SMALL_START], "a.b")
    with pytest.raises(InputError, match="uncorrelated inputs"):
        require_moment(skewed, [UNCORRELATED_INPUTS], "a.b")


@pytest.mark.parametrize("bad", [[[1.0, 2.0]], [[np.nan]], [[1.0, 0.5], [0.0, 1.0]], -np.eye(2), "frob"])
def test_what_is_no_covariance_is_refused(bad):
    with pytest.raises(InputError) as caught:
        require_moment(bad, [WHITE_INPUTS], "a.b")
    assert caught.value.argument == "covariance"

from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import DivergenceError
from dynascope.prediction.theories.loss_record import settled_times


@pytest.mark.parametrize("rate", [1e-6, 1.0, 1e6])
def test_a_loss_is_followed_to_a_thousandth_of_its_fall_whatever_its_rate(rate):
    times = settled_times(lambda times: 0.5 + np.exp(-rate * times), floor=0.5, first=1.0)
    assert times[0] == 0
    # Between two of two hundred times.
    assert times[-1] == pytest.approx(np.log(1000) / rate, rel=0.05)
    assert np.all(np.diff(times) > 0)


def test_a_loss_that_never_reaches_its_floor_is_followed_to_where_it_rests():
    times = settled_times(lambda times: 0.7 + 0.3 * np.exp(-times), floor=0.0, first=1.0)
    assert times[-1] == pytest.approx(np.log(1000), rel=0.05)


def test_where_the_equation_ends_the_times_end():
    def loss(times):
        if times[-1] > 3:
            raise DivergenceError("too far", time=3.0, remedy="stop earlier")
        return np.exp(-0.1 * times)

    assert settled_times(loss, floor=0.0, first=1.0)[-1] <= 3


def test_interpolation_between_the_times_is_accurate_where_the_loss_falls_steeply():
    def loss(times):
        return 1 / (1 + np.exp(np.minimum(40 * (times - 1), 700.0)))

    times = settled_times(loss, floor=0.0, first=0.5)
    between = np.linspace(0, times[-1], 100_001)
    np.testing.assert_allclose(np.interp(between, times, loss(times)), loss(between), atol=1e-4)
    assert len(times) < 1000

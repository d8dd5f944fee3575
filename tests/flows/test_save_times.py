import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.flows.save_times import recorded_steps, recorded_times


def test_a_number_of_times_is_spread_over_the_duration():
    np.testing.assert_array_equal(recorded_times(5, 2.0), [0, 0.5, 1, 1.5, 2])
    np.testing.assert_array_equal(recorded_times(np.array(2), 3.0), [0, 3])


def test_given_times_and_steps_are_kept():
    assert recorded_times([0.5, 1], 2.0).dtype == np.float64
    np.testing.assert_array_equal(recorded_steps("steps", range(3), 2), [0, 1, 2])
    assert recorded_steps("steps", np.array([1], np.int8), 2).dtype == np.int64


@pytest.mark.parametrize("save", [1, 2.5, -3, [], [0.0, 3.0], [1.0, 1.0], [-1.0, 1.0], [0.0, np.nan]])
@pytest.mark.usefixtures("unchecked_types")
def test_times_that_cannot_be_recorded_are_refused(save):
    with pytest.raises(InputError) as caught:
        recorded_times(save, 2.0)
    assert caught.value.argument == "save"


@pytest.mark.parametrize("steps", [3, [], [0, 0], [1, 0], [-1, 0], [0, 9], [0.0, 1.0], [[0, 1]]])
def test_steps_that_cannot_be_recorded_are_refused(steps):
    with pytest.raises(InputError, match="between 0 and 8") as caught:
        recorded_steps("record_steps", steps, 8)
    assert caught.value.argument == "record_steps"

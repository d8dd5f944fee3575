import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.tasks.split import split_rows


@given(st.integers(4, 50), st.floats(0, 1), st.integers(0, 5))
def test_every_row_is_on_one_side_and_both_sides_are_in_order(samples, fraction, seed):
    test = round(samples * fraction)
    if not 2 <= test <= samples - 2:
        with pytest.raises(InputError, match=r"leaves at least two samples in each part|above 0 and below 1"):
            split_rows(samples, fraction, seed)
        return
    train_rows, test_rows = split_rows(samples, fraction, seed)
    assert len(test_rows) == test
    np.testing.assert_array_equal(np.sort(np.concatenate([train_rows, test_rows])), np.arange(samples))
    assert all((np.diff(rows) > 0).all() for rows in (train_rows, test_rows))


def test_rows_of_the_test_are_spread_evenly():
    counts = sum(np.bincount(split_rows(20, 0.25, seed)[1], minlength=20) for seed in range(800))
    # Five standard deviations of a binomial with 800 draws of probability 1/4.
    np.testing.assert_allclose(counts, 200, atol=5 * np.sqrt(800 * 0.25 * 0.75))


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("fraction", "seed", "argument"),
    [(np.nan, 0, "test_fraction"), (1.2, 0, "test_fraction"), (-0.5, 0, "test_fraction"), (0.5, -1, "seed")],
)
def test_bad_input_is_named(fraction, seed, argument):
    with pytest.raises(InputError) as error:
        split_rows(10, fraction, seed)
    assert error.value.argument == argument

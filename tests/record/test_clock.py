import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.record.clock import time_unit


@given(st.floats(1e-300, 0.999), st.integers(2, 6))
def test_the_normalised_flow_has_the_clock_of_degree_two(scale, degree):
    assert time_unit(scale, degree=degree, normalised=True) == time_unit(scale) == -math.log(scale)


@given(st.floats(1e-30, 0.999), st.integers(3, 6))
def test_it_is_the_time_to_grow_at_unit_utility(scale, degree):
    # r' = r^(κ−1) from r = α to infinity takes α^(2−κ)/(κ − 2).
    assert time_unit(scale, degree=degree) == pytest.approx(scale ** (2 - degree))


@pytest.mark.parametrize(
    ("scale", "degree", "argument"), [(1.0, 2, "scale"), (0.0, 2, "scale"), (0.1, 1, "degree"), (1e-200, 4, "scale")]
)
def test_what_has_no_clock_is_named(scale, degree, argument):
    with pytest.raises(InputError) as caught:
        time_unit(scale, degree=degree)
    assert caught.value.argument == argument

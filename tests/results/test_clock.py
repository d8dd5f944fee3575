import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.results.clock import is_exponential, other_scale, time_unit


@pytest.mark.slow
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


@pytest.mark.parametrize("scale", [0.5, 1e-8, 1e-300, 1e-303, 5e-324])
def test_the_other_scale_is_a_number_well_apart_from_the_first_and_below_one(scale):
    other = other_scale(scale)
    assert 0 < other < 1
    assert max(other / scale, scale / other) > 1e3


@pytest.mark.parametrize(("degree", "normalised"), [(2, False), (2, True), (3, True)])
def test_where_times_grow_as_a_logarithm_the_other_scale_is_far(degree, normalised):
    assert is_exponential(degree=degree, normalised=normalised)
    assert other_scale(1e-8, degree=degree, normalised=normalised, factor=1e-2) == 1e-10


@pytest.mark.parametrize("degree", [3, 4])
def test_where_times_grow_as_a_power_the_other_scale_is_near(degree):
    assert not is_exponential(degree=degree)
    assert other_scale(1e-2, degree=degree, divisor=2.0) == 5e-3

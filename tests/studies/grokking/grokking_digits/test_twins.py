import pytest

from dynascope.studies.grokking.grokking_digits.twins import power_of_two


@pytest.mark.parametrize(("factor", "power"), [(0.1, 0.125), (0.01, 2.0**-7), (0.99, 0.5), (8.0, 8.0), (1.0, 0.5)])
def test_factors_are_powers_of_two_other_than_one(factor, power):
    assert power_of_two(factor) == power

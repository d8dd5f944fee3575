from __future__ import annotations

import pytest

from dynascope.results.numbers import number, signed_percent


@pytest.mark.parametrize(
    ("value", "text"), [(3, "3"), (1234567, "1234567"), (0.0, "0"), (2e-9, "2 × 10⁻⁹"), (float("nan"), "–")]
)
def test_numbers_are_written_as_in_print(value, text):
    assert number(value) == text


def test_fewer_digits_can_be_asked_for():
    assert number(0.0012345, 2) == "0.0012"


def test_a_share_has_its_sign():
    assert [signed_percent(value) for value in (0.5, -0.001, float("inf"))] == ["+50.0 %", "−0.1 %", "–"]

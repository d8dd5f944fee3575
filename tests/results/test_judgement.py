from __future__ import annotations

import math

import pytest

from dynascope.results import Quantity


def test_an_error_agrees_within_the_tolerance_or_where_nothing_could_be_compared():
    assert Quantity(0.1, 0.1).agrees
    assert Quantity(math.nan, 0.1).agrees
    assert not Quantity(0.11, 0.1).agrees
    assert not Quantity(math.inf, 0.1).agrees


@pytest.mark.parametrize("error", [0.0, 0.2, math.inf, math.nan])
def test_a_quantity_comes_back_from_what_is_stored(error):
    quantity = Quantity(error, 0.1, "it is exact")
    found = Quantity.from_plain(quantity.to_plain())
    assert (found.agrees, found.judged, found.tolerance, found.reason) == (
        *(quantity.agrees, quantity.judged, 0.1, "it is exact"),
    )
    assert found.error == error or math.isnan(error)

from __future__ import annotations

import functools
import math
from typing import Annotated

import hypothesis
import numpy as np
import pytest
from annotated_types import Ge, Gt, Interval, Le, Lt
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.validation import require, require_choice, require_kind
from dynascope.validation.bounded import FiniteFloat, Fraction, OpenFraction, PositiveFloat, PositiveInt, Seed

NO_NUMBERS = ["3", None, 1j, np.array([1.0, 2.0]), [1.0], {}]
# Whole numbers below 2**53, which every type of number here holds exactly.
whole = st.integers(-(2**53), 2**53)
TYPES = st.sampled_from([int, float, np.float64, np.int64, np.asarray])


def test_require_raises_only_when_the_condition_fails():
    require(True, "a", argument="a", remedy="b")
    require(np.bool(True), "a", argument="a", remedy="b")
    with pytest.raises(InputError, match=r"^a is 3: choose 4\.$"):
        require(False, "a is 3", argument="a", value=3, remedy="choose 4")


@pytest.mark.parametrize("value", [1, 1e-300, np.float32(2.0), np.int64(3), np.array(4.0)])
def test_positive_numbers_of_any_type_pass(value):
    require_kind(PositiveFloat, width=value)


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, *NO_NUMBERS])
def test_what_is_not_a_finite_positive_number_is_refused_by_name(value):
    with pytest.raises(InputError, match="width is") as caught:
        require_kind(PositiveFloat, scale=1.0, width=value)
    assert caught.value.argument == "width"


@hypothesis.given(whole, st.sampled_from([int, np.int64, np.asarray]))
def test_an_integer_passes_from_its_bound_on(value, kind):
    require_kind(Annotated[int, Ge(value)], depth=kind(value))
    with pytest.raises(InputError, match="depth is") as caught:
        require_kind(Annotated[int, Ge(value + 1)], depth=kind(value))
    assert caught.value.argument == "depth"
    assert str(value + 1) in caught.value.remedy
    with pytest.raises(InputError, match=f"of at least {value - 2} and at most {value - 1}"):
        require_kind(Annotated[int, Interval(ge=value - 2, le=value - 1)], depth=kind(value))


@pytest.mark.parametrize("value", [3.0, np.float64(3.0), np.array(3.0), math.nan, *NO_NUMBERS])
def test_a_number_that_no_loop_can_count_to_is_no_integer_even_if_it_is_whole(value):
    with pytest.raises(InputError, match=r"depth is .*: choose an integer of at least 1") as caught:
        require_kind(PositiveInt, depth=value)
    assert caught.value.argument == "depth"


@hypothesis.given(st.floats(), st.floats(-1e3, 1e3), st.floats(0, 1e3), st.booleans(), st.booleans())
def test_a_number_passes_if_it_is_between_the_bounds(value, least, more, open_below, open_above):
    most = least + more
    inside = (least < value if open_below else least <= value) and (value < most if open_above else value <= most)
    low, high = (Gt if open_below else Ge)(least), (Lt if open_above else Le)(most)
    if inside:
        require_kind(Annotated[float, low, high], fraction=value)
    else:
        with pytest.raises(InputError, match="fraction is") as caught:
            require_kind(Annotated[float, low, high], fraction=value)
        assert caught.value.argument == "fraction"


@pytest.mark.parametrize("value", [0, 1])
def test_a_bound_counts_unless_it_is_open(value):
    require_kind(Fraction, fraction=value)
    with pytest.raises(InputError, match=f"fraction is {value}"):
        require_kind(OpenFraction, fraction=value)


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_what_is_no_number_is_between_no_bounds(value):
    with pytest.raises(InputError, match="fraction is") as caught:
        require_kind(Fraction, fraction=value)
    assert caught.value.argument == "fraction"


@hypothesis.given(st.floats(allow_nan=False, allow_infinity=False))
def test_finite_numbers_pass_as_finite(value):
    require_kind(FiniteFloat, balance=value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, *NO_NUMBERS])
def test_what_is_not_finite_is_refused_by_name(value):
    with pytest.raises(InputError, match=r"balance is .*: choose a finite number") as caught:
        require_kind(FiniteFloat, scale=1.0, balance=value)
    assert caught.value.argument == "balance"


@pytest.mark.slow
@hypothesis.given(st.text(), st.lists(st.text(), min_size=1, max_size=4, unique=True))
def test_a_choice_passes_if_it_is_one_and_else_all_are_named(value, choices):
    for each in choices:
        require_choice("kind", each, choices)
    if value not in choices:
        with pytest.raises(InputError) as caught:
            require_choice("kind", value, choices)
        assert caught.value.argument == "kind"
        assert all(repr(each) in caught.value.remedy for each in choices)


@pytest.mark.parametrize("value", [None, 3, ["relu"], {}])
def test_what_is_no_name_is_no_choice(value):
    with pytest.raises(InputError, match="kind is") as caught:
        require_choice("kind", value, {"relu": 1, "linear": 2})
    assert caught.value.argument == "kind"
    assert "'relu'" in caught.value.remedy
    assert "'linear'" in caught.value.remedy


@hypothesis.given(st.integers(0, 2**63 - 1), st.sampled_from([int, np.int64, np.asarray]))
def test_seeds_of_any_integer_type_pass(seed, kind):
    require_kind(Seed, seed=kind(seed))


@pytest.mark.parametrize(
    "check",
    [
        functools.partial(require_kind, PositiveFloat),
        functools.partial(require_kind, PositiveInt),
    ],
)
def test_a_number_as_text_is_shown_in_quotes(check):
    with pytest.raises(InputError, match=r"value is '0\.5': choose"):
        check(value="0.5")


@pytest.mark.parametrize("seed", [-1, 1.5, 1.0, np.array(1.5), "one", None])
def test_a_seed_that_is_no_whole_number_from_zero_is_named(seed):
    # Text is in quotes, as "0.5" would look like a number.
    named = repr(seed) if isinstance(seed, str) else seed
    with pytest.raises(InputError, match=f"seed is {named}") as caught:
        require_kind(Seed, seed=seed)
    assert caught.value.argument == "seed"

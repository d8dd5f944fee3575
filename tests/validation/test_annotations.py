from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import jax
import numpy as np
import numpy.typing as npt
import pytest
from annotated_types import Ge, Gt, Interval, IsFinite, Le, Len, Lt
from hypothesis import given
from hypothesis import strategies as st
from jax.typing import ArrayLike
from jaxtyping import Real
from numpy.typing import ArrayLike as NumPyArrayLike

from dynascope.errors import InputError
from dynascope.validation import checked
from dynascope.validation.annotations import bounds_of, check_of
from dynascope.validation.bounded import NonNegativeNumbers, PositiveFloat


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        (Annotated[float, Gt(0)], [1e-300, 3, np.float32(2)], [0, -1.0, math.nan, math.inf, 10**400, "1", None]),
        (Annotated[float, Ge(0), Lt(1)], [0, 0.5], [1.0, -1e-300]),
        (Annotated[float, Interval(gt=0, le=1)], [1, 0.5], [0, 1.5]),
        (Annotated[int, Ge(1)], [1, 3.0, np.int8(2), np.array(2)], [0, 2.5, True, "3", 2**64]),
        (IsFinite[float], [-1.0, 0], [math.inf]),
        (Annotated[ArrayLike, Gt(0), Le(2)], [1, [1.0, 2.0], np.eye(2) + 1], [[1, 3], 0.0, [math.nan, 1]]),
        (Annotated[Real[ArrayLike, " n"], Ge(0)], [[1, 2], np.zeros(0)], [1.0, np.eye(2), ["a"], [1j]]),
        (Annotated[float, Gt(0)] | None, [None, 1], [0.0, "a", [1.0]]),
        (tuple[Annotated[int, Ge(1)], ...], [(1, 2), [3]], [(1, 0), "12", 3]),
        (tuple[Annotated[float, Gt(0)], Annotated[float, Gt(0)]], [(1, 2), [3.0, 4]], [(1, 0), (1, 2, 3), [1]]),
        (Annotated[npt.ArrayLike, Gt(0)], [1, [1.0, 2.0], np.eye(2) + 1], [0.0, [[1], [1, 2]], "a", None]),
        (Annotated[Real[npt.ArrayLike, " n"], Ge(0)] | None, [None, [1, 2]], [1.0, np.eye(2), [-1.0], ["a"]]),
    ],
)
def test_numbers_outside_the_bounds_are_refused(kind, right, wrong):
    check = check_of(kind)
    assert check is not None
    for value in right:
        assert np.array_equal(np.asarray(check("rate", value), float), np.asarray(value, float), equal_nan=True)
    for value in wrong:
        with pytest.raises(InputError, match=r"^rate (is|has|contains) ") as caught:
            check("rate", value)
        assert caught.value.argument == "rate"


@given(st.floats(), st.floats(-10, 10), st.floats(-10, 10))
def test_scalars_and_arrays_have_the_same_bounds(value, one, other):
    low, high = sorted((one, other))
    allowed = low < value <= high
    for kind, given_value in ((float, value), (ArrayLike, np.array([value]))):
        check = check_of(Annotated[kind, Gt(low), Le(high)])
        assert check is not None
        if allowed:
            assert check("x", given_value) == given_value
        else:
            with pytest.raises(InputError):
                check("x", given_value)


def test_traced_values_pass_and_known_ones_become_arrays_of_floats():
    @checked
    def root(value: Annotated[ArrayLike, Ge(0)]):
        return value**0.5

    with jax.enable_x64(True):
        assert float(jax.grad(root)(4.0)) == 0.25
    assert root([4, 9]).tolist() == [2.0, 3.0]
    assert type(root(4)) is float
    with pytest.raises(InputError, match=r"value contains -1: choose finite numbers of at least 0"):
        root([-1])


@pytest.mark.parametrize("kind", [npt.ArrayLike, Real[npt.ArrayLike, "..."], np.ndarray, Real[np.ndarray, "..."]])
def test_annotations_of_numpy_give_numpy_arrays_and_reject_traced_values(kind):
    check = check_of(Annotated[kind, Ge(0)])
    assert check is not None
    for value in (2, [1, 2], np.float32(1.0), jax.numpy.ones(3)):
        array = check("x", value)
        assert type(array) is np.ndarray
        assert array.dtype == np.float64
    with jax.enable_x64(True), pytest.raises(InputError, match="x is traced by JAX"):
        jax.jit(lambda value: check("x", value))(1.0)


def test_numbers_beside_arrays_of_numpy_are_not_traced():
    @checked
    def power(x: Annotated[npt.ArrayLike, Gt(0)], exponent: Annotated[float, Gt(0)] | None = None):
        return x ** (exponent or 1.0)  # pyright: ignore[reportOperatorIssue]

    assert power(2, 3) == 8
    with pytest.raises(InputError, match="exponent is traced by JAX"):
        jax.grad(lambda exponent: power(2.0, exponent))(1.0)


def test_an_array_of_several_axes_is_a_row_of_arrays():
    check = check_of(Sequence[IsFinite[ArrayLike]] | None)
    assert check is not None
    assert [each.shape for each in check("weights", np.ones((3, 2, 1)))] == [(2, 1)] * 3
    with pytest.raises(InputError, match="weights"):
        check("weights", np.full((3, 2), np.nan))


@pytest.mark.parametrize("sizes", [(3, 4), [3, 4, 5], np.array([3, 4])])
def test_sizes_come_as_integers_in_a_list(sizes):
    found = check_of(Annotated[Sequence[Annotated[int, Ge(1)]], Len(2, 3)])("widths", sizes)  # pyright: ignore
    assert found == list(sizes)
    assert all(type(each) is int for each in found)


@pytest.mark.parametrize("sizes", [(3,), (1, 2, 3, 4), (3, 0), (3, -1), (3, 2.5), (3, None), "ab", 3, None])
def test_sizes_that_are_too_few_or_too_many_or_no_sizes_are_refused_by_name(sizes):
    check = check_of(Annotated[Sequence[Annotated[int, Ge(1)]], Len(2, 3)])
    with pytest.raises(InputError, match="widths") as caught:
        check("widths", sizes)  # pyright: ignore[reportOptionalCall]
    assert caught.value.argument == "widths"


class Rates(NamedTuple):
    first: Annotated[ArrayLike, Gt(0)] = 1.0
    second: Annotated[ArrayLike, Gt(0)] = 1.0


class Network(NamedTuple):
    weights: IsFinite[ArrayLike]
    rates: Rates = Rates()


def test_the_fields_of_a_named_tuple_are_checked_and_those_of_one_within_it():
    check = check_of(Network)
    assert check is not None
    network = check("network", Network([1.0, 2.0], Rates(second=[3, 4])))
    assert network.rates.second.tolist() == [3.0, 4.0]
    assert network.rates.first == 1.0
    for wrong, place in (
        (Network([np.nan]), "network.weights"),
        (Network([1.0], Rates(first=0.0)), "network.rates.first"),
        (Network([1.0], None), "network.rates"),
    ):
        with pytest.raises(InputError) as caught:
            check("network", wrong)
        assert caught.value.argument == place


def test_the_values_that_a_masked_array_hides_are_not_used():
    check = check_of(Annotated[ArrayLike, Ge(0)])
    assert check is not None
    with pytest.raises(InputError, match="masked"):
        check("x", np.ma.masked_array([1.0, 2.0], [False, True]))


@pytest.mark.parametrize("value", [2, [1, 2], np.float32(2), np.eye(2, dtype=np.float32), jax.numpy.ones(3)])
def test_numbers_for_numpy_come_as_arrays_of_64_bits(value):
    check = check_of(NonNegativeNumbers)
    assert check is not None
    found = check("x", value)
    assert isinstance(found, np.ndarray)
    assert found.dtype == np.float64
    assert np.array_equal(found, np.asarray(value))


def test_numbers_for_numpy_have_bounds_and_are_not_traced():
    check = check_of(Annotated[NumPyArrayLike, Gt(0), Le(1)])
    assert check is not None
    for wrong in (0, [0.5, 1.5], np.array([math.nan]), [[1.0], [1.0, 0.5]], "frob", np.array([1j])):
        with pytest.raises(InputError, match=r"^x "):
            check("x", wrong)
    for kind in (NonNegativeNumbers, PositiveFloat):
        known = check_of(kind)
        assert known is not None
        with pytest.raises(InputError, match="x is traced by JAX"):
            jax.eval_shape(lambda value, known=known: known("x", value), 1.0)


def test_bounds_are_those_of_the_annotation():
    assert bounds_of(Annotated[float, Ge(0), Lt(1)]) == (0, -math.inf, 1, math.inf)
    assert bounds_of(float) is None

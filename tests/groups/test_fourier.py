from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.groups import (
    cyclic,
    find_group,
    fourier_transform,
    irreducible_representations,
)

NAMES = ["C7", "D4", "Q8", "A4", "S4", "C3xQ8"]
ROUNDING = 1e-11  # sums of some dozen terms of order one, with matrices exact to 1e-14


def functions(name: str, seed: int) -> tuple:
    group = find_group(name)
    return group, np.random.default_rng(seed).normal(size=group.order)


@given(st.sampled_from(NAMES), st.integers(0, 1000))
def test_parseval(name, seed):
    group, x = functions(name, seed)
    irreps = irreducible_representations(group)
    coefficients = fourier_transform(group, x)
    power = sum(i.dimension * np.sum(np.abs(each) ** 2) for i, each in zip(irreps, coefficients, strict=True))
    assert np.isclose(power / group.order, x @ x, rtol=ROUNDING)


@given(st.sampled_from(NAMES), st.integers(0, 1000))
def test_convolution_becomes_a_product(name, seed):
    group, x = functions(name, seed)
    y = np.random.default_rng(seed + 1).normal(size=group.order)
    convolution = np.zeros(group.order)
    np.add.at(convolution, group.table, np.outer(x, y))
    products = [a @ b for a, b in zip(fourier_transform(group, x), fourier_transform(group, y), strict=True)]
    for got, expected in zip(fourier_transform(group, convolution), products, strict=True):
        np.testing.assert_allclose(got, expected, atol=ROUNDING * group.order)


def test_the_transform_on_a_cyclic_group_is_that_of_numpy():
    x = np.array([3.0, -1.0, 4.0, 1.0, -5.0, 9.0, 2.0])
    coefficients = np.array(fourier_transform(cyclic(7), x))[:, 0, 0]
    np.testing.assert_allclose(coefficients, np.fft.fft(x)[[0, 1, -1, 2, -2, 3, -3]], atol=ROUNDING)


def test_values_of_another_length_are_refused():
    with pytest.raises(InputError, match="values has shape"):
        fourier_transform(cyclic(3), [1.0, 2.0])

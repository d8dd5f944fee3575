from __future__ import annotations

import jax
import numpy as np
import pytest

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.theory import LayerRates
from dynascope.theory.balanced import layer_balance


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def test_rates_are_absorbed_by_the_sizes_of_the_layers():
    first, second = np.random.default_rng(0).normal(size=(2, 3, 3))
    slow = layer_balance(first, second, rates=LayerRates(0.5, 2.0))
    unit = layer_balance(first * 2**0.5, second / 2**0.5)
    np.testing.assert_allclose(slow, unit, rtol=1e-13)


def test_members_have_balances_of_their_own():
    first, second = np.random.default_rng(1).normal(size=(2, 4, 2, 2))
    together = layer_balance(first, second, rates=LayerRates([1.0, 2.0, 1.0, 2.0]))
    alone = layer_balance(first[1], second[1], rates=LayerRates(first=2.0))
    np.testing.assert_allclose([each[1] for each in together], alone, rtol=1e-13)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"first": np.ones(2)}, "first"),
        ({"second": np.ones((3, 2))}, "second"),
        ({"second": np.full((2, 2), np.inf)}, "second"),
        ({"rates": LayerRates(first=0.0)}, "rates.first"),
        ({"rates": LayerRates(second=np.ones(3)), "first": np.ones((2, 2, 2))}, "rates.second"),
    ],
)
def test_bad_input_is_named(change, argument):
    with pytest.raises(InputError) as caught:
        layer_balance(**{"first": np.eye(2), "second": np.eye(2)} | change)
    assert caught.value.argument == argument


def test_values_outside_the_domain_give_nan_where_they_are_traced():
    traced = jit(lambda first, rate: layer_balance(first, np.eye(2), rates=LayerRates(first=rate)))
    assert np.isfinite(traced(np.eye(2), 1.0)).all()
    assert np.isnan(traced(np.eye(2) * np.inf, 1.0)).all()
    assert np.isnan(traced(np.eye(2), -1.0)).all()

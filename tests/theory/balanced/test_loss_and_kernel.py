from __future__ import annotations

import jax
import numpy as np
import pytest

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.theory import LayerRates
from dynascope.theory.balanced import loss, ntk

TURN = np.array([[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]])
FIRST = np.array([[1.0, 0, 0], [0, 0.5, 0]]).T
SECOND = (TURN @ np.diag([2**0.5, 1.25**0.5])).T
MAP = np.array([[1, 0.5, -0.25], [0, -1, 0.5]]).T


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


@pytest.mark.slow
@pytest.mark.parametrize("rates", [(1.0, 1.0), (0.4, 2.5)])
def test_the_kernel_is_that_of_the_layers(rates):
    x = np.random.default_rng(5).normal(size=(4, 3))
    ratio = (rates[0] / rates[1]) ** 0.25
    first, second = FIRST * ratio, SECOND / ratio
    kernel = ntk(first, second, MAP, np.array([0.0]), x, rates=LayerRates(*rates))[0]

    def outputs(layers):
        return (x @ layers[0] @ layers[1]).T.ravel()

    jacobians = jax.device_get(jit(jax.jacobian(outputs))((first, second)))
    flat = [each.reshape(8, -1) for each in jacobians]
    expected = sum(rate * each @ each.T for rate, each in zip(rates, flat, strict=True))
    np.testing.assert_allclose(kernel, expected, rtol=0, atol=1e-12)


@pytest.mark.slow
def test_the_rest_of_the_loss_is_what_no_map_explains():
    power = float(np.sum(MAP**2)) + 0.6
    rest = loss(FIRST, SECOND, MAP, np.array([0.5]), target_power=power) - loss(FIRST, SECOND, MAP, np.array([0.5]))
    np.testing.assert_allclose(rest, 0.3, atol=1e-12)


@pytest.mark.slow
def test_each_member_may_have_targets_of_its_own_power():
    members, maps, powers = (np.stack([each] * 2) for each in (FIRST, SECOND)), np.stack([MAP, 2 * MAP]), [3.0, 12.0]
    together = loss(*members, maps, np.array([0.5]), target_power=powers)
    for one, target, power in zip(together, maps, powers, strict=True):
        np.testing.assert_allclose(one, loss(FIRST, SECOND, target, np.array([0.5]), target_power=power), rtol=1e-12)
    with pytest.raises(InputError, match=r"target_power is 3, which is below ‖Σ‖² = 10\.2"):
        loss(FIRST, SECOND, maps, np.array([0.5]), target_power=3.0)


@pytest.mark.usefixtures("unchecked_types")
def test_a_power_below_what_the_map_explains_gives_nan_where_it_is_traced():
    traced = jit(lambda power: loss(FIRST, SECOND, MAP, np.array([1.0]), target_power=power, steps=2))
    explained = np.sum(MAP**2)
    assert np.isfinite(traced(explained + 1)).all()
    assert np.isnan(traced(explained / 2)).all()

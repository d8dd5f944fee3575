from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.theory import LayerRates
from dynascope.theory.neuron.kernel import kernel_change
from dynascope.theory.neuron.regimes import regime, regime_along, rich_delay
from dynascope.theory.neuron.state import weights_of
from dynascope.theory.neuron.whitened import neuron_trajectory

TARGET = np.array([1.0, -0.5, 0.25])
EAST = np.array([1.0, 0.0])


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def test_escape_time_golden():
    time = rich_delay(0.1, np.array([0.5, 1.5, -1.0]), TARGET, rates=LayerRates(first=2.0, second=0.5))
    # Stored with eleven digits.
    np.testing.assert_allclose(time, 3.5942575174, rtol=0, atol=1e-10)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(
    size=st.floats(3, 30),
    output=st.floats(-0.3, 0.3),
    angle=st.floats(0.001, 0.3),
    output_rate=st.floats(0.3, 3),
    weight_rate=st.floats(0.3, 3),
)
def test_half_of_the_target_is_learned_at_the_escape_time(size, output, angle, output_rate, weight_rate):
    rates = LayerRates(first=weight_rate, second=output_rate)
    start = output, size * np.array([np.sin(angle), np.cos(angle)])
    told = regime(*start, EAST, rates=rates)
    at_escape = neuron_trajectory(*start, EAST, told.rich_delay, rates=rates)
    # What the formula leaves out is exponentially small in the delay.
    missed = 10 * np.exp(-told.rich_delay / told.fit_time) + 1e-10
    if told.rich_delay > told.fit_time:
        np.testing.assert_allclose(at_escape.coefficients[0], 0.5, rtol=0, atol=missed)


@pytest.mark.slow
def test_plateau_height_and_long_delay():
    # δ = −100: the leading order in 1/|λ| is off by 2e-4.
    angle = 1.4
    start = 0.0, 10 * np.array([np.cos(angle), np.sin(angle)])
    plateau = neuron_trajectory(*start, EAST, 0.2).excess_loss
    np.testing.assert_allclose(plateau, np.sin(angle) ** 2 / 2, rtol=1e-2)
    told = regime(*start, EAST)
    assert told.regime == "delayed rich"
    np.testing.assert_allclose(told.fit_time, 0.01, rtol=1e-12)


@pytest.mark.slow
def test_starts_without_delay_take_no_time_and_those_in_the_saddle_for_ever():
    outputs = np.array([2.0, 1.0, 0.1, 0.0, -1.0])
    weights = np.array([[0.5, 0.5], [1.0, 0.0], [3.0, 0.1], [0.0, 2.0], [1.0, 0.0]])
    assert rich_delay(outputs, weights, EAST).tolist() == [0, 0, 0, np.inf, np.inf]


@pytest.mark.slow
def test_each_regime_is_told_with_the_numbers_that_decide():
    outputs = np.array([20.0, 0.1, 0.1, 0.1])
    weights = np.array([[0.0, 0.1], [0.0, 0.1], [0.0, 5.0], [5.0, 0.1]])
    told = regime(outputs, weights, EAST)
    assert told.regime.tolist() == ["lazy", "rich", "delayed rich", "lazy"]
    assert told.status.tolist() == ["converges"] * 4
    assert told.fit_time[1] == np.inf
    late = neuron_trajectory(outputs, weights, EAST, 1e6)
    change = kernel_change(outputs, weights, late.output_weight, late.weights)
    # The same limit, by two ways.
    np.testing.assert_allclose(told.relative_change, change.relative_change, rtol=1e-10)
    np.testing.assert_allclose(told.relative_imbalance, outputs**2 - (weights**2).sum(axis=1), rtol=0, atol=1e-12)


@pytest.mark.slow
def test_the_thresholds_decide():
    start = 0.1, np.array([0.0, 5.0])
    told = regime(*start, EAST)
    assert regime(*start, EAST, change_threshold=1.01 * float(told.relative_change)).regime == "lazy"
    assert regime(*start, EAST, imbalance_threshold=-1.01 * float(told.relative_imbalance)).regime == "rich"
    assert regime(*start, EAST, delay_threshold=0.99 * float(told.fit_time / told.rich_delay)).regime == "rich"


@pytest.mark.slow
def test_starts_that_never_learn_are_told_by_their_status():
    told = regime(np.array([0.0, -1.0, 1.0]), np.array([[0.0, 3.0], [1.0, 0.0], [1.0, 0.0]]), EAST)
    assert told.status.tolist() == ["static", "saddle", "static"]
    assert told.relative_change.tolist() == [0, 1, 0]


@pytest.mark.slow
def test_escape_time_compiles_and_has_finite_derivatives():
    def time(a, w):
        return rich_delay(a, w, EAST)

    starts = [(0.1, [0.0, 5.0]), (0.0, [0.0, 2.0]), (2.0, [0.1, 0.1]), (0.1, [3.0, 0.0])]
    gradient_at = jit(jax.grad(time, (0, 1)))
    for a, w in starts:
        gradient = gradient_at(a, np.array(w))
        assert all(np.isfinite(value).all() for value in gradient)
    step, south = 1e-6, np.array([0.0, 5.0])
    numerical = (time(0.1 + step, south) - time(0.1 - step, south)) / (2 * step)
    # Second-order differences.
    np.testing.assert_allclose(gradient_at(0.1, south)[0], numerical, rtol=1e-7)


@pytest.mark.parametrize(
    ("arguments", "options", "name"),
    [
        ((0.0, [0.0, 0.0], EAST), {}, "initial_output"),
        ((1.0, [1.0, 0.0], [0.0, 0.0]), {}, "target"),
        ((1.0, [1.0, 0.0], [1.0]), {}, "target"),
        ((1.0, [np.inf, 0.0], EAST), {}, "initial_weights"),
        ((1.0, [1.0, 0.0], EAST), {"rates": LayerRates(second=0.0)}, "rates.second"),
        ((1.0, [1.0, 0.0], EAST), {"change_threshold": 0.0}, "change_threshold"),
        ((1.0, [1.0, 0.0], EAST), {"delay_threshold": np.nan}, "delay_threshold"),
        ((1.0, [1.0, 0.0], EAST), {"imbalance_threshold": -1.0}, "imbalance_threshold"),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_bad_input_is_refused_by_name(arguments, options, name):
    with pytest.raises(InputError) as failure:
        regime(*arguments, **options)
    assert failure.value.argument == name


@pytest.mark.slow
def test_values_outside_the_domain_give_nan_where_they_are_traced():
    time = jit(lambda a, w, target, rate: rich_delay(a, w, target, rates=LayerRates(second=rate)))
    w, target = np.array([0.5, 1.5, -1.0]), np.array([1.0, -0.5, 0.25])
    assert np.isfinite(time(0.1, w, target, 1.0))
    for outside in ((np.nan, w, target, 1.0), (0.1, w, 0 * target, 1.0), (0.1, w, target, -1.0)):
        assert np.isnan(time(*outside))


def test_regimes_along_paths_are_told_by_how_far_the_kernel_went_and_how_long_the_map_waited():
    times, target = np.linspace(0.0, 10.0, 11), np.array([1.0, 0.0])
    late, soon = ((times >= start)[:, None] * target for start in (5.0, 1.0))
    change = np.array([0.01, 3.0, 3.0, 3.0])[:, None] * np.ones(11)
    imbalances = np.array([-8.0, -8.0, -8.0, 8.0])
    found = regime_along(times, np.stack([late, late, soon, late]), change, imbalances, target)
    assert found.tolist() == ["lazy", "delayed rich", "rich", "rich"]


@pytest.mark.slow
def test_rounding_does_not_decide_the_regime_of_a_start_on_the_threshold():
    maps = 0.1 * np.array([[np.sin(angle), np.cos(angle)] for angle in np.linspace(0.05, 0.3, 12)])
    told = regime(*weights_of(maps, np.full(12, -4.0)), EAST)
    assert np.ptp(told.relative_imbalance) > 0
    times, change = np.linspace(0.0, 10.0, 11), np.full((12, 11), 3.0)
    late = np.broadcast_to((times >= 5.0)[:, None] * EAST, (12, 11, 2))
    along = regime_along(times, late, change, np.full(12, -4.0), EAST)
    assert set(told.regime) == set(along) == {"delayed rich"}


def test_weights_have_the_map_and_the_imbalances_that_are_asked_for():
    beta, imbalances = np.array([0.3, -0.2]), np.array([2.0, 0.0, -5.0])
    a, w = weights_of(beta, imbalances, rates=LayerRates(first=3.0, second=0.5))
    np.testing.assert_allclose(a[:, None] * w, np.broadcast_to(beta, (3, 2)), rtol=1e-14)
    np.testing.assert_allclose(3.0 * a**2 - 0.5 * np.sum(w**2, axis=1), imbalances, atol=1e-14)

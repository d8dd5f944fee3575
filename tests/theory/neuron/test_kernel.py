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
from dynascope.theory.neuron.whitened import neuron_limit, neuron_trajectory

TARGET = np.array([1.0, -0.5, 0.25])
START = (0.3, np.array([0.2, -0.1, 0.4]))

seeds = st.integers(0, 10**6)


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


@pytest.mark.slow
def test_distance_golden():
    run, limit = neuron_trajectory(*START, TARGET, 1.0), neuron_limit(*START, TARGET)
    # Stored with twelve digits.
    np.testing.assert_allclose(kernel_change(*START, *run[:2]).distance, 0.0787383374005, rtol=0, atol=1e-11)
    np.testing.assert_allclose(kernel_change(*START, *limit[:2]).distance, 0.174311627849, rtol=0, atol=1e-11)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(seed=seeds, output_rate=st.floats(0.2, 3), weight_rate=st.floats(0.2, 3))
def test_both_measures_agree_with_the_kernel_on_whitened_samples(seed, output_rate, weight_rate):
    draw = np.random.default_rng(seed)
    x = np.linalg.qr(draw.normal(size=(6, 3)))[0] * np.sqrt(6)
    states = [(draw.normal(), draw.normal(size=3)) for _ in range(2)]
    first, second = (x @ (weight_rate * a**2 * np.eye(3) + output_rate * np.outer(w, w)) @ x.T for a, w in states)
    change = kernel_change(*states[0], *states[1], rates=LayerRates(first=weight_rate, second=output_rate))
    norms = np.linalg.norm(first), np.linalg.norm(second)
    # Roundings of order-one numbers; the direct distance cancels.
    np.testing.assert_allclose(change.distance, 1 - np.sum(first * second) / np.prod(norms), rtol=0, atol=1e-13)
    np.testing.assert_allclose(change.relative_change, np.linalg.norm(second - first) / norms[0], rtol=1e-12)


@pytest.mark.parametrize("dimension", [1, 2, 30])
def test_a_balanced_neuron_turns_its_kernel_by_the_angle_over_the_dimension(dimension):
    first, second = np.random.default_rng(0).normal(size=(2, dimension))
    norms = np.linalg.norm(first), np.linalg.norm(second)
    sine_square = 1 - (first @ second / np.prod(norms)) ** 2
    change = kernel_change(float(norms[0]), first, -float(norms[1]), second)
    # Roundings of order-one numbers.
    np.testing.assert_allclose(change.distance, sine_square / (dimension + 3), rtol=0, atol=1e-14)


def test_small_changes_keep_their_digits():
    turned = kernel_change(1.0, np.array([1.0, 0.0]), 1.0, np.array([1.0, 1e-9]))
    # ‖K₀‖² = d + 3 = 5 at balance, and K changes by 1e-9 in two entries; the next order is 1e-9 smaller.
    np.testing.assert_allclose(turned.distance, 1e-18 / 5, rtol=1e-8)
    np.testing.assert_allclose(turned.relative_change, np.sqrt(2e-18 / 5), rtol=1e-8)


@pytest.mark.slow
def test_states_of_any_size_are_compared_and_equal_ones_have_finite_derivatives():
    tiny = kernel_change(1e-100, np.array([1e-100, 0.0]), 3.0, np.array([3.0, 0.0]))
    np.testing.assert_allclose([tiny.distance, tiny.relative_change], [0, 9e200], rtol=1e-12)
    gone = kernel_change(1e100, np.array([1e100, 0.0]), 0.0, np.array([0.0, 1e-200]))
    np.testing.assert_allclose(gone.relative_change, 1, rtol=1e-12)
    gradient = jax.grad(lambda w: kernel_change(0.3, w, 0.3, 1.0 * w).relative_change)(np.array([1.0, 0.0]))
    assert np.isfinite(gradient).all()


@pytest.mark.slow
def test_times_are_compared_in_one_call():
    run = neuron_trajectory(*START, TARGET, np.linspace(0, 3, 4))
    change = jit(kernel_change)(*START, run.output_weight, run.weights)
    assert change.distance.shape == change.relative_change.shape == (4,)
    # The closed form at time zero has a rounding.
    np.testing.assert_allclose(change.relative_change[0], 0, atol=1e-14)
    assert np.all(np.diff(change.distance) > 0)


@pytest.mark.parametrize(
    ("arguments", "rates", "name"),
    [
        ((0.0, [0.0, 0.0], 1.0, [1.0, 1.0]), {}, "initial_output"),
        ((1.0, [1.0, 0.0], 0.0, [0.0, 0.0]), {}, "output"),
        ((1.0, [1.0, 0.0], 0.0, [0.0, 0.0, 1.0]), {}, "weights"),
        ((1.0, [1.0, 0.0], [1.0, 2.0], np.ones((3, 2))), {}, "output"),
        ((1.0, [np.nan, 0.0], 1.0, [0.0, 1.0]), {}, "initial_weights"),
        ((1.0, [1.0, 0.0], 1.0, [0.0, 1.0]), {"rates": LayerRates(first=0.0)}, "rates.first"),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_bad_input_is_refused_by_name(arguments, rates, name):
    with pytest.raises(InputError) as failure:
        kernel_change(*arguments, **rates)
    assert failure.value.argument == name


@jit
def traced(a, w, b, v, rate):
    return kernel_change(a, w, b, v, rates=LayerRates(first=rate))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "value"), [(0, np.nan), (1, [np.inf, 0.0]), (2, -np.inf), (3, [np.nan, 1.0]), (4, 0.0)]
)
def test_values_outside_the_domain_give_nan_where_they_are_traced(place, value):
    given = [0.3, np.array([1.0, 0.5]), 0.4, np.array([0.2, 1.0]), 2.0]
    given = [np.asarray(each, float) for each in given]
    assert np.isfinite(traced(*given)).all()
    given[place] = np.asarray(value, float)
    assert np.isnan(traced(*given)).all()


def test_a_traced_state_without_a_kernel_gives_nan():
    assert np.isnan(jit(kernel_change)(1.0, np.ones(2), 0.0, np.zeros(2))).all()

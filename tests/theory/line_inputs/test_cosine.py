from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.compilation import jit
from dynascope.theory import LayerRates
from dynascope.theory.line_inputs import LineData, LineNetwork, alignment_change, layer_cosine, line_trajectory

FIRST = np.array([[0.3, 0.1], [-0.5, 0.2], [0.2, 0.4]]).T
SECOND = np.array([0.4, -0.2, 0.1])
DATA = LineData(np.array([0.6, 0.8]), 2.0, 0.6)
NETWORK = LineNetwork(FIRST, SECOND, 1.5, LayerRates(2.0, 0.5))
TIMES = np.linspace(0, 2, 30)

draws = st.lists(st.floats(-1.5, 1.5).filter(lambda w: abs(w) > 1e-3), min_size=6, max_size=6)


def test_alignment_golden():
    found = layer_cosine(NETWORK, DATA, np.array([0.0, 0.1, 0.3]), prefactor=1.0)
    # Golden numbers are stored with 12 digits behind the point.
    np.testing.assert_allclose(found, [0.724777109624, 0.852685199049, 0.910985086655], rtol=0, atol=1e-11)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(draws, st.floats(-2, 2), st.floats(0.2, 3), st.floats(0.2, 3))
def test_alignment_is_the_monotone_cosine_between_the_layers(weights, slope, first_rate, second_rate):
    second, along = np.array(weights[:3]), np.array(weights[3:])
    data, rates = LineData(np.ones(1), 1.3, slope), {"rates": LayerRates(first_rate, second_rate)}
    found = np.asarray(layer_cosine(LineNetwork(along[None], second, **rates), data, TIMES))
    run = line_trajectory(LineNetwork(along[None], second, **rates), data, TIMES)
    v, u = np.asarray(run.first)[:, 0], np.asarray(run.second)
    lengths = np.linalg.norm(u, axis=1) * np.linalg.norm(v, axis=1)
    # A cosine is known no better than rounding of the weights over the lengths of the layers.
    np.testing.assert_allclose(found * lengths, np.sum(u * v, axis=1), rtol=0, atol=1e-12)
    change = alignment_change(LineNetwork(along[None], second, **rates), data)
    assert np.all(change.sign * np.diff(found) >= -1e-12)
    assert np.sign(np.round(change.size, 12)) in (0, change.sign)
    np.testing.assert_allclose(change.initial, found[0], rtol=0, atol=1e-12)


@pytest.mark.slow
def test_change_of_alignment_is_what_training_ends_with():
    change = alignment_change(NETWORK, DATA)
    # Two hundred time constants of about a quarter.
    np.testing.assert_allclose(change.final, layer_cosine(NETWORK, DATA, 50.0), rtol=0, atol=1e-12)
    np.testing.assert_allclose(change.size, change.final - 0.724777109624, rtol=0, atol=1e-11)
    assert change.sign == 1


@pytest.mark.parametrize("slope", [-1.0, -0.1, 0.1, 1.0])
def test_the_change_depends_on_target_and_start_only_and_not_on_the_rates(slope):
    data = DATA._replace(target=slope)
    changes = [
        alignment_change(LineNetwork(FIRST, SECOND, rates=LayerRates(rate, 1 / rate)), data) for rate in (0.1, 1.0, 5.0)
    ]
    assert {float(change.sign) for change in changes} == {np.sign(slope - 0.176)}
    assert all(np.sign(change.size) == change.sign for change in changes)
    np.testing.assert_allclose([change.size for change in changes], changes[0].size, rtol=1e-12)


def test_training_confirms_that_rates_do_not_change_the_final_alignment(line_samples, integrate):
    inputs, targets, data = line_samples(0.6)
    times = np.array([0.0, 30.0])
    for first_rate, second_rate in ((3.0, 0.2), (1.0, 1.0)):
        network = LineNetwork(FIRST, SECOND, rates=LayerRates(first_rate, second_rate))
        w, u = (weights[-1] for weights in integrate(network, inputs, targets, times, prefactor=1.0))
        v = data.direction @ w
        final = alignment_change(LineNetwork(FIRST, SECOND), data).final
        # By then training is within e⁻²⁰ of its end.
        np.testing.assert_allclose(u @ v / np.linalg.norm(u) / np.linalg.norm(v), final, rtol=0, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("slope", [-0.7, 0.0, 0.7])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("factor", [1.0, 0.4])
def test_parallel_layers_stay_parallel(sign, slope, factor):
    first, data = sign * factor * np.outer(DATA.direction, SECOND), DATA._replace(target=slope)
    times = np.array([0.0, 0.1, 1e3, 1e6])
    found = np.asarray(layer_cosine(LineNetwork(first, SECOND), data, times))
    change = alignment_change(LineNetwork(first, SECOND), data)
    np.testing.assert_array_equal(np.abs(found), 1.0)
    np.testing.assert_array_equal([change.initial, change.final], found[[0, -1]])
    # With one layer longer than the other θ passes through zero, and the shorter layer turns over at once.
    turns_over = factor != 1 and slope * sign < 0
    assert change.sign == (np.sign(slope) if turns_over else 0)


@pytest.mark.slow
def test_a_layer_without_weights_has_no_direction_until_it_moves():
    found = layer_cosine(LineNetwork(FIRST, 0 * SECOND), DATA, np.array([0.0, 1e-3, 1.0]))
    np.testing.assert_array_equal(found, [0.0, 1.0, 1.0])
    np.testing.assert_array_equal(layer_cosine(LineNetwork(0 * FIRST, 0 * SECOND), DATA, np.array([0.0, 1.0])), 0.0)
    assert alignment_change(LineNetwork(0 * FIRST, 0 * SECOND), DATA).sign == 0


def test_wide_networks_of_large_weights_stay_orthogonal():
    draw = np.random.default_rng(0)
    first, second = draw.normal(size=(2, 10_000)), draw.normal(size=10_000)
    change = alignment_change(LineNetwork(first, second, multiplier=0.01), DATA)
    assert abs(change.initial) < 0.05
    assert abs(change.final) < 0.05


def test_alignment_of_tiny_starts_is_that_of_their_limit():
    found = [
        layer_cosine(LineNetwork(s * FIRST, s * SECOND), DATA, np.array([0.0, 0.5, 500.0]))
        for s in (1e-8, 1e-120, 1e-200)
    ]
    np.testing.assert_allclose(found[1], found[0], rtol=1e-7)
    np.testing.assert_allclose(found[2], found[0], rtol=1e-7)


@pytest.mark.slow
def test_alignment_has_finite_derivatives_also_at_parallel_layers():
    parallel = np.outer(DATA.direction, SECOND)
    gradient = jit(jax.grad(lambda second, first: layer_cosine(LineNetwork(first, second), DATA, 0.3)))
    for first in (FIRST, parallel, -parallel, 0 * parallel):
        assert np.isfinite(gradient(SECOND, first)).all()

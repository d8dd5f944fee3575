from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm

from dynascope.theory.staircase.bundles import Bundles

seeds = st.integers(0, 10**6)
# Log-norms that an ordinary factorisation handles, that need rotations, and that underflow beside each other.
spreads = st.sampled_from([0.0, 2.0, 20.0, 400.0])


def random_bundles(seed, spread=0.0, *, inputs=3, outputs=2, count=4):
    draw = np.random.default_rng(seed)
    residual = draw.normal(size=(outputs, inputs))
    directions = draw.normal(size=(inputs + outputs, count))
    log_norms = spread * draw.uniform(-1, 0, size=count)
    return residual, Bundles(directions / np.linalg.norm(directions, axis=0), log_norms)


def second_moment(directions, log_norms):
    """Σ θ θᵀ over the neurons, which no rotation of neurons among themselves changes."""
    return (directions * np.exp(2 * log_norms)) @ directions.T


def generator(residual):
    outputs, inputs = residual.shape
    return np.block([[np.zeros((inputs, inputs)), residual.T], [residual, np.zeros((outputs, outputs))]])


def test_bundles_hold_the_neurons():
    neurons = np.array([[3.0, 0.0, 0.0], [4.0, 0.0, 2.0]])
    bundles = Bundles.from_neurons(neurons, -500.0)
    # The neuron without weights is dropped.
    np.testing.assert_allclose(bundles.directions, [[0.6, 0.0], [0.8, 1.0]])
    np.testing.assert_allclose(bundles.log_norms, np.log([5.0, 2.0]) - 500)


@given(seeds, spreads)
def test_ordering_is_a_rotation_of_the_neurons(seed, spread):
    residual, bundles = random_bundles(seed, spread)
    ordered = bundles.ordered(residual, 4)
    before = second_moment(bundles.directions, bundles.log_norms)
    after = second_moment(ordered.basis @ ordered.columns, ordered.log_norms)
    np.testing.assert_allclose(after, before, rtol=0, atol=1e-13 * before.max())


@given(seeds, spreads)
def test_each_bundle_has_no_part_in_faster_directions(seed, spread):
    residual, bundles = random_bundles(seed, spread)
    ordered = bundles.ordered(residual, 4)
    np.testing.assert_allclose(np.linalg.norm(ordered.columns, axis=0), 1)
    np.testing.assert_allclose(np.triu(ordered.columns, 1), 0, atol=1e-13)
    # Directions and rates solve the frozen flow, the fastest first.
    assert np.all(np.diff(ordered.rates) <= 0)
    np.testing.assert_allclose(generator(residual) @ ordered.basis, ordered.basis * ordered.rates, atol=1e-12)


@given(seeds)
def test_small_bundle_beside_a_large_one_keeps_its_digits(seed):
    # As the ratio of sizes goes to zero, the large bundle stays and the small one loses what clears its entry.
    residual, bundles = random_bundles(seed, count=2)
    unequal = Bundles(bundles.directions, np.array([-400.0, 0.0]))
    ordered = unequal.ordered(residual, 2)
    small, large = (ordered.basis.T @ unequal.directions).T
    cleared = small - large * small[0] / large[0]
    # The sign of a bundle is free.
    np.testing.assert_allclose(np.abs(ordered.columns[:, 0] @ large), 1, rtol=1e-12)
    np.testing.assert_allclose(np.abs(ordered.columns[:, 1] @ cleared), np.linalg.norm(cleared), rtol=1e-12)
    np.testing.assert_allclose(ordered.log_norms, [0.0, -400 + np.log(np.linalg.norm(cleared))], rtol=1e-13, atol=1e-12)
    np.testing.assert_allclose(ordered.first_log_amplitude, np.log(np.abs(large[0])), rtol=1e-9, atol=1e-12)


@given(seeds, st.sampled_from([0.0, 2.0, 20.0]), st.floats(0, 3))
def test_growth_agrees_with_the_matrix_exponential(seed, spread, duration):
    residual, bundles = random_bundles(seed, spread)
    ordered = bundles.ordered(residual, 4)
    others = ordered.others_after(duration)
    grown = expm(generator(residual) * duration) @ (ordered.basis @ ordered.columns)
    exact = second_moment(grown[:, 1:], ordered.log_norms[1:])
    np.testing.assert_allclose(
        second_moment(others.directions, others.log_norms), exact, rtol=0, atol=1e-11 * np.abs(exact).max()
    )
    np.testing.assert_allclose(np.linalg.norm(others.directions, axis=0), 1)


def test_growth_over_a_thousand_e_folds_neither_overflows_nor_mixes():
    residual, bundles = random_bundles(0)
    ordered = bundles.ordered(residual, 2)
    duration = 1000 / ordered.rates[0]
    others = ordered.others_after(duration)
    # The second bundle turns to the second direction and grows at its rate.
    np.testing.assert_allclose(np.abs(ordered.basis[:, 1] @ others.directions[:, 0]), 1)
    expected = ordered.log_norms[1] + np.log(np.abs(ordered.columns[1, 1])) + ordered.rates[1] * duration
    np.testing.assert_allclose(others.log_norms, expected, rtol=1e-12)


def test_more_neurons_than_weights_leave_as_many_bundles_as_weights():
    residual, bundles = random_bundles(1, count=40)
    ordered = bundles.ordered(residual, 5)
    assert ordered.columns.shape == (5, 5)
    np.testing.assert_allclose(
        second_moment(ordered.basis @ ordered.columns, ordered.log_norms),
        second_moment(bundles.directions, bundles.log_norms),
        atol=1e-12,
    )


@pytest.mark.parametrize("gap", [0.0, 50.0, 2000.0])
def test_exact_zeros_and_copies_stay_finite(gap):
    # Σyx diagonal: the fastest direction is (e₁, e₁)/√2, in which the larger of the neurons has no part.
    residual = np.diag([2.0, 1.0])
    first, second = np.array([1.0, 0, 1, 0]) / np.sqrt(2), np.array([0, 1.0, 0, 1]) / np.sqrt(2)
    ordered = Bundles(np.stack([second, first], axis=1), np.array([0.0, -gap])).ordered(residual, 2)
    np.testing.assert_allclose(np.abs(ordered.basis[:, 0] @ first), 1)
    np.testing.assert_allclose(ordered.log_norms, [-gap, 0.0], atol=1e-12)
    copies = Bundles(np.stack([first, first], axis=1), np.array([0.0, -gap])).ordered(residual, 1)
    np.testing.assert_allclose(copies.log_norms, np.log1p(np.exp(-2 * gap)) / 2, atol=1e-12)
    np.testing.assert_allclose(np.abs(copies.columns[0, 0]), 1)

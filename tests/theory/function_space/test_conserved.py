from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.theory import LayerRates
from dynascope.theory.function_space import (
    conserved_matrices,
    conserved_matrix,
    preconditioner_matrix,
    single_output_preconditioner,
)

RATES = LayerRates(0.6, 1.7)


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_conserved_matrix_does_not_move_along_any_gradient(seed):
    draw = np.random.default_rng(seed)
    first, second, gradient = draw.normal(size=(3, 4)), draw.normal(size=(4, 2)), draw.normal(size=(3, 2))
    step = 1e-3

    def after(size):
        moved = first - size * 0.6 * gradient @ second.T, second - size * 1.7 * first.T @ gradient
        return np.asarray(conserved_matrix(*moved, rates=RATES))

    # A central difference drops the second order, which is all there is besides rounding.
    slope = (after(step) - after(-step)) / (2 * step)
    np.testing.assert_allclose(slope, 0, atol=1e-10)
    assert np.abs(after(step) - after(0)).max() > 1e-9


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_preconditioner_turns_the_gradient_into_the_motion_of_the_map(seed):
    draw = np.random.default_rng(seed)
    first, second, gradient = draw.normal(size=(3, 4)), draw.normal(size=(4, 2)), draw.normal(size=(3, 2))
    motion = -0.6 * gradient @ second.T @ second - 1.7 * first @ first.T @ gradient
    matrix = preconditioner_matrix(first, second, rates=RATES)
    np.testing.assert_allclose(-matrix @ gradient.T.ravel(), motion.T.ravel(), rtol=1e-12, atol=1e-12)


def test_a_deep_network_conserves_one_matrix_for_each_pair_of_layers():
    draw = np.random.default_rng(0)
    weights = [draw.normal(size=shape) for shape in ((3, 4), (4, 2), (2, 5))]
    found = conserved_matrices(weights, [1.0, 2.0, 0.5])
    assert [each.shape for each in found] == [(4, 4), (2, 2)]
    np.testing.assert_allclose(found[1], 2.0 * weights[2] @ weights[2].T - 0.5 * weights[1].T @ weights[1], rtol=1e-13)
    np.testing.assert_allclose(conserved_matrices(weights)[0], conserved_matrix(*weights[:2]), rtol=1e-13)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_neurons_of_one_output_add_up_to_the_preconditioner_of_the_network(seed):
    draw = np.random.default_rng(seed)
    first, second = draw.normal(size=(3, 4)), draw.normal(size=(4, 1))
    imbalances = np.diagonal(conserved_matrix(first, second, rates=RATES))
    found = single_output_preconditioner((first * second[:, 0]).T, imbalances, rates=RATES)
    np.testing.assert_allclose(found, preconditioner_matrix(first, second, rates=RATES), rtol=1e-9, atol=1e-9)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: conserved_matrix(np.ones((2, 3)), np.ones((2, 3))), "second"),
        (lambda: conserved_matrix(np.ones((2, 3)), np.ones((3, 1)), rates=LayerRates(first=0.0)), "rates.first"),
        (lambda: preconditioner_matrix(np.full((2, 3), np.nan), np.ones((3, 1))), "first"),
        (lambda: conserved_matrices([np.eye(2)]), "weights"),
        (lambda: conserved_matrices([np.eye(2)] * 2, [1.0]), "rates"),
        (lambda: single_output_preconditioner(np.ones((2, 3)), [1.0]), "imbalances"),
    ],
)
def test_bad_input_is_named(call, argument):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.argument == argument


def test_dead_neurons_add_nothing():
    alone = single_output_preconditioner([[1.0, 2.0]], [0.5])
    np.testing.assert_array_equal(single_output_preconditioner([[1.0, 2.0], [0.0, 0.0]], [0.5, 0.0]), alone)


@pytest.mark.usefixtures("unchecked_types")
def test_neighbouring_layers_and_rates_are_refused_by_the_names_of_their_lists():
    with pytest.raises(InputError) as caught:
        conserved_matrices([np.eye(2), np.eye(3)])
    assert caught.value.argument == "weights"
    with pytest.raises(InputError) as caught:
        conserved_matrices([np.eye(2)] * 2, [1.0, 0.0])
    assert caught.value.argument == "rates"


@pytest.mark.slow
def test_values_outside_the_domain_give_nan_where_they_are_traced():
    first, second = np.ones((2, 3)), np.ones((3, 1))
    for function in (conserved_matrix, preconditioner_matrix):
        traced = jit(lambda first, rate, function=function: function(first, second, rates=LayerRates(first=rate)))
        assert np.isfinite(traced(first, 1.0)).all()
        assert np.isnan(traced(first * np.nan, 1.0)).all()
        assert np.isnan(traced(first, 0.0)).all()
    neurons = jit(single_output_preconditioner)
    assert np.isfinite(neurons(np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([-1.0, 0.5]))).all()
    assert np.isnan(neurons(np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([-1.0, -0.5]))).all()


def test_a_neuron_at_zero_whose_direction_nothing_tells_is_refused():
    with pytest.raises(InputError) as caught:
        single_output_preconditioner([[1.0, 0.0], [0.0, 0.0]], [-1.0, -0.5])
    assert caught.value.argument == "coefficients"

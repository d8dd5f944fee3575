from __future__ import annotations

import equinox as eqx
import numpy as np
import pytest

from dynascope.networks import DeepDiagonal, DeepLinear, TwoLayer, balanced_linear
from dynascope.prediction.case import Case
from dynascope.prediction.measures import violation
from dynascope.tasks import InContextRegression, Task
from dynascope.theory import assumptions
from dynascope.theory.assumptions import Assumption

ALL = [each for each in vars(assumptions).values() if isinstance(each, Assumption)]
X = np.random.default_rng(0).normal(size=(20, 3))
TASK = Task(X, X[:, :2])


@pytest.mark.parametrize("assumption", ALL, ids=lambda each: each.name)
def test_every_assumption_can_be_measured_or_is_said_not_to_be(assumption):
    for task, network in (
        (TASK, TwoLayer(3, 4, 2)),
        (TASK, TwoLayer(3, 4, 2, activation="relu")),
        (TASK.only("y1"), DeepDiagonal(3, 3)),
        (TASK, DeepLinear((3, 3, 3, 2))),
        (InContextRegression(np.eye(2), 5.0), lambda x: x),
    ):
        value = violation(assumption, Case(task, network, scale=0.1, learning_rate=0.01, batch_size=4))
        assert value is None or 0 <= value < np.inf


@pytest.mark.parametrize("factor", [1e-60, 1e-3, 1e3, 1e60])
def test_units_of_the_data_change_nothing(factor):
    scaled = Case(Task(factor * TASK.inputs, TASK.targets), TwoLayer(3, 4, 2))
    plain = Case(TASK, TwoLayer(3, 4, 2))
    for each in (
        assumptions.WHITE_INPUTS,
        assumptions.UNCORRELATED_INPUTS,
        assumptions.INPUTS_ON_A_LINE,
        assumptions.ORTHOGONAL_SAMPLES,
        assumptions.BALANCED_LAYERS,
    ):
        assert violation(each, scaled) == pytest.approx(violation(each, plain), rel=1e-9)


def test_what_holds_exactly_is_zero_to_rounding():
    white = TASK.whitened()
    assert violation(assumptions.WHITE_INPUTS, Case(white, None)) < 1e-12
    assert violation(assumptions.UNCORRELATED_INPUTS, Case(white, None)) < 1e-12
    assert violation(assumptions.ORTHOGONAL_SAMPLES, Case(Task(np.eye(3), X[:3]), None)) == 0
    assert violation(assumptions.INPUTS_ON_A_LINE, Case(Task(np.outer(X[:, 0], [1.0, 2.0]), X[:, 1]), None)) < 1e-15
    assert violation(assumptions.BALANCED_LAYERS, Case(white, balanced_linear(3, 4, 2))) < 1e-12


def test_distance_from_white_is_that_of_the_eigenvalues():
    task = Task(np.diag([1.0, 2.0]) * 2**0.5, np.ones(2))
    assert violation(assumptions.WHITE_INPUTS, Case(task, None)) == pytest.approx(0.6)  # of 1 and 4 about 2.5


def test_times_are_as_close_as_singular_values_are():
    white = TASK.whitened()
    axes = white.inputs
    two = Case(Task(axes, axes[:, :2] * [2.0, 1.0]), TwoLayer(3, 4, 2), scale=1e-4)
    assert violation(assumptions.SEPARATED_TIMES, two) == pytest.approx(1e-2, rel=1e-6)  # 1e-4 ** (1 − 1/2)
    equal = Case(Task(axes, axes[:, :2]), TwoLayer(3, 4, 2), scale=1e-4)
    assert violation(assumptions.SEPARATED_TIMES, equal) == pytest.approx(1)
    weak = Case(Task(axes, axes * [2.0, 1e-3, 0.99e-3]), TwoLayer(3, 4, 3), scale=1e-4)
    assert violation(assumptions.SEPARATED_TIMES, weak) == 0  # of which one is all of the loss
    prompts = InContextRegression(np.diag([1.0, 0.5]), 5.0)
    assert violation(assumptions.SEPARATED_TIMES, Case(prompts, None, scale=1e-4)) == pytest.approx(1e-3)


def test_samples_are_enough_where_they_are_as_many_as_inputs():
    for samples, missing in ((2, 0.5), (4, 0.0), (9, 0.0)):
        task = Task(np.random.default_rng(1).normal(size=(samples, 4)), np.arange(samples))
        assert violation(assumptions.ENOUGH_SAMPLES, Case(task, None)) == missing
    assert violation(assumptions.ENOUGH_SAMPLES, Case(task.whitened(), None)) == 0


def test_more_samples_than_inputs_are_never_orthogonal():
    x = np.random.default_rng(1).normal(size=(5000, 2))
    assert violation(assumptions.ORTHOGONAL_SAMPLES, Case(Task(x, x[:, 0]), None)) > 0.9


def test_layers_along_the_singular_vectors_are_aligned_and_others_are_not():
    left, _, right = np.linalg.svd(TASK.cross_moment.T, full_matrices=False)
    network = eqx.tree_at(
        lambda net: (net.first, net.second), TwoLayer(3, 2, 2), (left * [0.3, 0.2], np.array([[0.3], [0.1]]) * right)
    )
    assert violation(assumptions.ALIGNED_LAYERS, Case(TASK, network)) < 1e-12
    assert violation(assumptions.ALIGNED_LAYERS, Case(TASK, TwoLayer(3, 2, 2))) > 0.1


def test_neurons_that_are_missing_are_counted():
    assert violation(assumptions.ENOUGH_NEURONS, Case(TASK, TwoLayer(3, 1, 2))) == 1
    assert violation(assumptions.ENOUGH_NEURONS, Case(TASK, TwoLayer(3, 2, 2))) == 0


def test_the_curvature_is_that_of_the_hessian_at_the_end():
    # Of f(x) = x w₁ w₂ w₃ with E x² = 4 the Hessian of ½ E(f − 8x)² at w = 2 has the eigenvalue 4 · 3 · 2⁴.
    task = Task([[2.0], [-2.0]], [[16.0], [-16.0]])
    value = violation(assumptions.SMALL_STEPS, Case(task, DeepLinear((1, 1, 1, 1)), scale=1e-3, learning_rate=1e-3))
    assert value == pytest.approx(1e-3 * 4 * 3 * 16 / 2)


def test_a_small_input_with_a_mean_is_as_far_from_centred_as_a_large_one():
    # A bias explains what a constant explains beyond the inputs, whatever their units.
    draw = np.random.default_rng(0)
    inputs = draw.normal(size=(50, 2))
    inputs = inputs - inputs.mean(axis=0) + [0.0, 1.0]
    targets = inputs[:, 1:] - 1.0
    network = TwoLayer(2, 3, 1)
    one, other = (
        violation(assumptions.CENTRED_DATA, Case(Task(inputs * [1.0, size], targets), network)) for size in (1.0, 1e-3)
    )
    assert one == pytest.approx(other, rel=1e-6)
    moment, cross = inputs.T @ inputs, inputs.T @ targets
    left = np.sum((targets - inputs @ np.linalg.solve(moment, cross)) ** 2) / np.sum(targets**2)
    # With a bias the linear map is exact; without it, the remaining loss is at most the square of the measure.
    assert 0 < left <= one**2 + 1e-9

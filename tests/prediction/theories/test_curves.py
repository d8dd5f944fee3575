from __future__ import annotations

import equinox as eqx
import numpy as np
import pytest

from dynascope import GradientFlow, compare, observe, predict
from dynascope.flows import Solver
from dynascope.networks import MLP, DeepLinear, DiagonalLinear, TwoLayer, balanced_linear
from dynascope.tasks import Task
from dynascope.theory import balanced

DRAW = np.random.default_rng(3)
X = DRAW.normal(size=(30, 3)) * [1.0, 1.4, 0.8]
Y = X @ DRAW.normal(size=(3, 3)) + 0.1 * DRAW.normal(size=(30, 3))
TWO = Task(X, Y[:, :2])
AXES = Task(np.linalg.qr(X)[0] * [3.0, 5.0, 2.0], Y[:, 0])
LINE = Task(np.outer(X[:, 0], [1.0, 2.0, 0.5]), Y[:, 0])
TURN = np.linalg.qr(DRAW.normal(size=(3, 3)))[0]


def _layers(*weights: np.ndarray) -> DeepLinear:
    network = DeepLinear((3,) * (len(weights) + 1))
    return eqx.tree_at(lambda each: each.weights, network, weights)


def _aligned(task: Task) -> DeepLinear:
    """Three balanced layers along the singular vectors of the target."""
    left, _, right = np.linalg.svd(task.cross_moment.T)
    sizes = np.diag([0.3, 0.2, 0.1])
    return _layers(left @ sizes, sizes, sizes @ right)


SQUARE = Task(X, Y).whitened()
# λ-balanced, but not isotropic: the exact solution of a wide balanced network alone covers it.
CASES = {
    "balanced": (TWO.whitened(), balanced_linear(3, 2, 2, balance=-1.0), 0.8),
    "isotropic": (TWO, balanced_linear(3, 4, 2), 0.4),
    "deep-isotropic": (Task(X, Y), _layers(0.5 * np.eye(3), -0.5 * TURN, 0.5 * np.eye(3)), 1.0),
    "deep-modes": (SQUARE, _aligned(SQUARE), 1.0),
    "single-neuron": (TWO.only("y1").whitened(), TwoLayer(3, 1, 1), 0.5),
    "neuron-function-space": (TWO.only("y1"), TwoLayer(3, 1, 1), 0.5),
    "line": (LINE, TwoLayer(3, 5, 1), 0.7),
    "independent-modes": (AXES, DiagonalLinear(3), 0.2),
    "kernel-regression": (TWO, TwoLayer(3, 200, 2, activation="relu"), 6.0),
    "linear-model": (TWO, MLP((3, 2), activation="linear", bias=False), 1.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("theory", CASES)
def test_training_agrees_with_it_and_not_with_twice_its_times(theory):
    task, network, scale = CASES[theory]
    predicted = predict(task, network, scale=scale, theory=theory).record
    assert predicted.attrs["theory_name"] == theory
    run = observe(
        task,
        network,
        method=GradientFlow(duration=float(predicted["time"][-1]), solver=Solver(relative_tolerance=1e-8), save=200),
        scale=scale,
    ).record
    found = compare(run, predicted)
    assert found.verdict.outcome == "agree"
    twice = predicted.assign_coords(time=2 * predicted["time"])
    assert compare(run, twice).verdict.outcome == "disagree"


@pytest.mark.slow
def test_units_of_white_inputs_are_units_of_time():
    task, network, scale = CASES["balanced"]
    larger = Task(3 * task.inputs, 3 * task.targets)
    plain, scaled = (predict(each, network, scale=scale, theory="balanced").record for each in (task, larger))
    np.testing.assert_allclose(scaled["time"], plain["time"] / 9, rtol=1e-9)
    np.testing.assert_allclose(scaled["loss"], 9 * plain["loss"], rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("width", [1, 4])
def test_on_inputs_that_are_nearly_white_a_curve_is_followed_until_its_own_loss_rests(width, monkeypatch):
    gram, asked = balanced.gram, []

    def witness(first, second, target, times, **options):
        asked.append(times.max())
        return gram(first, second, target, times, **options)

    monkeypatch.setattr(balanced, "gram", witness)
    white = TWO.whitened()
    noise = np.random.default_rng(4).normal(size=(30, 2))
    nearly = Task(white.inputs * [1.0, 1.1, 0.9], white.targets + noise)
    predicted = predict(nearly, balanced_linear(3, width, 2), scale=0.1, theory="balanced").record
    # That of the best map of its rank if the inputs were white, which is not the loss of the data.
    power = np.mean(nearly.inputs**2)
    learned = np.linalg.svd(nearly.cross_moment, compute_uv=False)[:width]
    least = (nearly.target_power - np.sum(learned**2) / power) / 2
    loss = predicted["loss"].to_numpy()
    # It ends where a thousandth of the fall is left.
    assert loss[-1] == pytest.approx(least, abs=2e-3 * (loss[0] - least))
    # Some hundred e-folds of the slowest mode, and not the million that never reach the loss of the data.
    assert max(asked) * learned[-1] < 1000


def test_a_map_that_cannot_be_reached_is_told():
    # The determinant of a balanced map keeps its sign, so that training ends at a saddle.
    task = Task([[1.0], [-1.0]], [[-1.0], [1.0]])
    network = eqx.tree_at(lambda each: (each.first, each.second), TwoLayer(1, 1, 1), (np.ones((1, 1)), np.ones((1, 1))))
    predicted = predict(task, network, scale=0.5, theory="balanced").record
    assert float(predicted["loss"][-1]) == pytest.approx(0.5, abs=1e-3)
    assert "differ in sign" in " ".join(predicted.attrs["warnings"])

from __future__ import annotations

import warnings

import equinox as eqx
import jax
import numpy as np
import pytest
from drawn_modules import drawn

from dynascope import GradientFlow, observe, predict, which
from dynascope.groups import cyclic, encoding_from_frequencies
from dynascope.networks import (
    DeepDiagonal,
    DeepLinear,
    DiagonalLinear,
    LinearAttention,
    MergedAttention,
    TwoLayer,
    balanced_linear,
)
from dynascope.prediction.case import Case
from dynascope.prediction.example_calls import horizon
from dynascope.prediction.theories.catalogue import THEORIES
from dynascope.tasks import InContextRegression, ModularAddition, Task, group_composition

DRAW = np.random.default_rng(0)
X, MAP = DRAW.normal(size=(20, 2)), np.array([[1.0, 0.3], [-0.2, 0.8]])
PLAIN = Task(X, X @ MAP)
WHITE = Task(2 * PLAIN.whitened().inputs, PLAIN.targets)  # E[x xᵀ] = 4 I
ONE = PLAIN.only("y1")
LINE = Task(np.outer(X[:, 0], [1.0, 2.0]), X[:, 0])
ORTHOGONAL = Task(np.diag([1.0, 2.0]), [1.0, -2.0])
AXES = Task(np.linalg.qr(X)[0] * [3.0, 5.0], X @ MAP[:, 0])
PROMPTS = InContextRegression(np.diag([1.0, 0.5]), 20.0)
ADDITION = ModularAddition(encoding_from_frequencies(3, {1: 1.0}))
COMPOSED = group_composition(cyclic(3), [2.0, -1.5, -0.5])
EQUAL = eqx.tree_at(lambda each: each.weights, DeepLinear((2, 2, 2, 2)), tuple(np.eye(2) for _ in range(3)))
TURNED = np.linalg.svd(WHITE.cross_moment.T)
ALIGNED = eqx.tree_at(
    lambda each: each.weights,
    EQUAL,
    (TURNED[0] @ np.diag([0.5, 0.4]), np.diag([0.5, 0.4]), np.diag([0.5, 0.4]) @ TURNED[2]),
)
LARGE = eqx.tree_at(
    lambda each: each.second, TwoLayer(2, 3, 1, activation="relu"), 10 * np.array([[1.0], [-1.0], [1.0]])
)

CASES = {
    "linear-staircase": (PLAIN, "linear", {"scale": 1e-4, "width": 4}),
    "diagonal-staircase": (ONE, DiagonalLinear(2, scale=2.0), {"scale": 1e-3}),
    "deep-diagonal-staircase": (ONE, DeepDiagonal(2, 3, scale=2.0), {"scale": 1e-3}),
    "linear-attention": (PROMPTS, LinearAttention(2, 3), {"scale": 1e-3}),
    "merged-attention": (PROMPTS, MergedAttention(2, 3), {"scale": 1e-3}),
    "alternating-flow": (PLAIN, TwoLayer(2, 3, 2, activation="relu"), {"scale": 1e-4}),
    "orthogonal-relu": (ORTHOGONAL, LARGE, {"scale": 1e-5}),
    "balanced": (WHITE, balanced_linear(2, 3, 2), {"scale": 0.5}),
    "isotropic": (PLAIN, balanced_linear(2, 3, 2, scale=0.5), {}),
    "deep-isotropic": (PLAIN, EQUAL, {"scale": 0.5}),
    "deep-modes": (WHITE, ALIGNED, {}),
    "single-neuron": (WHITE.only("y1"), TwoLayer(2, 1, 1), {"scale": 0.5}),
    "neuron-function-space": (ONE, TwoLayer(2, 1, 1), {"scale": 0.5}),
    "line": (LINE, TwoLayer(2, 3, 1), {"scale": 0.8}),
    "independent-modes": (AXES, DiagonalLinear(2), {"scale": 0.5}),
    "linear-model": (PLAIN, drawn(eqx.nn.Linear, 2, 2, use_bias=False), {}),
    "modular-addition": (ADDITION, TwoLayer(6, 6, 3, activation="quadratic"), {"scale": 1e-2}),
    "group-composition": (COMPOSED, TwoLayer(6, 6, 3, activation="quadratic"), {"scale": 1e-4, "normalised": True}),
    "kernel-regression": (ONE, TwoLayer(2, 500, 1, activation="relu"), {"scale": 6.0}),
}


WHOLE = {"linear-staircase", "single-neuron", "line"}  # those whose other theories are run too, and their training


def run(task, network, name, **options):
    """The calls of an answer, run as they stand, or those of one theory of it; and the answer."""
    answer = which(task, network, **options)
    head, *sections = answer.script.split("\n# ")
    chosen = [each for each in sections if name in WHOLE or each.startswith(f"{name}\n")]
    assert chosen
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what holds nearly warns
        exec("\n# ".join([head, *chosen]), {"task": task, "network": network})
    return answer


def test_every_theory_is_tried():
    assert CASES.keys() == {theory.name for theory in THEORIES}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_what_is_printed_to_copy_runs(name):
    task, network, options = CASES[name]
    answer = run(task, network, name, **options)
    found = {each.name: each for each in answer}[name]
    assert found.status != "no"
    assert found.call in answer.script
    assert bool(found.function_call) == bool(found.theory.call)
    assert found.function_call in answer.script


@pytest.mark.slow
@pytest.mark.parametrize("name", ["balanced", "isotropic", "line"])
def test_the_functions_of_what_almost_applies_run_too(name):
    task, network, options = CASES[name]
    draw = np.random.default_rng(1)

    def moved(array):
        return array + 1e-3 * draw.normal(size=np.shape(array))

    task, network = Task(moved(task.inputs), task.targets), jax.tree.map(moved, network)
    assert call_of(name, task, network, **options) == "almost"


@pytest.mark.parametrize("name", ["balanced", "isotropic", "deep-isotropic"])
def test_weights_of_single_precision_are_balanced_if_they_were(name):
    task, network, options = CASES[name]
    single = jax.tree.map(lambda leaf: np.asarray(leaf, np.float32), network)
    assert {each.name: each.status for each in which(task, single, **options)}[name] == "applies"


def call_of(name, task, network, **options):
    """Run the function of a theory as it is printed, and return the status of the theory."""
    answer = which(task, network, **options)
    found = {each.name: each for each in answer}[name]
    known = {"task": task, "network": network}
    lines = [line for line in answer.script.splitlines() if line.startswith(("import", "from", "unit"))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what holds nearly warns
        exec("\n".join([*lines, found.function_call]), known)
    return found.status


@pytest.mark.parametrize("scale", [None, 0.25])
def test_the_calls_for_a_user_network_start_from_its_weights(scale):
    # Two layers of 0.1 and 0.2 are a map of 0.02, whatever its factor's square.
    module = drawn(eqx.nn.MLP, 2, 2, 2, 1, lambda z: z, use_bias=False, use_final_bias=False)
    layers = (0.5 * np.eye(2), 0.5 * np.eye(2))
    module = eqx.tree_at(lambda net: [layer.weight for layer in net.layers], module, layers)
    answer = which(WHITE, module, scale=scale)
    known = {"task": WHITE, "network": module}
    start = 0.5 * (scale or 1.0)
    assert answer[0].name == "balanced"
    exec("\n".join(answer.script.splitlines()[:3]), known)  # the imports and the unit
    function = eval(answer[0].function_call, known)
    np.testing.assert_allclose(np.asarray(function.product)[0], start**2 * np.eye(2), rtol=1e-9)
    record = eval(answer[0].call, known)
    np.testing.assert_allclose(record["coefficient"][0], start**2 * np.eye(2), rtol=1e-9)
    seen = observe(WHITE, module, method=GradientFlow(duration=0.01), scale=scale or 1.0).record
    assert float(record["loss"][0]) == pytest.approx(float(seen["loss"][0]))


def test_functions_are_those_of_the_prediction_on_white_inputs_of_any_power():
    network = balanced_linear(2, 3, 2)
    answer = which(WHITE, network, scale=0.5)
    known = {"task": WHITE, "network": network}
    exec("\n".join(answer.script.splitlines()[:2]), known)  # the imports
    by_hand = np.asarray(eval(answer[0].function_call, known).product)
    record = predict(WHITE, network, scale=0.5, theory="balanced").record
    times = np.linspace(0, horizon(Case(WHITE, network, scale=0.5)), len(by_hand))
    assert "4 * numpy.linspace(" in answer[0].function_call
    within = times <= float(record["time"][-1])
    expected = record["coefficient"].interp(time=times[within])
    # Linear interpolation between the times of the record, closer than a tenth of a unit, is what differs.
    np.testing.assert_allclose(by_hand[within], expected, atol=2e-3)

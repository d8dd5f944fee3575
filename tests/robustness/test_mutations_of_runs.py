"""Arguments of what trains, predicts and follows, and of the public classes, mutated: the rooms without examples.

A docstring of these rooms shows a run of seconds, and a class has methods. So each has a call of its own here, on three
samples.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from documented import Call, _no_longer_than
from robustness.mutations import Mutant, mutants
from robustness.outcomes import found_wrong

from dynascope import (
    alternating,
    comparison,
    flows,
    groups,
    networks,
    prediction,
    results,
    studies,
    symmetry,
    tasks,
    training,
)

RUNS = ("flows", "training", "alternating", "prediction", "studies")

INPUTS, TARGETS = np.array([[1.0, 0.2], [-0.4, 1.0], [0.3, -0.7]]), np.array([[1.0], [0.5], [-0.2]])
TASK = tasks.Task(INPUTS, TARGETS)
FOUR, LABELS = np.concatenate([INPUTS, -INPUTS[:1]]), np.array([0, 1, 1, 0])
NORM = symmetry.Charge("scale", (symmetry.Part(".w", np.array([[0], [1]]), 1.0),), 2)
LINEAR, DIAGONAL = networks.TwoLayer(2, 2, 1), networks.DiagonalLinear(2)
MAP = tasks.AffineMap(np.zeros(2), np.eye(2))
SHORT: dict[str, Any] = {"scale": 0.1, "duration": 0.1}
TWO_STEPS = training.Descent(learning_rate=0.01, steps=2, batches=2)
BRIEF = flows.GradientFlow(duration=0.1, save=3)

EXAMPLES: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "flows.deep_diagonal_flow": (flows.deep_diagonal_flow, {"task": TASK, "depth": 3, **SHORT, "points": 9}),
    "training.descend": (
        training.descend,
        {"task": TASK, "network": LINEAR, "method": TWO_STEPS, "scale": 0.1, "seed": 0},
    ),
    "training.Descent": (
        lambda **given: repr(training.Descent(**given)),
        {"learning_rate": 0.01, "steps": 2, "batches": 2, "save": 2, "compute_dtype": None},
    ),
    "flows.GradientFlow": (
        lambda **given: repr(flows.GradientFlow(**given)),
        {"duration": 0.1, "learning_rate": 0.1, "save": 3, "normalised": False},
    ),
    "flows.diagonal_flow": (flows.diagonal_flow, {"task": TASK, **SHORT, "points": 9}),
    "flows.gradient_flow": (
        flows.gradient_flow,
        {"task": TASK, "network": LINEAR, "method": BRIEF, "scale": 0.1, "return_networks": False},
    ),
    "flows.langevin": (
        flows.langevin,
        {"gradient": [1.0, 0.5], "start": [0.1, 0.2], "noise": [0.1, 0.1], "times": [0.5], "time_step": 0.1}
        | {"learning_rate": 0.1, "batch_size": 2, "runs": 3, "velocity": [0.0, 0.1], "seed": 0},
    ),
    "flows.linear_flow": (
        flows.linear_flow,
        {"task": TASK, "first": np.eye(2), "second": np.ones((2, 1)), **SHORT, "points": 9},
    ),
    "flows.margin_flow": (
        flows.margin_flow,
        {"apply": lambda w, x: x @ w, "params": np.zeros(2), "inputs": np.array([[1.0, 0.2], [9.0, -1.0]])}
        | {"labels": [1, 1], "levels": [5.0, 10.0], "relative_tolerance": 1e-6, "max_evaluations": 10_000},
    ),
    "flows.ornstein_uhlenbeck": (
        flows.ornstein_uhlenbeck,
        {"curvature": [1.0, 0.5], "noise": [0.1, 0.1], "times": [1.0], "learning_rate": 0.1, "batch_size": 2}
        | {"runs": 3, "position": [0.1, 0.2], "velocity": 0.1, "seed": 0},
    ),
    "flows.polar_flow": (flows.polar_flow, {"task": TASK, "network": LINEAR, **SHORT, "points": 9}),
    "training.runge_kutta": (training.runge_kutta, {"learning_rate": 0.1}),
    "training.stable_rate": (
        training.stable_rate,
        {"task": TASK, "network": LINEAR, "scale": 0.1, "learning_rate": 1e-3, "steps": 2},
    ),
    "flows.stopping_after": (lambda seconds: _entered(flows.stopping_after(seconds)), {"seconds": 3.0}),
    "alternating.active_set_descent": (
        alternating.active_set_descent,
        {"task": TASK, "network": LINEAR, "max_neurons": 1, "starts": 2, "ascent_steps": 2, "descent_steps": 2},
    ),
    "training.charge_statistics": (
        training.charge_statistics,
        {"symmetries": (NORM,), "momentum": 0.5, "weight_decay": 0.1, "gradient_roundings": 10},
    ),
    "alternating.alternating_flow": (
        alternating.alternating_flow,
        {"task": TASK, "network": LINEAR, "scale": 1e-3, "jumps": 1, "duration": 1.0, "operations": 1e6},
    ),
    "alternating.predict_next_activation": (
        alternating.predict_next_activation,
        {"task": TASK, "network": LINEAR, "duration": 1.0},
    ),
    "prediction.predict": (
        prediction.predict,
        {"task": (INPUTS, TARGETS), "network": DIAGONAL, "scale": 0.01, "curve": False, "jumps": 1},
    ),
    "prediction.predict_seeds": (
        prediction.predict_seeds,
        {"task": TASK, "kind": "linear", "seeds": 2, "scale": 0.01, "width": 3, "curve": False},
    ),
    "prediction.which": (prediction.which, {"task": TASK, "network": "diagonal", "scale": 0.01, "learning_rate": 0.1}),
    "prediction.observe": (
        prediction.observe,
        {"task": TASK, "network": DIAGONAL, "method": BRIEF, "scale": 0.1, "seed": 0},
    ),
    "studies.find_study": (studies.find_study, {"name": "diagonal-staircase"}),
    "studies.exact": (studies.exact, {"error": 1e-6, "reason": "it is exact"}),
    # What was not measured is undecided, and told as it is.
    "comparison.Claim": (
        lambda **given: repr(comparison.Claim(**given)),
        {"name": "a", "statement": "b", "value": 0.5, "low": 0.1, "high": 1.0, "least": 0.0, "most": 2.0},
    ),
    "comparison.claim_on_mean": (
        lambda **given: repr(comparison.claim_on_mean(**given)),
        {"name": "a", "statement": "b", "runs": [0.5, 0.6, 0.4], "most": 1.0},
    ),
    "comparison.Claim.if_known": (
        lambda **given: repr(comparison.Claim("a", "b", 0.5, 0.1, 1.0, most=2.0).if_known(**given)),
        {"known": False, "reason": "it did not learn"},
    ),
    "comparison.Hypothesis": (comparison.Hypothesis, {"factor": "width", "metric": "loss", "direction": 1}),
    "groups.Group": (groups.Group, {"name": "two", "table": [[0, 1], [1, 0]]}),
    "networks.BatchNormalisation": (networks.BatchNormalisation, {"channels": 2}),
    "networks.Convolutional": (
        networks.Convolutional,
        {"image_shape": (4, 4), "outputs": 2, "channels": (2,), "width": 3},
    ),
    "networks.DeepDiagonal": (networks.DeepDiagonal, {"input_dimension": 2, "depth": 3, "scale": 0.1}),
    "networks.DeepLinear": (networks.DeepLinear, {"widths": (2, 2, 1), "scale": 0.1, "balance": 0.0}),
    "networks.DiagonalLinear": (networks.DiagonalLinear, {"input_dimension": 2, "scale": 0.1}),
    "networks.LinearAttention": (networks.LinearAttention, {"dimension": 2, "heads": 2, "scale": 0.1}),
    "networks.MLP": (networks.MLP, {"widths": (2, 3, 1), "scale": 0.1}),
    "networks.MergedAttention": (networks.MergedAttention, {"dimension": 2, "heads": 2, "scale": 0.1}),
    "networks.Recurrent": (networks.Recurrent, {"element_dimension": 2, "width": 2, "output_dimension": 1}),
    "networks.ResNet18": (networks.ResNet18, {"image_shape": (8, 8, 3), "outputs": 2, "width": 2}),
    "networks.Transformer": (
        networks.Transformer,
        {"vocabulary": 3, "length": 2, "output_dimension": 2, "width": 4, "heads": 2, "hidden_width": 4},
    ),
    "networks.Tree": (networks.Tree, {"element_dimension": 2, "width": 2, "scale": 0.1}),
    "networks.TwoLayer": (networks.TwoLayer, {"input_dimension": 2, "width": 2, "output_dimension": 1, "balance": 0.0}),
    "networks.VGG16": (networks.VGG16, {"image_shape": (32, 32, 3), "outputs": 2, "width": 2}),
    "results.Chart": (results.Chart, {"variables": "loss", "over": "time", "caption": "", "title": ""}),
    "tasks.AffineMap": (tasks.AffineMap, {"shift": np.zeros(2), "matrix": np.eye(2)}),
    "tasks.AffineMap.apply": (MAP.apply, {"x": INPUTS}),
    "tasks.AffineMap.invert": (MAP.invert, {"z": INPUTS}),
    "tasks.AffineMap.identity": (tasks.AffineMap.identity, {"dimension": 2}),
    "tasks.AffineMap.only": (tasks.AffineMap.identity(2).only, {"columns": [0]}),
    "tasks.AffineMap.weights": (MAP.weights, {"weights": np.eye(2)}),
    "tasks.AffineMap.centring": (tasks.AffineMap.centring, {"values": INPUTS}),
    "tasks.AffineMap.standardising": (tasks.AffineMap.standardising, {"values": INPUTS}),
    "tasks.CropAndFlip": (tasks.CropAndFlip, {"padding": 1, "flip": True}),
    "tasks.InContextRegression": (tasks.InContextRegression, {"covariance": np.eye(2), "context_length": 5.0}),
    "tasks.Labelled": (tasks.Labelled, {"inputs": INPUTS, "labels": np.array([0, 1, 1])}),
    "tasks.Labelled.split": (
        tasks.Labelled(FOUR, LABELS).split,
        {"test_fraction": 0.5, "seed": 0},
    ),
    "tasks.ModularAddition": (tasks.ModularAddition, {"encoding": [0.0, 1.0, -1.0]}),
    "tasks.ModularArithmetic": (tasks.ModularArithmetic, {"operation": "addition", "p": 3, "train_fraction": 0.5}),
    "tasks.MultiIndex": (tasks.MultiIndex, {"links": [[0.0, 1.0]], "directions": [[1.0, 0.0]]}),
    "tasks.SparseParity": (tasks.SparseParity, {"skills": 2, "bits": 6, "relevant_bits": 3}),
    "tasks.SparseParity.task": (tasks.SparseParity(2, 6, 3).task, {"samples": 4, "seed": 0}),
    "tasks.Task": (tasks.Task, {"inputs": INPUTS, "targets": TARGETS, "name": "three"}),
    "tasks.Task.only": (TASK.only, {"target_name": "y1"}),
    "tasks.Task.split": (tasks.Task(FOUR, FOUR[:, :1]).split, {"test_fraction": 0.5, "seed": 0}),
    "tasks.Task.whitened": (TASK.whitened, {"relative_cutoff": 1e-9}),
}

# What is right and long, and why.
LONG = {
    (
        "flows.linear_flow",
        "duration",
        "huge",
    ): "where the loss rests, steps are as long as rounding lets them be; it is "
    "given up after max_steps, a minute later, and says so",
}


class Run(NamedTuple):
    """A function with a call of it."""

    function: Callable[..., Any]
    arguments: dict[str, Any]

    def __call__(self, call: Call, **changes: Any) -> Any:
        with jax.enable_x64(True), _no_longer_than(120):
            answer = self.function(**{**call.arguments, **changes})
        return answer


def _entered(context: Any) -> None:
    with context:
        pass


def chosen(name: str, argument: str, valid: Any, *, run: bool) -> Iterator[Mutant]:
    for mutant in mutants(valid):
        if not (run and mutant.same) and (name, argument, mutant.kind) not in LONG:
            yield mutant


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("name", EXAMPLES)
def test_a_mutated_argument_of_a_run_gives_an_answer_or_an_error_that_says_what_to_do(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    function, arguments = EXAMPLES[name]
    run, call = Run(function, arguments), Call(arguments, True)
    trains = name.split(".")[0] in RUNS
    with warnings.catch_warnings(action="ignore"):
        # A run is tried with what is refused; that others are right is tested where they belong.
        valid = None if trains else run(call)
    defaults = {
        each.name: each.default
        for each in inspect.signature(function).parameters.values()
        if each.default is not each.empty
    }
    wrong = [
        problem
        for argument, value in (defaults | arguments).items()
        for mutant in chosen(name, argument, value, run=trains)
        if (problem := found_wrong(run, call, argument, mutant, valid))
    ]
    assert not wrong, "\n".join(wrong)

"""What "almost applies" costs: how far theories are off where what they assume is violated by a known amount.

Each row is a theory, an assumption, how far it is violated by the number that `which` measures, and the mean distance
of the predicted loss from that of a training, over the initial loss; of a staircase the largest relative error of a
time.
Small steps are those of descent of a product of layers, which is written out here.
Run as `python benchmarks/almost_applies.py`; it writes `docs/concepts/almost_applies.csv`, in about three minutes.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from dynascope import compare, observe
from dynascope.compilation import compile_cache
from dynascope.groups import dihedral, encoding_from_frequencies
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
from dynascope.prediction.measures import violation
from dynascope.prediction.theories.catalogue import THEORIES
from dynascope.tasks import InContextRegression, ModularAddition, Task, group_composition
from dynascope.theory import assumptions
from dynascope.theory.assumptions import Assumption

PATH = Path(__file__).parents[1] / "docs" / "concepts" / "almost_applies.csv"
DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(60, 4))
Y = X @ DRAW.normal(size=(4, 2)) + 0.1 * DRAW.normal(size=(60, 2))
WHITE = Task(X, Y).whitened()
SQUARE = Task(X, X @ DRAW.normal(size=(4, 4))).whitened()
AMOUNTS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)


class Row(NamedTuple):
    """One point of the figure."""

    theory: str
    assumption: str
    violation: float
    error: float


class Sweep(NamedTuple):
    """Cases of growing violation."""

    theory: str
    assumption: Assumption
    case: Callable[[float], Case]


def stretched(task: Task, amount: float) -> Task:
    """The task with its inputs in other units, by factors about one."""
    factors = 1 + amount * np.linspace(-1, 1, task.input_dimension)
    return Task(task.inputs * factors, task.targets)


def mixed(task: Task, amount: float) -> Task:
    """The task with some of each input in the next one."""
    return Task(task.inputs + amount * np.roll(task.inputs, 1, axis=1), task.targets)


def moved(network: Any, amount: float) -> Any:
    """The network with random weights added, by a share of its own."""
    draw = np.random.default_rng(1)

    def add(weight: Any) -> Any:
        noise = draw.normal(size=weight.shape)
        return weight + amount * noise * np.linalg.norm(weight) / np.linalg.norm(noise)

    return jax.tree.map(add, network, is_leaf=eqx.is_array)


def equal_layers() -> DeepLinear:
    """Three layers that are the same multiple of the identity."""
    return eqx.tree_at(lambda net: net.weights, DeepLinear((4,) * 4), tuple(0.5 * np.eye(4) for _ in range(3)))


def large_outputs() -> TwoLayer:
    """Neurons of ReLU whose output weights are as large as their input weights."""
    network = TwoLayer(3, 30, 1, activation="relu", seed=1)
    sizes = np.linalg.norm(network.first, axis=0)[:, None]
    return eqx.tree_at(lambda net: net.second, network, sizes * np.sign(network.second))


def descended(case: Case, times: np.ndarray) -> np.ndarray:
    """The loss of descent of x W₁ ⋯ W_L at some times, which are the learning rate times the step."""
    assert case.layers is not None
    assert case.learning_rate is not None
    layers, losses = list(case.layers), []
    x, y = case.task.inputs, case.task.targets
    for _ in range(int(times[-1] / case.learning_rate) + 2):
        forward = [x]
        for layer in layers:
            forward.append(forward[-1] @ layer)
        back = (forward[-1] - y) / len(x)
        losses.append(float(np.sum((forward[-1] - y) ** 2) / len(x) / 2))
        slopes = []
        for layer, before in zip(reversed(layers), reversed(forward[:-1]), strict=True):
            slopes.append(before.T @ back)
            back = back @ layer.T
        layers = [layer - case.learning_rate * slope for layer, slope in zip(layers, reversed(slopes), strict=True)]
    return np.interp(times, case.learning_rate * np.arange(len(losses)), losses)


def off_a_line(amount: float) -> Task:
    """Inputs mostly along one direction."""
    line = np.outer(X[:, 0], [1.0, 2.0, 0.5])
    return Task(line + amount * X[:, 1:], Y[:, 0])


def aligned(task: Task) -> DeepLinear:
    """Three balanced layers along the singular vectors of the target."""
    left, _, right = np.linalg.svd(task.cross_moment.T)
    sizes = np.diag(np.linspace(0.5, 0.2, task.input_dimension))
    layers = (left @ sizes, sizes, sizes @ right)
    return eqx.tree_at(lambda net: net.weights, DeepLinear((task.input_dimension,) * 4), layers)


ONE = Task(X, Y[:, 0])
ORTHOGONAL = Task(np.diag([1.0, 2.0, 1.5]), [1.0, -2.0, 1.0])
PROMPTS = InContextRegression(np.diag([1.0, 0.5]), 20.0)
ADDITION = ModularAddition(encoding_from_frequencies(5, {1: 1.0, 2: 0.5}))
COMPOSED = group_composition(dihedral(3))
AXES = Task(np.linalg.qr(X)[0] * [6.0, 7.0, 5.0, 8.0], Y[:, 0])
SWEEPS = (
    Sweep("balanced", assumptions.WHITE_INPUTS, lambda a: Case(stretched(WHITE, a), balanced_linear(4, 5, 2), 0.3)),
    Sweep("balanced", assumptions.BALANCED_LAYERS, lambda a: Case(WHITE, moved(balanced_linear(4, 5, 2), a), 0.3)),
    Sweep(
        "isotropic",
        assumptions.BALANCED_LAYERS,
        lambda a: Case(stretched(WHITE, 0.5), moved(balanced_linear(4, 5, 2), a), 0.3),
    ),
    Sweep(
        "single-neuron",
        assumptions.WHITE_INPUTS,
        lambda a: Case(stretched(WHITE.only("y1"), a), TwoLayer(4, 1, 1), 0.3),
    ),
    Sweep("line", assumptions.INPUTS_ON_A_LINE, lambda a: Case(off_a_line(a), TwoLayer(3, 6, 1), 0.5)),
    Sweep("independent-modes", assumptions.UNCORRELATED_INPUTS, lambda a: Case(mixed(AXES, a), DiagonalLinear(4), 0.2)),
    Sweep("deep-modes", assumptions.ALIGNED_LAYERS, lambda a: Case(SQUARE, moved(aligned(SQUARE), a), 1.0)),
    Sweep(
        "kernel-regression",
        assumptions.LAZY_TRAINING,
        lambda a: Case(Task(X, Y), TwoLayer(4, 400, 2, activation="relu"), a**-0.5),
    ),
    Sweep("linear-staircase", assumptions.SMALL_START, lambda a: Case(Task(X, Y), TwoLayer(4, 20, 2), a)),
    Sweep("diagonal-staircase", assumptions.SMALL_START, lambda a: Case(Task(X, Y[:, 0]), DiagonalLinear(4), a)),
    Sweep("deep-isotropic", assumptions.BALANCED_LAYERS, lambda a: Case(SQUARE, moved(equal_layers(), a))),
    Sweep("deep-modes", assumptions.WHITE_INPUTS, lambda a: Case(stretched(SQUARE, a), aligned(SQUARE))),
    Sweep("deep-diagonal-staircase", assumptions.SMALL_START, lambda a: Case(ONE, DeepDiagonal(4, 3), a)),
    Sweep("linear-attention", assumptions.SMALL_START, lambda a: Case(PROMPTS, LinearAttention(2, 6), a)),
    Sweep("merged-attention", assumptions.SMALL_START, lambda a: Case(PROMPTS, MergedAttention(2, 6), a)),
    Sweep(
        "modular-addition",
        assumptions.SMALL_START,
        lambda a: Case(ADDITION, TwoLayer(10, 12, 5, activation="quadratic"), a, normalised=True),
    ),
    Sweep(
        "group-composition",
        assumptions.SMALL_START,
        lambda a: Case(COMPOSED, TwoLayer(12, 60, 6, activation="power-2"), a, normalised=True),
    ),
    Sweep("orthogonal-relu", assumptions.SMALL_START, lambda a: Case(ORTHOGONAL, large_outputs(), a)),
    Sweep(
        "alternating-flow",
        assumptions.SMALL_START,
        lambda a: Case(ORTHOGONAL, TwoLayer(3, 20, 1, activation="relu"), a),
    ),
    Sweep(
        "neuron-function-space",
        assumptions.SMALL_STEPS,
        lambda a: Case(ONE, TwoLayer(4, 1, 1), 0.3, learning_rate=a),
    ),
    Sweep("linear-model", assumptions.SMALL_STEPS, lambda a: Case(ONE, DeepLinear((4, 1)), learning_rate=2 * a)),
)


def rows(sweeps: Sequence[Sweep] = SWEEPS) -> Iterator[Row]:
    """All points, one after the other."""
    theories = {theory.name: theory for theory in THEORIES}
    for sweep in sweeps:
        for amount in AMOUNTS:
            case = sweep.case(amount)
            measured = violation(sweep.assumption, case)
            assert measured is not None
            predicted = theories[sweep.theory].solve(case)
            if case.learning_rate is not None:
                times, expected = predicted["time"].to_numpy(), predicted["loss"].to_numpy()
                off = np.abs(descended(case, times) - expected)
                yield Row(sweep.theory, sweep.assumption.name, measured, float(off.mean() / expected[0]))
                continue
            given: dict[str, Any] = {} if "jump" in predicted.dims else {"duration": float(predicted["time"][-1])}
            run = observe(case.task, case.network, scale=case.scale, normalised=case.normalised, **given)
            found = compare(run, predicted)
            if "jump" in predicted.dims:
                error = float(np.nanmax(np.abs(found["residual"]["jump_time_error"].to_numpy())))
            else:
                off = np.abs(found["residual"]["loss_residual"].to_numpy())
                error = float(off.mean() / predicted["loss"].to_numpy()[0])
            yield Row(sweep.theory, sweep.assumption.name, measured, error)


def main() -> None:
    with compile_cache(), PATH.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(Row._fields)
        for row in rows():
            table.writerow([row.theory, row.assumption, f"{row.violation:.4g}", f"{row.error:.4g}"])
            print(f"{row.theory:20} {row.assumption:22} {row.violation:9.2g} {row.error:9.2g}", flush=True)


if __name__ == "__main__":
    main()

"""Prediction errors of theories whose assumptions are violated by a known amount.

Each row contains a theory, an assumption, its violation as measured by `which`, and the prediction error. For curves,
the error is the mean distance of the predicted from the observed loss, relative to the initial loss. For staircases, it
is the largest relative error of a jump time. If training continues long after the last jump, it also includes the error
of the last level relative to the initial loss. For small steps and batches, training is gradient descent of a product
of layers, implemented in this file. `python benchmarks/almost_applies.py` writes `docs/concepts/almost_applies.csv` in
about three minutes.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from dynascope import GradientFlow, compare, observe
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
GAPS = (0.5, 0.3, 0.2, 0.1, 0.05, 0.02)
SHARES = (0.01, 0.03, 0.1, 0.3, 0.6, 0.9)


class Row(NamedTuple):
    """One point of the figure."""

    theory: str
    assumption: str
    violation: float
    error: float


class Sweep(NamedTuple):
    """Cases with increasing violation of an assumption.

    If `longer` is given, training lasts this many times the time of the last jump.
    """

    theory: str
    assumption: Assumption
    case: Callable[[Any], Case]
    amounts: Sequence[float] = AMOUNTS
    longer: float | None = None


def stretched(task: Task, amount: float) -> Task:
    """Return the task with its inputs rescaled by factors close to one."""
    factors = 1 + amount * np.linspace(-1, 1, task.input_dimension)
    return Task(task.inputs * factors, task.targets)


def mixed(task: Task, amount: float) -> Task:
    """Return the task with a fraction of each input added to the next one."""
    return Task(task.inputs + amount * np.roll(task.inputs, 1, axis=1), task.targets)


def moved(network: Any, amount: float) -> Any:
    """Return the network with random weights added, relative to the norm of each weight array."""
    draw = np.random.default_rng(1)

    def add(weight: Any) -> Any:
        noise = draw.normal(size=weight.shape)
        return weight + amount * noise * np.linalg.norm(weight) / np.linalg.norm(noise)

    return jax.tree.map(add, network, is_leaf=eqx.is_array)


def equal_layers() -> DeepLinear:
    """Return a network of three layers, each the same multiple of the identity."""
    return eqx.tree_at(lambda net: net.weights, DeepLinear((4,) * 4), tuple(0.5 * np.eye(4) for _ in range(3)))


def large_outputs(neurons: int = 30, less: float = 0.0, seed: int = 1) -> TwoLayer:
    """Return ReLU neurons whose output weights are as large as their input weights, or smaller by a given fraction."""
    network = TwoLayer(3, neurons, 1, activation="relu", seed=seed)
    sizes = np.linalg.norm(network.first, axis=0)[:, None]
    return eqx.tree_at(lambda net: net.second, network, (1 - less) * sizes * np.sign(network.second))


def weak_first() -> Task:
    """Return a task with six modes, of which those learned first explain least."""
    draw = np.random.default_rng(2)
    sizes = np.arange(6.0, 0.0, -1.0)
    axes = np.linalg.qr(draw.normal(size=(60, 6)))[0] * 60**0.5
    turned = np.linalg.qr(draw.normal(size=(6, 6)))[0]
    return Task(axes * sizes @ turned, axes * (1 + sizes) / sizes)  # singular values 7 to 2


def two_alike(gap: float, outputs: int) -> Task:
    """Return a task with white inputs and two modes, whose rates of learning differ by a given fraction."""
    axes = np.linalg.qr(X)[0] * len(X) ** 0.5
    targets = axes[:, :2] * [2.0, 2.0 * (1 - gap)]
    return Task(axes, targets if outputs == 2 else targets.sum(axis=1))


def unequal(mean: float, share: float, layers: int) -> tuple[float, ...]:
    """Return learning rates with a given geometric mean; the last layer's rate is lower by a given fraction."""
    rates = (1 - share) ** np.linspace(0, 1, layers)
    return tuple((mean * rates / np.prod(rates) ** (1 / layers)).tolist())


def descended(case: Case, times: np.ndarray) -> np.ndarray:
    """Train x W₁ ⋯ W_L by gradient descent on batches, and return its loss at the given times.

    Time is the learning rate times the number of steps. If layers have different rates, it uses their geometric mean.
    """
    assert case.layers is not None
    rates = np.broadcast_to(case.rates, len(case.layers))
    mean = float(np.exp(np.log(rates).mean()))
    layers, losses = list(case.layers), []
    x, y = case.task.inputs, case.task.targets
    draw, size = np.random.default_rng(3), case.batch_size or len(x)
    for _ in range(int(times[-1] / mean) + 2):
        batch = draw.permutation(len(x))[:size]
        forward = [x[batch]]
        for layer in layers:
            forward.append(forward[-1] @ layer)
        back = (forward[-1] - y[batch]) / size
        losses.append(float(np.sum((np.linalg.multi_dot([x, *layers]) - y) ** 2) / len(x) / 2))
        slopes = []
        for layer, before in zip(reversed(layers), reversed(forward[:-1]), strict=True):
            slopes.append(before.T @ back)
            back = back @ layer.T
        layers = [layer - rate * slope for layer, rate, slope in zip(layers, rates, reversed(slopes), strict=True)]
    return np.interp(times, mean * np.arange(len(losses)), losses)


def off_a_line(amount: float) -> Task:
    """Return a task with inputs close to one direction."""
    line = np.outer(X[:, 0], [1.0, 2.0, 0.5])
    return Task(line + amount * X[:, 1:], Y[:, 0])


def aligned(task: Task) -> DeepLinear:
    """Return three balanced layers along the singular vectors of the target map."""
    left, _, right = np.linalg.svd(task.cross_moment.T)
    sizes = np.diag(np.linspace(0.5, 0.2, task.input_dimension))
    layers = (left @ sizes, sizes, sizes @ right)
    return eqx.tree_at(lambda net: net.weights, DeepLinear((task.input_dimension,) * 4), layers)


ONE = Task(X, Y[:, 0])
ORTHOGONAL = Task(np.diag([1.0, 2.0, 1.5]), [1.0, -2.0, 1.0])
PROMPTS = InContextRegression(np.diag([1.0, 0.5]), 20.0)
ADDITION = ModularAddition(encoding_from_frequencies(5, {1: 1.0, 2: 0.5}))
COMPOSED = group_composition(dihedral(3))
WEAK_FIRST = weak_first()
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
    Sweep(
        "balanced",
        assumptions.EQUAL_RATES,
        lambda a: Case(WHITE, balanced_linear(4, 5, 2), 0.3, learning_rate=unequal(2e-3, a, 2)),
        SHARES,
    ),
    Sweep(
        "deep-modes",
        assumptions.EQUAL_RATES,
        lambda a: Case(SQUARE, aligned(SQUARE), learning_rate=unequal(2e-3, a, 3)),
        SHARES,
    ),
    Sweep(
        "linear-staircase",
        assumptions.SEPARATED_TIMES,
        lambda a: Case(two_alike(a, 2), TwoLayer(4, 20, 2), 1e-4),
        GAPS,
    ),
    Sweep(
        "diagonal-staircase",
        assumptions.SEPARATED_TIMES,
        lambda a: Case(two_alike(a, 1), DiagonalLinear(4), 1e-4),
        GAPS,
    ),
    Sweep(
        "linear-attention",
        assumptions.SEPARATED_TIMES,
        lambda a: Case(InContextRegression(np.diag([1.0, 1 - a]), 20.0), LinearAttention(2, 6), 1e-3),
        GAPS,
    ),
    Sweep(
        "linear-model",
        assumptions.FULL_BATCHES,
        lambda a: Case(ONE, DeepLinear((4, 1)), learning_rate=0.05, batch_size=int(a)),
        (59, 57, 54, 42, 20, 1),
    ),
    Sweep(
        "orthogonal-relu",
        assumptions.LARGE_OUTPUT_WEIGHTS,
        lambda a: Case(ORTHOGONAL, large_outputs(3, a, seed=0), 1e-5),  # many neurons replace one another
        SHARES,
        longer=2.0,
    ),
    Sweep(
        "linear-staircase",
        assumptions.ENOUGH_NEURONS,
        lambda a: Case(WEAK_FIRST, TwoLayer(6, 6 - int(a), 6), 1e-4),
        (0, 1, 2, 3, 4, 5),
        longer=20.0,
    ),
)


def rows(sweeps: Sequence[Sweep] = SWEEPS) -> Iterator[Row]:
    """Yield all points."""
    theories = {theory.name: theory for theory in THEORIES}
    for sweep in sweeps:
        for amount in sweep.amounts:
            case = sweep.case(amount)
            measured = violation(sweep.assumption, case)
            assert measured is not None
            predicted = theories[sweep.theory].solve(case)
            if case.learning_rate is not None:
                times, expected = predicted["time"].to_numpy(), predicted["loss"].to_numpy()
                off = np.abs(descended(case, times) - expected)
                yield Row(sweep.theory, sweep.assumption.name, measured, float(off.mean() / expected[0]))
                continue
            staircase = "jump" in predicted.dims
            last = float(predicted["jump_time" if staircase else "time"][-1])
            given: dict[str, Any] = {"duration": (sweep.longer or 1.0) * last} if sweep.longer or not staircase else {}
            run = observe(
                case.task, case.network, method=GradientFlow(normalised=case.normalised, **given), scale=case.scale
            ).record
            found = compare(run, predicted)
            if staircase:
                late = float(np.nanmax(np.abs(found.residual["jump_time_error"].to_numpy())))
                left = abs(float(run["loss"][-1]) - float(predicted["loss_after"][-1])) if sweep.longer else 0.0
                error = max(late, left / float(predicted["loss_before"][0]))
            else:
                off = np.abs(found.residual["loss_residual"].to_numpy())
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

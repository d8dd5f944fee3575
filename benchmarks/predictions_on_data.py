"""Predictions on ordinary data, compared with accurate training runs: verdicts, numbers of scored jumps, and errors.

Each cell is a data set, a network, a scale and, for networks with random weights, a seed. The prediction has the
default number of jumps: five, or all jumps for linear and diagonal networks. The verdict is that of `--check`. The
ground truth is a gradient flow with at most a tenth of the tolerance. The table contains the verdict, the numbers of
scored jumps and of all jumps, and the verdict by the ground truth. It also contains the error of the loss curve (mean
over log time, relative to the initial loss) and the error that the prediction states.

Run `python benchmarks/predictions_on_data.py [--file FILE] [--only WORD …]`. Cells that are already in the file are
skipped, so a stopped run can be resumed. `--only` selects cells whose names contain all words.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from resumable import keep, rows
from sklearn import datasets

from dynascope import GradientFlow, compare, flows, observe, predict
from dynascope.compilation import compile_cache
from dynascope.errors import DivergenceError
from dynascope.flows.exact.few_prompts import few_prompts
from dynascope.networks import DiagonalLinear, TwoLayer
from dynascope.networks.deep_linear import linear_layers
from dynascope.networks.kinds import NetworkKind, network_for
from dynascope.prediction.loss_curve import distance_between
from dynascope.results import training_time
from dynascope.tasks import InContextRegression, Task, digits

FILE = Path(__file__).parent.parent / "docs" / "concepts" / "predictions_on_data.csv"
NETWORKS = ("linear", "diagonal", "relu", "quadratic", "attention")
SCALES = (1e-2, 1e-4, 1e-8)
SEEDS = (0, 1, 2)
SMALLEST = 1e-4  # smallest scale for networks whose times grow as powers of 1/scale
WIDTH = 50
CONTEXT = 20  # examples in a prompt
COLUMNS: tuple[str, ...] = (
    "data",
    "network",
    "scale",
    "seed",
    "verdict",
    "judged",
    "of",
    "verdict_by_truth",
    "error",
    "stated_error",
    "seconds",
)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--file", type=Path, default=FILE)
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    kept = {(row["data"], row["network"], row["scale"], row["seed"]) for row in rows(options.file)}
    with compile_cache():
        for seed, (name, make), network, scale in itertools.product(SEEDS, DATA.items(), NETWORKS, SCALES):
            cell = (name, network, f"{scale:g}", str(seed))
            selected = all(word in " ".join(cell) for word in options.only)
            same = network == "diagonal" and seed > 0
            slow = network in ("quadratic", "attention") and scale < SMALLEST
            if cell not in kept and selected and not (same or slow):
                keep(options.file, found(name, make(), network, scale, seed), COLUMNS)
    print_summary(rows(options.file))


def found(name: str, task: Task, kind: NetworkKind, scale: float, seed: int) -> dict[str, Any]:
    """Return the row of one cell."""
    start = time.perf_counter()
    if kind == "diagonal":
        task = task.only(task.target_names[0])
    learned: Any = InContextRegression.on_inputs_of(task, CONTEXT) if kind == "attention" else task
    network: Any = network_for(kind, learned, width=WIDTH, seed=seed)
    row = {"data": name, "network": kind, "scale": f"{scale:g}", "seed": seed}
    predicted = predict(learned, network, scale=scale, jumps=None if kind in ("linear", "diagonal") else 5).record
    if "loss" not in predicted:
        return row | {"verdict": "no curve"}
    end = min(training_time(predicted, scale), float(predicted["time"][-1]))
    try:
        close = truth(learned, network, scale, end)
        exact = kind in ("linear", "diagonal")
        observed = close if exact else observe(learned, network, method=GradientFlow(duration=end), scale=scale).record
    except DivergenceError:
        return row | {"verdict": "no truth"}
    tree = compare(observed, predicted)
    status = tree.residual["status"].to_numpy().tolist()
    return row | {
        "verdict": tree.verdict.outcome,
        "judged": status.count("judged"),
        "of": len(status),
        "verdict_by_truth": compare(close, predicted).verdict.outcome,
        "error": f"{distance_between(predicted.sel(time=slice(None, end)), close):.1e}",
        "stated_error": f"{predicted.attrs['curve_error']:.1e}",
        "seconds": f"{time.perf_counter() - start:.1f}",
    }


def truth(task: Any, network: Any, scale: float, duration: float) -> Any:
    """Return the gradient flow, as accurate as possible in reasonable time."""
    layers = linear_layers(network)
    if layers is not None:
        return flows.linear_flow(task, *layers, scale=scale, duration=duration, max_steps=300_000)
    if isinstance(network, DiagonalLinear):
        return flows.diagonal_flow(task, scale=scale, duration=duration, max_steps=300_000)
    if isinstance(task, InContextRegression):
        task = few_prompts(task)
    solver = "stiff" if network.degree > 2 else None
    return flows.polar_flow(task, network, scale=scale, duration=duration, tolerance=1e-4, solver=solver)


def print_summary(kept: list[dict[str, str]]) -> None:
    decided = [row for row in kept if row["verdict"] in ("agree", "disagree", "undecided")]
    wrong = [row for row in decided if row["verdict"] != row["verdict_by_truth"] or row["verdict"] == "disagree"]
    covered = [row for row in decided if float(row["error"]) <= float(row["stated_error"])]
    print(f"{len(kept)} cells, {len(decided)} with a verdict, {len(wrong)} of them wrong or a disagreement")
    print(f"the stated error covers the actual error in {len(covered)} of {len(decided)} cells")


def standardised(x: np.ndarray) -> np.ndarray:
    return (x - x.mean(axis=0)) / x.std(axis=0)


def classes(load: Callable[[], Any], *, raw: bool = False) -> Callable[[], Task]:
    def make() -> Task:
        bunch = load()
        labels = np.eye(len(bunch.target_names))[bunch.target]
        x = bunch.data - bunch.data.mean(axis=0)
        return Task(x if raw else standardised(x), labels - labels.mean(axis=0))

    return make


def diabetes() -> Task:
    bunch: Any = datasets.load_diabetes()
    return Task(standardised(bunch.data), standardised(bunch.target[:, None]))


def sparse() -> Task:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(40, 100))
    return Task(x, x[:, :5] @ [[3.0], [-2.0], [1.5], [1.0], [0.7]])


def units() -> Task:
    """Return a table in centimetres, kilograms and years, standardised as usual."""
    draw = np.random.default_rng(1)
    height = draw.normal(170, 10, size=300)
    weight, age = 0.9 * (height - 100) + draw.normal(0, 8, size=300), draw.uniform(20, 70, size=300)
    pressure = 100 + 0.3 * weight + 0.4 * age + draw.normal(0, 8, size=300)
    return Task(standardised(np.stack([height, weight, age], axis=1)), standardised(pressure[:, None]))


def teacher(activation: str, seed: int, *, outputs: int = 1) -> Callable[[], Task]:
    def make() -> Task:
        draw = np.random.default_rng(seed)
        x = draw.normal(size=(300, 6))
        y = TwoLayer(6, 4, outputs, activation=activation, scale=2.0, seed=seed)(x)
        return Task(x, np.asarray(y) - np.asarray(y).mean(axis=0))

    return make


def correlated() -> Task:
    draw = np.random.default_rng(2)
    x = draw.normal(size=(200, 8)) @ (0.5 * np.eye(8) + 0.5 / 8**0.5 * draw.normal(size=(8, 8)))
    return Task(standardised(x), standardised(x[:, :2] @ [[1.0], [-1.0]] + draw.normal(size=(200, 1))))


def digit_pair() -> Task:
    """Return the handwritten digits three and eight."""
    bunch: Any = datasets.load_digits()
    images, labels = bunch.data, bunch.target
    chosen = (labels == 3) | (labels == 8)
    x = images[chosen] / 16
    y = np.where(labels[chosen] == 3, 1.0, -1.0)[:, None]
    return Task(x - x.mean(axis=0), y - y.mean())


DATA: dict[str, Callable[[], Task]] = {
    "diabetes": diabetes,
    "wine": classes(datasets.load_wine),
    "iris": classes(datasets.load_iris),
    "breast cancer": classes(datasets.load_breast_cancer),
    "sparse 40 × 100": sparse,
    "units": units,
    "linear teacher": teacher("linear", 3, outputs=3),
    "ReLU teacher": teacher("relu", 4),
    "ReLU teacher, 3 outputs": teacher("relu", 5, outputs=3),
    "correlated": correlated,
    "digits 3 and 8": digit_pair,
    "digits": digits,
    "wine, raw": classes(datasets.load_wine, raw=True),
}


if __name__ == "__main__":
    main()

"""Predictions for PyTorch networks with biases on ten tables, compared with accurate training runs.

Each cell is a table and a scale. The network is `Sequential(Linear, ReLU, Linear)` with PyTorch's default
initialisation, weights and biases multiplied by the scale. The verdict is that of `compare(observe(…), predict(…))` at
default settings, except that the prediction has at most five jumps. The ground truth is a gradient flow with a tenth of
the tolerance. A verdict is right if the ground truth leads to the same one, and it is not "disagree".

Run `python benchmarks/biased_networks.py [--file FILE] [--only WORD …]`, with PyTorch and statsmodels. Cells already
in the file are skipped, so a stopped run can be resumed. `--only` selects cells whose names contain all words.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import statsmodels.api
import torch
from predictions_on_data import DATA
from resumable import keep, rows

from dynascope import GradientFlow, compare, flows, observe, predict
from dynascope.compilation import compile_cache
from dynascope.networks import at_unit_scale, user_network
from dynascope.prediction.loss_curve import distance_between
from dynascope.results import training_time
from dynascope.tasks import Task, read_table

FILE = Path(__file__).parent.parent / "docs" / "concepts" / "biased_networks.csv"
SCALES = (1e-2, 1e-4)
WIDTH, JUMPS = 50, 5
TOLERANCE = 3e-5  # a tenth of the tolerance of observed runs
COLUMNS = ("data", "scale", "verdict", "judged", "of", "verdict_by_truth", "error", "stated_error", "seconds")


def statsmodels_table(name: str, target: str) -> Callable[[], Task]:
    def make() -> Task:
        table: pd.DataFrame = getattr(statsmodels.api.datasets, name).load_pandas().data
        return read_table(table, target=target)

    return make


TABLES: dict[str, Callable[[], Task]] = {
    **{name: DATA[name] for name in ("diabetes", "wine", "iris", "breast cancer", "units", "correlated")},
    "affairs": statsmodels_table("fair", "affairs"),
    "credit cards": statsmodels_table("ccard", "AVGEXP"),
    "copper": statsmodels_table("copper", "WORLDCONSUMPTION"),
    "election": statsmodels_table("anes96", "PID"),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--file", type=Path, default=FILE)
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    kept = {(row["data"], row["scale"]) for row in rows(options.file)}
    with compile_cache():
        for (name, make), scale in itertools.product(TABLES.items(), SCALES):
            cell = (name, f"{scale:g}")
            if cell not in kept and all(word in " ".join(cell) for word in options.only):
                keep(options.file, found(name, make(), scale), COLUMNS)
    decided = [row for row in rows(options.file) if row["verdict"] != "undecided"]
    right = [row for row in decided if row["verdict"] == row["verdict_by_truth"] == "agree"]
    print(f"{len(rows(options.file))} cells, {len(decided)} with a verdict, {len(right)} of them right")


def found(name: str, task: Task, scale: float) -> dict[str, Any]:
    """Return the row of one cell."""
    start = time.perf_counter()
    torch.manual_seed(0)
    hidden, last = torch.nn.Linear(task.input_dimension, WIDTH), torch.nn.Linear(WIDTH, task.output_dimension)
    module: Any = torch.nn.Sequential(hidden, torch.nn.ReLU(), last)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter *= scale
    predicted = predict(task, module, jumps=JUMPS).record
    read = user_network(module)
    assert read is not None
    network: Any
    network, size = at_unit_scale(read)
    end = min(training_time(predicted, size), float(predicted["time"][-1]))
    observed = observe(task, module, method=GradientFlow(duration=end)).record
    truth = flows.polar_flow(task, network, scale=size, duration=end, tolerance=TOLERANCE, max_steps=2_000_000)
    tree = compare(observed, predicted)
    status = tree.residual["status"].to_numpy().tolist()
    known = predicted.sel(time=slice(None, end))
    return {
        "data": name,
        "scale": f"{scale:g}",
        "verdict": tree.verdict.outcome,
        "judged": status.count("judged"),
        "of": len(status),
        "verdict_by_truth": compare(truth, predicted).verdict.outcome,
        "error": f"{distance_between(known, truth):.1e}",
        "stated_error": f"{predicted.attrs['curve_error']:.1e}",
        "seconds": f"{time.perf_counter() - start:.1f}",
    }


if __name__ == "__main__":
    main()

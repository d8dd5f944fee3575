"""The loss curve at a given scale, as `predict` computes it, compared with gradient flow of the weights.

`loss_curve` integrates the flow twice, to estimate its own error. The baseline is one run of `flows.gradient_flow` with
a relative tolerance of 1e-5; for quadratic networks it uses an implicit solver with its default tolerance. Both end at
the last predicted jump. The baseline ends after two minutes at the latest, and the ratio is then a lower bound. It is
saved at the times of `loss_curve`, because linear interpolation between equidistant times would miss the first jumps of
a long flow. The table contains the CPU seconds of both without compilation, their ratio and its target. It also
contains the additional seconds of our first run without cached programs, and the mean error of the loss relative to the
initial loss.

Run `python benchmarks/loss_curve.py [--file FILE] [--only WORD …]`. Cases that are already in the file are skipped.
`--only` selects cases whose names contain all words.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from predictions_on_data import DATA, WIDTH
from resumable import keep, rows

from dynascope.errors import DivergenceError
from dynascope.flows import GradientFlow, Solver, gradient_flow
from dynascope.flows.deadline import stopping_after
from dynascope.networks.kinds import NetworkKind, network_for
from dynascope.prediction import predict
from dynascope.prediction.loss_curve import distance_between, loss_curve
from dynascope.results import training_time
from dynascope.tasks import Task

# Target speed-up by data, network and scale.
CASES: dict[tuple[str, NetworkKind, float], float] = {
    ("digits", "linear", 1e-4): 50.0,
    ("iris", "linear", 1e-4): 5.0,
    ("units", "linear", 1e-4): 5.0,
    ("diabetes", "diagonal", 1e-4): 1.0,
    ("wine", "diagonal", 1e-4): 1.0,
    ("units", "quadratic", 1e-3): 3.0,
    ("iris", "quadratic", 1e-3): 3.0,
    ("ReLU teacher", "relu", 1e-2): 1.0,
    ("ReLU teacher", "relu", 1e-4): 10.0,
    ("diabetes", "relu", 1e-4): 10.0,
    ("wine", "relu", 1e-4): 10.0,
}
FILE = Path(__file__).parent.parent / "docs" / "how-to" / "loss_curve.csv"
COLUMNS = ("data", "network", "scale", "ours", "theirs", "ratio", "wanted", "compiling", "error")
LONGEST = 120.0  # seconds for the baseline
REPEATS = 3  # of our runs
EXPLICIT = Solver("explicit", relative_tolerance=1e-5)
SOLVERS = {"quadratic": Solver("stiff")}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--file", type=Path, default=FILE)
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    kept = {(row["data"], row["network"], row["scale"]) for row in rows(options.file)}
    for (data, kind, scale), wanted in CASES.items():
        cell = (data, kind, f"{scale:g}")
        if cell not in kept and all(word in " ".join(cell) for word in options.only):
            named = dict(zip(COLUMNS, cell, strict=False))
            keep(options.file, named | found(DATA[data](), kind, scale) | {"wanted": wanted}, COLUMNS)


def found(task: Task, kind: NetworkKind, scale: float) -> dict[str, str]:
    """Return the costs of both sides and the distance of their results."""
    if kind == "diagonal":
        task = task.only(task.target_names[0])
    network = network_for(kind, task, width=WIDTH)
    jumps = None if kind in ("linear", "diagonal") else 5
    duration = training_time(predict(task, network, scale=scale, jumps=jumps, curve=False).record, scale)

    mine = [timed(lambda: loss_curve(task, network, scale=scale, duration=duration)) for _ in range(1 + REPEATS)]
    ours, curve = statistics.median(seconds for seconds, _ in mine[1:]), mine[-1][1]
    times = np.unique(np.append(curve["time"], duration))

    def theirs(share: float) -> Any:
        method = GradientFlow(duration=share * duration, solver=SOLVERS.get(kind, EXPLICIT), save=share * times)
        with stopping_after(LONGEST):
            return gradient_flow(task, network, method, scale=scale)

    # Compile; the program does not depend on the duration.
    theirs(1e-6)
    try:
        seconds, flow = timed(lambda: theirs(1.0))
    except DivergenceError:
        return {"ours": f"{ours:.3f}", "theirs": "diverged", "compiling": f"{mine[0][0] - ours:.1f}"}
    ended = float(flow["time"][-1]) >= duration
    at_least = "" if ended else "> "
    return {
        "ours": f"{ours:.3f}",
        "theirs": f"{at_least}{seconds:.3f}",
        "ratio": f"{at_least}{seconds / ours:.1f}",
        "compiling": f"{max(mine[0][0] - ours, 0.0):.1f}",
        "error": f"{distance_between(curve, flow):.1e}" if ended else "",
    }


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = run()
    return time.process_time() - start, result


if __name__ == "__main__":
    main()

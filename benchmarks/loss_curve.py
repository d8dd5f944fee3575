"""The loss curve at the scale at hand, as `predict` follows it, against gradient flow of the weights.

Ours is `loss_curve`, which follows the flow twice to know its own error; theirs is `flows.gradient_flow` once, with a
relative tolerance of 1e-5, or implicit and as it is for quadratic networks. Both end when the last predicted jump does,
theirs at the latest after two minutes, and the ratio then is one that it has at least. Theirs is saved at the times of
ours: at as many equal ones, lines between them miss the first jumps of a flow that goes on for long.
Told and kept are the processor's seconds of both, without compiling, the ratio and what it is to be, the seconds that
the first run of ours took longer, with no program kept, and the mean error of the loss over the initial one.

Cases that the file holds are not run again. Run as `python benchmarks/loss_curve.py [--file FILE] [--only WORD …]`;
each word is to be in the name of a case.
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

# By data, network and scale, how many times faster ours is to be.
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
LONGEST = 120.0  # seconds for theirs
REPEATS = 3  # of ours
EXPLICIT = Solver("explicit", relative_tolerance=1e-5)
SOLVERS = {"quadratic": Solver("stiff")}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--file", type=Path, default=FILE)
    parser.add_argument("--only", nargs="*", default=[])
    asked = parser.parse_args()
    kept = {(row["data"], row["network"], row["scale"]) for row in rows(asked.file)}
    for (data, kind, scale), wanted in CASES.items():
        cell = (data, kind, f"{scale:g}")
        if cell not in kept and all(word in " ".join(cell) for word in asked.only):
            named = dict(zip(COLUMNS, cell, strict=False))
            keep(asked.file, named | found(DATA[data](), kind, scale) | {"wanted": wanted}, COLUMNS)


def found(task: Task, kind: NetworkKind, scale: float) -> dict[str, str]:
    """What both sides cost, and how far they are apart."""
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

    # The program is the same for any duration.
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

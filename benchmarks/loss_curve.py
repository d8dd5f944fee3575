"""The loss curve at the scale at hand, as `predict` follows it, against gradient flow of the weights.

Ours is `loss_curve`, which follows the flow twice to know its own error; theirs is `flows.gradient_flow` once, with a
relative tolerance of 1e-5 for networks with kinks and as it is otherwise. Both end when the last predicted jump does.
Run as `python benchmarks/loss_curve.py [WORD …]`; each word is to be in the name of a case.
"""

from __future__ import annotations

import sys
from typing import Any

import harness
from predictions_on_data import DATA, WIDTH

from dynascope.errors import DivergenceError
from dynascope.flows import gradient_flow
from dynascope.networks.kinds import NetworkKind, network_for
from dynascope.prediction import predict
from dynascope.prediction.loss_curve import distance_between, loss_curve
from dynascope.record import training_time
from dynascope.tasks import Task

# By data, network and scale, how many times faster ours is to be.
CASES: dict[tuple[str, NetworkKind, float], float] = {
    ("digits", "linear", 1e-4): 50.0,
    ("iris", "linear", 1e-4): 5.0,
    ("units", "linear", 1e-4): 5.0,
    ("diabetes", "relu", 1e-4): 10.0,
    ("wine", "relu", 1e-4): 10.0,
    ("ReLU teacher", "relu", 1e-4): 10.0,
    ("ReLU teacher", "relu", 1e-2): 1.0,
    ("diabetes", "diagonal", 1e-4): 1.0,
    ("wine", "diagonal", 1e-4): 1.0,
    ("units", "quadratic", 1e-3): 3.0,
}


def main() -> None:
    for (data, kind, scale), target in CASES.items():
        name = f"{data}, {kind}, {scale:g}"
        if all(word in name for word in sys.argv[1:]):
            measured(name, DATA[data](), kind, scale, target)


def measured(name: str, task: Task, kind: NetworkKind, scale: float, target: float) -> None:
    if kind == "diagonal":
        task = task.only(task.target_names[0])
    network = network_for(kind, task, width=WIDTH)
    jumps = None if kind in ("linear", "diagonal") else 5
    duration = training_time(predict(task, network, scale=scale, jumps=jumps, curve=False), scale)
    options: dict[str, Any] = {"relative_tolerance": 1e-5} if kind == "relu" else {}

    def ours() -> Any:
        return loss_curve(task, network, scale=scale, duration=duration)

    def theirs() -> Any:
        try:
            return gradient_flow(network, task, scale=scale, duration=duration, save=2000, **options)
        except DivergenceError as error:
            return error

    curve, flow = harness.compare(name, ours, theirs, target=target, repeats=3)
    if isinstance(flow, DivergenceError):
        print(f"theirs was not followed to the end: {flow}")
    else:
        print(f"mean error of the loss over the initial one: {distance_between(curve, flow):.1e}")


if __name__ == "__main__":
    main()

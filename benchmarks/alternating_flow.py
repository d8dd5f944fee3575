"""Alternating gradient flow of a ReLU network on handwritten digits, against training the network for as long.

64 inputs, 1797 samples, 100 neurons, from scale 1e-8 until the fifth jump (to take less than 20 s, compilation
included). Then the cost against the numbers of samples and of neurons, up to the second jump.
"""

from __future__ import annotations

import time

import numpy as np

from dynascope.alternating import alternating_flow
from dynascope.flows import GradientFlow, Solver, gradient_flow
from dynascope.networks import TwoLayer
from dynascope.tasks import Task, digits

SCALE = 1e-8


def main() -> None:
    task, network = digits(), network_of(100)
    start = time.perf_counter()
    staircase = alternating_flow(task, network, scale=SCALE, jumps=5)
    first = time.perf_counter() - start
    seconds, _ = timed(lambda: alternating_flow(task, network, scale=SCALE, jumps=5))
    print(f"five jumps: {first:.1f} s with compilation (target 20), {seconds:.1f} s without")
    print(f"jump times {staircase['jump_time'].to_numpy().round(1)}")

    duration = float(staircase["jump_time"][-1])
    trained, _ = timed(
        lambda: gradient_flow(
            task, network, GradientFlow(duration=duration, solver=Solver(relative_tolerance=1e-4), save=2), scale=SCALE
        )
    )
    print(f"training until then: {trained:.1f} s with compilation, {trained / seconds:.1f} times as long")

    for name, cases in (
        ("samples", [(Task(np.tile(task.inputs, (k, 1)), np.tile(task.targets, (k, 1))), 100) for k in (1, 2, 4)]),
        ("neurons", [(task, width) for width in (100, 200, 400)]),
    ):
        costs = [per_phase(*case) for case in cases]
        print(f"utility phase with 1, 2, 4 times the {name}: " + ", ".join(f"{c / costs[0]:.2f}" for c in costs))


def per_phase(task: Task, width: int) -> float:
    """Seconds of the first utility phase, which has the same number of steps for copies of the samples."""
    network = network_of(width)

    def run() -> None:
        # The duration ends it in the first utility phase, of which the aligned part is a fixed number of steps.
        alternating_flow(task, network, scale=SCALE, duration=60.0)

    run()
    return min(timed(run)[0] for _ in range(3))


def network_of(width: int) -> TwoLayer:
    return TwoLayer(64, width, 10, activation="relu", seed=0)


def timed(run) -> tuple[float, object]:
    start = time.perf_counter()
    result = run()
    return time.perf_counter() - start, result


if __name__ == "__main__":
    main()

"""Alternating gradient flow of a ReLU network on handwritten digits, compared with training for the same flow time.

The network has 64 inputs and 100 neurons, and learns 1797 samples from scale 1e-8 until its fifth jump. The target is
less than 20 s, including compilation. The benchmark then measures the cost of the first utility phase for more samples
and more neurons.
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
    print(f"training for the same flow time: {trained:.1f} s with compilation, {trained / seconds:.1f} times as long")

    for name, cases in (
        ("samples", [(Task(np.tile(task.inputs, (k, 1)), np.tile(task.targets, (k, 1))), 100) for k in (1, 2, 4)]),
        ("neurons", [(task, width) for width in (100, 200, 400)]),
    ):
        costs = [per_phase(*case) for case in cases]
        print(
            f"relative time of a utility phase with 1, 2 and 4 times the {name}: "
            + ", ".join(f"{c / costs[0]:.2f}" for c in costs)
        )


def per_phase(task: Task, width: int) -> float:
    """Return the seconds of the first utility phase, whose number of steps is the same for copies of the samples."""
    network = network_of(width)

    def run() -> None:
        # The duration ends within the first utility phase, whose aligned part has a fixed number of steps.
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

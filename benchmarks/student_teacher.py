"""Training of an unbalanced ReLU student at the size of a paper, compared with a loop of gradient descent in NumPy.

The student has 100 inputs, 1000 samples and 50 neurons, and the smallest overall scale, 0.1. The paper trains it with a
million steps of gradient descent at the rate 0.005/τ². The loop is timed on a few steps, and its time is extrapolated
to the same gradient-flow time. The loss of the flow is compared with that of the loop after these steps.

Run `python benchmarks/student_teacher.py [relative scale …]`.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from dynascope.flows import polar_flow
from dynascope.studies.regimes.student_teacher.students import Setting, Weights, setting, student

SIZES = {"inputs": 100, "samples": 1000, "test_samples": 2, "width": 50, "teacher_width": 3}
OVERALL, STEPS, FEW, TOLERANCE = 0.1, 1_000_000, 300, 2e-5
RATE = 5e-3 / OVERALL**2
TARGET = 1 / 30


def main() -> None:
    drawn = setting(0, **SIZES)
    print(f"{'relative scale':>14} {'flow':>9} {'loop':>11} {'flow/loop':>10} {'target':>8} {'error':>8}")
    for relative in [float(each) for each in sys.argv[1:]] or [-1.0, 0.0, 1.0]:
        start = student(drawn.directions, drawn.signs, OVERALL, relative)
        losses, each = descended(drawn, start)
        # The loss of the paper has no factor ½, so a step is twice the rate in gradient-flow time.
        duration = 2 * RATE * STEPS
        flow(drawn, start, duration / 1e4)  # compile
        before = time.perf_counter()
        found = flow(drawn, start, duration)
        ours, theirs = time.perf_counter() - before, each * STEPS
        error = abs(float(found[0]) / losses - 1)
        print(
            f"{relative:>14g} {ours:>8.1f}s {theirs:>10.0f}s {ours / theirs:>10.4f} {TARGET:>8.4f} {error:>8.1e}",
            flush=True,
        )


def flow(drawn: Setting, start: Weights, duration: float) -> np.ndarray:
    """Return the mean squared errors after `FEW` steps of descent, or earlier, and at the end."""
    times = [min(2 * RATE * FEW, duration / 2), duration]
    options = {"scale": 1.0, "duration": duration, "tolerance": TOLERANCE, "max_steps": 10_000_000}
    return 2 * polar_flow(drawn.task, start.network(), save=times, **options)["loss"].to_numpy()


def descended(drawn: Setting, start: Weights) -> tuple[float, float]:
    """Return the mean squared error after `FEW` steps of gradient descent, and the seconds per step."""
    inputs, targets = drawn.task.inputs, drawn.task.targets[:, 0]
    first, second = start.first.copy(), start.second.copy()
    before = time.perf_counter()
    for _ in range(FEW):
        z = inputs @ first.T
        hidden = np.maximum(z, 0)
        slope = (2 / len(targets)) * (hidden @ second - targets)
        turn = ((z > 0) * slope[:, None]).T @ inputs
        turn *= second[:, None]
        second = second - RATE * (hidden.T @ slope)
        first -= RATE * turn
    seconds = time.perf_counter() - before
    return float(np.mean((Weights(first, second).outputs(inputs) - targets) ** 2)), seconds / FEW


if __name__ == "__main__":
    main()

"""Training of ReLU students at the size of a paper, compared with a loop of gradient descent in NumPy.

The students have 100 inputs, 1000 samples, 50 neurons, the overall scale τ and the relative scale δ. The paper trains
them with a million steps of gradient descent at the rate 0.005/τ². The loop is timed on a few steps before and after
the flow, and its time is extrapolated to a million steps. The flow is integrated over the same time, or until the loss
is a millionth of its initial value. The loss of the flow is compared with that of the loop after the few steps.

Run `python benchmarks/student_teacher.py [τ …]`.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from dynascope.flows import polar_flow
from dynascope.studies.regimes.student_teacher.students import Setting, Weights, setting, student

SIZES = {"inputs": 100, "samples": 1000, "test_samples": 2, "width": 50, "teacher_width": 3}
STEPS, FEW, TOLERANCE = 1_000_000, 300, 2e-5
TIMES, CONVERGED = 60, 1e-6  # times at which the loss is read, and the share of its start at which the flow ends
TARGET = 1 / 30


def main() -> None:
    drawn = setting(0, **SIZES)
    print(f"{'τ':>5} {'δ':>4} {'flow':>9} {'loop':>9} {'flow/loop':>10} {'target':>8} {'error':>8}")
    for overall in [float(each) for each in sys.argv[1:]] or [2.0, 0.45, 0.1]:
        for relative in (-1.0, 1.0):
            compare(drawn, overall, relative)


def compare(drawn: Setting, overall: float, relative: float) -> None:
    """Print the times of the flow and of the loop, and the relative difference of their losses."""
    start, rate = student(drawn.directions, drawn.signs, overall, relative), 5e-3 / overall**2
    loss, each = descended(drawn, start, rate)
    # The loss of the paper has no factor ½, so a step takes twice the rate in gradient-flow time.
    few, duration = 2 * rate * FEW, 2 * rate * STEPS
    flow(drawn, start, [few / 100, few / 50])  # compile
    before = time.perf_counter()
    found = flow(drawn, start, [few, *np.geomspace(few, duration, TIMES)[1:]])
    ours = time.perf_counter() - before
    theirs = STEPS * (each + descended(drawn, start, rate)[1]) / 2
    ratio, error = ours / theirs, abs(float(found[0]) / loss - 1)
    row = f"{overall:>5g} {relative:>4g} {ours:>8.1f}s {theirs:>8.0f}s {ratio:>10.4f} {TARGET:>8.4f} {error:>8.1e}"
    print(row, flush=True)


def flow(drawn: Setting, start: Weights, times: list[float]) -> np.ndarray:
    """Return the mean squared errors at the given times of gradient flow."""
    options = {"scale": 1.0, "duration": times[-1], "tolerance": TOLERANCE, "max_steps": 10_000_000, "until": CONVERGED}
    return 2 * polar_flow(drawn.task, start.network(), save=times, **options)["loss"].to_numpy()


def descended(drawn: Setting, start: Weights, rate: float) -> tuple[float, float]:
    """Return the mean squared error after a few steps of gradient descent, and the seconds per step."""
    inputs, targets = drawn.task.inputs, drawn.task.targets[:, 0]
    first, second = start.first.copy(), start.second.copy()
    before = time.perf_counter()
    for _ in range(FEW):
        z = inputs @ first.T
        hidden = np.maximum(z, 0)
        slope = (2 / len(targets)) * (hidden @ second - targets)
        turn = ((z > 0) * slope[:, None]).T @ inputs
        turn *= second[:, None]
        second = second - rate * (hidden.T @ slope)
        first -= rate * turn
    seconds = time.perf_counter() - before
    return float(np.mean((Weights(first, second).outputs(inputs) - targets) ** 2)), seconds / FEW


if __name__ == "__main__":
    main()

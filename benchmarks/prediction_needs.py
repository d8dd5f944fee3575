"""Memory and run time that `predict` announces before a large computation, compared with the actual ones.

Each row is a case of a different kind and size, in a separate process. It contains the increase of the peak memory of
the process, the CPU seconds of the prediction, and the announced memory and seconds on one core.
`OMP_NUM_THREADS=1 python benchmarks/prediction_needs.py` takes about five minutes.
"""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from dynascope.flows import progress_listener
from dynascope.networks import DeepLinear, DiagonalLinear, TwoLayer, balanced_linear
from dynascope.prediction import predict
from dynascope.tasks import Task

# Samples, inputs, outputs; the network; the scale; the theory.
CASES: dict[str, tuple[tuple[int, int, int], Any, float, str]] = {
    "linear": ((3000, 2000, 5), lambda d, c: TwoLayer(d, 50, c), 1e-4, "linear-staircase"),
    "diagonal": ((1500, 700, 1), lambda d, c: DiagonalLinear(d), 1e-4, "diagonal-staircase"),
    "linear model": ((2000, 1000, 2), lambda d, c: DeepLinear((d, c)), 0.5, "linear-model"),
    "balanced": ((1500, 500, 5), lambda d, c: balanced_linear(d, 20, c), 0.5, "balanced"),
    "kernel": ((4000, 20, 1), lambda d, c: TwoLayer(d, 2000, c, activation="relu"), 10.0, "kernel-regression"),
    "relu": ((3000, 50, 1), lambda d, c: TwoLayer(d, 50, c, activation="relu"), 1e-4, "alternating-flow"),
}


def largest() -> int:
    """Return the peak memory of this process so far, in bytes."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def predicted(name: str, sizes: tuple[int, int, int]) -> list[str]:
    """Make a prediction, and return its announcements."""
    _, network, scale, theory = CASES[name]
    draw, (samples, inputs, outputs), announced = np.random.default_rng(0), sizes, []
    x = draw.normal(size=(samples, inputs))
    if name == "balanced":
        x = np.linalg.qr(x)[0] * samples**0.5
    task = Task(x, x @ draw.normal(size=(inputs, outputs)) + 0.1 * draw.normal(size=(samples, outputs)))
    with warnings.catch_warnings(action="ignore"), progress_listener(lambda *_: None, announced=announced.append):
        predict(task, network(inputs, outputs), scale=scale, theory=theory, jumps=5)
    return announced


def main(name: str = "") -> None:
    """Run one case, or each case in a separate process."""
    if not name:
        for each in CASES:
            subprocess.run([sys.executable, __file__, each], check=True)
        return
    sizes = CASES[name][0]
    # Compile first, which does not count.
    predicted(name, (40, 6 if name != "kernel" else sizes[1], sizes[2]))
    Path("/proc/self/clear_refs").write_text("5")
    before, begun = largest(), time.process_time()
    announced = predicted(name, sizes)
    print(
        f"{name}: {(largest() - before) / 1e9:.2f} GB, {time.process_time() - begun:.0f} s. {' '.join(announced)}",
        flush=True,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])

"""What `predict` says before large work that it needs, against what it takes.

Each row is a case of another kind and size, in a process of its own: the memory and the seconds of one core that are
said, the growth of the largest memory of the process, and the CPU seconds that the prediction took.
Run as `python benchmarks/prediction_needs.py` with one thread (OMP_NUM_THREADS=1), in about five minutes.
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
    """Bytes of the largest memory of this process so far."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def predicted(name: str, sizes: tuple[int, int, int]) -> list[str]:
    """What is said of a prediction, which is made."""
    _, network, scale, theory = CASES[name]
    draw, (samples, inputs, outputs), said = np.random.default_rng(0), sizes, []
    x = draw.normal(size=(samples, inputs))
    if name == "balanced":
        x = np.linalg.qr(x)[0] * samples**0.5
    task = Task(x, x @ draw.normal(size=(inputs, outputs)) + 0.1 * draw.normal(size=(samples, outputs)))
    with warnings.catch_warnings(action="ignore"), progress_listener(lambda *_: None, announced=said.append):
        predict(task, network(inputs, outputs), scale=scale, theory=theory, jumps=5)
    return said


def main(name: str = "") -> None:
    """One case, or all, each in a process of its own."""
    if not name:
        for each in CASES:
            subprocess.run([sys.executable, __file__, each], check=True)
        return
    sizes = CASES[name][0]
    # What compiling takes is no part of it.
    predicted(name, (40, 6 if name != "kernel" else sizes[1], sizes[2]))
    Path("/proc/self/clear_refs").write_text("5")
    before, begun = largest(), time.process_time()
    said = predicted(name, sizes)
    print(
        f"{name}: {(largest() - before) / 1e9:.2f} GB, {time.process_time() - begun:.0f} s. {' '.join(said)}",
        flush=True,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])

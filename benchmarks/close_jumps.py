"""Errors of predicted jump times as a function of the distance between jumps.

Each row is a training run. The closeness of its jumps is the largest s^(1 − τ/τ') over neighbouring limit times τ < τ'
at scale s. It is 1 if two jumps coincide, and 0 if the next mode is still small at the jump before. The error is the
largest relative error of a jump time, over all jumps that are not marked as slow. For linear attention, τ is the
inverse squared variance. `python benchmarks/close_jumps.py` writes `docs/concepts/close_jumps.csv` in about two
minutes.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dynascope import GradientFlow, compare, observe
from dynascope.compilation import compile_cache
from dynascope.networks import LinearAttention, TwoLayer
from dynascope.prediction.case import Case
from dynascope.prediction.theories.catalogue import THEORIES
from dynascope.tasks import InContextRegression, Task

PATH = Path(__file__).parents[1] / "docs" / "concepts" / "close_jumps.csv"
SCALES = (1e-2, 1e-4, 1e-6)
SEEDS = range(12)
GAPS = (0.5, 0.3, 0.2, 0.1, 0.05)


class Row(NamedTuple):
    """One training run."""

    theory: str
    data: str
    scale: float
    closeness: float
    error: float


def linear(seed: int, *, white: bool) -> Task:
    """Return a linear task with five inputs and three outputs."""
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(60, 5))
    if not white:
        x = x @ (np.eye(5) + 0.5 * draw.normal(size=(5, 5)))
    task = Task(x, x @ draw.normal(size=(5, 3)))
    return task.whitened() if white else task


def closeness(times: np.ndarray, scale: float) -> float:
    """Return the largest s^(1 − τ/τ') over neighbouring times."""
    return float(np.max(scale ** (1 - times[:-1] / times[1:])))


def cases() -> Iterator[tuple[str, str, Case]]:
    """Yield all training runs."""
    for scale in SCALES:
        for white in (True, False):
            for seed in SEEDS:
                data = "white inputs" if white else "any inputs"
                yield "linear-staircase", data, Case(linear(seed, white=white), TwoLayer(5, 20, 3, seed=seed), scale)
        for gap in GAPS:
            for seed in (0, 1):
                prompts = InContextRegression(np.diag([1.0, 1 - gap]), 20.0)
                yield "linear-attention", "prompts", Case(prompts, LinearAttention(2, 6, seed=seed), scale)


def rows() -> Iterator[Row]:
    """Yield all rows."""
    theories = {theory.name: theory for theory in THEORIES}
    for name, data, case in cases():
        predicted = theories[name].solve(case)
        times = predicted["accelerated_time"].to_numpy()
        if name == "linear-attention":
            times = np.diag(case.task.covariance) ** -2.0
        duration = 2 * float(predicted["jump_time"][-1])
        residual = compare(
            observe(case.task, case.network, method=GradientFlow(duration=duration), scale=case.scale), predicted
        ).residual
        known = ~predicted["slow"].to_numpy()
        error = float(np.nanmax(np.abs(residual["jump_time_error"].to_numpy()[known])))
        yield Row(name, data, case.scale, closeness(times, case.scale), error)


def main() -> None:
    with compile_cache(), PATH.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(Row._fields)
        for row in rows():
            table.writerow([row.theory, row.data, f"{row.scale:g}", f"{row.closeness:.4g}", f"{row.error:.4g}"])
            print(*row, flush=True)


if __name__ == "__main__":
    main()

"""CPU time of theories, compared with the operation counts from which `which` estimates it.

Each row is a theory on one case: CPU seconds of its record without compilation, its number of operations, and the
resulting operations per second. If these rates differ between theories, the estimates are wrong by the same factors.
These are two or three, and twenty for alternating gradient flow (`Theory.cost_factor`), whose cost `which` states as a
range. `python benchmarks/theory_costs.py` takes about two minutes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from dynascope.networks import DeepLinear, DiagonalLinear, TwoLayer, balanced_linear
from dynascope.prediction.case import Case
from dynascope.prediction.theories.catalogue import THEORIES
from dynascope.tasks import Task

DRAW = np.random.default_rng(0)
LEAST = 0.05  # CPU seconds over which a theory is repeated


class Row(NamedTuple):
    """The cost of a theory on one case."""

    theory: str
    size: str
    seconds: float
    operations: float


def data(samples: int, inputs: int, outputs: int) -> Task:
    """Return random inputs, and a random linear map of them with noise."""
    x = DRAW.normal(size=(samples, inputs))
    return Task(x, x @ DRAW.normal(size=(inputs, outputs)) + 0.1 * DRAW.normal(size=(samples, outputs)))


def equal_layers(width: int) -> DeepLinear:
    """Return a network of three layers, each the same multiple of the identity."""
    network = DeepLinear((width, width, width, width))
    object.__setattr__(network, "weights", tuple(0.5 * np.eye(width) for _ in range(3)))
    return network


def cases() -> Iterator[tuple[str, Case]]:
    """Yield each theory with a small and a larger case."""
    for inputs in (10, 60):
        task, outputs = data(500, inputs, 5), 5
        yield "linear-staircase", Case(task, TwoLayer(inputs, 20, outputs), scale=1e-4)
        yield "balanced", Case(task.whitened(), balanced_linear(inputs, 20, outputs), scale=0.5)
        yield "isotropic", Case(task, balanced_linear(inputs, 20, outputs), scale=0.5)
        yield "deep-isotropic", Case(data(500, inputs, inputs), equal_layers(inputs))
        yield "deep-modes", Case(data(500, inputs, inputs), equal_layers(inputs))
        one = data(500, inputs, 1)
        yield "diagonal-staircase", Case(one, DiagonalLinear(inputs), scale=1e-4)
        yield "neuron-function-space", Case(one, TwoLayer(inputs, 1, 1), scale=0.5)
        yield "linear-model", Case(task, DeepLinear((inputs, outputs)), scale=0.5)
    for samples in (30, 200, 1000):
        yield "kernel-regression", Case(data(samples, 10, 1), TwoLayer(10, 400, 1, activation="relu"), scale=6.0)
    for samples in (30, 200):
        yield "alternating-flow", Case(data(samples, 5, 1), TwoLayer(5, 20, 1, activation="relu"), scale=1e-4)
    # Many jumps, and a single one.
    yield "alternating-flow", Case(data(60, 4, 2), TwoLayer(4, 50, 2, activation="relu"), scale=1e-3)
    yield "alternating-flow", Case(data(200, 10, 1), TwoLayer(10, 50, 1, activation="relu"), scale=1e-4)


def measured(theory: Any, case: Case) -> float:
    """Return the CPU seconds of a record, without compilation."""
    theory.solve(case)
    rounds, begun = 0, time.process_time()
    while time.process_time() - begun < LEAST:
        theory.solve(case)
        rounds += 1
    return (time.process_time() - begun) / rounds


def rows() -> Iterator[Row]:
    """Yield all rows."""
    named = {theory.name: theory for theory in THEORIES}
    for name, case in cases():
        theory = named[name]
        size = f"{case.task.samples} × {case.task.input_dimension} → {case.task.output_dimension}"
        yield Row(name, size, measured(theory, case), theory.operations(case))


if __name__ == "__main__":
    print(f"{'theory':24}{'data':16}{'seconds':>10}{'operations':>12}{'per second':>11}")
    for row in rows():
        rate = (5e6 + row.operations) / row.seconds
        print(f"{row.theory:24}{row.size:16}{row.seconds:10.2g}{row.operations:12.2g}{rate:11.2g}", flush=True)

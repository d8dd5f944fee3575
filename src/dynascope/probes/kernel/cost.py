"""Cost estimates for each algorithm that computes the neural tangent kernel."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from dynascope.errors import InputError
from dynascope.probes.kernel.contraction import forms_gradients
from dynascope.probes.kernel.conventions import Contraction
from dynascope.probes.kernel.dense_uses import DenseUse
from dynascope.results.named_tuples import short_repr

__all__ = ["ESTIMATES", "EXACT", "Algorithm", "Cost", "Size", "choose", "cost_of", "largest_block"]

Algorithm = Literal["auto", "structured", "layerwise", "jacobian", "products", "pseudo", "logits", "sketch"]
EXACT = ("structured", "layerwise", "jacobian", "products")
ESTIMATES = ("pseudo", "logits", "sketch")


class Cost(NamedTuple):
    """The estimated cost of an algorithm.

    Attributes:
        flops: Floating-point operations; a multiply-add counts as two.
        bytes: Peak memory in addition to parameters and inputs, including the kernel itself.
        batch_size: Number of examples in one block of the kernel.
        exact: Whether the algorithm computes the kernel itself, not an estimate.
    """

    flops: float
    bytes: float
    batch_size: int
    exact: bool

    __repr__ = short_repr


@dataclasses.dataclass(frozen=True)
class Size:
    """The sizes that determine the costs, including those of one forward pass on one example."""

    rows: int
    columns: int
    symmetric: bool
    outputs: int
    itemsize: int
    forward: float
    activations: int
    parameters: tuple[int, ...]
    uses: tuple[DenseUse, ...]


def cost_of(algorithm: str, size: Size, contraction: Contraction, block: int, draws: int | None) -> Cost:
    """Estimate the cost of one algorithm with the given number of examples per block."""
    exact = algorithm in EXACT
    if algorithm in ("pseudo", "logits"):
        kept = 1 if algorithm == "pseudo" else (draws or 1)
        size = dataclasses.replace(size, outputs=kept)
        algorithm = "structured"
    rows, columns, c = size.rows, size.columns, size.outputs
    down, across = math.ceil(rows / block), math.ceil(columns / block)
    pairs = down * (down + 1) // 2 if size.symmetric else down * across
    # A pair of blocks needs the passes of both blocks; a pair on the diagonal needs those of one.
    passes = block * (2 * pairs - (down if size.symmetric else 0))
    held = block * (1 if size.symmetric and down == 1 else 2)
    entries = pairs * block**2
    per_entry = c**2 if contraction == "full" else c
    stored = per_entry if contraction != "trace" else 1
    weights, largest, forward = sum(size.parameters), max(size.parameters), size.forward
    results = rows * columns * stored * (1 if pairs == 1 else 2)
    working = 2 * block**2 * stored
    if algorithm in ("jacobian", "layerwise"):
        flops = passes * (1 + 2 * c) * forward + 2 * entries * per_entry * weights
        numbers = held * c * ((2 * weights if algorithm == "jacobian" else largest) + size.activations) + working
    elif algorithm == "products":
        flops = columns * down * (1 + 2 * c) * forward + 2 * entries * c * forward
        numbers = block * 2 * size.activations + 2 * weights + block**2 * per_entry
    elif algorithm == "sketch":
        q = draws or 1000
        flops = (rows + (0 if size.symmetric else columns)) * 2 * q * forward + 2 * entries * per_entry * q
        numbers = (rows + (0 if size.symmetric else columns)) * c * q + block * 2 * size.activations + working
    else:
        layers, formed, signals = _structured(size, contraction)
        flops = passes * (1 + c) * forward + 2 * entries * layers[0] + 2 * passes * layers[1]
        numbers = held * (c * size.activations + signals + 2 * formed) + working
    return Cost(float(flops), float((numbers + results) * size.itemsize), block, exact)


def choose(
    size: Size,
    contraction: Contraction,
    choices: Sequence[tuple[str, ...]],
    batch_size: int | None,
    draws: int | None,
    memory: float,
) -> tuple[str, Cost]:
    """Return the fastest algorithm of the first group that fits into memory, in the largest blocks that fit."""
    least, block = math.inf, 1
    for names in choices:
        block = largest_block(size, batch_size)
        while True:
            costs = {name: cost_of(name, size, contraction, block, draws) for name in names}
            fitting = {name: cost for name, cost in costs.items() if cost.bytes <= memory}
            if fitting:
                best = min(fitting, key=lambda name: fitting[name].flops)
                return best, fitting[best]
            least = min(cost.bytes for cost in costs.values())
            if batch_size is not None or block == 1:
                break
            block = math.ceil(block / 2)
    raise InputError(
        f"the kernel requires {least:.1e} bytes in blocks of {block} examples, but memory is {memory:.1e}",
        argument="memory",
        value=memory,
        remedy="increase memory, use smaller batches or fewer examples, or contract over the outputs",
    )


def largest_block(size: Size, batch_size: int | None) -> int:
    """Return the number of examples in one block if memory is unlimited."""
    longest = max(size.rows, size.columns)
    return min(batch_size or longest, longest)


def _structured(size: Size, contraction: Contraction) -> tuple[tuple[float, float], float, float]:
    """Return multiply-adds per kernel entry and per example, and the sizes of the largest gradient and the signals."""
    c = size.outputs
    products = c**2 if contraction == "full" else c
    layers: dict[int, list[DenseUse]] = {}
    for use in size.uses:
        layers.setdefault(use.parameter, []).append(use)
    rest = [count for place, count in enumerate(size.parameters) if place not in layers]
    entry, example, largest, signals = products * float(sum(rest)), 0.0, 0.0, c * float(sum(rest))
    for uses in layers.values():
        positions, k, m = sum(use.positions for use in uses), uses[0].inputs, uses[0].outputs
        signals += positions * (k + c * m)
        if forms_gradients(positions, k, m, c, contraction):
            entry, example = entry + products * k * m, example + c * positions * k * m
            largest = max(largest, float(c * k * m))
        else:
            entry += positions**2 * (k + products * m)
    return (entry, example), largest, signals

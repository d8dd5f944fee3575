"""What each algorithm for the neural tangent kernel will cost, before it runs."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax

from dynascope.compilation.frameworks import also_in_pytorch
from dynascope.probes.kernel.contraction import forms_gradients
from dynascope.probes.kernel.conventions import Contraction
from dynascope.probes.kernel.dense_tracing import dense_uses
from dynascope.probes.kernel.dense_uses import DenseUse
from dynascope.probes.kernel.model import Arrays, Model, count_examples, layer_rates, split
from dynascope.results.named_tuples import short_repr
from dynascope.validation import require
from dynascope.validation.bounded_scalars import PositiveInt

__all__ = ["ESTIMATES", "EXACT", "Algorithm", "Cost", "Size", "choose", "cost_of", "estimate_cost", "measure"]

Algorithm = Literal["auto", "structured", "layerwise", "jacobian", "products", "pseudo", "logits", "sketch"]
EXACT = ("structured", "layerwise", "jacobian", "products")
ESTIMATES = ("pseudo", "logits", "sketch")


class Cost(NamedTuple):
    """What an algorithm will take.

    Attributes:
        flops: Floating-point operations, a multiply-add counted as two.
        bytes: The most memory held at once beyond parameters and inputs, the kernel itself included.
        batch_size: Examples in one block of the kernel.
        exact: Whether it gives the kernel itself and not an estimate.
    """

    flops: float
    bytes: float
    batch_size: int
    exact: bool

    __repr__ = short_repr


@dataclasses.dataclass(frozen=True)
class Size:
    """What the costs depend on: examples, outputs, the bytes of a number, and of one forward pass on one example."""

    rows: int
    columns: int
    symmetric: bool
    outputs: int
    itemsize: int
    forward: float
    activations: int
    parameters: tuple[int, ...]
    uses: tuple[DenseUse, ...]


@also_in_pytorch("dynascope.torch.kernel.cost")
def estimate_cost(
    apply: Callable[[Any, Any], Any],
    params: Any,
    x: Any,
    other: Any = None,
    *,
    contraction: Contraction = "full",
    batch_size: PositiveInt | None = None,
    rates: Any = None,
    draws: PositiveInt | None = None,
) -> dict[str, Cost]:
    """Operations and bytes of each algorithm of `neural_tangent_kernel`, found by tracing, without running any.

    With n and n' examples, c outputs, P parameters and F operations of one forward pass on one example, the kernel is

        jacobian, layerwise   2(n+n')cF + 2nn'c²P       holding ncP numbers, or nc times the largest layer
        structured            (n+n')cF + 2nn' Σ_l (k_l + c² m_l) for dense layers of k_l inputs and m_l outputs
        products              2nn'cF, holding one gradient
        pseudo, logits        as structured, with one output or q of them
        sketch                2(n+n')qF + 2nn'c²q

    with c for c² if contracted over outputs. Blocks repeat the passes, and those below the diagonal
    are mirrored. F is what the compiler counts, where the body of a loop of unknown length counts once; in PyTorch what
    `torch.utils.flop_counter` counts, products and convolutions, in one forward pass of one example.

    Args:
        apply: As `neural_tangent_kernel` takes it, also of PyTorch, and so the others.
        params: Parameters.
        x: Inputs.
        other: A second set of inputs.
        contraction: "full", "diagonal" or "trace".
        batch_size: Examples in one block; all by default.
        rates: Learning rates.
        draws: q, as `neural_tangent_kernel` takes it.

    Returns:
        Algorithm → its cost.

    Raises:
        InputError: As `neural_tangent_kernel`.

    References:
        Fast Finite Width Neural Tangent Kernel, arXiv:2206.08720, Table 1.

    Example:
        >>> import jax.numpy as jnp
        >>> costs = estimate_cost(lambda w, x: x @ w, jnp.ones((512, 10)), jnp.ones((64, 512)))
        >>> costs["jacobian"].flops / costs["structured"].flops > 100
        True
    """
    model, arrays = split(apply, params)
    size = measure(model, arrays, layer_rates(params, rates), x, other)
    block = min(batch_size or math.inf, max(size.rows, size.columns))
    return {name: cost_of(name, size, contraction, int(block), draws) for name in EXACT + ESTIMATES}


def measure(model: Model, arrays: Arrays, rates: Any, x: Any, other: Any) -> Size:
    """Trace one forward pass."""
    rows = count_examples("x", x)
    example = jax.eval_shape(lambda: jax.tree.map(lambda each: jax.numpy.asarray(each)[0], x))
    leaves, structure = jax.tree.flatten((arrays, example))
    shapes = tuple(jax.ShapeDtypeStruct(each.shape, each.dtype) for each in leaves)
    # Weights with a rate for each entry need their gradients.
    excluded = frozenset(() if rates is None else (i for i, rate in enumerate(rates) if rate.ndim))
    outputs, forward, activations, uses = _traced(model, structure, shapes, excluded)
    return Size(
        rows=rows,
        columns=rows if other is None else count_examples("other", other),
        symmetric=other is None,
        outputs=outputs,
        itemsize=max(each.dtype.itemsize for each in arrays[0]),
        forward=forward,
        activations=activations,
        parameters=tuple(each.size for each in arrays[0]),
        uses=uses,
    )


@functools.lru_cache(maxsize=64)
def _traced(
    model: Model, structure: Any, shapes: tuple[jax.ShapeDtypeStruct, ...], excluded: frozenset[int]
) -> tuple[int, float, int, tuple[DenseUse, ...]]:
    """The outputs, the operations, the numbers computed, and the dense uses, of the pass on one example."""
    arrays, example = jax.tree.unflatten(structure, shapes)
    jaxpr = jax.make_jaxpr(model.outputs)(*arrays, example)
    # Some back ends do not count; a dense network multiplies and adds once for each parameter.
    counted = jax.jit(model.outputs).lower(*arrays, example).cost_analysis() or {}
    flops = counted.get("flops") or 2.0 * sum(each.size for each in arrays[0])
    activations = sum(each.aval.size for equation in jaxpr.eqns for each in equation.outvars)
    uses = tuple(dense_uses(model, arrays, example, excluded=excluded))
    return jaxpr.out_avals[0].size, flops, activations, uses


def cost_of(algorithm: str, size: Size, contraction: Contraction, block: int, draws: int | None) -> Cost:
    """The cost of one algorithm in blocks of so many examples."""
    exact = algorithm in EXACT
    if algorithm in ("pseudo", "logits"):
        kept = 1 if algorithm == "pseudo" else (draws or 1)
        size = dataclasses.replace(size, outputs=kept)
        algorithm = "structured"
    rows, columns, c = size.rows, size.columns, size.outputs
    down, across = math.ceil(rows / block), math.ceil(columns / block)
    pairs = down * (down + 1) // 2 if size.symmetric else down * across
    # Both blocks of a pair need their passes, those on the diagonal one.
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
    size: Size, contraction: Contraction, algorithm: str, batch_size: int | None, draws: int | None, memory: float
):
    """The cheapest exact algorithm, or the one asked for, in the largest blocks that fit into the memory."""
    block = min(batch_size or math.inf, max(size.rows, size.columns))
    names = EXACT if algorithm == "auto" else (algorithm,)
    while True:
        costs = {name: cost_of(name, size, contraction, int(block), draws) for name in names}
        fitting = {name: cost for name, cost in costs.items() if cost.bytes <= memory}
        if fitting:
            best = min(fitting, key=lambda name: fitting[name].flops)
            return best, fitting[best]
        least = min(cost.bytes for cost in costs.values())
        require(
            batch_size is None and block > 1,
            f"the kernel needs {least:.1e} bytes in blocks of {int(block)} examples and memory is {memory:.1e}",
            argument="memory",
            value=memory,
            remedy="allow more memory, smaller batches or fewer examples, or contract over the outputs",
        )
        block = math.ceil(block / 2)


def _structured(size: Size, contraction: Contraction) -> tuple[tuple[float, float], float, float]:
    """(Multiply-adds for an entry of the kernel, for an example), the largest gradient, and numbers for an example."""
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

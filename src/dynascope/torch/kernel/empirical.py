"""The empirical neural tangent kernel of PyTorch modules and functions, by the algorithm that suits it."""
# pyright: reportMissingImports=false

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import torch
from annotated_types import Interval

from dynascope.errors import InputError
from dynascope.probes.kernel.contraction import contract_jacobians, contract_layers, contract_signals
from dynascope.probes.kernel.conventions import CONTRACTIONS, Contraction, NeuralTangentKernel
from dynascope.probes.kernel.cost import Algorithm, Cost, Size, choose
from dynascope.torch.kernel.checks import Checked, check
from dynascope.torch.kernel.cost import measure
from dynascope.torch.kernel.dense_tracing import layer_signals
from dynascope.torch.kernel.differentiation import jacobians
from dynascope.torch.kernel.model import count_rows, rows_of
from dynascope.torch.kernel.products import kernel_columns, projected_outputs
from dynascope.validation import require, require_kind
from dynascope.validation.bounded_scalars import PositiveFloat, PositiveInt, Seed

__all__ = ["neural_tangent_kernel"]

_MIRRORED = {"full": (2, 3, 0, 1), "diagonal": (1, 0, 2), "trace": (1, 0)}
_BY_MAPPING = ("products", "sketch")  # these need torch.func


def neural_tangent_kernel(
    apply: Callable[..., Any],
    params: Any,
    x: Any,
    other: Any = None,
    *,
    algorithm: Algorithm = "auto",
    contraction: Contraction = "full",
    batch_size: PositiveInt | None = None,
    rates: Any = None,
    draws: PositiveInt | None = None,
    seed: Seed = 0,
    memory: PositiveFloat = 4e9,
) -> NeuralTangentKernel:
    """`probes.kernel.neural_tangent_kernel` of a module, or of a function of tensors."""
    checked = check(apply, params, x, other, rates)
    size = measure(checked.model, checked.uses, x, other)
    outputs: tuple[int, ...] = ()
    if algorithm == "pseudo":
        checked, contraction = _reduced(checked, "pseudo"), "trace"
    if algorithm == "logits":
        require_kind(Annotated[int, Interval(ge=1, le=size.outputs)], draws=draws or 1)
        chosen = np.random.default_rng(seed).choice(size.outputs, size=draws or 1, replace=False)
        outputs = tuple(sorted(int(each) for each in chosen))
        checked = _reduced(checked, outputs)
    name, cost = _chosen(size, contraction, algorithm, batch_size, draws, memory)
    require(
        checked.mapped or name not in _BY_MAPPING,
        f"{name!r} needs torch.func, which cannot map this apply over examples",
        argument="algorithm",
        value=name,
        remedy='choose "structured" or "layerwise", with more memory or smaller batches where that is short',
    )
    if algorithm == "sketch":
        values = _sketched(checked, x, other, contraction, cost.batch_size, draws or 1000, seed)
    else:
        values = _in_blocks(_block(name, checked, contraction), x, other, cost.batch_size, contraction)
    if algorithm == "pseudo":
        normalisation = "sum over pairs of outputs, over their number c"
    else:
        normalisation = "mean over outputs" if contraction == "trace" else "none"
    return NeuralTangentKernel(
        values=values,
        dimensions=CONTRACTIONS[contraction],
        contraction="pseudo" if algorithm == "pseudo" else contraction,
        algorithm=name,
        normalisation=normalisation,
        parametrisation="the tensors of params as apply takes them" + ("" if rates is None else ", with rates"),
        outputs=outputs,
    )


def _chosen(size: Size, contraction: Contraction, algorithm: str, *limits: Any) -> tuple[str, Cost]:
    """The algorithm asked for; of itself the structured one, or where memory is short for it those that hold less."""
    if algorithm == "auto":
        for name in ("structured", "layerwise"):
            with contextlib.suppress(InputError):
                return choose(size, contraction, name, *limits)
        algorithm = "products"
    return choose(size, contraction, algorithm, *limits)


def _reduced(checked: Checked, reduction: str | tuple[int, ...]) -> Checked:
    return checked._replace(model=dataclasses.replace(checked.model, reduction=reduction))


def _block(name: str, checked: Checked, contraction: Contraction) -> Callable[[Any, Any], torch.Tensor]:
    """The kernel between two blocks of examples; the second may be None for the same."""
    model, rates, uses, mapped = checked

    def between(one: Any, two: Any) -> torch.Tensor:
        if name == "products":
            return kernel_columns(model, rates, one, two, contraction, mapped=mapped)
        if name in ("jacobian", "layerwise"):
            slopes = functools.partial(jacobians, model, mapped=mapped)
            together = name == "jacobian"
            return contract_jacobians(slopes, model.parameters, rates, one, two, contraction, together=together)
        signals = functools.partial(layer_signals, model, uses, mapped=mapped)
        return contract_layers(
            signals(one), None if two is None else signals(two), model.parameters, rates, contraction
        )

    return between


def _in_blocks(
    between: Callable[[Any, Any], torch.Tensor], x: Any, other: Any, block: int, contraction: Contraction
) -> torch.Tensor:
    """The kernel put together from those between blocks; the lower half of a symmetric one is mirrored."""
    across = 2 if contraction == "full" else 1
    rows = _blocks(x, block)
    columns = rows if other is None else _blocks(other, block)
    found: dict[tuple[int, int], torch.Tensor] = {}
    for i, one in enumerate(rows):
        for j, two in enumerate(columns):
            if other is None and j < i:
                found[i, j] = found[j, i].permute(_MIRRORED[contraction])
            else:
                found[i, j] = between(one, None if other is None and i == j else two)
    lines = [torch.cat([found[i, j] for j in range(len(columns))], dim=across) for i in range(len(rows))]
    return torch.cat(lines)


def _blocks(inputs: Any, block: int) -> list[Any]:
    return [rows_of(inputs, slice(start, start + block)) for start in range(0, count_rows(inputs), block)]


def _sketched(
    checked: Checked, x: Any, other: Any, contraction: Contraction, block: int, draws: int, seed: int
) -> torch.Tensor:
    def projected(inputs: Any) -> torch.Tensor:
        parts = [
            projected_outputs(checked.model, checked.rates, each, draws=draws, seed=seed)
            for each in _blocks(inputs, block)
        ]
        return torch.cat(parts)

    one = projected(x)
    return contract_signals(one, one if other is None else projected(other), contraction) / draws

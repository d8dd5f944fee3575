"""What each algorithm for the neural tangent kernel of PyTorch code will cost, before it runs."""
# pyright: reportMissingImports=false

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from dynascope.probes.kernel.conventions import Contraction
from dynascope.probes.kernel.cost import ESTIMATES, EXACT, Cost, Size, cost_of
from dynascope.probes.kernel.dense_uses import DenseUse
from dynascope.torch.kernel.checks import check
from dynascope.torch.kernel.differentiation import quiet
from dynascope.torch.kernel.model import Model, count_rows, rows_of
from dynascope.validation.bounded_scalars import PositiveInt

__all__ = ["estimate_cost", "measure"]


def estimate_cost(
    apply: Callable[..., Any],
    params: Any,
    x: Any,
    other: Any = None,
    *,
    contraction: Contraction = "full",
    batch_size: PositiveInt | None = None,
    rates: Any = None,
    draws: PositiveInt | None = None,
) -> dict[str, Cost]:
    """`probes.kernel.estimate_cost` of a module, or of a function of tensors.

    "layerwise" takes one pass for each tensor of parameters in place of one for all, which is not counted.
    """
    checked = check(apply, params, x, other, rates)
    size = measure(checked.model, checked.uses, x, other)
    block = min(batch_size or math.inf, max(size.rows, size.columns))
    return {name: cost_of(name, size, contraction, int(block), draws) for name in EXACT + ESTIMATES}


def measure(model: Model, uses: Sequence[DenseUse], x: Any, other: Any) -> Size:
    """What the costs depend on, from one forward pass of one example."""
    example, counted, numbers = rows_of(x, 0), FlopCounterMode(display=False), _Numbers()
    with quiet(), numbers:
        outputs = model.outputs(model.parameters, example)
    # The counter does not bear code that takes gradients itself.
    with contextlib.suppress(RuntimeError), quiet(), counted:
        model.outputs(model.parameters, example)
    rows = count_rows(x)
    return Size(
        rows=rows,
        columns=rows if other is None else count_rows(other),
        symmetric=other is None,
        outputs=outputs.numel(),
        itemsize=max(each.element_size() for each in model.parameters),
        # What has no products multiplies and adds about once for each parameter.
        forward=float(counted.get_total_flops() or 2 * sum(each.numel() for each in model.parameters)),
        activations=numbers.count,
        parameters=tuple(each.numel() for each in model.parameters),
        uses=tuple(use for use in uses),
    )


class _Numbers(TorchDispatchMode):
    """Counts the numbers that operations compute, views of others left out."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        if isinstance(found, torch.Tensor) and not getattr(func, "is_view", False):
            self.count += found.numel()
        return found

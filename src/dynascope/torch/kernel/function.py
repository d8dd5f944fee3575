"""PyTorch functions with the derivatives that kernel algorithms need."""
# pyright: reportMissingImports=false

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from dynascope.probes.kernel.conventions import Contraction
from dynascope.probes.kernel.cost import Size
from dynascope.probes.kernel.dense_uses import DenseUse
from dynascope.probes.kernel.differentiable import Differentiable, join_blocks
from dynascope.probes.kernel.examples import count_rows, rows_of
from dynascope.torch.kernel.dense_tracing import layer_signals
from dynascope.torch.kernel.differentiation import pullback, pushforward, quiet, unit_directions
from dynascope.validation import require

__all__ = ["TorchFunction", "measure"]


@dataclasses.dataclass(frozen=True)
class TorchFunction(Differentiable):
    """A PyTorch function with its derivatives.

    Attributes:
        mapped: Whether `torch.func` vectorises the function over examples; otherwise examples are processed one by one.
    """

    mapped: bool
    leaves = "tensors"
    # With too little memory for signals, gradients are formed; with too little for these, one gradient at a time.
    choices = (("structured",), ("layerwise",), ("products",))
    join = staticmethod(join_blocks)

    @property
    def parameters(self) -> Sequence[torch.Tensor]:
        """The distinct parameters."""
        return self.model.parameters

    def signals(self, block: Any, uses: tuple[DenseUse, ...], places: tuple[int, ...]) -> Any:
        """Return the signals of a block, computed in one pass."""
        return layer_signals(self.model, uses, places, block, mapped=self.mapped)

    def by_columns(self, x: Any, other: Any, contraction: Contraction) -> torch.Tensor:
        """Return the kernel, computed one column at a time."""
        self._require_mapped("products")
        columns = x if other is None else other
        found = []
        for row in range(count_rows(columns)):
            example = rows_of(columns, slice(row, row + 1))
            unit = unit_directions(self.model, rows_of(example, 0))
            for a, direction in enumerate(unit):
                gradient, _ = pullback(self._only_outputs, self.parameters, example, direction[None], mapped=True)
                scales = self.rates or [1.0] * len(gradient)
                tangent = [rate * each[0, 0] for rate, each in zip(scales, gradient, strict=True)]
                column = pushforward(self.model, tangent, x)
                found.append(column if contraction == "full" else column[:, a])
        stacked = torch.stack(found, dim=-1).unflatten(-1, (count_rows(columns), -1))
        return stacked.mean(-1) if contraction == "trace" else stacked

    def _only_outputs(self, parameters: Sequence[torch.Tensor], example: Any) -> Any:
        return self.model.outputs(parameters, example), []

    def projected(self, block: Any, *, draws: int, seed: int) -> torch.Tensor:
        """Return projections of the Jacobian, computed one direction at a time."""
        self._require_mapped("sketch")
        generator = torch.Generator(self.parameters[0].device).manual_seed(seed)
        found = []
        for _ in range(draws):
            direction = [
                torch.randn(each.shape, generator=generator, dtype=each.dtype, device=each.device)
                for each in self.parameters
            ]
            if self.rates is not None:
                direction = [rate.sqrt() * each for rate, each in zip(self.rates, direction, strict=True)]
            found.append(pushforward(self.model, direction, block))
        return torch.stack(found, dim=-1)

    def _require_mapped(self, algorithm: str) -> None:
        require(
            self.mapped,
            f"the algorithm {algorithm!r} requires torch.func.vmap, which cannot vectorise apply over examples",
            argument="algorithm",
            value=algorithm,
            remedy='choose "structured" or "layerwise", and use smaller batches if the memory is too small',
        )


def measure(function: TorchFunction, x: Any, other: Any) -> Size:
    """Measure the quantities that determine the cost of a kernel, by forward passes of one example."""
    model, parameters = function.model, function.parameters
    example, counted, numbers = rows_of(x, 0), FlopCounterMode(display=False), _Numbers()
    with quiet(), numbers:
        outputs = model.outputs(parameters, example)
    # The counter fails on code that computes gradients.
    with contextlib.suppress(RuntimeError), quiet(), counted:
        model.outputs(parameters, example)
    return Size(
        rows=count_rows(x),
        columns=count_rows(x if other is None else other),
        symmetric=other is None,
        outputs=outputs.numel(),
        itemsize=max(each.element_size() for each in parameters),
        # Without matrix products, assume one multiplication and one addition for each parameter.
        forward=float(counted.get_total_flops() or 2 * sum(each.numel() for each in parameters)),
        activations=numbers.count,
        parameters=tuple(each.numel() for each in parameters),
        uses=function.uses,
    )


class _Numbers(TorchDispatchMode):
    """Counts the numbers that operations compute; views are not counted."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        if isinstance(found, torch.Tensor) and not getattr(func, "is_view", False):
            self.count += found.numel()
        return found

"""Tracing of linear layers and convolutions in PyTorch code, with their activations and backpropagated signals."""
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import torch
from torch.overrides import TorchFunctionMode

from dynascope.probes.kernel.dense_uses import DenseUse, ReadProducts, Weight, joined_uses
from dynascope.torch.kernel.convolution import patches
from dynascope.torch.kernel.differentiation import pullback, unit_directions
from dynascope.torch.kernel.model import Model

__all__ = ["dense_uses", "layer_signals"]

_PRODUCTS = ("matmul", "__matmul__", "__rmatmul__", "mm", "mv")
_CONVOLUTIONS = ("conv1d", "conv2d", "conv3d")
_TIMES, _OVER = ("mul", "__mul__", "__rmul__", "multiply"), ("div", "__truediv__", "true_divide", "divide")
_TRANSPOSED = ("t", "transpose", "swapaxes", "swapdims", "permute")
_UNCHANGED = ("contiguous", "clone")
_CAST = ("to", "float", "double", "half", "bfloat16", "type", "type_as")
_PROPERTIES = {torch.Tensor.T.__get__: (1, 0), torch.Tensor.mT.__get__: (1, 0)}  # pyright: ignore


def dense_uses(model: Model, example: Any, *, excluded: frozenset[int] = frozenset()) -> list[DenseUse]:
    """Return the products with parameters that have no other uses, in the order of their evaluation.

    A parameter is included if all its uses are linear layers, products with an array, convolutions (as the kernel) or
    embeddings (as the table). The parameter may first be transposed, cast or multiplied by a number.
    """
    parameters = model.parameters
    tracked = frozenset(i for i, each in enumerate(parameters) if each.ndim >= 2) - excluded
    with _Reader(parameters, tracked, None) as reader, torch.enable_grad():
        model.outputs(parameters, example)
    return reader.dense_uses()


def layer_signals(
    model: Model,
    uses: Sequence[DenseUse],
    places: Sequence[int],
    examples: Any,
    directions: torch.Tensor | None = None,
    *,
    mapped: bool,
) -> tuple[dict[int, tuple[torch.Tensor, torch.Tensor]], dict[int, torch.Tensor]]:
    """Return the activations and signals of dense weights, and the Jacobians of other parameters.

    Args:
        model: The model.
        uses: Uses of the dense weights.
        places: Places of the other parameters.
        examples: n examples.
        directions: Directions of the outputs, shape (c, outputs); None for one direction per output.
        mapped: Whether `torch.func` maps the computation over examples.

    Returns:
        {place: (h (n, p, g, k), D (n, c, p, g, m))} for dense weights, and {place: Jacobian (n, c, size)} for the
        others.
    """
    parameters = model.parameters
    dense = frozenset(use.parameter for use in uses)

    def forward(free: Sequence[torch.Tensor], example: Any) -> tuple[torch.Tensor, list[torch.Tensor]]:
        merged = list(parameters)
        for place, each in zip(places, free[len(uses) :], strict=True):
            merged[place] = each
        if not uses:
            return model.outputs(merged, example), []
        with _Reader(merged, dense, free[: len(uses)]) as reader:
            outputs = model.outputs(merged, example)
        return outputs, reader.activations

    first = jax.tree.map(lambda each: each[0], examples)
    unit = unit_directions(model, first) if directions is None else directions
    still = [unit.new_zeros((use.positions, use.outputs), dtype=parameters[use.parameter].dtype) for use in uses]
    free = [*still, *(parameters[place] for place in places)]
    found, activations = pullback(forward, free, examples, unit, mapped=mapped)
    rest = zip(places, found[len(uses) :], strict=True)
    return joined_uses(uses, activations, found[: len(uses)]), {
        place: each.reshape(*each.shape[:2], -1) for place, each in rest
    }


class _Reader(ReadProducts, TorchFunctionMode):
    """Intercepts operations while code runs, and traces each tracked weight to the products in which it is used."""

    def __init__(
        self,
        parameters: Sequence[torch.Tensor],
        tracked: frozenset[int],
        perturbations: Sequence[torch.Tensor] | None,
    ):
        super().__init__(perturbations)
        # Each tensor is stored with its weight, so that no other tensor gets its `id`.
        ordered = {i: tuple(range(parameters[i].ndim)) for i in tracked}
        self.weights = {id(parameters[i]): Weight(i, parameters[i], axes, 1.0) for i, axes in ordered.items()}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Intercept one operation."""
        named = kwargs or {}
        entering = [self.weights[id(each)] for each in _tensors((args, named)) if id(each) in self.weights]
        if len(entering) == 1:
            found = self._traced(func, args, named, entering[0])
            if found is not None:
                return found
        results = func(*args, **named)
        if not _is_metadata(results):
            self.used_elsewhere.update(weight.parameter for weight in entering)
        return results

    def _traced(self, func: Any, args: Any, named: dict[str, Any], weight: Weight) -> Any:
        """Return the result if the operation transforms the weight or multiplies it; otherwise None."""
        name = getattr(func, "__name__", "")
        # Code without gradients may be inside a function with a custom gradient.
        if not torch.is_grad_enabled():
            return None
        side = next((i for i, each in enumerate(args) if each is weight.value), None)
        if name == "linear":
            return self._linear(func, _bound(("input", "weight", "bias"), args, named), weight)
        if name in _CONVOLUTIONS:
            return self._convolution(func, args, named, weight)
        if name == "embedding":
            return self._embedding(func, args, named, weight)
        if name in _PRODUCTS and side is not None and len(args) == 2 and not named:
            # `__rmatmul__` takes the right operand first.
            return self._product(func, args, weight, 1 - side if name == "__rmatmul__" else side, args[1 - side])
        return self._transformed(func, name, args, named, weight, side)

    def _transformed(
        self, func: Any, name: str, args: Any, named: dict[str, Any], weight: Weight, side: int | None
    ) -> Any:
        axes, gain = weight.axes, weight.gain
        if func in _PROPERTIES and len(axes) == 2:
            axes = (axes[1], axes[0])
        elif name in _TRANSPOSED and side == 0:
            order = func(torch.empty(tuple(range(2, 2 + len(axes))), device="meta"), *args[1:], **named).shape
            axes = tuple(axes[each - 2] for each in order)
        elif name in _TIMES + _OVER and len(args) == 2 and not named and side is not None:
            number = args[1 - side]
            if (isinstance(number, torch.Tensor) and number.ndim) or (name in _OVER and side):
                return None
            gain = gain * number if name in _TIMES else gain / number
        elif name in ("neg", "__neg__"):
            gain = -gain
        elif name not in _UNCHANGED + _CAST or side != 0:
            return None
        value = func(*args, **named)
        if not value.is_floating_point():
            return None
        self.weights[id(value)] = Weight(weight.parameter, value, axes, gain)
        return value

    def _linear(self, func: Any, entering: list[Any], weight: Weight) -> Any:
        x, w, bias = entering
        if w is not weight.value or w.ndim != 2:
            return None
        return self.perturbed(weight, x, func(x, w, bias), -1, weight.axes[1])

    def _product(self, func: Any, args: Any, weight: Weight, side: int, x: Any) -> Any:
        if weight.value.ndim != 2 or not isinstance(x, torch.Tensor) or x.ndim == 0:
            return None
        z = func(*args)
        if side == 1:
            return self.perturbed(weight, x, z, -1, weight.axes[0])
        axis = -1 if x.ndim == 1 else -2
        return self.perturbed(weight, x.movedim(axis, -1), z, axis, weight.axes[1])

    def _convolution(self, func: Any, args: Any, named: dict[str, Any], weight: Weight) -> Any:
        names = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")
        x, w, bias, *places = _bound(names, args, named, (None, 1, 0, 1, 1))
        if w is not weight.value or weight.axes != tuple(range(w.ndim)) or x.ndim != w.ndim:
            return None
        stride, padding, dilation, groups = places
        h = patches(x, w.shape[2:], stride, padding, dilation)
        z = func(x, w, bias, stride, padding, dilation, groups)
        return self.perturbed(weight, h, z, 1, -1, groups)

    def _embedding(self, func: Any, args: Any, named: dict[str, Any], weight: Weight) -> Any:
        names = ("input", "weight", "padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse")
        tokens, w, padding, largest, _, by_frequency, _ = _bound(names, args, named, (None, None, 2.0, False, False))
        if w is not weight.value or w.ndim != 2 or largest is not None or by_frequency:
            return None
        hot = tokens[..., None] == torch.arange(len(w), device=w.device)
        if padding is not None:
            hot = hot & (tokens != padding % len(w))[..., None]
        return self.perturbed(weight, hot.to(w.dtype), func(*args, **named), -1, weight.axes[0])


def _is_metadata(results: Any) -> bool:
    """Whether a result is metadata of a tensor, such as its shape, rather than a use of its values."""
    if isinstance(results, tuple):
        return all(isinstance(each, int) for each in results)
    return results is None or isinstance(results, bool | int | float | str | torch.dtype | torch.device | torch.layout)


def _tensors(tree: Any) -> list[Any]:
    return [each for each in jax.tree.leaves(tree) if isinstance(each, torch.Tensor)]


def _bound(names: tuple[str, ...], args: Any, named: dict[str, Any], defaults: tuple[Any, ...] = (None,)) -> list[Any]:
    """Return the arguments of a PyTorch function in the order of `names`."""
    found = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
    found |= dict(zip(names, args, strict=False)) | named
    return [found[name] for name in names]

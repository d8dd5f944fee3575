"""What is asked for, checked on two examples: that outputs are what they must be, and how they are differentiated."""
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import torch

from dynascope.errors import InputError
from dynascope.probes.kernel.cost import Size
from dynascope.probes.kernel.dense_uses import DenseUse
from dynascope.probes.kernel.differentiable import Differentiable
from dynascope.probes.kernel.examples import count_rows, require_examples, require_independence, rows_of
from dynascope.probes.kernel.rates import layer_rates, rated_by_entry
from dynascope.torch.kernel.dense_tracing import dense_uses, layer_signals
from dynascope.torch.kernel.differentiation import outputs_of, pulled, quiet
from dynascope.torch.kernel.function import TorchFunction, measure
from dynascope.torch.kernel.model import Model, split
from dynascope.torch.repeatable import require_repeatable
from dynascope.validation import require, require_finite_values, shown_error

__all__ = ["check", "differentiable"]

_APART = (
    "compute the outputs of an example from that example alone: batch normalisation in a function or in a custom layer "
    "needs fixed statistics, the layers of torch.nn eval() and track_running_stats=True"
)


def differentiable(
    apply: Callable[..., Any], params: Any, x: Any, other: Any, rates: Any, *, runs: bool = True
) -> tuple[Differentiable, Size]:
    """`probes.kernel.function.differentiable` of a module, or of a function of tensors."""
    del runs
    function = check(apply, params, x, other, rates)
    return function, measure(function, x, other)


def check(apply: Any, params: Any, x: Any, other: Any, rates: Any) -> TorchFunction:
    """These arguments, ready to be differentiated.

    Raises:
        InputError: Any of them is not what `neural_tangent_kernel` takes.
    """
    model = split(apply, params)
    eta = layer_rates(model.tree, model.parameters, rates, _rate, kind="tensor")
    mapped = True
    for name, inputs in (("x", x), ("other", other)):
        if inputs is not None or name == "x":
            _require_examples(name, inputs, model.parameters[0].device)
            mapped = _check_outputs(model, rows_of(inputs, slice(0, 2))) and mapped
    uses = _true_uses(model, rows_of(x, slice(0, 2)), rated_by_entry(eta), mapped)
    return TorchFunction(model, eta, tuple(uses), mapped)


def _rate(rate: Any, parameter: torch.Tensor) -> torch.Tensor:
    return torch.as_tensor(rate, dtype=parameter.dtype, device=parameter.device).detach()


def _require_examples(argument: str, inputs: Any, device: torch.device) -> None:
    """Raise `InputError` unless all are finite tensors of one length, where the parameters are."""
    found = jax.tree.leaves(inputs)
    strange = [type(each).__name__ for each in found if not isinstance(each, torch.Tensor)]
    require(
        not strange,
        f"{argument} holds values of the type {', '.join(sorted(set(strange)))}",
        argument=argument,
        value=strange,
        remedy="give tensors of PyTorch, alone or in dictionaries, lists and tuples",
    )
    require_examples(argument, inputs, kind="tensor")
    elsewhere = sorted({str(each.device) for each in found if each.device != device})
    require(
        not elsewhere,
        f"{argument} is on {', '.join(elsewhere)} and the parameters are on {device}",
        argument=argument,
        value=elsewhere,
        remedy=f"move it by .to({str(device)!r})",
    )
    for each in found:
        require_finite_values(argument, each)


def _check_outputs(model: Model, few: Any) -> bool:
    """Raise `InputError` where outputs are not as they must be; else whether `torch.func` maps their gradients."""

    def call() -> Any:
        with quiet():
            return model.call(model.parameters, few)

    try:
        together = require_repeatable("apply", call, model.parameters[0].device)
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"apply fails on {count_rows(few)} examples with {type(error).__name__}: {shown_error(error)}",
            argument="apply",
            remedy="give one that maps the parameters and inputs (n, ...) to outputs (n, c)",
        ) from error
    _require_outputs(together, few)
    together = together.detach()
    mapped = _is_mapped(model, few)
    try:
        alone = outputs_of(model, few, mapped=mapped)
    except Exception as error:
        raise InputError(
            f"apply fails on one example alone with {type(error).__name__}: {shown_error(error)}",
            argument="apply",
            remedy=_APART,
        ) from error
    require_independence(alone, together, torch.finfo(alone.dtype).eps, remedy=_APART)
    if not mapped:
        _require_derivative(model, rows_of(few, slice(0, 1)))
    return mapped


def _require_outputs(outputs: Any, few: Any) -> None:
    require(
        isinstance(outputs, torch.Tensor),
        f"the outputs are of the type {type(outputs).__name__}",
        argument="apply",
        value=type(outputs).__name__,
        remedy="give a function that picks one tensor from them, lambda network, x: network(x)[0] say, with the module "
        "as params",
    )
    count = count_rows(few)
    require(
        outputs.ndim > 0 and len(outputs) == count and outputs.numel() > 0,
        f"apply gives outputs of shape {tuple(outputs.shape)} for {count} examples",
        argument="apply",
        value=tuple(outputs.shape),
        remedy="give one that maps inputs (n, ...) to outputs (n, c)",
    )
    require(
        outputs.is_floating_point(),
        f"the outputs are of the type {outputs.dtype}",
        argument="apply",
        value=str(outputs.dtype),
        remedy="give real outputs of floating-point numbers, logits and not classes say",
    )
    require(
        bool(torch.isfinite(outputs).all()),
        "the outputs are not finite",
        argument="x",
        remedy="check the parameters and the inputs for values that are not finite",
    )


def _is_mapped(model: Model, few: Any) -> bool:
    try:
        _gradients(model, few, mapped=True)
        outputs_of(model, few, mapped=True)
    except Exception:  # of any kind, since code of the user's runs on tensors that it may not expect
        return False
    return True


def _require_derivative(model: Model, one: Any) -> None:
    try:
        _gradients(model, one, mapped=False)
    except Exception as error:
        raise InputError(
            f"PyTorch cannot differentiate apply ({type(error).__name__}: {shown_error(error)})",
            argument="apply",
            remedy="give code whose outputs torch.autograd.grad differentiates",
        ) from error


def _gradients(model: Model, few: Any, *, mapped: bool) -> list[torch.Tensor]:
    """vᵀ ∂f/∂θ for one direction v, for each parameter."""
    with quiet():
        outputs = model.outputs(model.parameters, rows_of(few, 0)).detach()

    def function(parameters: Any, example: Any) -> Any:
        return model.outputs(parameters, example), []

    return pulled(function, model.parameters, few, _direction(outputs)[None], mapped=mapped)[0]


def _direction(outputs: torch.Tensor) -> torch.Tensor:
    """Different weights of all outputs."""
    return torch.cos(torch.arange(1, outputs.numel() + 1, device=outputs.device, dtype=outputs.dtype))


def _true_uses(model: Model, few: Any, excluded: frozenset[int], mapped: bool) -> list[DenseUse]:
    """The uses of weights whose gradients are those that PyTorch gives.

    Code that the reader does not see, or that has a gradient of its own, shows here; code that cannot be read has none.
    """
    expected = _gradients(model, few, mapped=mapped)
    try:
        with quiet():
            uses = dense_uses(model, rows_of(few, 0), excluded=excluded)
            direction = _direction(model.outputs(model.parameters, rows_of(few, 0)).detach())
        layers, _ = layer_signals(model, uses, (), few, direction[None], mapped=mapped)
    except Exception:  # of any kind: programs, and code that runs twice, may not bear being read
        return []
    true = {place for place, layer in layers.items() if _agrees(uses, place, *layer, expected[place])}
    return [use for use in uses if use.parameter in true]


def _agrees(uses: list[DenseUse], place: int, h: torch.Tensor, d: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether h and D of a weight make its gradient (n, 1, *shape)."""
    found = torch.einsum("npgk,npgm->ngmk", h, d[:, 0]).flatten(1, 2)
    first = next(use for use in uses if use.parameter == place)
    found = (found.mT if first.orientation == 0 else found).reshape(expected.shape)
    return bool(((found - expected).abs() <= torch.finfo(h.dtype).eps ** 0.5 * expected.abs().max()).all())

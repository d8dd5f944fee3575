"""Validate the arguments of PyTorch kernels, and choose the method of differentiation by a test on two examples."""
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
from dynascope.torch.kernel.differentiation import outputs_of, pullback, quiet
from dynascope.torch.kernel.function import TorchFunction, measure
from dynascope.torch.kernel.model import Model, split
from dynascope.torch.repeatable import require_repeatable
from dynascope.validation import require, require_finite_values, shown_error

__all__ = ["check", "differentiable"]

_APART = (
    "compute the outputs for each example from that example alone, with fixed statistics in custom batch "
    "normalisation, and with eval() and track_running_stats=True for torch.nn layers"
)


def differentiable(
    apply: Callable[..., Any], params: Any, x: Any, other: Any, rates: Any, *, runs: bool = True
) -> tuple[Differentiable, Size]:
    """Implement `probes.kernel.function.differentiable` for a module, or for a function of tensors."""
    del runs
    function = check(apply, params, x, other, rates)
    return function, measure(function, x, other)


def check(apply: Any, params: Any, x: Any, other: Any, rates: Any) -> TorchFunction:
    """Validate the arguments of `neural_tangent_kernel` and return the function to differentiate.

    Raises:
        InputError: If `neural_tangent_kernel` does not accept an argument.
    """
    model = split(apply, params)
    eta = layer_rates(model.tree, model.parameters, rates, _rate, kind="tensor")
    mapped = True
    for name, inputs in (("x", x), ("other", other)):
        if inputs is not None or name == "x":
            _require_examples(name, inputs, model.parameters[0].device)
            mapped = _check_outputs(model, rows_of(inputs, slice(0, 2))) and mapped
    uses = _verified_uses(model, rows_of(x, slice(0, 2)), rated_by_entry(eta), mapped)
    return TorchFunction(model, eta, tuple(uses), mapped)


def _rate(rate: Any, parameter: torch.Tensor) -> torch.Tensor:
    return torch.as_tensor(rate, dtype=parameter.dtype, device=parameter.device).detach()


def _require_examples(argument: str, inputs: Any, device: torch.device) -> None:
    """Raise `InputError` unless the inputs are finite tensors of equal length on the device of the parameters."""
    found = jax.tree.leaves(inputs)
    strange = [type(each).__name__ for each in found if not isinstance(each, torch.Tensor)]
    require(
        not strange,
        f"{argument} contains values of type {' and '.join(sorted(set(strange)))}",
        argument=argument,
        value=strange,
        remedy="give PyTorch tensors, alone or in dictionaries, lists and tuples",
    )
    require_examples(argument, inputs, kind="tensor")
    elsewhere = sorted({str(each.device) for each in found if each.device != device})
    require(
        not elsewhere,
        f"{argument} is on {', '.join(elsewhere)}, but the parameters are on {device}",
        argument=argument,
        value=elsewhere,
        remedy=f"move {argument} with .to({str(device)!r})",
    )
    for each in found:
        require_finite_values(argument, each)


def _check_outputs(model: Model, few: Any) -> bool:
    """Check the outputs for a few examples, and return whether `torch.func` can map their gradients over examples.

    Raises:
        InputError: If the outputs are not valid.
    """

    def call() -> Any:
        with quiet():
            return model.call(model.parameters, few)

    try:
        together = require_repeatable("apply", call, model.parameters[0].device)
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"apply raised {type(error).__name__} on {count_rows(few)} examples ({shown_error(error)})",
            argument="apply",
            remedy="give a function that maps the parameters and inputs of shape (n, ...) to outputs of shape (n, c)",
        ) from error
    _require_outputs(together, few)
    together = together.detach()
    mapped = _is_mapped(model, few)
    try:
        alone = outputs_of(model, few, mapped=mapped)
    except Exception as error:
        raise InputError(
            f"apply raised {type(error).__name__} on a single example ({shown_error(error)})",
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
        f"apply returns outputs of type {type(outputs).__name__}",
        argument="apply",
        value=type(outputs).__name__,
        remedy="select one tensor with a function such as lambda network, x: network(x)[0], and pass the module as "
        "params",
    )
    count = count_rows(few)
    require(
        outputs.ndim > 0 and len(outputs) == count and outputs.numel() > 0,
        f"apply returns outputs of shape {tuple(outputs.shape)} for {count} examples",
        argument="apply",
        value=tuple(outputs.shape),
        remedy="give a function that maps inputs of shape (n, ...) to outputs of shape (n, c)",
    )
    require(
        outputs.is_floating_point(),
        f"apply returns outputs of type {outputs.dtype}",
        argument="apply",
        value=str(outputs.dtype),
        remedy="return real floating-point outputs, such as logits instead of classes",
    )
    require(
        bool(torch.isfinite(outputs).all()),
        "apply returns outputs that are not finite",
        argument="x",
        remedy="give parameters and inputs for which the outputs are finite",
    )


def _is_mapped(model: Model, few: Any) -> bool:
    try:
        _gradients(model, few, mapped=True)
        outputs_of(model, few, mapped=True)
    except Exception:  # user code may raise anything on the tensors of a transformation
        return False
    return True


def _require_derivative(model: Model, one: Any) -> None:
    try:
        _gradients(model, one, mapped=False)
    except Exception as error:
        raise InputError(
            f"PyTorch cannot differentiate apply ({type(error).__name__}: {shown_error(error)})",
            argument="apply",
            remedy="use operations that torch.autograd.grad can differentiate",
        ) from error


def _gradients(model: Model, few: Any, *, mapped: bool) -> list[torch.Tensor]:
    """Return vᵀ ∂f/∂θ for one direction v, for each parameter."""
    with quiet():
        outputs = model.outputs(model.parameters, rows_of(few, 0)).detach()

    def function(parameters: Any, example: Any) -> Any:
        return model.outputs(parameters, example), []

    return pullback(function, model.parameters, few, _direction(outputs)[None], mapped=mapped)[0]


def _direction(outputs: torch.Tensor) -> torch.Tensor:
    """Return a vector with a different weight for each output."""
    return torch.cos(torch.arange(1, outputs.numel() + 1, device=outputs.device, dtype=outputs.dtype))


def _verified_uses(model: Model, few: Any, excluded: frozenset[int], mapped: bool) -> list[DenseUse]:
    """Return the uses of weights whose gradients agree with the gradients that PyTorch computes.

    The comparison detects custom gradients, and uses of a weight that the tracing misses. The result is empty if the
    code cannot be traced.
    """
    expected = _gradients(model, few, mapped=mapped)
    try:
        with quiet():
            uses = dense_uses(model, rows_of(few, 0), excluded=excluded)
            direction = _direction(model.outputs(model.parameters, rows_of(few, 0)).detach())
        layers, _ = layer_signals(model, uses, (), few, direction[None], mapped=mapped)
    except Exception:  # compiled code, and code that runs twice, may raise anything when it is read
        return []
    verified = {place for place, layer in layers.items() if _agrees(uses, place, *layer, expected[place])}
    return [use for use in uses if use.parameter in verified]


def _agrees(uses: list[DenseUse], place: int, h: torch.Tensor, d: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether the activations h and signals D of a weight yield its gradient (n, 1, *shape)."""
    found = torch.einsum("npgk,npgm->ngmk", h, d[:, 0]).flatten(1, 2)
    first = next(use for use in uses if use.parameter == place)
    found = (found.mT if first.orientation == 0 else found).reshape(expected.shape)
    return bool(((found - expected).abs() <= torch.finfo(h.dtype).eps ** 0.5 * expected.abs().max()).all())

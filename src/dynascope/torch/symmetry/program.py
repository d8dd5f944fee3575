"""Conversion of the program of a PyTorch module or function to a JAX function."""
# pyright: reportMissingImports=false

from __future__ import annotations

import contextlib
import functools
import io
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import torch

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.torch.repeatable import draws, require_no_draws, require_same
from dynascope.torch.symmetry.network import Network, copied, network
from dynascope.torch.symmetry.translation import Translation
from dynascope.validation import require

__all__ = ["Program", "program"]

# Tolerances of outputs and gradients, relative to the largest entry of each array.
_SAME = 1e-6  # in float64; PyTorch has constants in float32, such as the 1/6 of hardsigmoid
_SAME_32 = 1e-4  # if the module itself computes in float32
_SAME_16 = 5e-2  # if the module itself computes in 16 bits
_ROUNDING = 1e-2  # share of the tolerance that is relative to all arrays, for arrays of rounding errors
_CPU = torch.device("cpu")
_SEED = 0  # seed of the weights of the outputs


class Program(NamedTuple):
    """A JAX function and its arguments, which `symmetry.find_symmetries` and `symmetry.discover` accept.

    Attributes:
        apply: (params, inputs) → outputs, one array or a list of arrays.
        params: The distinct trained parameters {name: array}, with names from `module.named_parameters()`; for a
            function, its tree of parameters.
        inputs: The tree of the inputs as arrays.
    """

    apply: Callable[[Any, Any], Any]
    params: Any
    inputs: Any


def program(apply: torch.nn.Module | Callable[[Any, Any], Any], params: Any, example_inputs: Any) -> Program:
    """Convert the program of a PyTorch module or function to a JAX function.

    `torch.export` traces the program for inputs of these shapes, with the module in its current mode (training or
    evaluation). The core ATen operations are translated one by one, in float64 on the CPU. Buffers, and parameters that
    do not require a gradient, are constants. Writes into buffers are ignored. A tied weight counts as one parameter,
    under its first name. Before the program is returned, its outputs and gradients are compared with those of PyTorch.

    Args:
        apply: A `torch.nn.Module`, or a function of (params, inputs).
        params: None for a module. For a function, the module or the tree of tensors that is its first argument.
        example_inputs: A tensor, a tuple of positional arguments, or a dictionary of keyword arguments of the forward
            pass; for a function, its second argument.

    Returns:
        The function with its parameters and inputs.

    Raises:
        InputError: If the program depends on values of tensors or draws random numbers, so that it cannot be exported;
            if repeated calls give different outputs; if an operation is not supported; or if outputs or gradients
            differ from PyTorch, for example because a tensor is detached.

    References:
        PyTorch 2, ASPLOS 2024, https://doi.org/10.1145/3620665.3640366.

    Example:
        >>> import torch
        >>> linear = program(torch.nn.Linear(2, 3), None, torch.ones(4, 2))
        >>> list(linear.params), linear.apply(linear.params, linear.inputs).shape
        (['bias', 'weight'], (4, 3))
    """
    found = network(apply, example_inputs, params)
    expected = _results(found)
    exported = _exported(found, expected)
    translated = Translation(exported, found)
    _require_same(translated, found, expected, _tolerance(exported.graph))
    return Program(translated, found.params, found.example_inputs)


class _Exported(torch.nn.Module):
    """A network in a form that `torch.export` accepts."""

    def __init__(self, call: Callable[..., list[torch.Tensor]]):
        super().__init__()
        self.call = call

    def forward(self, parameters: Any, buffers: Any, inputs: Any) -> list[torch.Tensor]:
        return self.call(parameters, buffers, inputs)


class _Results(NamedTuple):
    """Results computed by PyTorch.

    Attributes:
        outputs: The outputs.
        weights: Random weights of the outputs.
        gradients: Gradients of the weighted sum of the outputs.
        wide: Whether the results were computed in float64.
        drew: Whether the network drew random numbers.
    """

    outputs: list[np.ndarray]
    weights: list[np.ndarray]
    gradients: list[np.ndarray]
    wide: bool
    drew: bool


def _results(found: Network) -> _Results:
    """Evaluate the network in float64, or in its own precision if float64 fails, e.g. on tensors of lower precision."""
    try:
        return _evaluated(found, wide=True)
    except Exception:  # user code may raise anything; if precision is not the cause, it fails again below
        try:
            return _evaluated(found, wide=False)
        except InputError:
            raise
        except Exception as error:
            raise InputError(
                f"the model raised {type(error).__name__} on example_inputs ({_in_a_line(error)})",
                argument="example_inputs",
                value=type(error).__name__,
                remedy="give the inputs of the model, in the precision of its parameters",
            ) from error


def _evaluated(found: Network, *, wide: bool) -> _Results:
    with torch.inference_mode(False), torch.enable_grad():
        parameters, buffers, inputs = _arguments(found, wide)
        outputs, drew = draws(lambda: found.call(parameters, buffers, inputs), _CPU)
        if not drew:
            require_same("apply", outputs, found.call(*_arguments(found, wide)))
        require(
            bool(outputs),
            "the model has no floating-point outputs",
            argument="apply",
            remedy="return the outputs from which the loss is computed",
        )
        random = np.random.default_rng(_SEED)
        weights = [random.normal(size=tuple(each.shape)) for each in outputs]
        slopes: Sequence[torch.Tensor | None] = [None] * len(parameters)
        if any(each.requires_grad for each in outputs):
            pairs = zip(outputs, weights, strict=True)
            total = torch.stack([(each.double() * torch.from_numpy(weight)).sum() for each, weight in pairs]).sum()
            slopes = torch.autograd.grad(total, parameters, allow_unused=True)
    known = [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, slopes, strict=True)]
    values, gradients = ([each.double().numpy(force=True) for each in tensors] for tensors in (outputs, known))
    for what, arrays in (("outputs", values), ("gradients", gradients)):
        require(
            all(np.isfinite(each).all() for each in arrays),
            f"{what} of the model are not finite",
            argument="example_inputs",
            remedy="give parameters and inputs of order one, for which outputs and gradients are finite",
        )
    return _Results(values, weights, gradients, wide, drew)


def _arguments(found: Network, wide: bool) -> tuple[list[torch.Tensor], ...]:
    """Return copies of parameters, buffers and inputs, in float64 if `wide` is true."""
    tensors = found.parameters, found.buffers, found.inputs
    parameters, buffers, inputs = ([copied(each, wide=wide) for each in row] for row in tensors)
    # Without gradients, some layers use a single fused operation.
    return [each.requires_grad_() for each in parameters], buffers, inputs


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence the warnings, logs and output of PyTorch during an export; errors are still raised."""
    before, output = logging.root.manager.disable, io.StringIO()
    quiet = (
        warnings.catch_warnings(action="ignore"),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(output),
    )
    with quiet[0], quiet[1], quiet[2], torch.inference_mode(False), torch.enable_grad():
        logging.disable(logging.CRITICAL)
        try:
            yield
        finally:
            logging.disable(before)


def _exported(found: Network, expected: _Results) -> Any:
    try:
        with _quiet():
            exported = torch.export.export(_Exported(found.call), _arguments(found, expected.wide), strict=False)
            return exported.run_decompositions(_decompositions())
    except Exception as error:  # programs without a graph may raise anything
        require_no_draws("apply", expected.drew)
        raise InputError(
            f"torch.export.export cannot export the model ({type(error).__name__}: {_in_a_line(error)})",
            argument="apply",
            value=type(error).__name__,
            remedy="replace code that reads values of tensors with operations on tensors, such as torch.where",
        ) from error


@functools.cache
def _decompositions() -> Any:
    """Return the default decompositions of PyTorch, cached because building them is slow."""
    return torch.export.default_decompositions()


def _in_a_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


def _tolerance(graph: torch.fx.Graph) -> float:
    """Return the tolerance that the least precise type inside the module requires."""
    kinds = {getattr(node.meta.get("val"), "dtype", None) for node in graph.nodes}
    if kinds & {torch.float16, torch.bfloat16}:
        return _SAME_16
    return _SAME_32 if torch.float32 in kinds else _SAME


def _require_same(apply: Translation, found: Network, expected: _Results, tolerance: float) -> None:
    """Raise `InputError` unless outputs and gradients agree with those of PyTorch."""

    def total(params: Any) -> Any:
        outputs = jax.tree.leaves(apply(params, found.example_inputs))
        return sum(jnp.vdot(w, y) for w, y in zip(expected.weights, outputs, strict=True)), outputs

    try:
        with jax.enable_x64(True):
            gradient, outputs = jit(jax.grad(total, has_aux=True))(found.params)
    except Exception as error:  # anything that JAX cannot trace or differentiate
        raise InputError(
            f"JAX cannot run the translated program ({type(error).__name__}: {_in_a_line(error)})",
            argument="apply",
            value=type(error).__name__,
            remedy="use other operations, or pass a JAX function to dynascope.symmetry.find_symmetries",
        ) from error
    # Outputs that cancel, such as f − f₀, have the rounding errors of their terms, about |θ ∂f/∂θ|.
    pairs = zip(jax.tree.leaves(found.params), expected.gradients, strict=True)
    terms = max(float(np.abs(np.asarray(weight)).max(initial=0.0) * np.abs(g).max(initial=0.0)) for weight, g in pairs)
    _require_near("outputs", outputs, expected.outputs, tolerance, terms)
    _require_near("gradients", jax.tree.leaves(gradient), expected.gradients, tolerance, 0.0)


def _require_near(what: str, ours: Sequence[Any], theirs: Sequence[np.ndarray], tolerance: float, terms: float) -> None:
    sizes = [float(np.abs(each).max(initial=0.0)) for each in theirs]
    errors = [float(np.abs(np.asarray(a) - b).max(initial=0.0)) for a, b in zip(ours, theirs, strict=True)]
    largest, furthest = max(*sizes, terms), max(errors)
    require(
        all(error <= tolerance * (size + _ROUNDING * largest) for error, size in zip(errors, sizes, strict=True)),
        f"the {what} of the translated program, up to {largest:.1e}, differ from those of PyTorch by {furthest:.1e}",
        argument="apply",
        value=furthest,
        remedy="avoid detached tensors, custom gradients and state that is kept between calls",
    )

"""The program of a module or function of PyTorch as a function of JAX."""
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

# How far outputs and gradients may be from PyTorch's, relative to the largest of each array.
_SAME = 1e-6  # in 64 bits; PyTorch has constants in 32, such as the 1/6 of hardsigmoid
_SAME_NARROW = 1e-4  # where a module computes with 32 bits of its own
_SAME_NARROWEST = 5e-2  # or with 16
_ROUNDING = 1e-2  # times that, relative to the largest of all, of arrays that are zero but for rounding
_CPU = torch.device("cpu")
_SEED = 0  # of the weights of the outputs of which gradients are compared


class Program(NamedTuple):
    """A function of JAX and what it takes: the arguments of `symmetry.find_symmetries` and `symmetry.discover`.

    Attributes:
        apply: (params, inputs) → outputs, one array or a list of them.
        params: {name: array} of what is trained, as of `module.named_parameters()`, each once; or the tree of a
            function.
        inputs: The tree of the inputs as arrays.
    """

    apply: Callable[[Any, Any], Any]
    params: Any
    inputs: Any


def program(apply: torch.nn.Module | Callable[[Any, Any], Any], params: Any, example_inputs: Any) -> Program:
    """The program of a module or function of PyTorch as a function of JAX.

    `torch.export` reads the program for inputs of these shapes, in training mode or not as the module stands, and the
    core operations of ATen are translated one by one, in 64 bits on the CPU. Buffers and parameters that do not require
    a gradient are constants; what a forward pass writes into buffers is left out. A tied weight is one parameter, under
    its first name. Outputs and gradients are held against those of PyTorch before anything is returned.

    Args:
        apply: A `torch.nn.Module`; or a function of (params, inputs).
        params: None for a module. For a function a module, as which it is called with, or a tree of tensors.
        example_inputs: A tensor, a tuple of the arguments of the forward pass, or a dictionary of arguments by keyword;
            for a function whatever it takes.

    Returns:
        The function with its parameters and inputs.

    Raises:
        InputError: A program that cannot be exported, since it looks at values or draws at random; outputs that change
            when they are computed again; an operation that is not known; outputs or gradients other than PyTorch's, as
            where something is detached.

    References:
        PyTorch 2, ASPLOS 2024, https://doi.org/10.1145/3620665.3640366.

    Example:
        >>> import torch
        >>> linear = program(torch.nn.Linear(2, 3), None, torch.ones(4, 2))
        >>> list(linear.params), linear.apply(linear.params, linear.inputs).shape
        (['bias', 'weight'], (4, 3))
    """
    found = network(apply, example_inputs, params)
    expected = _answers(found)
    exported = _exported(found, expected)
    translated = Translation(exported, found)
    _require_same(translated, found, expected, _narrowest(exported.graph))
    return Program(translated, found.params, found.example_inputs)


class _Exported(torch.nn.Module):
    """A network as `torch.export` takes it."""

    def __init__(self, call: Callable[..., list[torch.Tensor]]):
        super().__init__()
        self.call = call

    def forward(self, parameters: Any, buffers: Any, inputs: Any) -> list[torch.Tensor]:
        return self.call(parameters, buffers, inputs)


class _Answers(NamedTuple):
    """What PyTorch computes.

    Attributes:
        outputs: The outputs.
        weights: Weights of the outputs.
        gradients: Gradients of the weighted outputs.
        wide: Whether in 64 bits.
        drew: Whether the network drew random numbers.
    """

    outputs: list[np.ndarray]
    weights: list[np.ndarray]
    gradients: list[np.ndarray]
    wide: bool
    drew: bool


def _answers(found: Network) -> _Answers:
    """What the network gives in 64 bits, or as it is where it holds tensors of its own that are narrower."""
    try:
        return _answered(found, wide=True)
    except Exception:  # whatever a module of the user's raises; if it is not for the precision, it does so again
        try:
            return _answered(found, wide=False)
        except InputError:
            raise
        except Exception as error:
            raise InputError(
                f"the model fails on example_inputs: {type(error).__name__}: {_said(error)}",
                argument="example_inputs",
                value=type(error).__name__,
                remedy="give what it is called with, in the precision of its parameters",
            ) from error


def _answered(found: Network, *, wide: bool) -> _Answers:
    with torch.inference_mode(False), torch.enable_grad():
        parameters, buffers, inputs = _arguments(found, wide)
        outputs, drew = draws(lambda: found.call(parameters, buffers, inputs), _CPU)
        if not drew:
            require_same("apply", outputs, found.call(*_arguments(found, wide)))
        require(
            bool(outputs),
            "the model has no outputs of floating-point numbers",
            argument="apply",
            remedy="give one that returns what the loss is computed from",
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
            remedy="give parameters and inputs of order one, about which the model is finite",
        )
    return _Answers(values, weights, gradients, wide, drew)


def _arguments(found: Network, wide: bool) -> tuple[list[torch.Tensor], ...]:
    """Copies of parameters, buffers and inputs, in 64 bits if wide."""
    tensors = found.parameters, found.buffers, found.inputs
    parameters, buffers, inputs = ([copied(each, wide=wide) for each in row] for row in tensors)
    # Without a gradient to take, some layers take a short cut that is one operation.
    return [each.requires_grad_() for each in parameters], buffers, inputs


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without what PyTorch warns of, logs and prints while it exports; where it fails, the error says so."""
    before, said = logging.root.manager.disable, io.StringIO()
    quiet = warnings.catch_warnings(action="ignore"), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said)
    with quiet[0], quiet[1], quiet[2], torch.inference_mode(False), torch.enable_grad():
        logging.disable(logging.CRITICAL)
        try:
            yield
        finally:
            logging.disable(before)


def _exported(found: Network, expected: _Answers) -> Any:
    try:
        with _quiet():
            exported = torch.export.export(_Exported(found.call), _arguments(found, expected.wide), strict=False)
            return exported.run_decompositions(_decompositions())
    except Exception as error:  # whatever a program does that has no graph
        require_no_draws("apply", expected.drew)
        raise InputError(
            f"torch.export.export cannot read the model: {type(error).__name__}: {_said(error)}",
            argument="apply",
            value=type(error).__name__,
            remedy="write what looks at values of tensors as operations on them, such as torch.where",
        ) from error


@functools.cache
def _decompositions() -> Any:
    """PyTorch's own, of which the table takes as long to make as the rest of a small export."""
    return torch.export.default_decompositions()


def _said(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


def _narrowest(graph: torch.fx.Graph) -> float:
    """How far the module's own outputs may be from those in 64 bits."""
    kinds = {getattr(node.meta.get("val"), "dtype", None) for node in graph.nodes}
    if kinds & {torch.float16, torch.bfloat16}:
        return _SAME_NARROWEST
    return _SAME_NARROW if torch.float32 in kinds else _SAME


def _require_same(apply: Translation, found: Network, expected: _Answers, tolerance: float) -> None:
    """Raise `InputError` unless outputs and gradients are those of PyTorch."""

    def total(params: Any) -> Any:
        outputs = jax.tree.leaves(apply(params, found.example_inputs))
        return sum(jnp.vdot(w, y) for w, y in zip(expected.weights, outputs, strict=True)), outputs

    try:
        with jax.enable_x64(True):
            gradient, outputs = jit(jax.grad(total, has_aux=True))(found.params)
    except Exception as error:  # whatever JAX cannot trace, or has no gradient of
        raise InputError(
            f"JAX cannot run the program: {type(error).__name__}: {_said(error)}",
            argument="apply",
            value=type(error).__name__,
            remedy="write it by other operations, or give dynascope.symmetry.find_symmetries the function in JAX",
        ) from error
    _require_near("outputs", outputs, expected.outputs, tolerance)
    _require_near("gradients", jax.tree.leaves(gradient), expected.gradients, tolerance)


def _require_near(what: str, ours: Sequence[Any], theirs: Sequence[np.ndarray], tolerance: float) -> None:
    sizes = [float(np.abs(each).max(initial=0.0)) for each in theirs]
    errors = [float(np.abs(np.asarray(a) - b).max(initial=0.0)) for a, b in zip(ours, theirs, strict=True)]
    largest, furthest = max(sizes), max(errors)
    require(
        all(error <= tolerance * (size + _ROUNDING * largest) for error, size in zip(errors, sizes, strict=True)),
        f"the {what} of the program differ from those of PyTorch by {furthest:.1e}; these are up to {largest:.1e}",
        argument="apply",
        value=furthest,
        remedy="see that nothing is detached, has a gradient of its own, or is kept between calls",
    )

"""How to write the inputs of a task for a user's module, so that the printed calls run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import numpy as np

from dynascope.tasks.task import Task

__all__ = ["ROWS", "drawn_for", "inputs_for", "wanted_by"]

ROWS = 100  # whose kernel is measured
_FEW = 2  # on which it is tried
_SAME = 1e-3  # of the outputs, by which those of a sample may change with the others, in half precision
_LARGEST = 1e8  # weights of a module of PyTorch that is tried
_SMALL = 1e6  # weights up to which it is tried on inputs of any size
_DRAWN = 20  # samples of noise, where the task has none that it takes
_LENGTH = 8  # of rows of tokens or of vectors
_SIZES = (8, 28, 32, 64, 224, 96, 128)  # of images and signals, the usual ones
_ANY = tuple(range(1, 101))
_NOISE = "  # noise of a shape that the network takes: put a batch of yours here"
_WANTED = (  # what a part of PyTorch that comes first says of its inputs
    ("num_embeddings", "tokens below {}, integers of shape (samples, length)"),
    ("in_channels", "shape (samples, {}, …), for that many channels"),
    ("input_size", "shape (samples, {}), or with a length before the last"),
    ("in_features", "shape (samples, {})"),
)


def inputs_for(task: Any, network: Any) -> str:
    """An expression of inputs of the task that a network takes and answers by rows of outputs; nothing if none is.

    They are tried as rows, and as images where the task has images: a module of equinox by its shapes alone, one of
    PyTorch on two samples, in evaluation, if nothing watches it and it is no giant.

    Args:
        task: The data.
        network: A module of PyTorch or equinox that takes one sample, or rows.

    Example:
        >>> task = Task(np.ones((5, 3)), np.ones(5))
        >>> inputs_for(task, eqx.nn.Linear(3, 2, key=jax.random.key(0)))
        'task.inputs[:100]'
    """
    if not isinstance(task, Task):
        return ""
    rows = f"task.inputs[:{ROWS}]"
    shapes: dict[str, tuple[int, ...]] = {rows: (task.input_dimension,)}
    if task.image_shape is not None:
        height, width = task.image_shape
        for shape in ((1, height, width), (height, width, 1), (height, width)):
            shapes[f"{rows}.reshape({', '.join(map(str, (-1, *shape)))})"] = shape
    if isinstance(network, eqx.Module):
        return next((said for said, shape in shapes.items() if _maps(network, shape)), "")
    first = next(network.parameters(), None)
    if first is None or not _can_be_tried(network):
        return ""
    for said, shape in shapes.items():
        if _computes(network, first.new_tensor(task.inputs[:_FEW]).reshape(-1, *shape)):
            # As `new_tensor` has the precision and the place of the weights.
            inner, _, reshaped = said.partition(".reshape")
            made = f"next(network.parameters()).new_tensor({inner})"
            return f"{made}.reshape{reshaped}" if reshaped else made
    return ""


def drawn_for(network: Any) -> str:
    """An expression that draws inputs of a shape that a module takes and answers by arrays, one for each sample.

    The first part with weights says how many channels, numbers or tokens there are. How long or large inputs are it
    does not say, so that sizes are tried until one fits; nothing is returned if none does.

    Args:
        network: A module of PyTorch, or one of equinox that takes one sample.

    Example:
        >>> print(drawn_for(eqx.nn.Conv1d(2, 3, 5, key=jax.random.key(0))).partition("#")[0])
        jax.random.normal(jax.random.key(0), (20, 2, 8))
    """
    torch = not isinstance(network, eqx.Module)
    if torch and not (any(True for _ in network.parameters()) and _can_be_tried(network)):
        return ""
    tokens, shapes = _shapes_of(network)
    for shape in shapes:
        if torch:
            given = np.random.default_rng(0).integers(tokens, size=(_FEW, *shape)) if tokens else _noise(shape)
            tensor = next(network.parameters()).new_tensor(given)
            if not _computes(network, tensor.long() if tokens else tensor, rows=False):
                continue
            place, drawn = "next(network.parameters())", (_DRAWN, *shape)
            said = f"torch.randint({tokens}, {drawn}, device={place}.device)" if tokens else ""
            return (said or f"{place}.new_empty({drawn}).normal_()") + _NOISE
        if _maps(network, shape, np.int32 if tokens else np.float64, rows=False):
            kind, rest = ("randint", f", 0, {tokens}") if tokens else ("normal", "")
            return f"jax.random.{kind}(jax.random.key(0), {(_DRAWN, *shape)}{rest})" + _NOISE
    return ""


def wanted_by(network: Any) -> str:
    """What the first part with weights of a module says of its inputs."""
    part, name, words = _first_of(network)
    return words.format(getattr(part, name)) if name else ""


def _first_of(network: Any) -> tuple[Any, str, str]:
    """The first part that says something of its inputs, the name under which it does, and that in words."""
    for part in network.modules() if hasattr(network, "modules") else _parts(network):
        for name, words in _WANTED:
            if isinstance(getattr(part, name, None), int):
                return part, name, words
    return None, "", ""


def _shapes_of(network: Any) -> tuple[int, Iterator[tuple[int, ...]]]:
    """The number of tokens, if it takes some, and shapes that one sample may have."""
    part, name, _ = _first_of(network)
    number = getattr(part, name) if name else 0
    weights = sum(weight.numel() for weight in network.parameters()) if hasattr(network, "parameters") else 0
    sizes = (*_SIZES, *(_ANY if weights <= _SMALL else ()))
    if name == "num_embeddings":
        return number, ((size,) for size in (_LENGTH, *sizes))
    if name == "in_channels":
        axes = part.weight.ndim - 2
        return 0, ((number, *axes * (size,)) for size in sizes)
    if name:
        return 0, iter(((number,), *((size, number) for size in (_LENGTH, *sizes))))
    return 0, iter(())


def _noise(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(_FEW, *shape))


def _maps(network: Any, shape: tuple[int, ...], kind: Any = np.float64, *, rows: bool = True) -> bool:
    """Whether a module of equinox makes a row of outputs, or an array, of a sample of such a shape."""
    try:
        found: Any = eqx.filter_eval_shape(network, jax.ShapeDtypeStruct(shape, kind))
    except Exception:  # a user's module may raise anything for inputs that do not fit it
        return False
    axes = len(getattr(found, "shape", ()))
    return axes == 1 if rows else axes > 0


def _can_be_tried(network: Any) -> bool:
    watched = any(getattr(part, "_forward_hooks", None) for part in network.modules())
    shapeless = any(type(weight).__name__.startswith("Uninitialized") for weight in network.parameters())
    return not watched and not shapeless and sum(weight.numel() for weight in network.parameters()) <= _LARGEST


def _computes(network: Any, x: Any, *, rows: bool = True) -> bool:
    """Whether a module of PyTorch, left as it was, makes a row of outputs, or an array, of each of these inputs."""
    modes = [(part, part.training) for part in network.modules()]
    try:
        for part, _ in modes:
            part.training = False
        found, alone = network(x).detach(), network(x[:1]).detach()
        # What takes the samples for places of one sequence mixes them.
        apart = float(abs(found[:1] - alone).max()) <= _SAME * float(abs(found).max())
    except Exception:  # as above
        return False
    finally:
        for part, mode in modes:
            part.training = mode
    axes = len(found.shape)
    return apart and len(found) == len(x) and (axes == 2 if rows else axes > 1)


def _parts(module: Any) -> Iterator[Any]:
    """A module of equinox and those that it holds, in their order."""
    if isinstance(module, eqx.Module):
        yield module
        module = list(vars(module).values())
    if isinstance(module, list | tuple):
        for each in module:
            yield from _parts(each)

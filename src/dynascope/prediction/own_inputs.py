"""How the inputs of a task are written for a module of one's own, so that what is printed runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import numpy as np

from dynascope.tasks.task import Task

__all__ = ["ROWS", "inputs_for", "wanted_by"]

ROWS = 100  # whose kernel is measured
_FEW = 2  # on which it is tried
_LARGEST = 1e8  # weights of a module of PyTorch that is tried
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
        >>> inputs_for(task, eqx.nn.MLP(3, 2, 8, 2, key=jax.random.key(0)))
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


def wanted_by(network: Any) -> str:
    """What the first part with weights of a module says of its inputs."""
    parts = network.modules() if hasattr(network, "modules") else _parts(network)
    for part in parts:
        for name, words in _WANTED:
            if isinstance(getattr(part, name, None), int):
                return words.format(getattr(part, name))
    return ""


def _maps(network: Any, shape: tuple[int, ...]) -> bool:
    """Whether a module of equinox makes a row of outputs of a sample of such a shape."""
    try:
        found: Any = eqx.filter_eval_shape(network, jax.ShapeDtypeStruct(shape, np.float64))
    except Exception:  # whatever a module of one's own makes of inputs that it is not for
        return False
    return len(getattr(found, "shape", ())) == 1


def _can_be_tried(network: Any) -> bool:
    watched = any(getattr(part, "_forward_hooks", None) for part in network.modules())
    shapeless = any(type(weight).__name__.startswith("Uninitialized") for weight in network.parameters())
    return not watched and not shapeless and sum(weight.numel() for weight in network.parameters()) <= _LARGEST


def _computes(network: Any, x: Any) -> bool:
    """Whether a module of PyTorch makes rows of outputs of these inputs; it is left as it was."""
    modes = [(part, part.training) for part in network.modules()]
    try:
        for part, _ in modes:
            part.training = False
        found = network(x)
    except Exception:  # as above
        return False
    finally:
        for part, mode in modes:
            part.training = mode
    return tuple(getattr(found, "shape", ()))[:1] == (len(x),) and len(found.shape) == 2


def _parts(module: Any) -> Iterator[Any]:
    """A module of equinox and those that it holds, in their order."""
    if isinstance(module, eqx.Module):
        yield module
        module = list(vars(module).values())
    if isinstance(module, list | tuple):
        for each in module:
            yield from _parts(each)

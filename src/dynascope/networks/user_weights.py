"""Reads initial weights from a user's file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import equinox as eqx
import numpy as np

from dynascope.errors import InputError
from dynascope.networks.biased_two_layer import BiasedTwoLayer
from dynascope.networks.mlp import MLP
from dynascope.networks.two_layer import TwoLayer
from dynascope.protocols import Dimensioned
from dynascope.tasks.data.packed_arrays import read_archive
from dynascope.validation import checked, require, require_array

__all__ = ["weights_from_file"]

_Kind = Literal["relu", "quadratic", "linear"]
_NAMES = ("W1", "W2")
_BIASES = ("b1", "b2")
_SAVED = 'np.savez("weights.npz", W1=model[0].weight.detach().numpy(), W2=model[2].weight.detach().numpy())'


@checked
def weights_from_file(
    path: str | Path, kind: _Kind, task: Annotated[Dimensioned, "a task with inputs and targets"]
) -> TwoLayer | BiasedTwoLayer | MLP:
    """Read the weights of a two-layer network from a file.

    Args:
        path: An `.npz` archive with the arrays `W1` (d, width) and `W2` (width, c), where f(x) = σ(x W₁) W₂; or with
            both arrays transposed, as in `torch.nn.Linear`. Biases are optional: `b1` (width,) for the hidden neurons,
            and `b2` (c,) for the outputs.
        kind: "relu", "quadratic" or "linear".
        task: A task with d inputs and c outputs.

    Raises:
        InputError: If the file is not an `.npz` archive or lacks an array, if the shapes do not match each other or the
            task, or if the kind is unknown. Pickles, such as PyTorch's `.pt`, are rejected because they can run code.

    Example:
        >>> import tempfile
        >>> from dynascope.tasks.task import Task
        >>> task = Task(np.eye(3), np.ones((3, 1)))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.savez(f"{folder}/start.npz", W1=np.ones((7, 3)), W2=np.ones((1, 7)))
        ...     weights_from_file(f"{folder}/start.npz", "relu", task).first.shape
        (3, 7)
    """
    found = _read(Path(path))
    first, second = (require_array(name, found[name], (None, None)) for name in _NAMES)
    inputs, outputs = task.input_dimension, task.output_dimension
    if (len(first), second.shape[1]) != (inputs, outputs) and (first.shape[1], len(second)) == (inputs, outputs):
        first, second = first.T, second.T
    require(
        (len(first), second.shape[1]) == (inputs, outputs) and first.shape[1] == len(second),
        f"W1 has shape {first.shape} and W2 has shape {second.shape}, but the task has input dimension "
        f"{inputs} and output dimension {outputs}",
        argument="path",
        value=(first.shape, second.shape),
        remedy=f"save W1 with shape ({inputs}, width) and W2 with shape (width, {outputs}), or save both transposed",
    )
    width = first.shape[1]
    hidden, bias = (
        require_array(name, found[name], (size,)) if name in found else None
        for name, size in zip(_BIASES, (width, outputs), strict=True)
    )
    if kind == "linear" and (hidden is not None or bias is not None):
        biases = tuple(np.zeros(size) if each is None else each for each, size in ((hidden, width), (bias, outputs)))
        network = MLP((inputs, width, outputs), activation="linear")
        return eqx.tree_at(lambda net: (net.weights, net.biases), network, ((first, second), biases))
    if hidden is not None:
        first = np.vstack([first, hidden])
    network = TwoLayer(len(first), width, outputs, activation=kind)
    network = eqx.tree_at(lambda net: (net.first, net.second), network, (first, second))
    if hidden is None and bias is None:
        return network
    return BiasedTwoLayer(network, bias, has_hidden_biases=hidden is not None)


def _read(path: Path) -> dict[str, np.ndarray]:
    remedy = "give the path of an .npz file"
    require(path.is_file(), f"{path} does not exist", argument="path", value=str(path), remedy=remedy)
    try:
        found, names = read_archive(path, (*_NAMES, *_BIASES))
    except InputError:
        raise
    except Exception:  # damaged files raise a dozen types, most of them undocumented
        raise InputError(
            f"{path.name} is not an .npz archive of arrays (pickles are not read because they can run code)",
            argument="path",
            value=str(path),
            remedy=f"save the weights with {_SAVED}",
        ) from None
    others = [name for name in names if "/" not in name]  # excludes the entries of PyTorch files
    missing = [name for name in _NAMES if name not in found]
    require(
        not missing,
        f"{path.name} has no {' and no '.join(missing)}" + (f"; it has {', '.join(others)}" if others else ""),
        argument="path",
        value=others,
        remedy=f"save the weights with {_SAVED}",
    )
    return found

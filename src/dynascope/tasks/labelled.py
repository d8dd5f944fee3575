"""Classification data: inputs of any shape with class labels, one per sample or one per position."""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float, Float32, Float64, Integer

from dynascope.errors import InputError
from dynascope.protocols import Network
from dynascope.tasks.digest import data_digest
from dynascope.tasks.split import split_rows
from dynascope.tasks.task import Task
from dynascope.validation import checked, require, require_known, require_labels
from dynascope.validation.bounded_scalars import OpenFraction, Seed

__all__ = ["Labelled"]

_FEWEST = 2  # samples, and classes


@dataclasses.dataclass(frozen=True, eq=False)
class Labelled:
    """Inputs of any shape with class labels.

    The loss of a function f is

        L = ½ E‖f(x) − e_y‖²,

    with the one-hot vector e_y of the class y, the mean over samples (and positions) and the sum over classes. Arrays
    keep their precision and are not copied.

    Attributes:
        inputs: Array (n, …) of float32, float64 or integers, one sample per row: vectors (n, d), images
            (n, height, width, channels), tokens (n, length), ….
        labels: Array (n,) of integers; classes are numbered from 0. For one label at each position of a sequence, such
            as the next token, an array (n, positions); inputs then have shape (n, positions) or (n, positions, …).
        class_names: One name for each of the c classes; empty for "class 0", "class 1", … up to the largest label.
        name: Short name, used in file names and titles.
        description: Sentences about the data and its preprocessing, shown in reports.

    Raises:
        InputError: If lengths differ, if inputs are not finite or have an unsupported type, if a label is negative or
            has no class name, or if there are fewer than two samples or classes.

    Example:
        >>> pixels = np.arange(24, dtype=np.float32).reshape(4, 3, 2, 1)
        >>> data = Labelled(pixels, np.array([0, 1, 1, 0]), ("cat", "dog"), name="pets")
        >>> data.samples, data.input_dimension, data.output_dimension
        (4, 6, 2)
        >>> float(data.loss(lambda x: np.zeros((len(x), 2))))
        0.5
    """

    inputs: Float32[np.ndarray, "n ..."] | Float64[np.ndarray, "n ..."] | Integer[np.ndarray, "n ..."]
    labels: Integer[np.ndarray, "n ..."]
    class_names: tuple[str, ...] = ()
    name: str = "labelled data"
    description: tuple[str, ...] = ()

    def __post_init__(self):
        inputs, labels = _array("inputs", self.inputs), _array("labels", self.labels)
        _check_inputs(inputs)
        _check_labels(labels, inputs.shape)
        values = {
            "inputs": inputs,
            "labels": labels,
            "class_names": _checked_names(self.class_names, int(labels.max())),
            "description": tuple(self.description),
        }
        for field, value in values.items():
            object.__setattr__(self, field, value)

    @property
    def samples(self) -> int:
        """Number of samples n."""
        return len(self.inputs)

    @property
    def input_dimension(self) -> int:
        """Number of entries of one input."""
        return math.prod(self.inputs.shape[1:])

    @property
    def output_dimension(self) -> int:
        """Number of classes c."""
        return len(self.class_names)

    @property
    def target_names(self) -> tuple[str, ...]:
        """The class names, as in a `Task`."""
        return self.class_names

    def one_hot(self, dtype: Any = float) -> Float[np.ndarray, "n ... c"]:
        """Compute the one-hot targets e_y, shape (n, c) or (n, positions, c).

        Args:
            dtype: Type of the entries.

        Example:
            >>> Labelled(np.eye(3), np.array([0, 1, 1])).one_hot().tolist()
            [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]
        """
        return (self.labels[..., None] == np.arange(self.output_dimension)).astype(dtype)

    def loss(self, network: Network) -> Any:
        """Compute L = ½ E‖f(x) − e_y‖² for a network, in the precision of its outputs.

        Raises:
            InputError: If the outputs do not have shape (n, c), or (n, positions, c) for labels at each position.
        """
        outputs = network(self.inputs)
        shape = (*self.labels.shape, self.output_dimension)
        require(
            outputs.shape == shape,
            f"the network's outputs have shape {outputs.shape}",
            argument="network",
            value=outputs.shape,
            remedy=f"pass a function that maps a batch of shape {self.inputs.shape} to outputs of shape {shape}",
        )
        return ((outputs - self.one_hot(outputs.dtype)) ** 2).sum() / (2 * self.labels.size)

    def attributes(self) -> dict[str, Any]:
        """Attributes that describe the data in records."""
        return {
            "task": self.name,
            "description": list(self.description),
            "samples": self.samples,
            "input_dimension": self.input_dimension,
            "output_dimension": self.output_dimension,
            "classes": list(self.class_names),
            "data_hash": self._data_hash,
        }

    @cached_property
    def _data_hash(self) -> str:
        return data_digest(self.inputs, self.labels)

    @checked
    def split(self, *, test_fraction: OpenFraction = 0.2, seed: Seed = 0) -> tuple[Labelled, Labelled]:
        """Split the data randomly into a training and a test part with the same classes, as `Task.split` does.

        Raises:
            InputError: If either part has fewer than two samples.

        Example:
            >>> data = Labelled(np.eye(10), np.arange(10) % 5)
            >>> [part.samples for part in data.split()]
            [8, 2]
        """
        train, test = (
            dataclasses.replace(self, inputs=self.inputs[rows], labels=self.labels[rows])
            for rows in split_rows(self.samples, test_fraction, seed)
        )
        return train, test

    def task(self) -> Task:
        """Make a regression task with flattened floating-point inputs and one-hot targets.

        Raises:
            InputError: If the inputs are empty or exceed 1e150, or if there is a label at each position.

        Example:
            >>> task = Labelled(np.zeros((4, 3, 2)), np.array([0, 1, 1, 0])).task()
            >>> task.inputs.shape, task.targets.shape, task.target_names
            ((4, 6), (4, 2), ('class 0', 'class 1'))
        """
        require(
            self.labels.ndim == 1,
            f"labels has shape {self.labels.shape}",
            argument="labels",
            value=self.labels.shape,
            remedy="give one label per sample, because a regression task has one row of targets per sample",
        )
        return Task(
            self.inputs.reshape(self.samples, -1),
            self.one_hot(),
            name=self.name,
            description=(*self.description, f"The {self.output_dimension} classes are one-hot encoded."),
            target_names=self.class_names,
        )


def _array(name: str, values: Any) -> np.ndarray:
    require_known(**{name: values})
    try:
        return np.asarray(values)
    except ValueError:
        raise InputError(
            f"{name} cannot be converted to an array",
            argument=name,
            value=type(values).__name__,
            remedy="give rows of equal length",
        ) from None


def _check_labels(labels: np.ndarray, inputs: tuple[int, ...]) -> None:
    samples = inputs[0]
    require(
        labels.ndim > 0 and labels.shape == inputs[: labels.ndim],
        f"labels has shape {labels.shape}, but there are {samples} samples",
        argument="labels",
        value=labels.shape,
        remedy=f"give one label for each sample, of shape ({samples},)"
        + (f", or one for each position, of shape {inputs[:2]}" if len(inputs) > 1 else ""),
    )
    require_labels("labels", labels.reshape(-1), labels.size)


def _check_inputs(inputs: np.ndarray) -> None:
    require(
        inputs.ndim > 0 and len(inputs) >= _FEWEST and inputs.size > 0,
        f"inputs has shape {inputs.shape}",
        argument="inputs",
        value=inputs.shape,
        remedy="give at least two non-empty samples, one per row",
    )
    require(
        inputs.dtype.kind in "iu" or inputs.dtype in (np.float32, np.float64),
        f"inputs has values of type {inputs.dtype}",
        argument="inputs",
        value=str(inputs.dtype),
        remedy="give values of type float32 or float64, or integers",
    )
    # NaN and infinite values appear in the extremes, which need no additional memory.
    require(
        bool(np.isfinite([inputs.min(), inputs.max()]).all()),
        "inputs contains values that are not finite",
        argument="inputs",
        remedy="drop or replace these values first",
    )


def _checked_names(names: Any, largest: int) -> tuple[str, ...]:
    require(
        isinstance(names, list | tuple) and all(isinstance(each, str) for each in names),
        f"class_names is {names!r}",
        argument="class_names",
        value=repr(names),
        remedy="give a tuple with one name per class, or omit class_names",
    )
    names = tuple(names) or tuple(f"class {label}" for label in range(largest + 1))
    require(
        len(names) >= _FEWEST,
        "labels contains only one class",
        argument="class_names",
        value=len(names),
        remedy="give labels from at least two classes, or list all classes in class_names",
    )
    require(
        largest < len(names),
        f"labels contains {largest}, but only {len(names)} classes have a name",
        argument="labels",
        value=largest,
        remedy="number the classes from 0, and give each class a name",
    )
    return names

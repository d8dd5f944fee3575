"""A task: what is learned, as arrays with their second moments."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from dynascope.arguments import require, require_array
from dynascope.protocols import Network
from dynascope.tasks.digest import data_digest
from dynascope.tasks.split import split_rows

__all__ = ["Task"]

_CENTRED = "Inputs and targets are centred."
_CONSTANT = 1e-12  # a column whose spread is below this fraction of its size is constant up to rounding
_LARGEST = 1e150  # the squares of larger values would overflow in the second moments


@dataclasses.dataclass(frozen=True, init=False, eq=False)
class Task:
    """Inputs and targets, with the second moments on which linear theories depend.

    The loss of a function f on the task is L = ½ E‖f(x) − y‖²: mean over samples, sum over outputs.

    Attributes:
        inputs: Array (n, d), one sample a row.
        targets: Array (n, c).
        name: Short name, used in file names and titles.
        description: What was done to the data on the way in, one sentence each; shown in reports.
        image_shape: (height, width) when a row of inputs is an image, else None.
        feature_names: One name for each of the d inputs; empty for "x1", "x2", …, or for an image "pixel ROW,COLUMN",
            both counted from 1.
        target_names: One name for each of the c outputs; empty for "y1", "y2", ….

    Raises:
        InputError: Values that are not finite or beyond 1e150, mismatched lengths, or fewer than two samples.

    Example:
        >>> task = Task(inputs=[[1.0, 0.0], [0.0, 1.0]], targets=[[2.0], [0.0]], name="two points")
        >>> task.cross_moment
        array([[1., 0.]])
    """

    inputs: Float[np.ndarray, "n d"]
    targets: Float[np.ndarray, "n c"]
    name: str
    description: tuple[str, ...]
    image_shape: tuple[int, int] | None
    feature_names: tuple[str, ...]
    target_names: tuple[str, ...]

    def __init__(
        self,
        inputs: ArrayLike,
        targets: ArrayLike,
        name: str = "task",
        description: Sequence[str] = (),
        image_shape: tuple[int, int] | None = None,
        feature_names: Sequence[str] = (),
        target_names: Sequence[str] = (),
    ):
        x = require_array("x", inputs, (None, None))
        y = require_array("y", targets, (None, None))
        _check_samples(x, y)
        shape = None if image_shape is None else tuple(image_shape)
        require(
            shape is None or (len(shape) == 2 and min(shape) > 0 and math.prod(shape) == x.shape[1]),
            f"image_shape is {shape} and x has {x.shape[1]} columns",
            argument="image_shape",
            value=shape,
            remedy="give a height and a width whose product is the number of columns",
        )
        if shape and not feature_names:
            feature_names = [f"pixel {i + 1},{j + 1}" for i, j in np.ndindex(*shape)]
        values = {
            "inputs": x,
            "targets": y,
            "name": name,
            "description": tuple(description),
            "image_shape": shape,
            "feature_names": _column_names("feature_names", feature_names, "x", x.shape[1]),
            "target_names": _column_names("target_names", target_names, "y", y.shape[1]),
        }
        for field, value in values.items():
            object.__setattr__(self, field, value)

    @property
    def samples(self) -> int:
        """Number of samples n."""
        return self.inputs.shape[0]

    @property
    def input_dimension(self) -> int:
        """Number of inputs d."""
        return self.inputs.shape[1]

    @property
    def output_dimension(self) -> int:
        """Number of outputs c."""
        return self.targets.shape[1]

    @cached_property
    def input_moment(self) -> Float[np.ndarray, "d d"]:
        """Σxx = E[x xᵀ], shape (d, d)."""
        return self.inputs.T @ self.inputs / self.samples

    @cached_property
    def cross_moment(self) -> Float[np.ndarray, "c d"]:
        """Σyx = E[y xᵀ], shape (c, d)."""
        return self.targets.T @ self.inputs / self.samples

    @cached_property
    def target_power(self) -> float:
        """E‖y‖² = tr Σyy, twice the loss of the zero function."""
        return float(np.sum(self.targets**2) / self.samples)

    def loss(self, network: Network) -> Any:
        """L = ½ E‖f(x) − y‖² of a network on these samples."""
        return ((network(self.inputs) - self.targets) ** 2).sum() / (2 * self.samples)

    def attributes(self) -> dict[str, Any]:
        """What a record says of the task it belongs to."""
        return {
            "task": self.name,
            "description": list(self.description),
            "samples": self.samples,
            "input_dimension": self.input_dimension,
            "output_dimension": self.output_dimension,
            "image_shape": self.image_shape,
            "data_hash": self._data_hash,
        }

    @cached_property
    def _data_hash(self) -> str:
        return data_digest(self.inputs, self.targets)

    def only(self, target_name: str) -> Task:
        """The task with a single one of its targets.

        Raises:
            InputError: No target has that name.

        Example:
            >>> Task([[1.0], [2.0]], [[0.0, 1.0], [1.0, 3.0]], target_names=("a", "b")).only("b").targets.ravel()
            array([1., 3.])
        """
        require(
            target_name in self.target_names,
            f"no target is called {target_name!r}",
            argument="only",
            value=target_name,
            remedy=f"choose from {', '.join(self.target_names)}",
        )
        column = self.target_names.index(target_name)
        return dataclasses.replace(
            self,
            targets=self.targets[:, [column]],
            target_names=(target_name,),
            description=(*self.description, f"Only the target {target_name!r} is kept."),
        )

    def centred(self) -> Task:
        """The task with the mean of every input and target removed.

        Raises:
            InputError: All inputs or all targets are constant, so that nothing is left to learn.
        """
        described = self.description if _CENTRED in self.description else (*self.description, _CENTRED)
        return dataclasses.replace(
            self,
            inputs=_without_mean("x", "input", self.inputs),
            targets=_without_mean("y", "target", self.targets),
            description=described,
        )

    def whitened(self, *, relative_cutoff: float = 1e-12) -> Task:
        """The task in coordinates where E[x xᵀ] is the identity on the range of the inputs.

        Directions in which the second moment is below `relative_cutoff` times its largest value carry no data and are
        dropped, so the input dimension becomes the rank.

        Example:
            >>> rng = np.random.default_rng(0)
            >>> task = Task(rng.normal(size=(9, 3)) * [1, 5, 0.1], rng.normal(size=(9, 1))).whitened()
            >>> bool(np.allclose(task.input_moment, np.eye(3)))
            True
        """
        left, singular, _ = np.linalg.svd(self.inputs, full_matrices=False)
        kept = singular**2 > relative_cutoff * singular[0] ** 2
        return dataclasses.replace(
            self,
            inputs=left[:, kept] * np.sqrt(self.samples),
            description=(*self.description, f"Inputs are whitened on their range, which has dimension {kept.sum()}."),
            image_shape=None,
            feature_names=(),
        )

    def split(self, *, test_fraction: float = 0.2, seed: int = 0) -> tuple[Task, Task]:
        """A random split into a training and a test task.

        Raises:
            InputError: The fraction leaves fewer than two samples on one side.

        Example:
            >>> task = Task([[0.0], [1.0], [2.0], [3.0]], [[0.0], [1.0], [2.0], [3.0]])
            >>> [part.samples for part in task.split(test_fraction=0.5)]
            [2, 2]
        """
        train_rows, test_rows = split_rows(self.samples, test_fraction, seed)
        return (
            dataclasses.replace(self, inputs=self.inputs[train_rows], targets=self.targets[train_rows]),
            dataclasses.replace(self, inputs=self.inputs[test_rows], targets=self.targets[test_rows]),
        )


def _check_samples(x: np.ndarray, y: np.ndarray) -> None:
    require(
        len(x) == len(y),
        f"x has {len(x)} samples and y has {len(y)}",
        argument="y",
        value=len(y),
        remedy="give one target for each sample",
    )
    require(
        len(x) >= 2,
        f"x has {len(x)} sample{'s' if len(x) != 1 else ''}",
        argument="x",
        value=len(x),
        remedy="give at least two",
    )
    require(
        x.shape[1] > 0 and y.shape[1] > 0,
        f"x has {x.shape[1]} columns and y has {y.shape[1]}",
        argument="x",
        value=x.shape,
        remedy="give at least one input and one target",
    )
    for name, values in (("x", x), ("y", y)):
        largest = float(np.abs(values).max())
        require(
            largest < _LARGEST,
            f"{name} has values as large as {largest:.1e}",
            argument=name,
            value=largest,
            remedy="choose units in which its squares do not overflow",
        )


def _column_names(field: str, names: Sequence[str], letter: str, width: int) -> tuple[str, ...]:
    names = tuple(names) or tuple(f"{letter}{i + 1}" for i in range(width))
    require(
        len(names) == width,
        f"{field} has {len(names)} names for {width} columns",
        argument=field,
        value=len(names),
        remedy="give one name for each column",
    )
    return names


def _without_mean(argument: str, role: str, values: np.ndarray) -> np.ndarray:
    constant = np.ptp(values, axis=0) <= _CONSTANT * np.abs(values).max(axis=0)
    require(
        not constant.all(),
        f"the {role} {argument} is constant",
        argument=argument,
        value=float(values.flat[0]),
        remedy=f"give {role}s that vary",
    )
    # Without the exact zero, rounding in the mean would leave a direction of noise for whitening to blow up.
    return np.where(constant, 0.0, values - values.mean(axis=0))

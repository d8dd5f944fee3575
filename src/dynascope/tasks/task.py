"""A task: what is learned, as arrays with their second moments."""

from __future__ import annotations

import dataclasses
from functools import cached_property

import numpy as np
from jaxtyping import Float

from dynascope.errors import require, require_array

__all__ = ["Task"]


@dataclasses.dataclass(frozen=True)
class Task:
    """Inputs and targets, with the second moments on which linear theories depend.

    The loss of a function f on the task is L = ½ E‖f(x) − y‖²: mean over samples, sum over outputs.

    Attributes:
        inputs: Array (n, d), one sample a row.
        targets: Array (n, c).
        name: Short name, used in file names and titles.
        description: What was done to the data on the way in, one sentence each; shown in reports.
        image_shape: (height, width) when a row of inputs is an image, else None.
        feature_names: One name for each of the d inputs; empty for "x1", "x2", ….
        target_names: One name for each of the c outputs; empty for "y1", "y2", ….

    Raises:
        InputError: Values that are not finite, mismatched lengths, or fewer than two samples.

    Example:
        >>> task = Task(inputs=[[1.0, 0.0], [0.0, 1.0]], targets=[[2.0], [0.0]], name="two points")
        >>> task.cross_moment
        array([[1., 0.]])
    """

    inputs: Float[np.ndarray, "n d"]
    targets: Float[np.ndarray, "n c"]
    name: str = "task"
    description: tuple[str, ...] = ()
    image_shape: tuple[int, int] | None = None
    feature_names: tuple[str, ...] = ()
    target_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        inputs = require_array("x", self.inputs, (None, None))
        targets = require_array("y", self.targets, (None, None))
        require(
            len(inputs) == len(targets),
            f"x has {len(inputs)} samples and y has {len(targets)}",
            argument="y",
            value=len(targets),
            remedy="give one target for each sample",
        )
        require(
            len(inputs) >= 2,
            f"x has {len(inputs)} sample{'s' if len(inputs) != 1 else ''}",
            argument="x",
            value=len(inputs),
            remedy="give at least two",
        )
        require(
            inputs.shape[1] > 0 and targets.shape[1] > 0,
            f"x has {inputs.shape[1]} columns and y has {targets.shape[1]}",
            argument="x",
            value=inputs.shape,
            remedy="give at least one input and one target",
        )
        object.__setattr__(self, "inputs", inputs)
        object.__setattr__(self, "targets", targets)
        for field, width, letter in (("feature_names", inputs.shape[1], "x"), ("target_names", targets.shape[1], "y")):
            names = tuple(getattr(self, field)) or tuple(f"{letter}{i + 1}" for i in range(width))
            require(
                len(names) == width,
                f"{field} has {len(names)} names for {width} columns",
                argument=field,
                value=len(names),
                remedy="give one name for each column",
            )
            object.__setattr__(self, field, names)

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

    def centred(self) -> Task:
        """The task with the mean of every input and target removed.

        Raises:
            InputError: A target that is constant, so that nothing is left to learn.
        """
        inputs = self.inputs - self.inputs.mean(axis=0)
        targets = self.targets - self.targets.mean(axis=0)
        require(
            bool(np.any(np.abs(targets) > 1e-12 * (1 + np.abs(self.targets).max()))),
            "the target y is constant",
            argument="y",
            value=float(self.targets.flat[0]),
            remedy="give targets that vary",
        )
        return dataclasses.replace(
            self, inputs=inputs, targets=targets, description=(*self.description, "Inputs and targets are centred.")
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
        test = round(self.samples * test_fraction)
        require(
            2 <= test <= self.samples - 2,
            f"test_fraction {test_fraction} gives {test} test samples of {self.samples}",
            argument="test_fraction",
            value=test_fraction,
            remedy="choose a fraction that leaves at least two samples on each side",
        )
        order = np.random.default_rng(seed).permutation(self.samples)
        train_rows, test_rows = np.sort(order[test:]), np.sort(order[:test])
        return (
            dataclasses.replace(self, inputs=self.inputs[train_rows], targets=self.targets[train_rows]),
            dataclasses.replace(self, inputs=self.inputs[test_rows], targets=self.targets[test_rows]),
        )

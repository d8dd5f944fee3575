"""Regression tasks: inputs and targets with their second moments."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from dynascope.protocols import Network
from dynascope.tasks.affine import AffineMap, varying
from dynascope.tasks.data.user_arrays import given_inputs, given_targets, require_same_rows
from dynascope.tasks.digest import data_digest
from dynascope.tasks.sample_checks import check_samples, column_names
from dynascope.tasks.split import split_rows
from dynascope.tasks.standardised import standardising
from dynascope.tasks.transform import Transform
from dynascope.validation import checked, require
from dynascope.validation.bounded_scalars import Fraction, OpenFraction, Seed

__all__ = ["Task"]

_CENTRED = "Inputs and targets are centred."


@dataclasses.dataclass(frozen=True, init=False, eq=False)
class Task:
    """Inputs and targets, with the second moments on which linear theories depend.

    The loss of a function f on the task is

        L = ½ E‖f(x) − y‖²,

    with the mean over samples and the sum over outputs.

    Data can be NumPy, JAX or PyTorch arrays, lists, or data frames and series, whose column names are kept. Values are
    not rescaled. Images (n, height, width) are flattened. Targets of shape (n,), or one named column, are class labels
    if they are text, booleans or categories, or integers with 2 to 20 distinct values and at least twice as many
    samples as distinct values. `classification` overrides this rule. Class labels are one-hot encoded.

    Attributes:
        inputs: Array (n, d), one sample per row.
        targets: Array (n, c).
        name: Short name, used in file names and titles.
        description: Sentences about the data and its preprocessing, shown in reports.
        image_shape: (height, width) if a row of inputs is an image, else None.
        feature_names: One name for each of the d inputs. The default is "x1", "x2", … or, for images,
            "pixel ROW,COLUMN", counted from 1.
        target_names: One name for each of the c outputs. The default is "y1", "y2", ….
        transform: The preprocessing by `centred`, `standardised` and `whitened`, or None. The transform maps results
            back to the original units and applies the same preprocessing to other data.

    Args:
        inputs: Numbers, (n, d) or (n, height, width).
        targets: Numbers (n, c) or (n,), or class labels.
        name: Short name.
        description: Sentences about the data and its preprocessing.
        image_shape: (height, width) if a row of inputs is an image; not needed for inputs (n, height, width).
        feature_names: Names of the inputs; if empty, the column names of a data frame are used.
        target_names: Names of the targets; if empty, the names of a data frame or series, or of the classes, are used.
        transform: Preprocessing that has already been applied.
        classification: Whether the targets are class labels; None applies the rule above.

    Raises:
        InputError: If values are not numbers, not finite or beyond 1e150, if lengths differ, or if there are fewer than
            two samples.

    Example:
        >>> task = Task(inputs=[[1.0, 0.0], [0.0, 1.0]], targets=[[2.0], [0.0]], name="two points")
        >>> task
        Task('two points', 2 × 2 → 1)
        >>> task.cross_moment
        array([[1., 0.]])
        >>> Task([[1.0], [2.0], [3.0]], ["oak", "elm", "oak"]).target_names
        ('elm', 'oak')
    """

    inputs: Float[np.ndarray, "n d"]
    targets: Float[np.ndarray, "n c"]
    name: str
    description: tuple[str, ...]
    image_shape: tuple[int, int] | None
    feature_names: tuple[str, ...]
    target_names: tuple[str, ...]
    transform: Transform | None

    def __init__(
        self,
        inputs: Any,
        targets: Any,
        name: str = "task",
        description: Sequence[str] = (),
        image_shape: tuple[int, int] | None = None,
        feature_names: Sequence[str] = (),
        target_names: Sequence[str] = (),
        transform: Transform | None = None,
        *,
        classification: bool | None = None,
    ):
        require_same_rows(inputs, targets)
        x, columns, shape = given_inputs(inputs)
        y, outputs, encoding = given_targets(targets, classification)
        check_samples(x, y)
        shape = shape if image_shape is None else tuple(image_shape)
        require(
            shape is None or (len(shape) == 2 and min(shape) > 0 and math.prod(shape) == x.shape[1]),
            f"image_shape is {shape}, but x has shape {x.shape}",
            argument="image_shape",
            value=shape,
            remedy="give a height and a width whose product is the number of columns",
        )
        if shape and not columns:
            columns = tuple(f"pixel {i + 1},{j + 1}" for i, j in np.ndindex(*shape))
        values = {
            "inputs": x,
            "targets": y,
            "name": name,
            "description": (*description, *encoding),
            "image_shape": shape,
            "feature_names": column_names("feature_names", tuple(feature_names) or columns, "x", x.shape[1]),
            "target_names": column_names("target_names", tuple(target_names) or outputs, "y", y.shape[1]),
            "transform": transform,
        }
        for field, value in values.items():
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        return f"Task({self.name!r}, {self.samples} × {self.input_dimension} → {self.output_dimension})"

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
        """Compute L = ½ E‖f(x) − y‖² for a network."""
        return ((network(self.inputs) - self.targets) ** 2).sum() / (2 * self.samples)

    def attributes(self) -> dict[str, Any]:
        """Attributes that describe the task in records."""
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
        """Select a single target.

        Raises:
            InputError: If no target has this name.

        Example:
            >>> Task([[1.0], [2.0]], [[0.0, 1.0], [1.0, 3.0]], target_names=("a", "b")).only("b").targets.ravel()
            array([1., 3.])
        """
        require(
            target_name in self.target_names,
            f"the task has no target {target_name!r}",
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
            transform=self.transform
            and dataclasses.replace(self.transform, targets=self.transform.targets.only([column])),
        )

    def centred(self) -> Task:
        """Subtract the mean of every input and target.

        Raises:
            InputError: If all inputs or all targets are constant.
        """
        _require_varying(self)
        return self.mapped(AffineMap.centring(self.inputs), AffineMap.centring(self.targets), _CENTRED)

    def standardised(self, *, classes: bool | None = None) -> Task:
        """Rescale every input and every quantitative target to mean 0 and variance 1.

        Class labels (0 or 1) are only centred, so that losses remain comparable. Constant columns become zero. The
        description states the units of the loss.

        Args:
            classes: Whether the targets are class labels; None treats one-hot targets, and binary targets whose values
                differ by one, as class labels.

        Raises:
            InputError: If all inputs or all targets are constant.

        Example:
            >>> task = Task([[1.0], [3.0]], [[10.0], [30.0]]).standardised()
            >>> task.inputs.ravel(), task.transform.targets.invert(task.targets).ravel()
            (array([-1.,  1.]), array([10., 30.]))
        """
        _require_varying(self)
        return self.mapped(*standardising(self.inputs, self.targets, self.target_names, classes=classes))

    def mapped(self, inputs: AffineMap, targets: AffineMap, sentence: str) -> Task:
        """Apply affine maps to inputs and targets, and record them in `transform`.

        Args:
            inputs: Map of the inputs. If it mixes columns, the default names replace the feature names.
            targets: Map of the targets, which may only scale each column.
            sentence: Sentence to append to the description, unless the description already contains it.
        """
        return self._moved(inputs.apply(self.inputs), targets.apply(self.targets), inputs, targets, sentence)

    def _moved(self, x: np.ndarray, y: np.ndarray, inputs: AffineMap, targets: AffineMap, sentence: str) -> Task:
        before = self.transform or Transform(
            AffineMap.identity(self.input_dimension), AffineMap.identity(self.output_dimension), self.feature_names
        )
        named = {} if inputs.matrix.ndim == 1 else {"image_shape": None, "feature_names": ()}
        return dataclasses.replace(
            self,
            inputs=x,
            targets=y,
            description=self.description if sentence in self.description else (*self.description, sentence),
            transform=before.then(inputs, targets),
            **named,
        )

    @checked
    def whitened(self, *, relative_cutoff: Fraction = 1e-12) -> Task:
        """Whiten the inputs on their range, so that E[x xᵀ] is the identity.

        Directions in which the second moment is below `relative_cutoff` times its largest eigenvalue are dropped, so
        the input dimension becomes the rank. `transform` maps weights back to the original coordinates and applies the
        whitening to other data.

        Example:
            >>> rng = np.random.default_rng(0)
            >>> task = Task(rng.normal(size=(9, 3)) * [1, 5, 0.1], rng.normal(size=(9, 1))).whitened()
            >>> bool(np.allclose(task.input_moment, np.eye(3)))
            True
        """
        left, singular, axes = np.linalg.svd(self.inputs, full_matrices=False)
        kept = singular**2 > relative_cutoff * singular[0] ** 2
        root = np.sqrt(self.samples)
        whitening = AffineMap(np.zeros(self.input_dimension), axes[kept].T * (root / singular[kept]))
        sentence = f"Inputs are whitened on their range, which has dimension {kept.sum()}."
        # Singular vectors are used directly, because the map amplifies rounding by the inverse smallest singular value.
        return self._moved(
            left[:, kept] * root, self.targets, whitening, AffineMap.identity(self.output_dimension), sentence
        )

    @checked
    def split(self, *, test_fraction: OpenFraction = 0.2, seed: Seed = 0) -> tuple[Task, Task]:
        """Split the samples randomly into a training and a test task.

        Raises:
            InputError: If either task has fewer than two samples.

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


def _require_varying(task: Task) -> None:
    for argument, role, values in (("x", "input", task.inputs), ("y", "target", task.targets)):
        require(
            bool(varying(values).any()),
            f"the {role} {argument} is constant",
            argument=argument,
            value=float(values.flat[0]),
            remedy=f"give {role}s that vary",
        )

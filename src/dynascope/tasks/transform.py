"""Affine preprocessing of a task, for other data and for results in the original units."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dynascope.protocols import Network
from dynascope.tasks.affine import AffineMap
from dynascope.validation import require

if TYPE_CHECKING:
    from dynascope.tasks.task import Task

__all__ = ["Transform"]


@dataclasses.dataclass(frozen=True, eq=False)
class Transform:
    """The affine preprocessing of inputs and targets, x′ = (x − shift) M and the same for y′.

    Attributes:
        inputs: The map of the inputs.
        targets: The map of the targets, which only scales each column.
        feature_names: The names of the original inputs.

    Example:
        >>> from dynascope.tasks.task import Task
        >>> metres = Task([[1.0], [3.0]], [[10.0], [30.0]]).standardised()
        >>> metres.inputs.ravel(), metres.transform.inputs.invert(metres.inputs).ravel()
        (array([-1.,  1.]), array([1., 3.]))
        >>> metres.transform.original(lambda x: x)([[2.5]]).item()
        25.0
    """

    inputs: AffineMap
    targets: AffineMap
    feature_names: tuple[str, ...]

    def then(self, inputs: AffineMap, targets: AffineMap) -> Transform:
        """The composition of this transform with further maps of inputs and targets."""
        return Transform(self.inputs.then(inputs), self.targets.then(targets), self.feature_names)

    def apply(self, task: Task) -> Task:
        """Apply the preprocessing to other data, such as a test set.

        Args:
            task: Inputs and targets before preprocessing.

        Raises:
            InputError: If the data have a different number of inputs or targets.

        Example:
            >>> from dynascope.tasks.task import Task
            >>> train, test = Task([[1.0], [3.0]], [[10.0], [30.0]]), Task([[2.0], [4.0]], [[20.0], [40.0]])
            >>> train.standardised().transform.apply(test).inputs.ravel()
            array([0., 2.])
        """
        given, expected = (
            (task.input_dimension, task.output_dimension),
            (self.inputs.input_dimension, self.targets.input_dimension),
        )
        require(
            given == expected,
            f"the numbers of inputs and targets are {given[0]} and {given[1]}, but the transform expects {expected[0]} "
            f"and {expected[1]}",
            argument="task",
            value=given,
            remedy="give data that are not yet preprocessed",
        )
        return task.mapped(self.inputs, self.targets, "Inputs and targets are preprocessed like those of another task.")

    def original(self, network: Network) -> Callable[[Any], np.ndarray]:
        """Convert a network trained on the task to a function from original inputs to outputs in original units.

        Args:
            network: A function of a batch of preprocessed inputs.
        """
        return lambda x: self.targets.invert(np.asarray(network(self.inputs.apply(x))))

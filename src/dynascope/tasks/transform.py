"""What was done to the inputs and targets of a task, so that results map back and other data follow."""

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
    """How the inputs and targets of a task came from the original ones: x′ = (x − shift) M, and so y′.

    Attributes:
        inputs: The map of the inputs.
        targets: The map of the targets, each of which has a factor of its own.
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
        """This, and maps of inputs and targets after it."""
        return Transform(self.inputs.then(inputs), self.targets.then(targets), self.feature_names)

    def apply(self, task: Task) -> Task:
        """Other data of the same kind, such as a test set, in the coordinates of the task.

        Args:
            task: Inputs and targets as they were before the transform.

        Raises:
            InputError: The data have another number of inputs or targets.

        Example:
            >>> from dynascope.tasks.task import Task
            >>> train, test = Task([[1.0], [3.0]], [[10.0], [30.0]]), Task([[2.0], [4.0]], [[20.0], [40.0]])
            >>> train.standardised().transform.apply(test).inputs.ravel()
            array([0., 2.])
        """
        given, wanted = (
            (task.input_dimension, task.output_dimension),
            (self.inputs.input_dimension, self.targets.input_dimension),
        )
        require(
            given == wanted,
            f"the task has {given[0]} inputs and {given[1]} targets, and the transform takes {wanted[0]} and "
            f"{wanted[1]}",
            argument="task",
            value=given,
            remedy="give data as they were before the transform",
        )
        return task.mapped(self.inputs, self.targets, "Inputs and targets are in the coordinates of another task.")

    def original(self, network: Network) -> Callable[[Any], np.ndarray]:
        """The function of original inputs, with outputs in original units, that a network on the task stands for.

        Args:
            network: A function of a batch of the task's inputs.
        """
        return lambda x: self.targets.invert(np.asarray(network(self.inputs.apply(x))))

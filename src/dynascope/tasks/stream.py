"""Data streams, in which every batch consists of new samples."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any, ClassVar

from dynascope.errors import InputError
from dynascope.protocols import Network

if TYPE_CHECKING:
    from dynascope.tasks.expectation import Expectation

__all__ = ["Stream"]


class Stream(abc.ABC):
    """Base class of tasks that draw an unlimited number of samples in JAX, each of which is used in one training step.

    `descend` accepts a stream together with a batch size. The compiled loop draws each batch in the step that uses it,
    so the memory does not grow with the number of steps. Subclasses implement `sample`, which is compiled into the
    loop. Instances must be immutable; frozen dataclasses with equal fields share compiled programs.

    Attributes:
        name: Short name, used in file names and titles.
        description: Sentences about the origin of the samples, shown in reports.

    Example:
        >>> import dataclasses, jax
        >>> @dataclasses.dataclass(frozen=True)
        ... class Doubling(Stream):
        ...     dimension: int = 3
        ...     def sample(self, key, samples, *, dtype=float):
        ...         inputs = jax.random.normal(key, (samples, self.dimension), dtype)
        ...         return inputs, 2 * inputs
        >>> inputs, targets = Doubling().sample(jax.random.key(0), 5)
        >>> inputs.shape, Doubling().attributes()
        ((5, 3), {'task': 'stream', 'description': []})
    """

    name: ClassVar[str] = "stream"

    @property
    def description(self) -> tuple[str, ...]:
        """Sentences about the origin of the samples."""
        return ()

    @abc.abstractmethod
    def sample(self, key: Any, samples: int, *, dtype: Any = float) -> tuple[Any, ...]:
        """Draw samples in pure JAX.

        Args:
            key: JAX random key.
            samples: Number n of samples, static under `jax.jit`.
            dtype: Type of inputs and targets.

        Returns:
            Inputs (n, d) and targets (n, c), optionally followed by further arrays.
        """

    @property
    def has_expectation(self) -> bool:
        """Whether the expected loss over the distribution has a closed form."""
        return False

    def expectation(self) -> Expectation:
        """Return the exact expected loss.

        Raises:
            InputError: If the loss has no closed form.
        """
        raise InputError(
            f"the expected loss of {self.name} has no closed form",
            argument="task",
            value=self.name,
            remedy="train with Descent, and choose a batch size",
        )

    def loss(self, network: Network) -> Any:
        """Raise an error, because a stream has no finite set of samples for a full-batch loss.

        Raises:
            InputError: Always.
        """
        raise InputError(
            f"the task {self.name} is an infinite stream of samples, so it has no full-batch loss",
            argument="task",
            value=self.name,
            remedy="train with Descent, and choose a batch size"
            + (", or train on task.expectation()" if self.has_expectation else ""),
        )

    def attributes(self) -> dict[str, Any]:
        """Attributes that describe the task in records."""
        return {"task": self.name, "description": list(self.description)}

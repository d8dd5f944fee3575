"""A task without end: every batch is drawn where it is used."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any, ClassVar

from dynascope.errors import InputError
from dynascope.protocols import Network

if TYPE_CHECKING:
    from dynascope.tasks.expectation import Expectation

__all__ = ["Stream"]


class Stream(abc.ABC):
    """A task whose samples are drawn in JAX, without end, so that training sees each of them once.

    `descend` takes one together with a batch size: the compiled loop draws each batch in the step that uses it, and
    nothing is kept, so that the memory does not grow with the steps. To make one, write `sample`. It is compiled into
    the loop, so an instance must not change; a frozen dataclass is found again by its values.

    Attributes:
        name: Short name, used in file names and titles.
        description: Where the samples come from, one sentence each; shown in reports.

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
        """Where the samples come from, one sentence each."""
        return ()

    @abc.abstractmethod
    def sample(self, key: Any, samples: int, *, dtype: Any = float) -> tuple[Any, ...]:
        """Draw samples in pure JAX: inputs (n, d) and targets (n, c); what follows them is left to the task.

        Args:
            key: JAX random key.
            samples: n, known when compiling.
            dtype: Of inputs and targets.
        """

    @property
    def has_expectation(self) -> bool:
        """Whether the loss over the whole distribution is known as a formula."""
        return False

    def expectation(self) -> Expectation:
        """The exact loss, where it is known.

        Raises:
            InputError: It is not.
        """
        raise InputError(
            f"the loss of {self.name} is known from samples only",
            argument="task",
            value=self.name,
            remedy="train by Descent with batches",
        )

    def loss(self, network: Network) -> Any:
        """No flow descends a stream as a whole.

        Raises:
            InputError: Always, with what to do instead.
        """
        raise InputError(
            f"the task {self.name} is a stream of samples, of which there is no end",
            argument="task",
            value=type(network).__name__,
            remedy="train by Descent with batches" + (", or its expectation()" if self.has_expectation else ""),
        )

    def attributes(self) -> dict[str, Any]:
        """What a record says of the task it belongs to."""
        return {"task": self.name, "description": list(self.description)}

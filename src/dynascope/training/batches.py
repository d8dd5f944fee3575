"""Which samples a step sees."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dynascope.arguments import calling, require
from dynascope.tasks.stream import Stream

__all__ = ["Batch", "Batches"]

_FORM = "give a JAX function of a random key and inputs, with new inputs of the same shape and type"
_AUGMENTED = 1  # follows the step in the keys of augmentation


class Batch(NamedTuple):
    """Inputs and what belongs to them.

    Attributes:
        inputs: x, shape (n, …).
        targets: y, shape (n, c), or labels, shape (n,).
    """

    inputs: Any
    targets: Any


@dataclasses.dataclass(frozen=True)
class Batches:
    """How batches are drawn.

    The samples of a step follow from the seed and the number of the step alone, and, where members of an ensemble see
    their own, from the number of the member.

    Attributes:
        size: Samples in a step; None for all of them.
        samples: Number of samples of the task; zero if it has none.
        replacement: Whether each sample of a batch is drawn from all, whatever was drawn before; if not, all samples
            are shuffled for each epoch, and what does not fill a batch at its end is left out.
        independent: Whether every member draws its own.
        stream: The task, if it draws fresh samples.
        augmentation: A function of a key and inputs with new inputs of the same shape, or None.
    """

    size: int | None = None
    samples: int = 0
    replacement: bool = False
    independent: bool = False
    stream: Stream | None = None
    augmentation: Callable[[Any, Any], Any] | None = None

    @property
    def per_epoch(self) -> int | None:
        """Steps of an epoch; None where there are none."""
        if self.samples == 0 or self.replacement:
            return None
        return 1 if self.size is None else self.samples // self.size

    @property
    def shuffled(self) -> bool:
        """Whether there is an order of all samples to keep."""
        return self.size is not None and self.stream is None and not self.replacement

    def key(self, seed: Any, member: Any) -> Any:
        """The key of all batches of a member."""
        key = jax.random.key(seed)
        return jax.random.fold_in(key, member) if self.independent else key

    def no_order(self, step: Any) -> Any:
        """What stands for the order of the samples before `draw` is asked for those of a step."""
        # Of no epoch, so that it is drawn where it is needed, and compiled once.
        return (-jnp.ones_like(step), jnp.zeros(self.samples, int)) if self.shuffled else ()

    def draw(self, key: Any, step: Any, order: Any, data: Batch | None, dtype: Any) -> tuple[Batch | None, Any]:
        """The samples of a step, None for a task without samples, and the order of the epoch with its number."""
        batch, order = self._drawn(key, step, order, data, dtype)
        if self.augmentation is not None and batch is not None:
            own = jax.random.fold_in(jax.random.fold_in(key, step), _AUGMENTED)
            with calling("augmentation", type(self.augmentation).__name__, _FORM):
                inputs = jnp.asarray(self.augmentation(own, batch.inputs))
            before = batch.inputs.shape, batch.inputs.dtype
            require(
                (inputs.shape, inputs.dtype) == before,
                f"augmentation makes inputs of shape {inputs.shape} and type {inputs.dtype} of {before}",
                argument="augmentation",
                value=(inputs.shape, str(inputs.dtype)),
                remedy=_FORM,
            )
            batch = batch._replace(inputs=inputs)
        return batch, order

    def fresh(self, key: Any, size: int, dtype: Any) -> Batch:
        """New samples of a stream."""
        assert self.stream is not None
        return Batch(*self.stream.sample(key, size, dtype=dtype)[:2])

    def _drawn(self, key: Any, step: Any, order: Any, data: Batch | None, dtype: Any) -> tuple[Batch | None, Any]:
        if self.size is None or (data is None and self.stream is None):
            return data, order
        if self.stream is not None:
            return self.fresh(jax.random.fold_in(key, step), self.size, dtype), order
        assert data is not None
        if self.replacement:
            # A draw of a named type is the same in single and in double precision.
            rows = jax.random.randint(jax.random.fold_in(key, step), (self.size,), 0, self.samples, jnp.int32)
        else:
            epoch, place = jnp.divmod(step, self.samples // self.size)
            drawn, rows = order
            # The step is that of all members, so that this remains a branch when they are batched.
            rows = jax.lax.cond(
                epoch == drawn,
                lambda: rows,
                lambda: jax.random.permutation(jax.random.fold_in(key, epoch), self.samples),
            )
            order = epoch, rows
            rows = jax.lax.dynamic_slice_in_dim(rows, place * self.size, self.size)
        return Batch(data.inputs[rows], data.targets[rows]), order

"""Losses and accuracies of a network on samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from dynascope.arguments import require, shown_error
from dynascope.errors import InputError
from dynascope.training.batches import Batch
from dynascope.training.losses import Loss

__all__ = ["applied", "losses", "means"]

_TOGETHER = 1000  # samples at a time when nothing is trained


def applied(function: Callable[[Any], Any], network: Any, inputs: Any) -> Any:
    """Outputs of a network, by one of its functions.

    Raises:
        InputError: It does not take such inputs.
    """
    try:
        return function(inputs)
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the network cannot be applied to the inputs ({shown_error(error)})",
            argument="network",
            value=type(network).__name__,
            remedy=f"pass a function of a batch of shape {inputs.shape}",
        ) from error


def losses(loss: Loss, outputs: Any, batch: Batch) -> Array:
    """The loss of every sample.

    Raises:
        InputError: Outputs that do not belong to the targets, or a loss without a value for each sample.
    """
    inputs, targets = batch.inputs, batch.targets
    numbers = not jnp.issubdtype(targets.dtype, jnp.integer)
    # A user's loss may compare outputs with targets of another shape.
    if isinstance(loss.kind, str):
        fits = outputs.shape == targets.shape if numbers else outputs.shape[:-1] == targets.shape
        require(
            fits and outputs.ndim > 1,
            f"the network's outputs have shape {outputs.shape}",
            argument="network",
            value=outputs.shape,
            remedy=f"pass a function of a batch of shape {inputs.shape} with outputs of shape "
            f"{targets.shape if numbers else (*targets.shape, 'classes')}",
        )
        require(
            loss.kind != "cross_entropy" or outputs.shape[-1] > 1,
            "the loss is cross_entropy and the network has one output, whose softmax is one",
            argument="network",
            value=outputs.shape,
            remedy="give it one output for each class, or choose the logistic loss",
        )
    values = loss.each(outputs, targets)
    require(
        values.shape == inputs.shape[:1],
        f"the loss {loss.name} has values of shape {values.shape} for {len(inputs)} samples",
        argument="loss",
        value=values.shape,
        remedy="return one value for each sample, or one for each entry of the outputs",
    )
    return values


def means(loss: Loss, network: Any, data: Batch, dtype: Any, *, right: bool) -> tuple[Array, Array]:
    """Mean loss of a network, and its accuracy if asked for, some samples at a time."""
    samples = len(data.inputs)

    def sums(batch: Batch, counted: Any) -> Array:
        outputs = applied(network, network, jnp.asarray(batch.inputs)).astype(dtype)
        each = losses(loss, outputs, batch)
        hits = loss.right(outputs, batch.targets) if right else jnp.zeros_like(each)
        return jnp.stack([jnp.sum(jnp.where(counted, values, 0)) for values in (each, hits)]).astype(dtype)

    if samples <= _TOGETHER:
        found = sums(data, True) / samples
        return found[0], found[1]

    def block(first: Any) -> Array:
        rows = first + jnp.arange(_TOGETHER)
        # The last block is filled up with samples that do not count.
        kept = jnp.minimum(rows, samples - 1)
        return sums(jax.tree.map(lambda values: values[kept], data), rows < samples)

    blocks = jax.lax.map(block, _TOGETHER * jnp.arange(-(-samples // _TOGETHER)))
    found = blocks.sum(axis=0) / samples
    return found[0], found[1]

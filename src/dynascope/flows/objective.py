"""What a flow descends and what it measures on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.errors import InputError
from dynascope.validation import require, shown_error

__all__ = ["FrozenFirst", "Objective", "Samples", "Statistics", "check_statistics"]

Statistics = tuple[tuple[str, Callable[[Any], Any], tuple[str, ...]], ...]

_ADDED = ("time", "step", "sampled_step", "seed", "scale", "learning_rate")
_TAKEN = (
    *("loss", "accuracy", "test_loss", "test_accuracy", "epoch", "applied_rate"),
    *("stop_time", "stop_reason", "diverged_step", "diverged_loss", *_ADDED),
)


class Samples(eqx.Module):
    """Inputs and targets over which the loss L = ½ E‖f(x) − y‖² averages.

    Attributes:
        inputs: x, shape (n, d), in the precision of the weights.
        targets: y, shape (n, c).
    """

    inputs: Float[Array | np.ndarray, "n d"]
    targets: Float[Array | np.ndarray, "n c"]

    def loss(self, network: Callable) -> Float[Array, ""]:
        """L: mean over samples, sum over outputs.

        Raises:
            InputError: The network does not map the inputs (n, d) to outputs of the shape (n, c) of the targets.
        """
        remedy = f"pass a function of a batch of shape {self.inputs.shape} with outputs of shape {self.targets.shape}"
        try:
            outputs = network(jnp.asarray(self.inputs))
        except (TypeError, ValueError) as error:
            raise InputError(
                f"the network cannot be applied to the inputs ({shown_error(error)})",
                argument="network",
                value=type(network).__name__,
                remedy=remedy,
            ) from error
        require(
            jnp.shape(outputs) == self.targets.shape,
            f"the network's outputs have shape {jnp.shape(outputs)}",
            argument="network",
            value=jnp.shape(outputs),
            remedy=remedy,
        )
        return jnp.sum((outputs - self.targets) ** 2) / (2 * len(self.inputs))


class FrozenFirst(eqx.Module):
    """Samples that a network learns by its second layer alone, as gradients do not reach the first."""

    samples: Samples
    task: Any = eqx.field(static=True)

    def loss(self, network: Any) -> Float[Array, ""]:
        """L of the samples."""
        frozen = jax.lax.stop_gradient(network.first)
        return self.samples.loss(eqx.tree_at(lambda layers: layers.first, network, frozen))

    def attributes(self) -> dict[str, Any]:
        """What a record says of the task."""
        return dict(self.task)


class Objective(eqx.Module):
    """The loss of a network as a function of its weights.

    Attributes:
        frame: The network without its weights.
        average: What the loss averages over: samples, a stream of them, or an expectation in closed form.
    """

    frame: Any
    average: Any

    def loss(self, weights: Any) -> Float[Array, ""]:
        """L = ½ E‖f(x) − y‖²."""
        return self.average.loss(eqx.combine(weights, self.frame))

    def measure(self, weights: Any, statistics: Statistics) -> dict[str, Array]:
        """`loss` and each statistic of the network with the given weights."""
        network = eqx.combine(weights, self.frame)
        values = {name: jnp.asarray(function(network)) for name, function, _ in statistics}
        return {"loss": self.loss(weights), **values}


def check_statistics(statistics: Mapping[str, tuple[Callable[[Any], Any], Sequence[str]]] | None) -> Statistics:
    """The statistics as a hashable tuple, so that a program compiled for them is found again.

    Raises:
        InputError: A name that records use otherwise.
    """
    require(
        statistics is None
        or (isinstance(statistics, Mapping) and all(_is_statistic(*each) for each in statistics.items())),
        f"statistics is {statistics!r}",
        argument="statistics",
        value=str(statistics),
        remedy="give a mapping from names to pairs of a function and the names of the axes of its value",
    )
    checked = tuple((name, function, tuple(dimensions)) for name, (function, dimensions) in (statistics or {}).items())
    axes = {axis for _, _, dimensions in checked for axis in dimensions}
    for name, _, dimensions in checked:
        require(
            name not in _TAKEN and name not in axes,
            f"a statistic is called {name!r}",
            argument="statistics",
            value=name,
            remedy="choose a name that is neither that of an axis nor one that records use",
        )
        require(
            not set(dimensions) & set(_TAKEN),
            f"the statistic {name!r} has the dimensions {dimensions}",
            argument="statistics",
            value=name,
            remedy=f"choose other names than {', '.join(_TAKEN)}; the axes of time and members are added",
        )
    return checked


def _is_statistic(name: Any, entry: Any) -> bool:
    return (
        isinstance(name, str)
        and isinstance(entry, tuple | list)
        and len(entry) == 2
        and isinstance(entry[1], tuple | list)
        and all(isinstance(axis, str) for axis in entry[1])
    )

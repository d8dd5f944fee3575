"""The objective of a flow, and the statistics recorded along its trajectory."""

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

__all__ = ["CentredSamples", "FrozenFirst", "Objective", "Samples", "Statistics", "check_statistics"]

Statistics = tuple[tuple[str, Callable[[Any], Any], tuple[str, ...]], ...]

_ADDED = ("time", "step", "sampled_step", "seed", "scale", "learning_rate")
_TAKEN = (
    *("loss", "accuracy", "test_loss", "test_accuracy", "epoch", "applied_rate"),
    *("stop_time", "stop_reason", "diverged_step", "diverged_loss", *_ADDED),
)


class Samples(eqx.Module):
    """Samples that define the loss L = ½ E‖f(x) − y‖².

    Attributes:
        inputs: Inputs x, shape (n, d), in the precision of the weights.
        targets: Targets y, shape (n, c).
    """

    inputs: Float[Array | np.ndarray, "n d"]
    targets: Float[Array | np.ndarray, "n c"]

    def loss(self, network: Callable) -> Float[Array, ""]:
        """Compute L, with the mean over samples and the sum over outputs.

        Raises:
            InputError: If the network does not map inputs (n, d) to outputs (n, c).
        """
        return jnp.sum(self.residual(network) ** 2) / (2 * len(self.inputs))

    def residual(self, network: Callable) -> Float[Array, "n c"]:
        """Compute y − f(x) for every sample.

        Raises:
            InputError: If the network does not map inputs (n, d) to outputs (n, c).
        """
        remedy = (
            f"pass a function that maps a batch of shape {self.inputs.shape} to outputs of shape {self.targets.shape}"
        )
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
            f"the outputs of the network have shape {jnp.shape(outputs)}",
            argument="network",
            value=jnp.shape(outputs),
            remedy=remedy,
        )
        return self.targets - outputs


class CentredSamples(Samples):
    """Samples that define the loss min_c ½ E‖f(x) + c − y‖² of a network whose output bias c is always optimal."""

    def residual(self, network: Callable) -> Float[Array, "n c"]:
        """Compute y − f(x) for every sample, minus its mean over samples."""
        residual = super().residual(network)
        return residual - jnp.mean(residual, axis=0)


class FrozenFirst(eqx.Module):
    """Samples for training the second layer only: the gradient of the loss with respect to the first layer is zero."""

    samples: Samples
    task: Any = eqx.field(static=True)

    def loss(self, network: Any) -> Float[Array, ""]:
        """Compute L on the samples, with a frozen first layer."""
        frozen = jax.lax.stop_gradient(network.first)
        return self.samples.loss(eqx.tree_at(lambda layers: layers.first, network, frozen))

    def attributes(self) -> dict[str, Any]:
        """Attributes that describe the task in records."""
        return dict(self.task)


class Objective(eqx.Module):
    """The loss of a network as a function of its weights.

    Attributes:
        frame: The network without its weights.
        average: The data that define the loss: samples, a stream, or an expectation in closed form.
    """

    frame: Any
    average: Any

    def loss(self, weights: Any) -> Float[Array, ""]:
        """Compute L = ½ E‖f(x) − y‖²."""
        return self.average.loss(eqx.combine(weights, self.frame))

    def measure(self, weights: Any, statistics: Statistics) -> dict[str, Array]:
        """Compute `loss` and each statistic for the given weights."""
        network = eqx.combine(weights, self.frame)
        values = {name: jnp.asarray(function(network)) for name, function, _ in statistics}
        return {"loss": self.loss(weights), **values}


def check_statistics(statistics: Mapping[str, tuple[Callable[[Any], Any], Sequence[str]]] | None) -> Statistics:
    """Check statistics, and convert them to a hashable tuple for compiled programs.

    Raises:
        InputError: If the statistics have an unsupported format, or if a name is reserved.
    """
    require(
        statistics is None
        or (isinstance(statistics, Mapping) and all(_is_statistic(*each) for each in statistics.items())),
        f"statistics is {statistics!r}",
        argument="statistics",
        value=str(statistics),
        remedy="give a dictionary {name: (function, dimensions)}, where dimensions names the axes of the value",
    )
    checked = tuple((name, function, tuple(dimensions)) for name, (function, dimensions) in (statistics or {}).items())
    axes = {axis for _, _, dimensions in checked for axis in dimensions}
    for name, _, dimensions in checked:
        require(
            name not in _TAKEN and name not in axes,
            f"a statistic has the name {name!r}, which is reserved or also names a dimension",
            argument="statistics",
            value=name,
            remedy=f"choose a name that is neither a dimension nor one of {', '.join(_TAKEN)}",
        )
        require(
            not set(dimensions) & set(_TAKEN),
            f"the statistic {name!r} has the dimensions {dimensions}",
            argument="statistics",
            value=name,
            remedy=f"omit the dimensions of time and members, which are implicit, and avoid {', '.join(_TAKEN)}",
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

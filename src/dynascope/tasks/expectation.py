"""A squared loss whose average over the data is known in closed form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx

from dynascope.protocols import Network

__all__ = ["Expectation"]


class Expectation(eqx.Module):
    """A loss L(network) = ½ E‖f(x) − y‖² given as a formula instead of as samples.

    It goes wherever a `Task` goes as long as nobody asks for samples: into `gradient_flow` and `alternating_flow`. Any
    frozen equinox module with the same attributes does, so that the arrays in a formula can be leaves of a module.

    Attributes:
        function: L, a differentiable JAX function of the network.
        name: Short name, used in file names and titles.
        description: Where the formula comes from, one sentence each; shown in reports.

    Example:
        >>> import jax.numpy as jnp
        >>> def loss(network):
        ...     return jnp.sum((network.coefficients - jnp.array([2.0, 1.0])) ** 2) / 2
        >>> from dynascope.networks import DiagonalLinear
        >>> float(Expectation(loss, "whitened inputs").loss(DiagonalLinear(2)))
        2.5
    """

    function: Callable[[Any], Any] = eqx.field(static=True)
    name: str = eqx.field(static=True, default="expectation")
    description: tuple[str, ...] = eqx.field(static=True, default=())

    def loss(self, network: Network) -> Any:
        """L of the network."""
        return self.function(network)

    def attributes(self) -> dict[str, Any]:
        """What a record says of the task it belongs to."""
        return {"task": self.name, "description": list(self.description)}

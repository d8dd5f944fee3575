"""A squared loss in closed form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx

from dynascope.protocols import Network

__all__ = ["Expectation"]


class Expectation(eqx.Module):
    """A loss L(network) = ½ E‖f(x) − y‖² given by a formula instead of samples.

    `gradient_flow`, `alternating_flow` and all other functions that require no samples accept an `Expectation` in place
    of a `Task`. If the formula contains arrays, write an equinox module with the same attributes and methods, so that
    the arrays are leaves of the module.

    Attributes:
        function: L, a differentiable JAX function of the network.
        name: Short name, used in file names and titles.
        description: Sentences about the origin of the formula, shown in reports.

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
        """Evaluate L for a network."""
        return self.function(network)

    def attributes(self) -> dict[str, Any]:
        """Attributes that describe the task in records."""
        return {"task": self.name, "description": list(self.description)}

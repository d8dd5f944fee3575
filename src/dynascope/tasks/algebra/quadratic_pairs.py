"""The networks on which addition and composition of pairs have a loss in closed form."""

from __future__ import annotations

from typing import Any

from dynascope.errors import InputError
from dynascope.protocols import Network, OneHiddenLayer

__all__ = ["quadratic_weights"]


def quadratic_weights(network: Network, n: int) -> tuple[Any, Any, Any]:
    """The weights u and v (width, n) of the first and second of a pair, and w (width, n), of a quadratic network.

    Args:
        network: A two-layer network from 2n inputs to n outputs with the activation z².
        n: Numbers in the encoding of an element.

    Raises:
        InputError: The network is another one.
    """
    name, sizes = type(network).__name__, ""
    if isinstance(network, OneHiddenLayer):
        kind = tuple(getattr(network.activation, number, None) for number in ("degree", "positive", "negative"))
        shape = network.first.shape[0], network.second.shape[1]
        if kind == (2, 1, 1) and shape == (2 * n, n):
            return network.first[:n].T, network.first[n:].T, network.second
        sizes = f" from {shape[0]} to {shape[1]} numbers"
    raise InputError(
        f"the network is a {name}{sizes}",
        argument="network",
        value=name,
        remedy=f'give TwoLayer({2 * n}, width, {n}, activation="quadratic"), or train on samples of the task',
    )

"""Quadratic networks, for which the loss of adding or composing pairs has a closed form."""

from __future__ import annotations

from typing import Any

from dynascope.errors import InputError
from dynascope.protocols import Network, OneHiddenLayer
from dynascope.validation.kinds import in_words

__all__ = ["quadratic_weights"]


def quadratic_weights(network: Network, n: int) -> tuple[Any, Any, Any]:
    """Split the weights of a quadratic network into u, v (for the two elements of a pair) and w, each (width, n).

    Args:
        network: A two-layer network with 2n inputs, n outputs and the activation z².
        n: Length of the encoding of one element.

    Raises:
        InputError: If the network does not have this architecture.
    """
    name, sizes = type(network).__name__, ""
    if isinstance(network, OneHiddenLayer):
        kind = tuple(getattr(network.activation, number, None) for number in ("degree", "positive", "negative"))
        shape = network.first.shape[0], network.second.shape[1]
        if kind == (2, 1, 1) and shape == (2 * n, n):
            return network.first[:n].T, network.first[n:].T, network.second
        sizes = f" with {shape[0]} inputs and {shape[1]} outputs"
    raise InputError(
        f"the network is {in_words(type(network))}{sizes}",
        argument="network",
        value=name,
        remedy=f'use TwoLayer({2 * n}, width, {n}, activation="quadratic"), or train on samples of the task',
    )

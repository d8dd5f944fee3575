"""Which networks can be followed neuron by neuron."""

from __future__ import annotations

from typing import Any

from dynascope.arguments import require
from dynascope.protocols import SumOfNeurons

__all__ = ["require_neurons"]


def require_neurons(network: Any, *, exchangeable: bool = False) -> None:
    """Raise `InputError` unless the network is a sum of neurons of degree two or more.

    Args:
        network: The network.
        exchangeable: Whether its neurons may not be tied to places either.

    Example:
        >>> from dynascope.networks import TwoLayer
        >>> require_neurons(TwoLayer(3, 2, 1), exchangeable=True)
    """
    name = type(network).__name__
    free = "TwoLayer, LinearAttention or NeuronSum"
    require(
        isinstance(network, SumOfNeurons)
        and network.degree >= 2
        and (not exchangeable or getattr(network, "exchangeable", True)),
        f"the network is a {name}" + (f" of degree {network.degree}" if hasattr(network, "degree") else ""),
        argument="network",
        value=name,
        remedy=f"give a sum of exchangeable neurons of degree two or more: {free}"
        if exchangeable
        else f"give a sum of neurons of degree two or more: DiagonalLinear, {free}",
    )

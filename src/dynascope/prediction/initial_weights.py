"""Initial weights and default scale of networks given by name or without dimensions."""

from __future__ import annotations

from typing import Any

from dynascope.networks.kinds import is_specification, network_for
from dynascope.results.clock import is_exponential

__all__ = ["default_scale", "with_weights"]

_SCALE = 1e-8
_POWER_LAW_SCALE = 1e-3  # times grow as a power of 1/scale, so smaller scales take too long


def default_scale(network: Any, *, normalised: bool = False) -> float:
    """Return the default scale of a network given by name or without dimensions.

    The default is 1e-8, or 1e-3 if the jump times grow as a power of 1/scale rather than its logarithm. `predict`,
    `observe`, `which` and the command line use this default.

    Args:
        network: The network with weights; only its degree of homogeneity matters.
        normalised: Whether the flow is homogeneity-normalised.

    Example:
        >>> from dynascope.networks import TwoLayer
        >>> [default_scale(TwoLayer(2, 5, 1, activation=each)) for each in ("linear", "relu", "quadratic")]
        [1e-08, 1e-08, 0.001]
    """
    return _SCALE if is_exponential(degree=network.degree, normalised=normalised) else _POWER_LAW_SCALE


def with_weights(
    task: Any, network: Any, scale: Any, *, seed: int, width: int = 50, normalised: bool = False
) -> tuple[Any, Any]:
    """Return a network and its scale; a name or a specification gets random weights and the default scale."""
    if not is_specification(network):
        return network, scale
    drawn = network_for(network, task, width=width, seed=seed)
    return drawn, default_scale(drawn, normalised=normalised) if scale is None else scale

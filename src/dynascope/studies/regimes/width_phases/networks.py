"""Ensembles of two-layer networks of different widths: initial weights and NTKs."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from dynascope.networks.two_layer import TwoLayer
from dynascope.networks.width_parametrisation import initial_network
from dynascope.probes.kernel.path import kernel_path
from dynascope.theory.regimes.phases import Parametrisation

__all__ = ["WideNetworks", "drawn_networks", "padded", "stratified"]


class WideNetworks(NamedTuple):
    """An ensemble of initial networks of one shape, and the learning rates of their layers.

    Attributes:
        networks: Two-layer networks with a linear or a leaky ReLU activation.
        rates: η_w under "first" and η_u under "second".
    """

    networks: list[TwoLayer]
    rates: dict[str, float]

    def layers(self) -> tuple[np.ndarray, np.ndarray]:
        """W of shape (seeds, d, width), and u of shape (seeds, width, c)."""
        first, second = (np.stack([getattr(each, name) for each in self.networks]) for name in ("first", "second"))
        return first, second

    def kernels(self, first: Any, second: Any, inputs: np.ndarray) -> np.ndarray:
        """NTKs η_u c σ(xW)·σ(x′W) + η_w x·x′ Σᵢ σ′ᵢ σ′ᵢ′ ‖uᵢ‖², summed over the c outputs.

        Args:
            first: W, shape (seeds, d, width).
            second: u, shape (seeds, width, c).
            inputs: Shape (n, d).

        Returns:
            Shape (seeds, n, n).
        """
        first, second = np.asarray(first), np.asarray(second)
        activation = self.networks[0].activation
        preactivations = inputs @ first
        slopes = np.where(preactivations > 0, activation.positive, -activation.negative)
        hidden, gates = slopes * preactivations, slopes * np.linalg.norm(second, axis=2)[:, None, :]
        by_second = second.shape[2] * hidden @ np.swapaxes(hidden, 1, 2)
        by_first = (inputs @ inputs.T) * (gates @ np.swapaxes(gates, 1, 2))
        return self.rates["second"] * by_second + self.rates["first"] * by_first

    def kernel_change(self, first: Any, second: Any, inputs: np.ndarray) -> np.ndarray:
        """Relative change ‖K − K₀‖/‖K₀‖ of the NTK of each network, given its layers after training."""
        kernels = [self.kernels(*layers, inputs) for layers in (self.layers(), (first, second))]
        return kernel_path(np.stack(kernels, axis=1)).change[:, 1]


def drawn_networks(
    entry: Parametrisation,
    scaling_parameter: float,
    shape: tuple[int, int],
    seeds: Sequence[int],
    *,
    activation: str,
    fixed_width: int,
    widest: int,
    direction: np.ndarray | None = None,
) -> WideNetworks:
    """Draw an ensemble of networks from a parametrisation at a value of κ.

    Args:
        entry: Exponents of the parametrisation.
        scaling_parameter: Scaling parameter κ.
        shape: Numbers of inputs and outputs.
        seeds: One seed for each network.
        activation: A name of `homogeneous_activation`.
        fixed_width: Width of parametrisations whose width does not scale with κ.
        widest: Width to which all networks are padded, so that they share one compiled program.
        direction: Direction along which initial weights are `stratified`: overlaps are quantiles of the normal
            distribution.
    """
    drawn = {"width": 1.0 if entry.width else fixed_width, "activation": activation}
    size, networks = entry.at(scaling_parameter), []
    for member, seed in enumerate(seeds):
        network, rates = initial_network(entry, scaling_parameter, *shape, **drawn, seed=seed)
        if direction is not None:
            overlap = 0.0 if entry.zero_output else NormalDist().inv_cdf((member + 0.5) / len(seeds))
            sizes = size.first_variance**0.5, size.multiplier * size.second_variance**0.5
            network = stratified(network, direction, *sizes, overlap)
        networks.append(padded(network, widest))
    return WideNetworks(networks, rates)


def stratified(
    network: TwoLayer, direction: np.ndarray, first_size: float, second_size: float, overlap: float
) -> TwoLayer:
    """Set the norms of the layers along a direction to their expected values, and their overlap to a given value.

    Σᵢ vᵢ² and Σᵢ uᵢ² become their expectations, and Σᵢ uᵢvᵢ becomes `overlap` times its standard deviation. Everything
    else stays random. Without stratification, hundreds of networks would be necessary to average out the fluctuations
    of the overlap.

    Args:
        network: A network with one output.
        direction: Unit vector n, which defines v = n·W.
        first_size: Standard deviation of the weights of the first layer.
        second_size: Standard deviation of the weights of the second layer.
        overlap: Overlap in standard deviations, smaller than √width in absolute value.
    """
    width = len(network.second)
    v, u = direction @ network.first, network.second[:, 0]
    along = v / np.linalg.norm(v)
    across = u - (u @ along) * along
    cosine = overlap / np.sqrt(width)
    mixed = cosine * along + np.sqrt(1 - cosine**2) * across / np.linalg.norm(across)
    first = network.first + np.outer(direction, np.sqrt(width) * first_size * along - v)
    return network.with_neurons(np.column_stack([first.T, np.sqrt(width) * second_size * mixed]))


def padded(network: TwoLayer, width: int) -> TwoLayer:
    """Pad the network to a width with neurons whose weights are zero and stay zero in training."""
    return network.with_neurons(np.pad(network.neurons, ((0, width - len(network.neurons)), (0, 0))))

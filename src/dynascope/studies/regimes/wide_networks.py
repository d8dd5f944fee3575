"""Ensembles of two-layer networks of different widths: their starts and their tangent kernels."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dynascope.networks import TwoLayer

__all__ = ["WideNetworks", "padded", "stratified"]


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
        """Tangent kernels η_u c σ(xW)·σ(x′W) + η_w x·x′ Σᵢ σ′ᵢ σ′ᵢ′ ‖uᵢ‖², summed over the c outputs.

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
        """‖K − K₀‖/‖K₀‖ of each network, with the layers that it has come to."""
        before = self.kernels(*self.layers(), inputs)
        moved, size = (
            np.linalg.norm(each, axis=(1, 2)) for each in (self.kernels(first, second, inputs) - before, before)
        )
        return moved / size


def stratified(
    network: TwoLayer, direction: np.ndarray, first_size: float, second_size: float, overlap: float
) -> TwoLayer:
    """The linear network with its layers along a direction at their expected norms and at a given overlap.

    Σᵢ vᵢ² and Σᵢ uᵢ² become their expectations, and Σᵢ uᵢvᵢ = overlap · its standard deviation; all else stays random.
    That spares hundreds of networks, which the scatter of the overlap would need to average out.

    Args:
        network: One output.
        direction: n of norm one, on which v = n·W.
        first_size: Standard deviation of the weights of the first layer.
        second_size: That of the second layer.
        overlap: In standard deviations, below √width in size.
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
    """The network with neurons without weights, which stay so, added up to a width."""
    return network.with_neurons(np.pad(network.neurons, ((0, width - len(network.neurons)), (0, 0))))

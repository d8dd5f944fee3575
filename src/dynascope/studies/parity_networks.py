"""ReLU networks that learn sparse parity, and what is read of each skill in them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dynascope.tasks import SparseParity

__all__ = ["SkillReading", "gaussian_network"]


@dataclasses.dataclass(frozen=True)
class SkillReading:
    """A quantity of every skill in a network; equal readings are equal, so that a compiled program is found again.

    Attributes:
        parity: The task.
        quantity: "strength", R/S, or "skill_loss", over ½ S².
        samples: Samples of each skill from which to estimate, where there are too many inputs for all.
    """

    parity: SparseParity
    quantity: str
    samples: int = 20_000

    def __call__(self, network: Any) -> Any:
        """The quantity of every skill, shape (skills,)."""
        import jax

        key = None if self.parity.has_expectation else jax.random.key(0)
        found, scale = self.parity.skill_strength(network, key=key, samples=self.samples), self.parity.target_scale
        return found.strength / scale if self.quantity == "strength" else 2 * found.skill_loss / scale**2


def gaussian_network(widths: tuple[int, int, int], deviation: float, seed: int) -> Any:
    """A two-layer ReLU network in float32, all weights and hidden biases Gaussian, the bias of the output zero.

    Args:
        widths: (d, hidden neurons, c).
        deviation: Standard deviation of the weights.
        seed: Seed of the draw.
    """
    import equinox as eqx
    import numpy as np

    from dynascope.networks import MLP

    draw = np.random.default_rng([seed, 3])
    inputs, hidden, outputs = widths
    first, bias, second = (deviation * draw.normal(size=size) for size in ((inputs, hidden), hidden, (hidden, outputs)))
    return eqx.tree_at(
        lambda network: (network.weights, network.biases),
        MLP(widths),
        (
            (first.astype(np.float32), second.astype(np.float32)),
            (bias.astype(np.float32), np.zeros(outputs, np.float32)),
        ),
    )

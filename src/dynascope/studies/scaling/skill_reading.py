"""What is read of every skill in a network while it is trained."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax

from dynascope.tasks.parity.sparse_parity import SparseParity

__all__ = ["SkillReading"]


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
        key = None if self.parity.has_expectation else jax.random.key(0)
        found, scale = self.parity.skill_strength(network, key=key, samples=self.samples), self.parity.target_scale
        return found.strength / scale if self.quantity == "strength" else 2 * found.skill_loss / scale**2

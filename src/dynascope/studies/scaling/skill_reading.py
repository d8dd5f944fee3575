"""Measurements of every skill in a network during training."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax

from dynascope.tasks.parity.sparse_parity import SparseParity

__all__ = ["SkillReading"]


@dataclasses.dataclass(frozen=True)
class SkillReading:
    """Measures a quantity of every skill in a network; equal instances share a compiled program.

    Attributes:
        parity: The task.
        quantity: "strength" for R/S, or "skill_loss" for the loss relative to ½ S².
        samples: Number of samples per skill for an estimate, if there are too many inputs for an exact value.
    """

    parity: SparseParity
    quantity: str
    samples: int = 20_000

    def __call__(self, network: Any) -> Any:
        """Measure the quantity of every skill, shape (skills,)."""
        key = None if self.parity.has_expectation else jax.random.key(0)
        found, scale = self.parity.skill_strength(network, key=key, samples=self.samples), self.parity.target_scale
        return found.strength / scale if self.quantity == "strength" else 2 * found.skill_loss / scale**2

"""ReLU networks that learn multitask sparse parity, and what is read of each skill in them."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any, ClassVar

from dynascope.studies.study import Study

if TYPE_CHECKING:
    from dynascope.tasks import SparseParity

__all__ = ["EmergenceStudy", "SkillReading", "gaussian_network"]


@dataclasses.dataclass(frozen=True)
class EmergenceStudy(Study):
    """What the studies of emergence share: the task.

    Attributes:
        skills: n_s.
        bits: n_b.
        relevant_bits: m, the bits on which each skill depends.
        exponent: α; frequencies of skills fall as k^−(α+1).
        target_scale: S.
        paper: Whether to train the networks of the source instead, on a GPU.
    """

    skills: int = 3
    bits: int = 9
    relevant_bits: int = 3
    exponent: float = 0.6
    target_scale: float = 5.0
    paper: bool = False

    source: ClassVar[str] = (
        "Y. Nam, N. Fonseca, S. H. Lee, C. Mingard, A. A. Louis, An exactly solvable model for emergence and scaling "
        "laws in the multitask sparse parity problem"
    )

    def _check(self, parity: SparseParity) -> None:
        """Before anything is computed.

        Raises:
            InputError: A field out of range, other than those of the task.
        """
        raise NotImplementedError

    @property
    def _published(self) -> EmergenceStudy:
        """The setting of the source, with the seed of this one."""
        raise NotImplementedError

    def attributes(self) -> dict[str, Any]:
        """What the result says of the study it came from: its fields are those of the source where it trains that."""
        import json

        found = super().attributes()
        if self.paper:
            found["parameters"] = json.dumps(dataclasses.asdict(self._published) | {"paper": True})
        return found

    @functools.cached_property
    def _parity(self) -> SparseParity:
        from dynascope.tasks import SparseParity

        parity = SparseParity(
            skills=self.skills,
            bits=self.bits,
            relevant_bits=self.relevant_bits,
            exponent=self.exponent,
            target_scale=self.target_scale,
        )
        self._check(parity)
        return parity

    @property
    def _labels(self) -> list[int]:
        return list(range(1, self.skills + 1))

    def _about(self, *sentences: str) -> dict[str, Any]:
        return {
            "task": self._parity.name,
            "description": [*self._parity.description, *sentences],
            "network": "two-layer relu",
            "scale": 1.0,
        }


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

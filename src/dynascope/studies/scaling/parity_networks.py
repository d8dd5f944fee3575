"""ReLU networks that learn multitask sparse parity, and what is read of each skill in them."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax
import numpy as np
import xarray as xr

from dynascope.networks import MLP
from dynascope.studies.fields import count, flag, positive
from dynascope.studies.stated import StatedStudy
from dynascope.tasks import SparseParity

__all__ = ["SKILLS", "STRENGTH", "EmergenceStudy", "SkillReading", "gaussian_network"]

STRENGTH = "strength of the skill (1: learned)"
SKILLS = "skill, from the most frequent on"


class EmergenceStudy(StatedStudy):
    """What the studies of emergence share: the task, and a forecast that is shown beside networks.

    It states `trained` and `forecast`, the records of both sides; networks are trained in single precision. `published`
    are the fields of the source, and `shown` the variables of the forecast that are not judged.
    """

    skills: int = count(3, "Number of skills n_s.")
    bits: int = count(9, "Number of bits n_b.")
    relevant_bits: int = count(3, "m, the bits on which each skill depends.", most="bits")
    exponent: float = positive(0.6, "α; frequencies of skills fall as k^−(α+1).")
    target_scale: float = positive(5.0, "S.")
    paper: bool = flag(False, "Whether to train the networks of the source instead, on a GPU.")

    published: ClassVar[Mapping[str, Any]]
    shown: ClassVar[tuple[str, ...]]

    def trained(self) -> xr.Dataset:
        """Train, and measure."""
        raise NotImplementedError

    def forecast(self) -> xr.Dataset:
        """Calibrate on one skill that is learned alone, and forecast the others."""
        raise NotImplementedError

    def observe(self) -> xr.Dataset:
        """The record of `trained`."""
        return self._setting.trained()

    def predict(self) -> xr.Dataset:
        """The record of `forecast`."""
        return self._setting.forecast()

    def compare(self, observed: xr.Dataset, predicted: xr.Dataset) -> xr.DataTree:
        """Judge what is claimed; the rest of the forecast is shown with the networks."""
        tree = super().compare(observed, predicted.drop_vars(self.shown))
        tree["predicted"].dataset = predicted
        return tree

    def attributes(self) -> dict[str, Any]:
        """What the result says of the study it came from: its fields are those of the source where it trains that."""
        fields = dataclasses.asdict(self._setting) | {"paper": self.paper}
        return super().attributes() | {"parameters": json.dumps(fields)}

    def labels(self) -> Mapping[str, Any]:
        """Skills from one."""
        return {"skill": range(1, self.skills + 1)}

    def about(self) -> Mapping[str, Any]:
        """The task and the networks."""
        return {
            "task": self._parity.name,
            "description": [*self._parity.description, *self._description],
            "network": "two-layer ReLU",
            "scale": 1.0,
        }

    def check(self) -> None:
        """There are bits enough for the skills."""
        needed = self.skills * self.relevant_bits
        self.require(
            needed <= self.bits,
            "bits",
            "choose more bits, or fewer skills",
            problem=f"{self.skills} skills with {self.relevant_bits} bits each need {needed}, and bits is {self.bits}",
        )

    @property
    def _description(self) -> list[str]:
        """Of the networks, after the task."""
        raise NotImplementedError

    @functools.cached_property
    def _setting(self) -> Any:
        """This study, or in the setting of the source the one that has its fields."""
        return dataclasses.replace(self, **self.published, paper=False) if self.paper else self

    @functools.cached_property
    def _parity(self) -> SparseParity:
        return SparseParity(
            skills=self.skills,
            bits=self.bits,
            relevant_bits=self.relevant_bits,
            exponent=self.exponent,
            target_scale=self.target_scale,
        )


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


def gaussian_network(widths: tuple[int, int, int], deviation: float, seed: int) -> MLP:
    """A two-layer ReLU network in float32, all weights and hidden biases Gaussian, the bias of the output zero.

    Args:
        widths: (d, hidden neurons, c).
        deviation: Standard deviation of the weights.
        seed: Seed of the draw.
    """
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

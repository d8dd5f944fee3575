"""The options that select the network and its initial weights."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, Literal

# Rooms load their modules lazily, so that help appears immediately.
from dynascope import networks
from dynascope.cli.options import with_bounds_in_help
from dynascope.errors import InputError
from dynascope.validation import require
from dynascope.validation.bounded_scalars import PositiveFloat, PositiveInt, Seed

__all__ = ["UserWeights"]


@with_bounds_in_help
@dataclasses.dataclass(frozen=True)
class UserWeights:
    """The network and its initial weights.

    Args:
        network: Kind of network: two-layer (relu, quadratic or linear), diagonal linear, or linear attention trained on
            in-context regression with inputs like those of the data.
        scale: Factor that multiplies the initial weights: below 1, or so large that training is lazy and
            kernel-regression applies. At 1, the weights of a two-layer network have standard deviation 1/sqrt(width).
            Default: 1e-8, or 1e-3 for networks whose times grow as a power of 1/scale.
        weights: A .npz file with your initial weights: W1 of shape (inputs, width) and W2 of shape (width, outputs), or
            both transposed as in PyTorch, and optionally the biases b1 (width,) and b2 (outputs,). The file
            replaces --scale, --width and --seed.
        seed: Seed of the initial weights.
        seeds: Number of draws of the initial weights; if above 1, the output includes the spread of the predictions.
        width: Number of hidden neurons, or of attention heads.
    """

    network: Literal["relu", "quadratic", "linear", "diagonal", "attention"] = "linear"
    scale: PositiveFloat | None = None
    weights: Path | None = None
    seed: Seed = 0
    seeds: PositiveInt = 1
    width: PositiveInt = 50

    def network_on(self, task: Any) -> tuple[Any, float | None]:
        """Return the network at unit scale, and its scale if it was given.

        Raises:
            InputError: The file does not contain weights of these shapes, or other options also determine the weights.
        """
        if self.weights is None:
            return networks.network_for(self.network, task, width=self.width, seed=self.seed), self.scale
        replaced = {"scale": None, "seed": 0, "seeds": 1, "width": 50}
        for name, usual in replaced.items():
            require(
                getattr(self, name) == usual,
                f"{name} is {getattr(self, name)}, but {self.weights.name} already determines the weights",
                argument=name,
                value=getattr(self, name),
                remedy=f"omit --{name} or --weights",
            )
        if self.network in ("diagonal", "attention"):
            raise InputError(
                f"network is {self.network!r}, but --weights contains W1 and W2 of a two-layer network",
                argument="network",
                value=self.network,
                remedy="choose 'relu', 'quadratic' or 'linear', or omit --weights",
            )
        try:
            return networks.at_unit_scale(networks.weights_from_file(self.weights, self.network, task))
        except InputError as error:
            if error.argument == "path":
                error.argument = "weights"  # the name of the option
            raise

"""The options that say from which weights a run started."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, Literal

# The face of a room loads what is behind it when it is used, so that help is there at once.
from dynascope import networks
from dynascope.cli.options import with_bounds_in_help
from dynascope.errors import InputError
from dynascope.validation import require
from dynascope.validation.bounded_scalars import PositiveFloat, PositiveInt, Seed

__all__ = ["UserWeights"]


@with_bounds_in_help
@dataclasses.dataclass(frozen=True)
class UserWeights:
    """What the weights are at the start.

    Args:
        network: Kind of network: two-layer relu, quadratic or linear, diagonal linear, or linear attention, which
            learns in-context regression on inputs like those of the data.
        scale: Initialisation scale, below one; if not said 1e-8, or 1e-3 where times grow as a power of it.
        weights: File .npz with initial weights of yours, W1 of shape (inputs, width) and W2 of shape (width, outputs),
            or both transposed, as PyTorch has them; in place of --scale, --width and --seed.
        seed: Seed of the initial weights.
        seeds: Predict from so many draws of the initial weights, and tell how far they spread.
        width: Number of hidden neurons, or of attention heads.
    """

    network: Literal["relu", "quadratic", "linear", "diagonal", "attention"] = "linear"
    scale: PositiveFloat | None = None
    weights: Path | None = None
    seed: Seed = 0
    seeds: PositiveInt = 1
    width: PositiveInt = 50

    def network_on(self, task: Any) -> tuple[Any, float | None]:
        """The network at unit scale, and the scale that it starts from, as far as that was said.

        Raises:
            InputError: The file does not hold such weights, or something else says what they are too.
        """
        if self.weights is None:
            return networks.network_for(self.network, task, width=self.width, seed=self.seed), self.scale
        own = {"scale": None, "seed": 0, "seeds": 1, "width": 50}
        for name, usual in own.items():
            require(
                getattr(self, name) == usual,
                f"{name} is {getattr(self, name)}, and the weights are those of {self.weights.name}",
                argument=name,
                value=getattr(self, name),
                remedy="leave one of them out",
            )
        if self.network in ("diagonal", "attention"):
            raise InputError(
                f"network is {self.network!r}",
                argument="network",
                value=self.network,
                remedy="choose 'relu', 'quadratic' or 'linear', whose weights are W1 and W2",
            )
        try:
            return networks.at_unit_scale(networks.weights_from_file(self.weights, self.network, task))
        except InputError as error:
            if error.argument == "path":
                error.argument = "weights"  # as the option is called
            raise

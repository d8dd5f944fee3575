"""The options for a user's training curve, which is compared with the prediction."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from annotated_types import Interval

# Rooms load their modules lazily, so that help appears immediately.
from dynascope import comparison
from dynascope.cli.options import with_bounds_in_help
from dynascope.comparison.user_curves.units import LossName
from dynascope.validation import require
from dynascope.validation.bounded_scalars import PositiveFloat

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["UserCurve", "with_unknown_weights"]


@with_bounds_in_help
@dataclasses.dataclass(frozen=True)
class UserCurve:
    """Your training run, which is compared with the prediction.

    Args:
        curve: File with the loss curve of your run, to compare with the prediction. Columns: step and loss, or loss
            alone, and learning_rate for a schedule. Exports from TensorBoard, Weights & Biases and Lightning also work.
        learning_rate: Learning rate of gradient descent (with --curve, that of your run); adds training steps to the
            output.
        momentum: Momentum of gradient descent, as in torch.optim.SGD.
        loss: Definition of the loss for --learning-rate and --curve; mse is torch.nn.MSELoss.
    """

    curve: Path | None = None
    learning_rate: PositiveFloat | None = None
    momentum: Annotated[float, Interval(ge=0, lt=1)] = 0.0
    loss: LossName | None = None

    def read(self, *, known: bool, **others: bool) -> xr.Dataset | None:
        """Read the user's curve before any computation, and check its options.

        Args:
            known: Whether the scale of the initial weights or the weights themselves were given.
            **others: Options about training, by name; they are incompatible with a curve.
        """
        if self.curve is None:
            require(
                self.momentum == 0 or not others.get("flow"),
                f"momentum is {self.momentum:g}, but the check trains without momentum",
                argument="momentum",
                value=self.momentum,
                remedy="omit --flow or --momentum",
            )
            require(
                self.momentum == 0 or self.learning_rate is not None,
                f"momentum is {self.momentum:g}, but no learning rate is given",
                argument="momentum",
                value=self.momentum,
                remedy="add --learning-rate",
            )
            require(
                self.loss is None or self.learning_rate is not None,
                f"loss is {self.loss}, but neither a curve nor a learning rate is given",
                argument="loss",
                value=self.loss,
                remedy="add --curve with the file of your loss curve, or add --learning-rate",
            )
            return None
        for name, given in others.items():
            require(
                not given,
                f"--{name} cannot be combined with --curve, which compares the prediction with your own run",
                argument=name,
                value=True,
                remedy=f"omit --{name} or --curve",
            )
        require(
            known,
            "the scale of the initial weights of your run is unknown",
            argument="scale",
            remedy="add --scale, or pass the initial weights with --weights",
        )
        return comparison.user_curve(
            self.curve, learning_rate=self.learning_rate, momentum=self.momentum, loss=self.loss
        )


def with_unknown_weights(predicted: xr.Dataset, start: str) -> xr.Dataset:
    """Add a warning that the initial weights of the user's run are unknown.

    Args:
        predicted: Record of a staircase.
        start: Description of how the weights were drawn.
    """
    warnings = [
        *predicted.attrs.get("warnings", []),
        f"The initial weights of your run are unknown, so the prediction uses random weights of the same scale "
        f"({start}). Give the weights of your run as --weights.",
    ]
    return predicted.assign_attrs(warnings=warnings, weights="drawn")

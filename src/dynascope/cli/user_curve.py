"""The options for a user's training curve, by which a prediction is judged."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from annotated_types import Interval

# The face of a room loads what is behind it when it is used, so that help is there at once.
from dynascope import comparison
from dynascope.cli.options import with_bounds_in_help
from dynascope.comparison.user_curves.units import LossName
from dynascope.validation import require
from dynascope.validation.bounded_scalars import PositiveFloat

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["UserCurve", "of_another_start"]


@with_bounds_in_help
@dataclasses.dataclass(frozen=True)
class UserCurve:
    """A run that was trained elsewhere.

    Args:
        curve: File with the loss of a run of yours (columns step and loss, or loss alone; a schedule in a column
            learning_rate; an export of TensorBoard, Weights & Biases or Lightning), to overlay and judge by.
        learning_rate: Of gradient descent: tells times in its steps too. With the curve, that of its steps.
        momentum: Of gradient descent with that learning rate, as of torch.optim.SGD.
        loss: With a learning rate, how the loss is defined, as in the curve; mse is torch.nn.MSELoss.
    """

    curve: Path | None = None
    learning_rate: PositiveFloat | None = None
    momentum: Annotated[float, Interval(ge=0, lt=1)] = 0.0
    loss: LossName | None = None

    def read(self, *, known: bool, **others: bool) -> xr.Dataset | None:
        """The record of the user's curve, read before anything is computed.

        Args:
            known: Whether it was said how small the weights were at the start.
            **others: Options about training here, which exclude a curve, by name.
        """
        if self.curve is None:
            require(
                self.momentum == 0 or not others.get("flow"),
                f"momentum is {self.momentum:g}, and the check descends by plain steps",
                argument="momentum",
                value=self.momentum,
                remedy="leave --flow or --momentum out",
            )
            require(
                self.momentum == 0 or self.learning_rate is not None,
                f"momentum is {self.momentum:g}, and there is no learning rate that it is of",
                argument="momentum",
                value=self.momentum,
                remedy="give a --learning-rate",
            )
            require(
                self.loss is None or self.learning_rate is not None,
                f"loss is {self.loss}, and there is no curve that it is of, nor a learning rate",
                argument="loss",
                value=self.loss,
                remedy="name the file with the losses of your run by --curve, or give a --learning-rate",
            )
            return None
        for name, said in others.items():
            require(
                not said,
                f"--{name} is about training here, and --curve about a run of yours",
                argument=name,
                value=True,
                remedy="leave one of them out",
            )
        require(
            known,
            "nothing says from how small weights the run of the curve started",
            argument="scale",
            remedy="give the factor on its initial weights by --scale, or themselves by --weights",
        )
        return comparison.user_curve(
            self.curve, learning_rate=self.learning_rate, momentum=self.momentum, loss=self.loss
        )


def of_another_start(predicted: xr.Dataset, start: str) -> xr.Dataset:
    """The prediction with a warning of what it cannot know of the user's run.

    Args:
        predicted: Record of a staircase.
        start: What its weights were drawn by.
    """
    told = [
        *predicted.attrs.get("warnings", []),
        f"The initial weights of your run are not known here; others of the same size ({start}) stand for them. "
        "--weights takes those of your run.",
    ]
    return predicted.assign_attrs(warnings=told, weights="drawn")

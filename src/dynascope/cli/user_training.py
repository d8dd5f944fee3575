"""The options about training the predicted network here, to check it, and that training."""

from __future__ import annotations

import dataclasses
import math
import time
from typing import TYPE_CHECKING, Any, Literal

import dynascope

# The face of a room loads what is behind it when it is used, so that help is there at once.
from dynascope import comparison, results, training
from dynascope.cli.options import with_bounds_in_help
from dynascope.cli.progress import step
from dynascope.errors import DivergenceError
from dynascope.results.clock import other_scale
from dynascope.validation import require
from dynascope.validation.bounded_scalars import PositiveFloat, PositiveInt

if TYPE_CHECKING:
    import xarray as xr

    from dynascope.comparison.user_curves.units import LossName

__all__ = ["UserTraining"]

_POINTS = 1500  # of a loss that is descended, spread evenly, and as many over the logarithm of the steps
_LEAST = 1e-3  # seconds, for a second run of which nothing is left
_MOST_STEPS = 2**31 - 2


@with_bounds_in_help
@dataclasses.dataclass(frozen=True)
class UserTraining:
    """How the network is trained.

    Args:
        check: Also train the network, overlay both and judge.
        flow: What the check trains by: gradient_flow, or descent, plain steps of the learning rate.
        minutes: Longest time that the check takes; what was due until then is judged.
        slope: With the check, also train from 1e-4 of the scale and compare slopes dt/dlog(1/scale).
        batch_size: With a learning rate, samples in a step, to tell epochs and to descend by; all if not said.
    """

    check: bool = False
    flow: Literal["gradient_flow", "descent"] = "gradient_flow"
    minutes: PositiveFloat = 5.0
    slope: bool = False
    batch_size: PositiveInt | None = None

    def require_training(self, *, learning_rate: float | None, **others: bool) -> None:
        """Refuse options that contradict each other, or lack what they are about.

        Args:
            learning_rate: Of the steps.
            **others: Options that only gradient flow has, by name.

        Raises:
            InputError: They do.
        """
        descends = self.flow == "descent"
        for name, wrong in {"slope": self.slope, **others}.items():
            require(
                not (wrong and descends),
                f"--{name} is about gradient flow, and the flow is descent",
                argument=name,
                value=True,
                remedy="leave one of them out",
            )
        require(
            self.check or not descends,
            "the flow is that of the check, and there is none",
            argument="flow",
            value=self.flow,
            remedy="add --check, or leave --flow out",
        )
        for name, said in {"flow": descends and self.flow, "batch_size": self.batch_size}.items():
            require(
                not said or learning_rate is not None,
                f"{name} is {said}, and there is no learning rate",
                argument=name,
                value=said,
                remedy="give the rate of a step by --learning-rate",
            )

    @property
    def trains(self) -> bool:
        """Whether there is a check."""
        return self.check or self.slope

    def trained(
        self,
        task: Any,
        network: Any,
        predicted: xr.Dataset,
        *,
        learning_rate: float | None,
        loss: LossName | None,
        seed: int,
    ) -> tuple[xr.Dataset, xr.Dataset | None]:
        """The run, and that from another scale, if asked for; both within the minutes.

        Raises:
            DivergenceError: The run left the finite numbers.
        """
        end, scale = time.monotonic() + 60 * self.minutes, float(predicted.attrs["scale"])
        if self.flow == "descent":
            assert learning_rate is not None
            return self._descended(task, network, predicted, learning_rate, loss or "squared", seed), None
        normalised = bool(predicted.attrs.get("normalised"))

        def followed(scale: float) -> xr.Dataset:
            duration = _training_time(predicted, scale)
            with step(f"Training it from scale {scale:g}"):
                left = max(end - time.monotonic(), _LEAST)
                return dynascope.observe(
                    task,
                    network,
                    method=dynascope.GradientFlow(duration=duration, normalised=normalised),
                    scale=scale,
                    seconds=left,
                ).record

        observed = followed(scale)
        if not self.slope or "stopped" in observed.attrs:
            return observed, None
        other = followed(other_scale(scale, degree=int(predicted.attrs.get("degree", 2)), normalised=normalised))
        if "stopped" in other.attrs:
            told = f"There are no slopes, as the training from the other scale was stopped {other.attrs['stopped']}."
            return observed.assign_attrs(warnings=[told]), None
        return observed, other

    def _descended(
        self, task: Any, network: Any, predicted: xr.Dataset, learning_rate: float, loss: LossName, seed: int
    ) -> xr.Dataset:
        """The run by gradient descent, as a curve in the user's units."""
        scale = float(predicted.attrs["scale"])
        rate = comparison.step_duration(predicted, learning_rate=learning_rate, loss=loss)
        steps = math.ceil(_training_time(predicted, scale) / rate)
        require(
            steps <= _MOST_STEPS,
            f"with a learning rate of {learning_rate:g} the prediction takes {steps:.3g} steps",
            argument="learning_rate",
            value=learning_rate,
            remedy="choose a larger one",
        )
        shares = [place / _POINTS for place in range(_POINTS + 1)]
        recorded = sorted({round(share * steps) for share in shares} | {round(steps**share) for share in shares})
        try:
            with step(f"Training it by {steps} steps of learning rate {learning_rate:g}"):
                run = dynascope.observe(
                    task,
                    network,
                    method=dynascope.Descent(learning_rate=rate, steps=steps, batches=self.batch_size, save=recorded),
                    scale=scale,
                    seconds=60 * self.minutes,
                    seed=seed,
                ).record
        except DivergenceError as error:
            with step("Looking for a learning rate that is stable"):
                stable = training.stable_rate(task, network, scale=scale, learning_rate=rate, steps=steps)
            remedy = "choose a smaller one"
            if stable is not None:
                largest = f"{learning_rate * stable / rate:.2g}"
                remedy = f"choose one below {largest}, 2 over the largest curvature where smaller steps come to rest"
            raise DivergenceError(
                f"with a learning rate of {learning_rate:g} {error.args[0].partition(':')[0]}",
                time=error.time,
                remedy=remedy,
            ) from None
        told = {name: run.attrs[name] for name in ("stopped", "warnings") if name in run.attrs}
        curve = comparison.user_curve(
            run["loss"].to_numpy() * rate / learning_rate,
            steps=run["step"].to_numpy(),
            learning_rate=learning_rate,
            loss=loss,
        )
        return curve.assign_attrs(flow="gradient descent", batch_size=self.batch_size or 0, scale=scale, **told)


def _training_time(predicted: xr.Dataset, scale: float) -> float:
    """The time that shows all that is predicted."""
    return results.training_time(predicted, scale) if results.is_staircase(predicted) else float(predicted["time"][-1])

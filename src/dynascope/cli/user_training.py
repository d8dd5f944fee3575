"""The options of the training run that checks a prediction, and the run itself."""

from __future__ import annotations

import dataclasses
import math
import time
from typing import TYPE_CHECKING, Any, Literal

import dynascope

# Rooms load their modules lazily, so that help appears immediately.
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

_POINTS = 1500  # recorded losses, evenly spaced in steps, and as many again in log steps
_LEAST = 1e-3  # seconds; time limit of the second run if the first has used up all minutes
_MOST_STEPS = 2**31 - 2


@with_bounds_in_help
@dataclasses.dataclass(frozen=True)
class UserTraining:
    """The training run that checks the prediction.

    Args:
        check: Train the network and compare with the prediction.
        flow: Training method of the check: gradient_flow, or descent (gradient descent with --learning-rate).
        minutes: Time limit of the check; jumps predicted after the end of the check are not scored.
        slope: Also train at 1e-4 times the scale, and compare the slopes dt/dlog(1/scale) with the prediction.
        batch_size: Batch size for --flow descent; with --learning-rate, adds epochs to the times. Default: all samples.
    """

    check: bool = False
    flow: Literal["gradient_flow", "descent"] = "gradient_flow"
    minutes: PositiveFloat = 5.0
    slope: bool = False
    batch_size: PositiveInt | None = None

    def require_training(self, *, learning_rate: float | None, **others: bool) -> None:
        """Reject options that contradict each other or depend on an option that is missing.

        Args:
            learning_rate: The learning rate, if given.
            **others: Options that apply only to gradient flow, by name.

        Raises:
            InputError: Options are incompatible, or a required option is missing.
        """
        descends = self.flow == "descent"
        for name, wrong in {"slope": self.slope, **others}.items():
            require(
                not (wrong and descends),
                f"--{name} applies only to gradient flow, but --flow is descent",
                argument=name,
                value=True,
                remedy=f"omit --{name} or --flow",
            )
        require(
            self.check or not descends,
            "--flow selects how the check trains, but --check is not given",
            argument="flow",
            value=self.flow,
            remedy="add --check, or omit --flow",
        )
        for name, given in {"flow": descends and self.flow, "batch_size": self.batch_size}.items():
            require(
                not given or learning_rate is not None,
                f"{name} is {given}, but no learning rate is given",
                argument=name,
                value=given,
                remedy="add --learning-rate",
            )

    @property
    def trains(self) -> bool:
        """Whether the network is trained."""
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
        """Train the network, and for `slope` train it again at another scale; both runs share the time limit.

        Raises:
            DivergenceError: The weights became non-finite.
        """
        end, scale = time.monotonic() + 60 * self.minutes, float(predicted.attrs["scale"])
        if self.flow == "descent":
            assert learning_rate is not None
            return self._descended(task, network, predicted, learning_rate, loss or "squared", seed), None
        normalised = bool(predicted.attrs.get("normalised"))

        def trained_from(scale: float) -> xr.Dataset:
            duration = _training_time(predicted, scale)
            with step(f"Training at scale {scale:g}"):
                left = max(end - time.monotonic(), _LEAST)
                return dynascope.observe(
                    task,
                    network,
                    method=dynascope.GradientFlow(duration=duration, normalised=normalised),
                    scale=scale,
                    seconds=left,
                ).record

        observed = trained_from(scale)
        if not self.slope or "stopped" in observed.attrs:
            return observed, None
        other = trained_from(other_scale(scale, degree=int(predicted.attrs.get("degree", 2)), normalised=normalised))
        if "stopped" in other.attrs:
            warning = (
                f"The slopes are missing, because training at the other scale was stopped {other.attrs['stopped']}."
            )
            return observed.assign_attrs(warnings=[warning]), None
        return observed, other

    def _descended(
        self, task: Any, network: Any, predicted: xr.Dataset, learning_rate: float, loss: LossName, seed: int
    ) -> xr.Dataset:
        """Train by gradient descent; returns a curve in the user's units."""
        scale = float(predicted.attrs["scale"])
        rate = comparison.step_duration(predicted, learning_rate=learning_rate, loss=loss)
        steps = math.ceil(_training_time(predicted, scale) / rate)
        require(
            steps <= _MOST_STEPS,
            f"learning_rate is {learning_rate:g}, which requires {steps:.3g} steps, above the limit of {_MOST_STEPS}",
            argument="learning_rate",
            value=learning_rate,
            remedy="choose a larger learning rate",
        )
        shares = [place / _POINTS for place in range(_POINTS + 1)]
        recorded = sorted({round(share * steps) for share in shares} | {round(steps**share) for share in shares})
        try:
            with step(f"Training for {steps} steps with learning rate {learning_rate:g}"):
                run = dynascope.observe(
                    task,
                    network,
                    method=dynascope.Descent(learning_rate=rate, steps=steps, batches=self.batch_size, save=recorded),
                    scale=scale,
                    seconds=60 * self.minutes,
                    seed=seed,
                ).record
        except DivergenceError as error:
            with step("Searching for a stable learning rate"):
                stable = training.stable_rate(task, network, scale=scale, learning_rate=rate, steps=steps)
            remedy = "choose a smaller learning rate"
            if stable is not None:
                largest = f"{learning_rate * stable / rate:.2g}"
                remedy = f"choose a learning rate below {largest}, which is 2 / (largest curvature at the minimum)"
            raise DivergenceError(
                f"with a learning rate of {learning_rate:g}, {error.args[0].partition(':')[0]}",
                time=error.time,
                remedy=remedy,
            ) from None
        notes = {name: run.attrs[name] for name in ("stopped", "warnings") if name in run.attrs}
        curve = comparison.user_curve(
            run["loss"].to_numpy() * rate / learning_rate,
            steps=run["step"].to_numpy(),
            learning_rate=learning_rate,
            loss=loss,
        )
        return curve.assign_attrs(flow="gradient descent", batch_size=self.batch_size or 0, scale=scale, **notes)


def _training_time(predicted: xr.Dataset, scale: float) -> float:
    """Return the training time that covers the whole prediction."""
    return results.training_time(predicted, scale) if results.is_staircase(predicted) else float(predicted["time"][-1])

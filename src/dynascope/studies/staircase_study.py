"""Base class of studies of staircases, the plateaus and jumps of the loss after a small initialisation."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import xarray as xr

from dynascope.comparison import compare
from dynascope.networks.kinds import NetworkKind
from dynascope.prediction import predict
from dynascope.prediction.observation import observe
from dynascope.protocols import Learnable, Network
from dynascope.results import Chart, Comparison, Staircase, staircase_names, staircase_record
from dynascope.results.clock import other_scale
from dynascope.results.numbers import counted, rounded
from dynascope.studies.study import Study

__all__ = ["Setup", "StaircaseStudy", "jump_times"]


class Setup(NamedTuple):
    """The task and the network of a study.

    Attributes:
        task: The task to learn.
        network: A network at unit scale, or the name of a kind of network.
        options: Further arguments of `observe`.
    """

    task: Learnable
    network: Network | NetworkKind
    options: Mapping[str, Any] = MappingProxyType({})


class StaircaseStudy(Study):
    """A study that compares the plateaus, jump times and slopes of a staircase.

    Levels and jump times are compared at one initial scale. The slopes, that is, the growth of the jump times as the
    scale decreases, are measured between two scales. A subclass implements `setup` and has a field `scale`, the scale
    of the initial weights. By default, predictions and observations are computed as for user data. A study with its own
    theory or flow overrides `predicted` or `trained_from`.

    Example:
        >>> import numpy as np
        >>> from dynascope.studies import Reference, parameter
        >>> from dynascope.tasks import Task
        >>> class TwoModes(StaircaseStudy):
        ...     scale: float = parameter(1e-8, "Factor on the initial weights.")
        ...     reference = Reference("folklore", "", "The stronger mode is learned first.")
        ...     minutes = 0.1
        ...
        ...     def setup(self):
        ...         return Setup(Task(np.eye(2) * 2**0.5, np.diag([4.0, 1.0]) * 2**0.5), "linear")
        >>> TwoModes().run().verdict.outcome
        'agree'
    """

    if TYPE_CHECKING:
        scale: float

    def setup(self) -> Setup:
        """The task and the network."""
        raise NotImplementedError

    def trained_from(self, scale: float) -> xr.Dataset:
        """Train from initial weights of the given scale."""
        return observe(self._setup.task, self._setup.network, scale=scale, **self._setup.options).record

    def second_scale(self) -> float:
        """The scale of the second training run, from which the slopes are computed."""
        return other_scale(self.scale)

    def compares_slopes(self) -> bool:
        """Whether the theory predicts the same jumps at both scales; the slopes are defined only in this case."""
        return True

    def observed(self) -> xr.Dataset:
        """Train from initial weights of the scale of the study."""
        return self.trained_from(self.scale)

    def predicted(self) -> xr.Dataset:
        """Predict the staircase."""
        return predict(self._setup.task, self._setup.network, scale=self.scale, curve=False).record

    def predicted_record(
        self,
        staircase: Staircase,
        network: str,
        *,
        jump_time: tuple[float, str] | None = None,
        slope: tuple[float, str] | None = None,
    ) -> xr.Dataset:
        """The record of a staircase from a study-specific theory, with tolerances and their reasons."""
        limits = {"jump_time_tolerance": jump_time, "slope_tolerance": slope}
        return staircase_record(staircase, self._task, scale=self.scale, network=network, **limits)

    def compared(self, observed: xr.Dataset, predicted: xr.Dataset) -> Comparison:
        """Compare levels and times at one scale, and slopes between two scales."""
        return compare(
            observed,
            predicted,
            at_other_scale=self._at_second_scale if self.compares_slopes() else None,
            checks=self.checks,
            claims=self.deciding_claims,
        )

    def figures(self, result: Comparison, /) -> list[Chart]:
        """The figures: the loss with the predicted staircase."""
        loss = result.observed["loss"]
        return [
            Chart(
                "loss",
                staircase=True,
                title="Loss and predicted staircase",
                caption="Loss over time. The dashed line shows the predicted plateaus, and numbers mark the predicted "
                f"jumps. In training, the loss starts at {rounded(loss[0])} and ends at {rounded(loss[-1])}.",
            )
        ]

    @functools.cached_property
    def _setup(self) -> Setup:
        return self.setup()

    @functools.cached_property
    def _at_second_scale(self) -> xr.Dataset:
        """The second training run, cached because several comparisons may use it."""
        return self.trained_from(self.second_scale())


def jump_times(result: Comparison) -> str:
    """State the predicted and observed times of the first and last jumps in two sentences."""
    predicted = result.predicted[staircase_names.JUMP_TIME].values
    observed = result.residual[staircase_names.OBSERVED_JUMP_TIME].values
    if len(predicted) == 0:
        return "The prediction has no jumps."
    if len(predicted) == 1:
        seen = _seen(observed[0])
        return f"The prediction has one jump, at t = {rounded(predicted[0])}. In training, the jump was {seen}."
    first, last = observed[0], observed[-1]
    seen = (
        f"the first and last jumps occurred at t = {rounded(first)} and t = {rounded(last)}"
        if math.isfinite(first) and math.isfinite(last)
        else f"the first jump was {_seen(first)} and the last jump was {_seen(last)}"
    )
    return (
        f"The prediction has {counted(len(predicted))} jumps, the first at t = {rounded(predicted[0])} and the last at "
        f"t = {rounded(predicted[-1])}. In training, {seen}."
    )


def _seen(time: float) -> str:
    return f"observed at t = {rounded(time)}" if math.isfinite(time) else "not observed"

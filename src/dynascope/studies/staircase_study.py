"""A study that compares staircases: plateaus and jumps of the loss of a network that starts small."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import xarray as xr

from dynascope.comparison import compare
from dynascope.networks.kinds import NetworkKind
from dynascope.observation import observe
from dynascope.prediction import predict
from dynascope.protocols import Learnable, Network
from dynascope.results import Chart, Comparison, Staircase, staircase_record
from dynascope.results.clock import other_scale
from dynascope.studies.study import Study

__all__ = ["Setup", "StaircaseStudy"]


class Setup(NamedTuple):
    """What is trained, and what is predicted for.

    Attributes:
        task: What is learned.
        network: A module at unit scale, or the name of a kind.
        options: Of `observe`, besides.
    """

    task: Learnable
    network: Network | NetworkKind
    options: Mapping[str, Any] = MappingProxyType({})


class StaircaseStudy(Study):
    """A study whose claim is a staircase: levels and times at one scale, and slopes of the times between two.

    It states its `setup`; a field `scale` is that of the initial weights. Prediction and observation are those that a
    user gets for data of their own, unless it has a theory or a flow of its own and says so in `predict` or `trained`.
    """

    figures = (
        Chart(
            "loss",
            staircase=True,
            title="The loss, from plateau to plateau",
            caption="The loss rests on plateaus and falls from one to the next, from {observed.loss:first} to "
            "{observed.loss:last}. Theory puts a jump at each number.",
        ),
    )

    if TYPE_CHECKING:
        scale: float

    def setup(self) -> Setup:
        """The task and the network."""
        raise NotImplementedError

    def trained_from(self, scale: float) -> xr.Dataset:
        """Train from this scale."""
        return observe(self._setup.task, self._setup.network, scale=scale, **self._setup.options).record

    def second_scale(self) -> float:
        """The scale from which to train again, for the slopes."""
        return other_scale(self.scale)

    def sloped(self) -> bool:
        """Whether theory has the same jumps at both scales, so that slopes can be told."""
        return True

    def observe(self) -> xr.Dataset:
        """Train at the given scale."""
        return self.trained_from(self.scale)

    def predict(self) -> xr.Dataset:
        """The staircase that theory expects."""
        return predict(self._setup.task, self._setup.network, scale=self.scale, curve=False).record

    def stated(
        self,
        staircase: Staircase,
        network: str,
        *,
        jump_time: tuple[float, str] | None = None,
        slope: tuple[float, str] | None = None,
    ) -> xr.Dataset:
        """The record of a staircase that a theory of the study's own says of its task, with its tolerances."""
        limits = {"jump_time_tolerance": jump_time, "slope_tolerance": slope}
        return staircase_record(staircase, self._task, scale=self.scale, network=network, **limits)

    def compare(self, observed: xr.Dataset, predicted: xr.Dataset) -> Comparison:
        """Levels and times at one scale, slopes between two."""
        return compare(
            observed,
            predicted,
            at_other_scale=self._at_second_scale if self.sloped() else None,
            checks=self.checks,
            claims=self.judged_claims,
        )

    @functools.cached_property
    def _setup(self) -> Setup:
        return self.setup()

    @functools.cached_property
    def _at_second_scale(self) -> xr.Dataset:
        """Trained once, however often it is compared."""
        return self.trained_from(self.second_scale())

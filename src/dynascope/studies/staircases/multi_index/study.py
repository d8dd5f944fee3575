"""Two-layer networks learn the directions of a multi-index model one at a time."""

from __future__ import annotations

import functools
import math
from typing import Annotated, Literal

import jax
import numpy as np
import xarray as xr
from annotated_types import Ge, Interval
from numpy.polynomial import hermite_e

from dynascope.alternating import alternating_flow
from dynascope.flows import GradientFlow, gradient_flow
from dynascope.networks import TwoLayer
from dynascope.results import Staircase, StaircaseView, other_scale, staircase_names, staircase_record
from dynascope.results.staircase import slopes_between, with_tolerances
from dynascope.studies import Reference, StaircaseStudy, parameter
from dynascope.studies.staircases.multi_index import page
from dynascope.studies.staircases.multi_index.learned_directions import with_overlaps
from dynascope.tasks.multi_index import MultiIndex
from dynascope.tasks.random_maps import orthonormal
from dynascope.theory import papers
from dynascope.theory.staircase.multi_index import quadratic_index_staircase
from dynascope.validation.bounded import FiniteFloat, PositiveInt, Seed

_APART = 1e-8  # ratio of the two scales
_SMALLEST = 1e-12  # smallest scale; at 1e-8 of it, rounding of the weights may erase the last direction
_OFFSET = 3.0  # e-folds of growth that a predicted time may neglect


class MultiIndexStaircase(StaircaseStudy):
    """Tests the predicted loss staircase of a two-layer network on y = Σ_r g_r ⟨w_r, x⟩^k, x ~ N(0, I).

    The study compares predicted and observed plateau losses, jump times and slopes. The slopes measure how fast the
    jump times grow as the initial scale decreases. The activation of the network is z^k, and the loss is the exact
    expectation over inputs. In the homogeneity-normalised flow used here, each neuron has the learning rate
    ‖θ_i‖^(1−k), and the durations of plateaus grow as log(1/scale).
    """

    dimension: PositiveInt = parameter(10, "Number of inputs d.")
    strengths: list[FiniteFloat] = parameter(
        [1.0, 0.4, 0.15], "Strengths g_r, one per direction. The directions are random and orthonormal.", repeats=True
    )
    degree: Annotated[int, Ge(2)] = parameter(2, "Power k in the target and in the activation.")
    width: PositiveInt = parameter(
        16, "Number of neurons, at least one per direction. Use a few more, because some neurons die out."
    )
    theory: Literal["alternating-flow", "closed-form"] = parameter(
        "alternating-flow",
        '"alternating-flow" for the general prediction from the initial weights, or "closed-form" for the formula of '
        "the quadratic network with positive strengths.",
    )
    scale: Annotated[float, Interval(ge=_SMALLEST, le=1e-3)] = parameter(
        1e-8,
        "Factor that multiplies the initial weights. The slopes are measured between this scale and 1e-8 times this "
        "scale.",
    )
    seed: Seed = parameter(0, "Seed of the initial weights and of the directions.")

    name = "multi-index"
    reference = Reference.of(
        papers.ALTERNATING,
        "Alternating gradient flows predict the order and the times at which a two-layer network learns the hidden "
        "directions of a multi-index model with Gaussian inputs. The paper does not treat this model.",
    )
    title = "Multi-index models, one direction at a time"
    question = "In which order does a network learn the hidden directions of its target?"
    figures, meaning = page.figures, page.meaning
    equation = r"y = \sum_r g_r \left\langle w_r, x \right\rangle^k, \quad x \sim \mathcal{N}(0, I)"
    minutes = 0.3
    names = {
        "index_strength": ("strength of the direction", "1"),
        "overlap": ("overlap of the first neuron with the direction", "1"),
        "closed_form_time": ("accelerated time of the jump, closed form", "1"),
        "closed_form_level": ("loss after the jump, closed form", "1"),
    }
    tiny = {"dimension": 3, "strengths": [1.0, 0.3], "width": 8, "theory": "closed-form"}

    def check(self) -> None:
        """Check that there are enough dimensions and neurons, and that a closed form exists if it is requested."""
        directions, fit = len(self.strengths), len(self.strengths) <= self.dimension and all(self.strengths)
        remedy = "give at least one strength, none of them zero, and at most one per dimension"
        self.require(fit, "strengths", remedy, beside="dimension")
        remedy = "choose at least one neuron per direction"
        self.require(self.width >= directions, "width", remedy, beside="strengths")
        known = self.theory == "alternating-flow" or self.degree == 2
        self.require(known, "theory", "choose 'alternating-flow', or set degree to 2", beside="degree")

    def trained_from(self, scale: float) -> xr.Dataset:
        """Train on the exact population loss."""
        last = float(StaircaseView(self._staircases[scale]).times.max())
        duration = 1.4 * last + 20.0 / max(map(abs, self.strengths))
        statistics = {"index_strength": (jax.tree_util.Partial(MultiIndex.strengths, self._task), ("mode",))}
        method = GradientFlow(duration=duration, normalised=True, save=4000, statistics=statistics)
        return gradient_flow(self._task, self._network, method, scale=scale)

    def second_scale(self) -> float:
        """A much smaller scale, at which the uncertain growth before a jump hardly affects the slopes."""
        return other_scale(self.scale, normalised=True, factor=_APART)

    def compares_slopes(self) -> bool:
        """False if a direction is learned at one scale only, because its neurons die out at the other."""
        first, second = self._staircases.values()
        return first.sizes["jump"] == second.sizes["jump"]

    def predicted(self) -> xr.Dataset:
        """Predict at both scales. The general prediction also records the closed form, if it exists."""
        first, second = self._staircases.values()
        times = _OFFSET / -math.log(self.scale), f"times are predicted to within {_OFFSET:g} e-folds of growth"
        # A plateau is flat only if it lasts longer than the neglected growth at its two ends. This minimum duration
        # follows from the time that one e-fold of growth takes before each jump.
        growth = -StaircaseView(first).times / math.log(self.scale)
        settling = {staircase_names.SETTLING_TIME: (("jump",), np.append(2 * _OFFSET * growth[1:], 0.0))}
        first = first.assign(settling).assign_attrs(network=f"two-layer power-{self.degree}")
        first = with_tolerances(first, jump_time=times)
        if self.theory == "closed-form":
            return first
        if self.compares_slopes():
            first = slopes_between(first, second)
        reason = "growth before a jump is predicted to within half an e-fold, and the scales differ by eighteen e-folds"
        first = with_tolerances(first, slope=(0.05, reason))
        return self._with_closed_form(with_overlaps(first, np.asarray(self._task.directions), self.strengths))

    def _with_closed_form(self, predicted: xr.Dataset) -> xr.Dataset:
        if self.degree != 2 or min(self.strengths) < 0:
            return predicted
        steps = self._closed_form(self.scale)
        if len(steps.times) != predicted.sizes["jump"]:
            return predicted
        beside = {"closed_form_time": steps.accelerated_times, "closed_form_level": steps.levels[1:]}
        return predicted.assign({name: (("jump",), values) for name, values in beside.items()})

    @functools.cached_property
    def _staircases(self) -> dict[float, xr.Dataset]:
        """The prediction at both scales."""
        return {scale: self._staircase(scale) for scale in (self.scale, self.second_scale())}

    def _staircase(self, scale: float) -> xr.Dataset:
        if self.theory == "alternating-flow":
            return alternating_flow(self._task, self._network, scale=scale, normalised=True)
        slopes = 0.01, "the neglected part of the times is bounded and cancels in the difference between the scales"
        return staircase_record(
            self._closed_form(scale), self._task, scale=scale, network="TwoLayer", slope_tolerance=slopes
        )

    def _closed_form(self, scale: float) -> Staircase:
        return quadratic_index_staircase(self.strengths, scale=scale)

    @functools.cached_property
    def _task(self) -> MultiIndex:
        basis = orthonormal(np.random.default_rng(self.seed), self.dimension)
        link = hermite_e.poly2herme([0.0] * self.degree + [1.0])
        return MultiIndex(np.multiply.outer(self.strengths, link), basis[:, : len(self.strengths)].T)

    @functools.cached_property
    def _network(self) -> TwoLayer:
        return TwoLayer(self.dimension, self.width, 1, activation=f"power-{self.degree}", seed=self.seed)

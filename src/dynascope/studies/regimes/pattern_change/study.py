"""Upstream neurons change their activation pattern before the loss falls, downstream neurons after it."""

from __future__ import annotations

import functools
from typing import Annotated

import numpy as np
from annotated_types import Ge, Interval

from dynascope.comparison import Claim
from dynascope.studies import ClaimsStudy, Reference, Values, exact, parameter
from dynascope.studies.regimes.pattern_change import page
from dynascope.studies.regimes.pattern_change.speeds import LAYERS, Speeds
from dynascope.studies.regimes.pattern_change.symmetric_inputs import SymmetricInputs
from dynascope.studies.regimes.pattern_change.two_samples import TwoSamples
from dynascope.studies.tolerances import curve_tolerance, limit_tolerances
from dynascope.theory import papers
from dynascope.validation.bounded import Seed

_LARGEST_ERROR = 0.03  # expected relative error of gradient descent; larger errors hide wrong theories
_NEAR = 0.05  # relative distance from the threshold at which a neuron just changes its pattern
_DESCENT = "gradient descent differs from gradient flow by about η λ (1 + ln 1/τ), where λ is the curvature"
_STEP = "one step rotates the map by at most 10⁻⁴, in units of the gradient"
_NORMS = "the exact factors at these norms have exponents that deviate from the limit by this amount"
_COMPARED = ("change_loss", "used", "loss", "symmetric_loss", "symmetric_map")


class PatternChange(ClaimsStudy):
    """Tests when a ReLU neuron changes its activation pattern, and how this depends on the imbalance of its layers.

    All neurons f(x) = a max(w·x, 0) start from the same map β = a w. They differ in the imbalance δ = a² − ‖w‖² of
    their layers. The study has three parts.

    - Two samples: the initial weights are active on the first sample only. The closed form predicts whether and when
      the neuron becomes active on the second sample, the loss at that time, and the fraction of the loss of the first
      sample that is used by then. The neurons are trained by gradient descent, and the change is located between two
      steps. A neuron that does not change its pattern is compared at the end of training.
    - Speeds: in one small step of gradient descent, the study measures the speeds of the norm and of the direction of
      small maps, divided by the components of the gradient. The factors are an identity and a check. Their exponents in
      the norm of the map are compared with the limit of small maps.
    - Symmetric inputs: on inputs x and −x with labels b·x, a leaky ReLU neuron follows the closed form of a linear
      neuron, although its activation pattern changes. In two controls, the equivalence must fail: for labels with an
      even part, and for two neurons with opposite weights.
    """

    imbalances: list[Annotated[float, Interval(ge=-10, le=10)]] = parameter(
        [-2.0, -1.0, -0.25, 0.0, 0.25, 1.0, 4.0], "Imbalances δ = a² − ‖w‖² of the neurons.", increasing=True
    )
    initial_size: Annotated[float, Interval(ge=0.01, le=1)] = parameter(
        0.3, "Initial size τ; the initial map a w has norm τ²."
    )
    angle: Annotated[float, Interval(ge=20, le=80)] = parameter(60.0, "Angle between the two samples, in degrees.")
    initial_angle: Annotated[float, Interval(gt=10, lt=90)] = parameter(
        40.0,
        "Angle between the initial weights and the first sample, in degrees, away from the second sample. The sum of "
        "both angles is at least 95.",
    )
    targets: list[Annotated[float, Interval(ge=0.2, le=3)]] = parameter(
        [1.0, 0.8], "Targets of the two samples.", fewest=2, repeats=True
    )
    norms: list[Annotated[float, Interval(ge=1e-5, le=0.05)]] = parameter(
        [1e-3, 3e-3, 1e-2],
        "Norms of the maps whose speeds are measured, at δ = −1, 0 and 1.",
        fewest=3,
        increasing=True,
    )
    negative_slopes: list[Annotated[float, Interval(ge=0, le=0.9)]] = parameter(
        [0.0, 0.3, 0.6], "Slopes γ of the leaky ReLU neurons on symmetric inputs. The smallest is at most 0.5."
    )
    dimension: Annotated[int, Interval(ge=2, le=20)] = parameter(3, "Number of symmetric inputs.")
    pairs: Annotated[int, Interval(ge=2, le=500)] = parameter(20, "Number of pairs x and −x.", least="dimension")
    even_part: Annotated[float, Interval(ge=0.25, le=2)] = parameter(
        0.5, "Size of the even part of the labels in the control."
    )
    learning_rate: Annotated[float, Interval(ge=1e-5, le=0.01)] = parameter(1e-3, "Step size η of gradient descent.")
    times: Annotated[int, Ge(20)] = parameter(200, "Number of recorded times.")
    seed: Seed = parameter(0, "Seed of the symmetric inputs and of their labels.")

    reference = Reference.of(
        papers.UNBALANCED,
        "A neuron whose output weight is large (upstream) changes its activation pattern before the loss falls; a "
        "neuron whose input weights are large (downstream) first fits the samples on which it is active.",
        also="The closed form of the time of the change is derived in the documentation of `pattern_change`.",
    )
    along = ("imbalance", "time", "initialization", "negative_slope")
    title = "When a neuron changes its activation pattern"
    question = "Does a ReLU neuron choose its samples before or after it fits them?"
    figures, meaning = page.figures, page.meaning
    equation = (
        r"\delta = a^2 - \|w\|^2, \quad \dot{\hat w} = -\frac{a}{\|w\|} (I - \hat w \hat w^\top) \xi, \quad "
        r"\frac{a(0)}{\|w(0)\|} = \frac{\delta + \sqrt{\delta^2 + 4 \tau^4}}{2 \tau^2}"
    )
    minutes = 0.3
    symbols = {"imbalance": "δ", "negative_slope": "γ"}
    theory = "pattern change of a ReLU neuron"
    task = "two samples, and symmetric inputs"
    trains = "single ReLU neuron"
    flow = "gradient descent"
    labelled = {
        "imbalance": "imbalances",
        "negative_slope": "negative_slopes",
        "map_norm": "norms",
        "initialization": lambda study: list(LAYERS),
        "time": "_samples.times",
    }
    names = {
        "fixed_pattern_loss": ("loss without a change of the pattern", "1"),
        "changes": ("whether the pattern changes", "1"),
        "log_change_time": ("decimal logarithm of the time of the pattern change", "1"),
        "change_loss": ("loss at the pattern change", "1"),
        "used": ("fraction of the first sample's loss that is used at the pattern change", "1"),
        "initialization": ("initialisation", "1"),
        "map_norm": ("norm of the map", "1"),
        "log_radial_factor": ("decimal logarithm of the radial speed factor", "1"),
        "log_angular_factor": ("decimal logarithm of the angular speed factor", "1"),
        "radial_exponent": ("exponent of the radial speed", "1"),
        "angular_exponent": ("exponent of the angular speed", "1"),
        "negative_slope": ("slope γ for negative arguments", "1"),
        "symmetric_time": ("time on symmetric inputs", "t"),
        "symmetric_loss": ("loss on symmetric inputs", "1"),
        "symmetric_map": ("map on symmetric inputs", "1"),
        "changed_activations": ("fraction of activations that change on symmetric inputs", "1"),
        "even_labels_deviation": ("deviation from the linear neuron with even labels", "1"),
        "two_neurons_deviation": ("deviation from the linear network with two neurons", "1"),
    }
    tolerance = exact("log_radial_factor", "log_angular_factor", error=1e-3, reason=_STEP)
    checks = tuple(tolerance)
    deciding_claims = ("changes", "symmetric_changes", "even_labels", "two_neurons")
    tiny = {
        "imbalances": [-2.0, 0.0, 1.0],
        "negative_slopes": [0.0, 0.5],
        "pairs": 10,
        "learning_rate": 2e-3,
        "times": 60,
    }

    def check(self) -> None:
        """Check the geometry of the samples, the step size, and the distance from the threshold of a change."""
        self.require(len(self.targets) == 2, "targets", "give two targets")
        remedy = "choose a larger angle, so that the initial weights are not active on the second sample"
        self.require(self.angle + self.initial_angle >= 95, "initial_angle", remedy, beside="angle")
        self.require(min(self.negative_slopes) <= 0.5, "negative_slopes", "include a slope of at most 0.5")
        problem = f"at learning_rate {self.learning_rate:g}, the expected relative error is {self.descent_error:.2g}"
        remedy = "choose a smaller learning rate, or smaller imbalances or targets"
        self.require(self.descent_error <= _LARGEST_ERROR, "learning_rate", remedy, problem=problem)
        near = [delta for delta, off in zip(self.imbalances, self._samples.margins, strict=True) if abs(off) < _NEAR]
        problem = f"for imbalance {near}, the neuron is too near the threshold at which it just changes its pattern"
        self.require(not near, "imbalances", "leave out this imbalance, or choose another angle", problem=problem)

    @property
    def descent_error(self) -> float:
        """Expected relative error η λ (1 + ln 1/τ) of gradient descent."""
        fitted = np.linalg.norm(np.linalg.solve(self._samples.inputs, self.targets))
        curvature = max(np.hypot(max(map(abs, self.imbalances)), 2 * fitted), 2.0)
        return float(self.learning_rate * curvature * (1 - np.log(self.initial_size)))

    def trained(self) -> Values:
        """Train neurons on two samples and on symmetric inputs, and measure the speeds of small maps."""
        return {**self._samples.trained(), **self._speeds.trained(), **self._symmetric.trained()}

    def exact(self) -> Values:
        """Evaluate the closed forms of all three parts."""
        return {**self._samples.exact(), **self._speeds.exact(), **self._symmetric.exact()}

    def claimed(self, found: Values) -> list[Claim]:
        """The claims that the predicted neurons change their pattern, and that the controls leave the closed form."""
        return [self._samples.claim(found), *self._symmetric.claims(found, self.descent_error)]

    def prediction_attributes(self) -> Values:
        """Tolerances that follow from the step size and from the norms of the maps."""
        limits = curve_tolerance(**dict.fromkeys(_COMPARED, (self.descent_error, _DESCENT)))
        log_times = self._samples.log_times
        later = {"log_change_time": (log_times, np.full(len(log_times), self.descent_error / np.log(10)))}
        attributes = limit_tolerances(self._speeds.corrections, 1e-3, _NORMS) | limit_tolerances(later, 0.0, _DESCENT)
        for name, (error, reason) in limits.items():
            attributes |= {f"{name}_tolerance": error, f"{name}_tolerance_reason": reason}
        return attributes

    @functools.cached_property
    def _samples(self) -> TwoSamples:
        return TwoSamples(self)

    @functools.cached_property
    def _speeds(self) -> Speeds:
        return Speeds(np.array(self.norms), self._samples)

    @functools.cached_property
    def _symmetric(self) -> SymmetricInputs:
        return SymmetricInputs(self)

"""In linear regression, SGD samples the Gibbs distribution of a modified loss and circulates in phase space."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Interval

from dynascope.comparison import Claim
from dynascope.studies import ClaimsStudy, Reference, Values, curve_tolerance, parameter
from dynascope.studies.noise.limiting_dynamics import page
from dynascope.studies.noise.limiting_dynamics.claims import LIMITING_CLAIMS, limiting_claims
from dynascope.studies.noise.limiting_dynamics.experiment import LONGEST, MODIFIED_LOSS, WINDOW, Experiment
from dynascope.studies.noise.limiting_dynamics.phase_space import ALONG, DIRECTIONS, MOMENTS, SHARES
from dynascope.theory import papers
from dynascope.validation.bounded import Fraction, PositiveFloat, PositiveInt, Seed


class LimitingDynamics(ClaimsStudy):
    """Tests the theory of SGD with momentum in linear regression, using ensembles of SGD and Langevin runs.

    Let a and b be the position and velocity along an eigenvector of the Hessian (mode). Their means and covariances at
    every step follow exactly from the data alone, even though the gradient noise depends on the current residuals
    (`theory.noise.finite_data_moments`). Near the minimum and for a small learning rate, these moments equal those of
    an underdamped Langevin equation with a stationary density proportional to exp(−κΦ). The weights then sample the
    Gibbs distribution of a modified loss Φ and circulate in the phase plane of a and b. The curvature of Φ along each
    mode is the curvature of the loss divided by the noise variance. The noise variance is nearly proportional to the
    curvature of the loss, so the curvature of Φ is nearly equal for all modes. The Langevin runs model SGD with
    Gaussian noise, whose covariance is that of the gradient noise at the minimum.

    Two claims test the means and covariances at all times and along all modes: those of SGD against the exact values,
    and those of the Langevin runs against the Langevin law. The largest deviation must stay below the 99th percentile
    of the largest deviation expected by chance. Four claims are about SGD in the stationary state:

    - Var a agrees with the Langevin law within 10 percent.
    - Var b/Var a agrees with 2h/(η(1 + β)) within 10 percent, where h is the curvature including weight decay.
    - Along each mode, the distribution function of κΦ agrees with 1 − exp(−x) within 0.05.
    - Oscillating modes circulate at the predicted rate E(a b' − b a')/η = −s/(S(1 − β)) within 20 percent, where a' and
      b' are the values at the next step and s is the noise variance.

    These four claims are undecided if the exact variances differ from the Langevin law by more than 5 percent, for
    example at a large learning rate. As a check, the loss must equal a quadratic form of the positions
    (`quadratic_share`).
    """

    curvatures: list[Annotated[float, Interval(ge=0.02, le=4)]] = parameter(
        [1.0, 0.3, 0.05], "Eigenvalues ρ of the Hessian.", fewest=2
    )
    samples: Annotated[int, Interval(ge=20, le=2000)] = parameter(200, "Number of samples.")
    residual: PositiveFloat = parameter(0.5, "Standard deviation σ of the label residuals.")
    distance: Annotated[float, Interval(ge=-5, le=5)] = parameter(
        1.0, "Signed distance from the initial weights to the minimum along each mode."
    )
    learning_rate: Annotated[float, Interval(gt=0, le=0.5)] = parameter(0.02, "Learning rate η.")
    momentum: Annotated[float, Interval(ge=0, lt=1)] = parameter(0.9, "Momentum β.")
    weight_decay: Fraction = parameter(0.01, "Weight decay λ.")
    batch_size: PositiveInt = parameter(8, "Number S of samples per minibatch, drawn with replacement.")
    runs: Annotated[int, Ge(200)] = parameter(4000, "Number of SGD runs, which equals the number of Langevin runs.")
    seed: Seed = parameter(0, "Seed of the data, of the minibatches and of the noise.")

    reference = Reference.of(
        papers.LIMITING_DYNAMICS,
        "Near a minimum, SGD is an underdamped Langevin process: position and velocity sample the Gibbs distribution "
        "of a modified loss, with stationary currents that circulate in phase space.",
    )
    title = "The limiting dynamics of SGD"
    question = "How do the weights move after SGD has reached a minimum?"
    figures, meaning = page.figures, page.meaning
    equation = (
        r"d\theta = v \, dt, \quad dv = -\frac{2}{\eta (1 + \beta)} \left[ \left( (1 - \beta) v + \nabla L + "
        r"\lambda \theta \right) dt + \sqrt{\frac{\eta}{S}} \, \Sigma^{1/2} dW \right]"
    )
    minutes = 0.2
    theory = "exact moments of SGD, and Langevin dynamics"
    task = "linear regression"
    notes = (
        "{samples} samples; Hessian with eigenvalues {curvatures}; residuals with standard deviation {residual:g}.",
    )
    trains = "linear"
    flow = (
        "SGD with learning rate {learning_rate:g}, momentum {momentum:g}, weight decay {weight_decay:g} and "
        "minibatches of {batch_size}; Langevin dynamics with the same hyperparameters"
    )
    along = "sampled_step"
    axes = ("mode",)
    labelled = {
        "run": ("SGD", "Langevin"),
        "step": "experiment.recorded_steps",
        "sampled_step": "experiment.recorded_steps",
        "modified_loss": lambda study: MODIFIED_LOSS,
        "lag": lambda study: np.arange(WINDOW),
        "contour": lambda study: SHARES,
        "angle": lambda study: DIRECTIONS,
        "along": lambda study: ALONG,
    }
    names = {
        **{name: (name.replace("_", " "), "1") for name in MOMENTS},
        "langevin_position_variance": ("position variance of Langevin runs", "1"),
        "langevin_velocity_variance": ("velocity variance of Langevin runs", "1"),
        "variance_ratio": ("stationary variance relative to Langevin dynamics", "1"),
        "exact_variance_ratio": ("exact stationary variance relative to Langevin dynamics", "1"),
        "worst_deviation": ("largest deviation of a moment in standard errors", "1"),
        "allowed_deviation": ("largest deviation expected by chance in standard errors", "1"),
        "circulation": ("circulation E(a b' − b a')/η", "1"),
        "share_below": ("fraction of runs below", "1"),
        "contour_position": ("position on contours of the modified loss and along currents", "1"),
        "contour_velocity": ("velocity on contours of the modified loss and along currents", "1"),
        "current_position": ("mean position of the selected runs", "1"),
        "current_velocity": ("mean velocity of the selected runs", "1"),
        "quadratic_share": ("loss relative to the quadratic form of the positions", "1"),
        "modified_loss": ("modified loss κΦ", "1"),
        "contour": ("predicted fraction of runs inside the contour", "1"),
        "along": ("position along a path, from 0 to 1", "1"),
    }
    deciding_claims = LIMITING_CLAIMS
    tolerance = curve_tolerance(
        quadratic_share=(1e-9, "the loss is exactly quadratic up to rounding in double precision")
    )
    checks = tuple(tolerance)
    tiny = {"runs": 3000, "curvatures": [1.0, 0.3], "samples": 100}

    def check(self) -> None:
        """Require a stable learning rate at which the runs reach the stationary state within `LONGEST` steps."""
        steepest = self.learning_rate * (max(self.curvatures) + self.weight_decay)
        remedy = "choose a smaller learning rate"
        self.require(steepest < 1 + self.momentum, "learning_rate", remedy, beside="curvatures")
        remedy = "choose a larger learning rate, or more momentum"
        self.require(self.experiment.last_step <= LONGEST, "learning_rate", remedy, beside="curvatures")
        self.require(len(self.curvatures) < self.samples, "samples", "choose more samples than curvatures")

    @functools.cached_property
    def experiment(self) -> Experiment:
        """The runs and their predicted laws."""
        return Experiment(self)

    def trained(self) -> Values:
        """Run SGD and Langevin dynamics and measure both along the modes."""
        return self.experiment.trained()

    def exact(self) -> Values:
        """The exact moments of SGD, the moments of Langevin dynamics, and the stationary law for small steps."""
        return self.experiment.exact()

    def claimed(self, found: Mapping[str, Any]) -> Sequence[Claim]:
        """Evaluate the claims about SGD and the Langevin runs."""
        return limiting_claims(
            worst=found["worst_deviation"][1],
            allowed=found["allowed_deviation"][1],
            laws=self.experiment.laws,
            late=self.experiment.late,
            modified_loss=self.experiment.final_modified_loss,
        )

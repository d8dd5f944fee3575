"""How SGD on linear regression moves about its minimum: moments from the start on, modified loss and currents."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynascope.comparison import Claim
from dynascope.flows import ornstein_uhlenbeck
from dynascope.studies import ClaimsStudy, Reference, Values, curve_tolerance
from dynascope.studies.fields import count, fraction, number, numbers, positive, seed
from dynascope.studies.noise.limiting_dynamics.claims import LIMITING_CLAIMS, limiting_claims
from dynascope.studies.noise.limiting_dynamics.experiment import RegressionRuns, regression_runs
from dynascope.studies.noise.limiting_dynamics.page import FIGURES, MEANING
from dynascope.studies.noise.limiting_dynamics.phase_space import (
    ALONG,
    DIRECTIONS,
    MOMENTS,
    SHARES,
    PhaseSpace,
    allowed_deviation,
    contour_arcs,
    current_arrows,
    current_of_sector,
    expected_current,
    moments_of,
    regression_data,
)
from dynascope.studies.noise.limiting_dynamics.regression_laws import RegressionLaws
from dynascope.theory import papers
from dynascope.theory.noise import oscillation

_TIMES = 60  # recorded from the start on
_WINDOW = 200  # steps at the end, in which the law is stationary
_LONGEST = 5000  # steps
_SETTLED = 1e-4  # what is left of the start of the slowest mode
_ARCS = ("along", "contour", "angle", "mode")
_VALUES = np.linspace(0.0, 8.0, 81)  # of κΦ


class LimitingDynamics(ClaimsStudy):
    """Many runs of SGD with momentum on one linear regression, each with batches of its own, beside Langevin dynamics.

    Position a and velocity b along the eigenvectors of the Hessian have means and covariances that are known exactly
    at every step, from the data alone (`theory.noise.finite_data_moments`): the noise of a batch is that of the
    residuals at the weights so far. Near the minimum and for small steps they are those of an underdamped Langevin
    equation, whose stationary law is exp(−κΦ): weights see a modified loss Φ, as steep in all directions as they are
    noisy, and go round in the phase plane of position and velocity. Langevin runs have Gaussian noise of the data's
    size; they model SGD, and are not it.

    Judged is, of means and covariances in phase space at all times and modes together, whether chance finds them as far
    from the exact ones as they were in one of a hundred experiments, for SGD and for Langevin runs with their own law;
    and of SGD at the end whether Var a is that of the Langevin law to 10 percent, the ratio of Var b and Var a is
    2h/(η(1 + β)) to 10 percent, the distribution of κΦ in each mode is 1 − exp(−x) to 5 percent, and modes that swing
    go round as fast as theory says to 20 percent: E(a b' − b a')/η = −s/(S(1 − β)), where a' and b' are those of the
    next step. Where the exact variances are off the Langevin law by more than 5 percent, as for large steps or where
    weights change residuals, what rests on that law is not judged. Checked is that the loss is the quadratic form of
    the positions (`quadratic_share`).
    """

    curvatures: list[float] = numbers(
        [1.0, 0.3, 0.05], "Eigenvalues ρ of the Hessian.", fewest=2, above=0.0, least=0.02, most=4.0
    )
    samples: int = count(200, "Number of samples.", least=20, most=2000)
    residual: float = positive(0.5, "Standard deviation σ of the labels about a linear function.")
    distance: float = number(1.0, "Distance of the minimum from the start along each mode.", least=-5.0, most=5.0)
    learning_rate: float = positive(0.02, "η.", most=0.5)
    momentum: float = fraction(0.9, "β.", open_above=True)
    weight_decay: float = number(0.01, "λ.", least=0.0, most=1.0)
    batch_size: int = count(8, "Samples S of a batch, drawn with replacement.")
    runs: int = count(4000, "Number of runs of each kind.", least=200)
    seed: int = seed("Seed of the data, of the batches and of the noise.")

    reference = Reference.of(
        papers.LIMITING_DYNAMICS,
        "SGD near a minimum is an underdamped Langevin process: it samples a modified loss, with velocities, and its "
        "stationary state has currents that go round in phase space.",
    )
    title = "The limiting dynamics of SGD"
    question = "What does SGD do when it has arrived?"
    meaning = MEANING
    figures = FIGURES
    minutes = 0.2
    theory = "exact moments of SGD, and Langevin dynamics"
    task = "linear regression"
    told = ("{samples} samples with Hessian of eigenvalues {curvatures}, residuals of size {residual:g}.",)
    trains = "linear"
    flow = (
        "SGD with rate {learning_rate:g}, momentum {momentum:g}, decay {weight_decay:g}, batches of {batch_size}; and "
        "Langevin dynamics of these"
    )
    along = "sampled_step"
    axes = ("mode",)
    labelled = {
        "run": ("SGD", "Langevin"),
        "step": "_recorded",
        "sampled_step": "_recorded",
        "modified_loss": lambda study: _VALUES,
        "lag": lambda study: np.arange(_WINDOW),
        "contour": lambda study: SHARES,
        "angle": lambda study: DIRECTIONS,
        "along": lambda study: ALONG,
    }
    names = {
        **{name: (name.replace("_", " "), "1") for name in MOMENTS},
        "langevin_position_variance": ("position variance of Langevin runs", "1"),
        "langevin_velocity_variance": ("velocity variance of Langevin runs", "1"),
        "variance_ratio": ("stationary variance over that of Langevin dynamics", "1"),
        "exact_variance_ratio": ("exact stationary variance over that of Langevin dynamics", "1"),
        "worst_deviation": ("largest deviation of a moment, in standard errors", "1"),
        "allowed_deviation": ("largest deviation that chance allows", "1"),
        "circulation": ("circulation E(a b' − b a')/η", "1"),
        "share_below": ("share of the runs below", "1"),
        "contour_position": ("position on contours of the modified loss, and of the currents there", "1"),
        "contour_velocity": ("velocity on contours of the modified loss, and of the currents there", "1"),
        "current_position": ("mean position of chosen runs", "1"),
        "current_velocity": ("mean velocity of chosen runs", "1"),
        "quadratic_share": ("loss over the quadratic form of the positions", "1"),
        "modified_loss": ("modified loss κΦ", "1"),
        "contour": ("contour of a law, by the share inside", "1"),
        "along": ("place along a path, from 0 to 1", "1"),
    }
    judged_claims = LIMITING_CLAIMS
    tolerance = curve_tolerance(quadratic_share=(1e-9, "the loss is quadratic, up to rounding of double precision"))
    checks = tuple(tolerance)
    tiny = {"runs": 3000, "curvatures": [1.0, 0.3], "samples": 100}

    def check(self) -> None:
        """Steps that come to rest, and soon enough."""
        steep = self.learning_rate * (max(self.curvatures) + self.weight_decay)
        self.require(steep < 1 + self.momentum, "learning_rate", "choose a smaller one", beside="curvatures")
        self.require(
            self._last <= _LONGEST, "learning_rate", "choose a larger one, or more momentum", beside="curvatures"
        )
        self.require(len(self.curvatures) < self.samples, "samples", "choose more than curvatures")

    def trained(self) -> Values:
        """Run SGD and Langevin dynamics, and measure both along the modes."""
        laws, sgd, all_of, late = self._laws, self._sgd, self._phase, self._late
        loss, times = laws.loss, self._recorded * self.learning_rate
        runs: Any = {"runs": self.runs, "seed": self.seed, "position": laws.start}
        other = PhaseSpace(*ornstein_uhlenbeck(**laws.modes, times=times, **runs)[1:])
        early = PhaseSpace(*(part[self._early] for part in all_of))
        deviations = early.deviations(laws.exact(self._recorded)), other.deviations(laws.langevin(self._recorded))
        gap = (sgd.position[self._early] - loss.minimum) @ loss.directions
        form = np.sum(loss.curvature * gap**2, axis=-1) / 2 + laws.least
        position, velocity = current_of_sector(late, laws.scales)
        arrows = current_arrows(late, laws.scales, self.learning_rate)
        langevin = moments_of(other)
        return {
            **{name: (("step", "mode"), each) for name, each in moments_of(early).items()},
            **{f"langevin_{name}": (("step", "mode"), langevin[name]) for name in MOMENTS[2:4]},
            "worst_deviation": ("run", [np.abs(each).max() for each in deviations]),
            "allowed_deviation": ("run", [allowed_deviation(each.size) for each in deviations]),
            "variance_ratio": np.mean(late.position**2, axis=(0, 1)) / laws.limit.position_variance,
            "exact_variance_ratio": 1 + laws.off,
            "share_below": (
                ("modified_loss", "mode"),
                np.mean(self._modified_loss <= _VALUES[:, None, None], axis=1),
            ),
            "circulation": np.mean(late.circulation(self.learning_rate), axis=0) / laws.circulation,
            "contour_position": (_ARCS, arrows[0]),
            "contour_velocity": (_ARCS, arrows[1]),
            "current_position": (("lag", "mode"), position),
            "current_velocity": (("lag", "mode"), velocity),
            "quadratic_share": ("sampled_step", np.mean(sgd.loss[self._early] / form, axis=1)),
            "loss": ("step", np.mean(sgd.loss[self._early], axis=1)),
        }

    def claimed(self, found: Mapping[str, Any]) -> Sequence[Claim]:
        """What is claimed of SGD and of the Langevin runs."""
        return limiting_claims(
            worst=found["worst_deviation"][1],
            allowed=found["allowed_deviation"][1],
            laws=self._laws,
            late=self._late,
            modified_loss=self._modified_loss,
        )

    def exact(self) -> Values:
        """The exact moments of SGD, those of Langevin dynamics, and the stationary law of small steps."""
        laws, modes = self._laws, len(self.curvatures)
        exact, langevin = laws.exact(self._recorded), laws.langevin(self._recorded)
        parts = exact.position, exact.velocity, exact.position_variance, exact.velocity_variance, exact.covariance
        position, velocity = expected_current(_WINDOW, laws.scales, laws.modes)
        contours = contour_arcs(modes)
        return {
            **{name: (("step", "mode"), each) for name, each in zip(MOMENTS, parts, strict=True)},
            "langevin_position_variance": (("step", "mode"), langevin.position_variance),
            "langevin_velocity_variance": (("step", "mode"), langevin.velocity_variance),
            "variance_ratio": np.ones(modes),
            "share_below": (("modified_loss", "mode"), np.tile(-np.expm1(-_VALUES)[:, None], (1, modes))),
            "circulation": np.ones(modes),
            "contour_position": (_ARCS, contours[0]),
            "contour_velocity": (_ARCS, contours[1]),
            "current_position": (("lag", "mode"), position),
            "current_velocity": (("lag", "mode"), velocity),
            "quadratic_share": ("sampled_step", np.ones(len(self._recorded))),
        }

    @functools.cached_property
    def _laws(self) -> RegressionLaws:
        draw = np.random.default_rng([self.seed, 0])
        data = regression_data(draw, self.samples, np.array(self.curvatures), self.residual, self.distance)
        return RegressionLaws(*data, self.learning_rate, self.momentum, self.weight_decay, self.batch_size)

    @functools.cached_property
    def _sgd(self) -> RegressionRuns:
        """All runs, at the steps that are told from the start on and at all of the window at the end."""
        steps = np.concatenate([self._recorded[:-1], self._last + 1 - np.arange(_WINDOW, 0, -1)])
        laws, start = self._laws, np.zeros(len(self.curvatures))
        return regression_runs(
            laws.inputs, laws.targets, steps, start=start, runs=self.runs, seed=self.seed, **laws.rates
        )

    @functools.cached_property
    def _phase(self) -> PhaseSpace:
        loss = self._laws.loss
        return PhaseSpace((self._sgd.position - loss.centre) @ loss.directions, self._sgd.velocity @ loss.directions)

    @property
    def _late(self) -> PhaseSpace:
        return PhaseSpace(*(part[-_WINDOW:] for part in self._phase))

    @property
    def _early(self) -> np.ndarray:
        """Places of the told steps in the record."""
        return np.append(np.arange(len(self._recorded) - 1), -1)

    @functools.cached_property
    def _modified_loss(self) -> np.ndarray:
        """κΦ of each run and mode at the end."""
        return self._laws.modified_loss(PhaseSpace(*(part[-1] for part in self._phase)))

    @property
    def _last(self) -> int:
        """The step at which the start of the slowest mode is forgotten, and the window has room."""
        slowest = oscillation(
            np.array(self.curvatures),
            learning_rate=self.learning_rate,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
        ).decay.max()
        return _WINDOW + math.ceil(math.log(_SETTLED) / math.log(slowest)) if slowest < 1 else _LONGEST + 1

    @functools.cached_property
    def _recorded(self) -> np.ndarray:
        """Steps that are told, the last one last."""
        return np.append(np.unique(np.geomspace(1, self._last - _WINDOW, _TIMES - 1).round().astype(int)), self._last)

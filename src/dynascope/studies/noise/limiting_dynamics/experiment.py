"""SGD and Langevin dynamics on one linear regression, measured along the modes of its loss, with their exact laws."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from dynascope.flows import ornstein_uhlenbeck
from dynascope.studies.noise.limiting_dynamics.phase_space import (
    MOMENTS,
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
from dynascope.studies.noise.limiting_dynamics.sgd_runs import RegressionRuns, regression_runs
from dynascope.theory import SGD
from dynascope.theory.noise import oscillation

if TYPE_CHECKING:
    from dynascope.studies import Values
    from dynascope.studies.noise.limiting_dynamics.study import LimitingDynamics

__all__ = ["LONGEST", "MODIFIED_LOSS", "WINDOW", "Experiment"]

WINDOW = 200  # final steps of a run, over which the distribution is stationary
LONGEST = 5000  # largest number of steps in a run
MODIFIED_LOSS = np.linspace(0.0, 8.0, 81)  # values of κΦ at which its distribution is recorded
_TIMES = 60  # number of recorded steps
_FORGOTTEN = 1e-4  # remaining fraction of the initial value in the slowest mode
_ARCS = ("along", "contour", "angle", "mode")


class Experiment:
    """Runs SGD and Langevin dynamics on the regression task of a study, and evaluates the theory of both.

    Args:
        study: The study that defines the regression and the optimiser.
    """

    def __init__(self, study: LimitingDynamics):
        self.study = study

    def trained(self) -> Values:
        """Run SGD and Langevin dynamics and measure both along the modes."""
        laws, sgd, late, rate = self.laws, self.sgd, self.late, self.study.learning_rate
        options: Any = {"runs": self.study.runs, "seed": self.study.seed, "position": laws.start} | laws.modes
        for name in ("learning_rate", "momentum", "weight_decay", "batch_size"):
            options[name] = getattr(laws.sgd, name)
        langevin = PhaseSpace(*ornstein_uhlenbeck(times=self.recorded_steps * rate, **options)[1:])
        # Indices of the recorded steps among all saved steps.
        early = np.append(np.arange(len(self.recorded_steps) - 1), -1)
        recorded = PhaseSpace(*(part[early] for part in self._phase))
        deviations = (
            recorded.deviations(laws.exact(self.recorded_steps)),
            langevin.deviations(laws.langevin(self.recorded_steps)),
        )
        offsets = (sgd.position[early] - laws.loss.minimum) @ laws.loss.directions
        quadratic_form = np.sum(laws.loss.curvature * offsets**2, axis=-1) / 2 + laws.least
        position, velocity = current_of_sector(late, laws.scales)
        arrows = current_arrows(late, laws.scales, rate)
        langevin_moments = moments_of(langevin)
        return {
            **{name: (("step", "mode"), each) for name, each in moments_of(recorded).items()},
            **{f"langevin_{name}": (("step", "mode"), langevin_moments[name]) for name in MOMENTS[2:4]},
            "worst_deviation": ("run", [np.abs(each).max() for each in deviations]),
            "allowed_deviation": ("run", [allowed_deviation(each.size) for each in deviations]),
            "variance_ratio": np.mean(late.position**2, axis=(0, 1)) / laws.limit.position_variance,
            "exact_variance_ratio": 1 + laws.off,
            "share_below": (
                ("modified_loss", "mode"),
                np.mean(self.final_modified_loss <= MODIFIED_LOSS[:, None, None], axis=1),
            ),
            "circulation": np.mean(late.circulation(rate), axis=0) / laws.circulation,
            "contour_position": (_ARCS, arrows[0]),
            "contour_velocity": (_ARCS, arrows[1]),
            "current_position": (("lag", "mode"), position),
            "current_velocity": (("lag", "mode"), velocity),
            "quadratic_share": ("sampled_step", np.mean(sgd.loss[early] / quadratic_form, axis=1)),
            "loss": ("step", np.mean(sgd.loss[early], axis=1)),
        }

    def exact(self) -> Values:
        """The exact moments of SGD, the moments of Langevin dynamics, and the stationary law for small steps."""
        laws, modes = self.laws, len(self.study.curvatures)
        exact, langevin = laws.exact(self.recorded_steps), laws.langevin(self.recorded_steps)
        parts = exact.position, exact.velocity, exact.position_variance, exact.velocity_variance, exact.covariance
        position, velocity = expected_current(WINDOW, laws.scales, laws.sgd, laws.modes)
        contours = contour_arcs(modes)
        return {
            **{name: (("step", "mode"), each) for name, each in zip(MOMENTS, parts, strict=True)},
            "langevin_position_variance": (("step", "mode"), langevin.position_variance),
            "langevin_velocity_variance": (("step", "mode"), langevin.velocity_variance),
            "variance_ratio": np.ones(modes),
            "share_below": (("modified_loss", "mode"), np.tile(-np.expm1(-MODIFIED_LOSS)[:, None], (1, modes))),
            "circulation": np.ones(modes),
            "contour_position": (_ARCS, contours[0]),
            "contour_velocity": (_ARCS, contours[1]),
            "current_position": (("lag", "mode"), position),
            "current_velocity": (("lag", "mode"), velocity),
            "quadratic_share": ("sampled_step", np.ones(len(self.recorded_steps))),
        }

    @functools.cached_property
    def laws(self) -> RegressionLaws:
        """The laws of SGD and Langevin dynamics on these data."""
        study, draw = self.study, np.random.default_rng([self.study.seed, 0])
        data = regression_data(draw, study.samples, np.array(study.curvatures), study.residual, study.distance)
        return RegressionLaws(*data, self._settings)

    @functools.cached_property
    def sgd(self) -> RegressionRuns:
        """All SGD runs, at the recorded steps and at every step of the final window."""
        steps = np.concatenate([self.recorded_steps[:-1], self.last_step + 1 - np.arange(WINDOW, 0, -1)])
        laws, initial = self.laws, np.zeros(len(self.study.curvatures))
        options: Any = {"runs": self.study.runs, "seed": self.study.seed}
        return regression_runs(laws.inputs, laws.targets, steps, laws.sgd, start=initial, **options)

    @property
    def _settings(self) -> SGD:
        study = self.study
        return SGD(study.learning_rate, study.momentum, study.weight_decay, study.batch_size)

    @functools.cached_property
    def _phase(self) -> PhaseSpace:
        loss = self.laws.loss
        return PhaseSpace((self.sgd.position - loss.centre) @ loss.directions, self.sgd.velocity @ loss.directions)

    @property
    def late(self) -> PhaseSpace:
        """The SGD runs in the final window."""
        return PhaseSpace(*(part[-WINDOW:] for part in self._phase))

    @functools.cached_property
    def final_modified_loss(self) -> np.ndarray:
        """The modified loss κΦ of each run and mode at the last step."""
        return self.laws.modified_loss(PhaseSpace(*(part[-1] for part in self._phase)))

    @property
    def last_step(self) -> int:
        """The last step, chosen so that the slowest mode forgets its initial value before the final window."""
        slowest = oscillation(np.array(self.study.curvatures), self._settings.without_batches).decay.max()
        return WINDOW + math.ceil(math.log(_FORGOTTEN) / math.log(slowest)) if slowest < 1 else LONGEST + 1

    @functools.cached_property
    def recorded_steps(self) -> np.ndarray:
        """The recorded steps, including the last step."""
        steps = np.geomspace(1, self.last_step - WINDOW, _TIMES - 1).round().astype(int)
        return np.append(np.unique(steps), self.last_step)

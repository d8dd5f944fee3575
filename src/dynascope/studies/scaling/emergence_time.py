"""At which step a network learns each of its skills, forecast from one skill that is trained alone."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import TYPE_CHECKING, Any, ClassVar

from dynascope.studies.scaling.parity_networks import EmergenceStudy
from dynascope.studies.study import Reference

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    import xarray as xr

    from dynascope.tasks import SparseParity
    from dynascope.theory.skills import Calibration

__all__ = ["EmergenceTime"]

_WITHIN = 0.15  # of a half-strength step, either way
_BEYOND = 1.5  # how far beyond the last forecast step to train
_REPORTED = ("strength", "half_strength_step")
_REASON = (
    "15 % of a step: the skills that are learned before delay a skill by some percent, "
    "of which the calibration on one skill knows nothing"
)
_PUBLISHED: Mapping[str, Any] = {
    **{"skills": 5, "bits": 32, "relevant_bits": 3, "exponent": 0.6, "target_scale": 5.0, "width": 1000},
    **{"learning_rate": 0.05, "batch_size": 4000, "steps": 30_000, "calibration_steps": 1500, "times": 500},
    **{"calibration_seeds": 10, "seeds": 10},
}


@dataclasses.dataclass(frozen=True)
class EmergenceTime(EmergenceStudy):
    """The strength R_k/S of each skill of multitask sparse parity after T steps of gradient descent.

    A two-layer ReLU network is trained on one skill alone. The line logit(R/S) = 2 η S r T − ln c through its strength
    between 0.05 and 0.6, in the mean over networks, gives the rate r and the offset ln c. From these and the
    frequencies P(k) alone follows the strength of every skill of a network that learns them all, and the step
    T_k = ln c/(2 η S r P(k)) at which it has half its strength.

    Judged is that step, in the mean over networks, by its logarithm (`log_half_strength_step`), so that the tolerance
    of 15 % is the same for early and for late skills; the page also has the mean and the standard deviation over
    networks. The whole curves (`strength`) are drawn and not judged, as the law does not claim their ends: networks
    saturate more slowly than a logistic curve.

    The law is for wide networks, and late skills are slower than it says. Of the default fields the first skill comes
    as forecast, the second some five percent late, and the third some eight, at width 800 no less than at 400. At width
    200 it is eleven percent late and at 100 between 15 and 25, where theory and experiment disagree.

    Attributes:
        skills: n_s.
        bits: n_b.
        relevant_bits: m, the bits on which each skill depends.
        exponent: α; frequencies of skills fall as k^−(α+1).
        target_scale: S.
        paper: Whether to train the networks of the source instead (37 → 1000 → 1 on fresh samples, 30 000 steps, ten
            networks), on a GPU.
        width: Hidden neurons.
        deviation: Standard deviation of the weights and of the hidden biases at the start; the bias of the output is
            zero.
        learning_rate: η.
        batch_size: Fresh samples in a step; zero for the exact gradient over all inputs, of at most 16 bits.
        steps: Steps with all skills; zero for one and a half times the last step that is forecast.
        calibration_steps: Steps with one skill, enough to learn it.
        calibration_seeds: Networks with one skill; more than of the others, as an error of the calibration is one of
            every forecast.
        times: Number of steps at which the strengths are recorded.
        seeds: Networks with all skills.
        seed: Seed of the networks and samples.
    """

    width: int = 400
    deviation: float = 0.01
    learning_rate: float = 0.05
    batch_size: int = 0
    steps: int = 0
    calibration_steps: int = 1200
    calibration_seeds: int = 20
    times: int = 200
    seeds: int = 5
    seed: int = 0

    name: ClassVar[str] = "emergence-time"
    reference: ClassVar[Reference] = Reference(
        paper=EmergenceStudy.source,
        arxiv="2404.17563",
        claim="Skills are learned one after the other, each along a logistic curve at a rate in proportion to its "
        "frequency; calibrated on one skill, this forecasts when a network learns the others.",
    )
    along: ClassVar = "skill"
    minutes: ClassVar[float] = 0.8
    tiny: ClassVar = {
        **{"skills": 2, "bits": 6, "width": 200, "learning_rate": 0.1},
        **{"calibration_steps": 400, "calibration_seeds": 8, "times": 60},
    }

    def observe(self) -> xr.Dataset:
        """Train the networks on all skills."""
        import numpy as np

        from dynascope.record import make_record

        if self.paper:
            return self._published.observe()
        steps, strength, loss = self._trained(self._parity, int(self._recorded[-1]), seeds=self.seeds, first=0)
        halves = np.array([[_half(steps, curve) for curve in run.T] for run in strength])
        mean = halves.mean(axis=0)
        return make_record(
            {
                "loss": (("seed", "step"), loss),
                "strength": (("seed", "step", "skill"), strength),
                "half_strength_step_of_seed": (("seed", "skill"), halves),
                "half_strength_step": (("skill",), mean),
                "half_strength_step_spread": (("skill",), _spread(halves)),
                "log_half_strength_step": (("skill",), np.log(mean)),
            },
            {"seed": np.arange(self.seeds), "step": steps, "skill": self._labels},
            attributes=self._about(),
        )

    def predict(self) -> xr.Dataset:
        """Calibrate on one skill, and forecast the others."""
        import numpy as np

        from dynascope.record import make_record
        from dynascope.theory.skills import time_emergence

        if self.paper:
            return self._published.predict()
        found, frequencies = self._calibration, self._parity.frequencies
        steps, strength, _ = self._single_skill
        law = {
            "offset": found.offset,
            "rate": found.rate,
            "learning_rate": self.learning_rate,
            "target_scale": self.target_scale,
        }
        logarithms = np.log(self._forecast)
        tolerance = {
            "log_half_strength_step": math.log(1 + _WITHIN) * math.sqrt(self.skills) / np.linalg.norm(logarithms),
            "log_half_strength_step_maximum": math.log(1 + _WITHIN) / np.abs(logarithms).max(),
        }
        return make_record(
            {
                "strength": (("step", "skill"), time_emergence(self._recorded, frequencies, **law)),
                "half_strength_step": (("skill",), self._forecast),
                "half_strength_step_standard_error": (("skill",), found.half_step_error / frequencies),
                "log_half_strength_step": (("skill",), logarithms),
                "calibration_strength": (("seed", "time"), strength[:, :, 0]),
                "calibrated_strength": (("time",), time_emergence(steps, [1.0], **law)[:, 0]),
            },
            {
                "seed": np.arange(self.calibration_seeds),
                "step": self._recorded,
                "time": self.learning_rate * steps,
                "skill": self._labels,
            },
            attributes={
                "theory": "multilinear skills, calibrated on one skill",
                "reference": self.reference.paper,
                **{f"calibrated_{name}": value for name, value in found._asdict().items()},
                **{f"{name}_tolerance": float(value) for name, value in tolerance.items()},
                **{f"{name}_tolerance_reason": _REASON for name in tolerance},
                **self._about(),
            },
        )

    def compare(self, observed: xr.Dataset, predicted: xr.Dataset) -> xr.DataTree:
        """Judge the half-strength steps; the curves are shown."""
        tree = super().compare(observed, predicted.drop_vars(_REPORTED))
        tree["predicted"].dataset = predicted
        rows = [
            f"skill {skill} at {mean:.0f} ± {spread:.0f}, forecast {forecast:.0f} ({mean / forecast - 1:+.1%})"
            for skill, mean, spread, forecast in zip(
                observed["skill"].to_numpy(),
                observed["half_strength_step"].to_numpy(),
                observed["half_strength_step_spread"].to_numpy(),
                predicted["half_strength_step"].to_numpy(),
                strict=True,
            )
        ]
        tree.attrs["verdict_sentence"] += (
            f" Half-strength steps, mean ± standard deviation of {observed.sizes['seed']} networks: {'; '.join(rows)}."
        )
        return tree

    @functools.cached_property
    def _calibration(self) -> Calibration:
        from dynascope.errors import InputError
        from dynascope.theory.skills import calibrate

        steps, strength, _ = self._single_skill
        try:
            return calibrate(steps, strength[:, :, 0], learning_rate=self.learning_rate, target_scale=self.target_scale)
        except InputError as error:
            raise InputError(
                f"the law cannot be calibrated on networks that learn one skill for {self.calibration_steps} steps",
                argument="calibration_steps",
                value=self.calibration_steps,
                remedy="train longer, until the skill is learned",
            ) from error

    @functools.cached_property
    def _single_skill(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        alone = dataclasses.replace(self._parity, skills=1)
        return self._trained(alone, self.calibration_steps, seeds=self.calibration_seeds, first=self.seeds)

    @functools.cached_property
    def _forecast(self) -> np.ndarray:
        from dynascope.theory.skills import half_strength_steps

        return half_strength_steps(
            self._parity.frequencies,
            offset=self._calibration.offset,
            rate=self._calibration.rate,
            learning_rate=self.learning_rate,
            target_scale=self.target_scale,
        )

    @functools.cached_property
    def _recorded(self) -> np.ndarray:
        return self._evenly(self.steps or math.ceil(_BEYOND * self._forecast[-1]))

    def _evenly(self, steps: int) -> np.ndarray:
        import numpy as np

        return np.unique(np.linspace(0, steps, self.times).round().astype(np.int64))

    def _trained(
        self, parity: SparseParity, steps: int, *, seeds: int, first: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Recorded steps, R_k/S of shape (seeds, steps, skills) and losses of networks from the seed `first` on."""
        import numpy as np

        from dynascope.flows import descend
        from dynascope.studies.scaling.parity_networks import SkillReading, gaussian_network

        widths = (parity.input_dimension, self.width, 1)
        start = (self.seeds + self.calibration_seeds) * self.seed + first
        run = descend(
            [gaussian_network(widths, self.deviation, start + k) for k in range(seeds)],
            parity if self.batch_size else parity.expectation(),
            steps=steps,
            learning_rate=self.learning_rate,
            batch_size=self.batch_size or None,
            record_steps=self._evenly(steps),
            statistics={"strength": (SkillReading(parity, "strength"), ("skill",))},
            # The samples by which strengths are estimated are those of zero.
            seed=start + 1,
        )
        return run["step"].to_numpy(), *(run[name].to_numpy().astype(np.float64) for name in ("strength", "loss"))

    def _check(self, parity: SparseParity) -> None:
        from dynascope.arguments import require_integer, require_positive, require_seed

        require_seed(self.seed)
        require_positive(width=self.width, deviation=self.deviation, learning_rate=self.learning_rate)
        require_integer(least=0, batch_size=self.batch_size, steps=self.steps)
        require_integer(least=20, calibration_steps=self.calibration_steps, times=self.times)
        require_integer(least=2, calibration_seeds=self.calibration_seeds, seeds=self.seeds)

    @functools.cached_property
    def _published(self) -> EmergenceTime:
        return dataclasses.replace(self, **_PUBLISHED, paper=False)

    def _about(self, *sentences: str) -> dict[str, Any]:
        samples = (
            f"on {self.batch_size} fresh samples in a step" if self.batch_size else "by the gradient over all inputs"
        )
        return super()._about(
            f"Of networks of {self.width} neurons {self.calibration_seeds} learn one skill, and {self.seeds} all.",
            f"They descend {samples}.",
            "The law is calibrated on one skill; compared are the steps at which the others have half strength.",
            *sentences,
        )


def _half(steps: np.ndarray, strength: np.ndarray) -> float:
    """The first step at which half strength is passed, infinite if it is not; logit(R/S) is interpolated.

    A logistic curve has a straight one, however few records it has.
    """
    import numpy as np
    from scipy.special import logit

    passed = strength >= 0.5
    if not passed.any():
        return math.inf
    after = max(int(np.argmax(passed)), 1)
    around = slice(after - 1, after + 1)
    return float(np.interp(0.0, logit(np.clip(strength[around], 1e-6, 1 - 1e-6)), steps[around]))


def _spread(halves: np.ndarray) -> np.ndarray:
    """Standard deviation over networks; infinite where one of them does not reach half strength."""
    import numpy as np

    reached = np.isfinite(halves)
    return np.where(reached.all(axis=0), np.where(reached, halves, 0.0).std(axis=0, ddof=1), np.inf)

"""From how many samples a network learns each of its skills, forecast from one skill that is trained alone."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import numpy as np
import optax
import xarray as xr

from dynascope.comparison import Claim
from dynascope.flows import descend
from dynascope.plot import Chart
from dynascope.studies.fields import count, numbers, positive, seed
from dynascope.studies.scaling.extended_multilinear import least_norm_strength, mean_interpolants, train_extended
from dynascope.studies.scaling.parity_networks import SKILLS, STRENGTH, gaussian_network
from dynascope.studies.scaling.skill_needs import CLAIM_CHART, QUARTER, SkillNeeds, strength_chart
from dynascope.studies.scaling.skill_simulation import NAM
from dynascope.studies.study import Reference, curve_tolerance
from dynascope.tasks import Task
from dynascope.theory.skills import Need, calibrate_data, data_emergence
from dynascope.theory.skills.training_set import Definition

__all__ = ["EmergenceData"]

_DEVIATION = 0.01  # of the weights at the start
_NETWORKS = 2  # from different starts on each training set
_TRAINED = 12  # training sets on which the extended model is trained
_LEARNED = 0.9  # where the curve of one skill is long past one half
_ABRUPT = "Networks learn a skill more abruptly than in proportion to its samples."
_DIFFERENCES = {
    0.25: (_ABRUPT, {"most": 0.0}),
    0.5: ("Networks have about half of a skill where half is forecast.", {"least": -QUARTER, "most": QUARTER}),
    0.75: (_ABRUPT, {"least": 0.0}),
}
_MEAN = (0.02, "the standard error of a mean over four thousand training sets or more is below half a percent")
_INTERPOLANT = (1e-3, "directions that no sample sees keep their start, a ten-thousandth of the end")


class EmergenceData(SkillNeeds):
    """The strength R_k/S of each skill of multitask sparse parity after training on D samples.

    Two-layer ReLU networks are trained to the end on D fixed samples. D_c is calibrated on networks that learn one
    skill alone, and forecasts the strength of every skill, in correlation (`strength`) and in loss (`loss_equivalent`,
    below zero where a network is worse than none), and the number of samples at which the strength is half
    (`half_samples`; over the forecast, `half_samples_ratio`). Judged is whether networks learn half of every skill
    nearer to its own forecast than to that of another skill, between which is half way where both are off by the same
    factor. Three more claims, which are reported, say how far the strength is from a quarter, a half and three quarters
    where that much is forecast. The intervals are over training sets and leave out the error of the calibration.
    Samples of other skills disturb, of which a calibration on one skill knows nothing: networks of the default fields
    need 1.2 to 1.3 times as many samples as are forecast. As the forecasts for the second and the third skill are only
    a factor of 1.9 apart, and four training sets of each size scatter, the claim is then undecided.

    Checked is the model of the theory, in which a skill g_k = Σ_l e_l/√D_c is spread over D_c generic features. Its
    interpolants of least norm are computed for many training sets, and compared with the mean strength
    E[d/(d + χ²)] of skill k with d samples and with the loss that it leaves (`basis_strength`, `basis_loss`, over
    ½ S²). Gradient descent on f = Σ_k a_k Σ_l B_kl e_kl from a small start must end at these interpolants
    (`trained_strength`, in twelve training sets).
    """

    samples: list[int] = numbers(
        [16, 32, 48, 64, 96, 128, 192, 256, 384, 576, 768, 1152, 2304],
        "Numbers of samples D, increasing. Each divides the last, so that one compiled program serves all.",
        fewest=2,
        whole=True,
        increasing=True,
    )
    width: int = count(100, "Hidden neurons of the networks.")
    learning_rate: float = positive(0.1, "Learning rate of the networks.")
    halving_steps: int = count(
        0, "Steps after which the learning rate is halved, again and again; zero for never.", least=0
    )
    steps: int = count(10_000, "Steps of the networks.")
    batch_size: int = count(128, "Samples in a step, at most those of the largest training set.")
    runs: int = count(4, "Training sets of each size; two networks learn from each.", least=2)
    features: int = count(64, "D_c of the model of the theory.", least=6)
    draws: int = count(5000, "Its training sets.", least=4000)
    seed: int = seed("Seed of everything that is drawn.")

    name: ClassVar[str] = "emergence-data"
    resource: ClassVar[str] = "samples"
    axes: ClassVar = ("samples", "skill")
    shown: ClassVar = ("strength", "loss_equivalent", "half_samples")
    theory: ClassVar[str] = "interpolants of least norm on the features of each skill"
    reference: ClassVar[Reference] = Reference(
        paper=NAM,
        arxiv="2404.17563",
        claim="A skill spread over as many generic features as it needs samples is learned in proportion to its "
        "samples; calibrated on one skill, this forecasts from how many samples a network learns the others.",
    )
    along: ClassVar = ("skill",)
    title: ClassVar[str] = "From how many samples skills emerge"
    question: ClassVar[str] = (
        "How many examples does a network need of a skill before it has it, and can that be forecast?"
    )
    figures: ClassVar = (
        strength_chart(
            "samples",
            "How much of each skill networks have learned after training on so many samples, with standard errors "
            "over {parameters.runs} training sets. Dashed is the forecast: it knows how often each skill is asked "
            "for, and how many samples networks need that learn one skill alone.",
            log="x",
        ),
        Chart(
            "half_samples",
            "skill",
            "The number of samples from which half of a skill is learned. Networks needed between "
            "{observed.half_samples_ratio:least} and {observed.half_samples_ratio:most} times what is forecast "
            "(dashed).",
            log="y",
            points=True,
            title="How many samples each skill needs",
            x_label=SKILLS,
        ),
        CLAIM_CHART,
        Chart(
            "basis_strength",
            "samples",
            "The model of the theory, in which a skill is spread over {parameters.features} features that say nothing "
            "else: mean of {parameters.draws} training sets, and its exact law (dashed).",
            log="x",
            points=True,
            title="The model behind the forecast",
            y_label=STRENGTH,
        ),
    )
    meaning: ClassVar[str] = (
        "Two-layer networks are trained to the end on fixed sets of samples, each of which asks for one of "
        "{parameters.skills} skills; a skill is a parity of some bits, and each is asked for less often than the one "
        "before. Theory says that a skill is learned in proportion to its samples, and takes from networks that learn "
        "one skill alone how many it needs. It forecasts half of the first skill from {predicted.half_samples:first} "
        "samples in all, and half of the last from {predicted.half_samples:last}; networks had it from "
        "{observed.half_samples:first} and {observed.half_samples:last}. In a network the samples of one skill "
        "disturb the others, of which the model knows nothing. The verdict is on whether networks learn every skill "
        "nearer to its own forecast than to that of another skill."
    )
    minutes: ClassVar[float] = 2.0
    tolerance: ClassVar = curve_tolerance(basis_strength=_MEAN, basis_loss=_MEAN, trained_strength=_INTERPOLANT)
    checks: ClassVar = tuple(tolerance)
    tiny: ClassVar = {
        **{"skills": 2, "bits": 6, "relevant_bits": 2, "samples": [8, 32, 128], "width": 16},
        **{"steps": 800, "batch_size": 64, "runs": 2, "features": 16, "draws": 4000},
    }

    published: ClassVar = {
        **{"skills": 5, "bits": 32, "relevant_bits": 3, "exponent": 0.6, "target_scale": 5.0, "width": 1000},
        **{"samples": [2**k for k in range(7, 18)], "learning_rate": 0.05, "halving_steps": 50_000, "steps": 500_000},
        **{"batch_size": 2000, "runs": 5},
    }

    def trained(self) -> xr.Dataset:
        """Solve and train the model of the theory, train the networks, and put the claims to them."""
        strength, loss = self._basis
        found = [self._trained(size) for size in self.samples]
        # Networks of one training set share its luck, so that only sets are independent.
        runs = np.array([each.reshape(-1, _NETWORKS, self.skills).mean(axis=1) for each, _ in found])
        losses = np.array([each for _, each in found]).mean(axis=1)
        return self.record(
            {
                "basis_strength": strength,
                "basis_loss": loss,
                "trained_strength": (("run", "skill"), [self._descended(*each) for each in self._small_sets]),
                **self._observed(runs, losses),
                **self._reported(runs),
            },
            confidence=0.95,
        )

    def forecast(self) -> xr.Dataset:
        """The laws of the model, and with D_c from networks that learn one skill the forecast for all."""
        exact = self._law(self.features, finite_size=True)
        interpolants = [least_norm_strength(*each, self.skills) for each in self._small_sets]
        said = {
            "basis_strength": exact,
            "basis_loss": 1 - exact,
            "trained_strength": (("run", "skill"), interpolants),
        }
        return self._predicted(said, "networks that learn the most frequent skill alone")

    # The model of the theory.

    @functools.cached_property
    def _basis(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean strength and loss of each skill over training sets; the loss over that of the zero function."""
        draw = np.random.default_rng([self.seed, 0])
        found = []
        for size in self.samples:
            counts = draw.multinomial(size, self._parity.frequencies, size=self.draws)
            found.append(mean_interpolants(counts, self.features, draw))
        return tuple(np.moveaxis(np.array(found), 1, 0))

    @functools.cached_property
    def _small_sets(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Training sets that teach a quarter of the most frequent skill: features of the samples, and targets."""
        draw, shares = np.random.default_rng([self.seed, 1]), self._parity.frequencies
        counts = np.round(self.features / 4 * shares / shares[0]).astype(int)
        skill = np.repeat(np.arange(self.skills), np.append(max(counts[0], 1), counts[1:]))
        rows, found = np.arange(len(skill)), []
        for _ in range(_TRAINED):
            inputs, sign = np.zeros((len(skill), self.skills, self.features)), draw.choice([-1.0, 1.0], len(skill))
            # In a basis of which the skill is the first; no rotation of the features changes a thing.
            inputs[rows, skill] = draw.normal(size=(len(skill), self.features))
            inputs[rows, skill, 0] = sign
            found.append((inputs.reshape(len(skill), -1), self.target_scale * sign))
        return found

    def _descended(self, inputs: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """The strength of each skill in the extended model, trained on the samples."""
        weights = np.random.default_rng([self.seed, 2]).normal(size=(self.skills, self.features))
        # Many times what it takes a skill of one sample to leave the start, whose rate is about 4 P(1) S/√D_c.
        steps = int(250 * np.sqrt(self.features) / self._parity.frequencies[0])
        coefficients = train_extended(inputs, targets, weights, target_scale=self.target_scale, steps=steps)
        return coefficients[:, 0] / self.target_scale

    # The networks.

    def _trained(self, size: int, skill: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Strength R/S and loss over ½ S² of every skill, shape (networks, skills), after training on D samples."""
        copies, found = self.samples[-1] // size, []
        for run in range(self.runs):
            seeds = [self.seed, size, run, 0 if skill is None else 1]
            key = int(np.random.default_rng(seeds).integers(2**31))
            # As many as for the largest set, so that sampling too is compiled once.
            drawn = self._parity.sample(jax.random.key(key), self.samples[-1], skill=skill)
            inputs, targets = (np.tile(np.asarray(each)[:size], (copies, 1)) for each in drawn[:2])
            widths = (self._parity.input_dimension, self.width, 1)
            record = descend(
                [gaussian_network(widths, _DEVIATION, key + start) for start in range(_NETWORKS)],
                Task(inputs, targets),
                steps=self.steps,
                learning_rate=self.learning_rate,
                optimizer=_halved(self.halving_steps) if self.halving_steps else "sgd",
                batch_size=self.batch_size,
                record_steps=[self.steps],
                statistics=self._readings,
                seed=key,
            )
            found.append([record[name].to_numpy()[:, -1].astype(np.float64) for name in ("strength", "skill_loss")])
        strength, loss = np.concatenate(found, axis=1)
        return strength, loss

    def _alone(self) -> tuple[list[int], np.ndarray, np.ndarray]:
        found = []
        for size in self.samples:
            found.append([each[:, 0].mean() for each in self._trained(size, skill=0)])
            if 1 - np.sqrt(found[-1][1]) > _LEARNED:
                break
        return self.samples[: len(found)], *np.transpose(found)

    def _calibrate(self, amounts: list[int], strength: np.ndarray, definition: Definition) -> Need:
        return calibrate_data(amounts, strength, definition=definition)

    def _law(self, needed: float, definition: Definition = "correlation", *, finite_size: bool = False) -> np.ndarray:
        return data_emergence(
            self.samples, self._parity.frequencies, needed, definition=definition, finite_size=finite_size
        )

    @property
    def _forecast_half(self) -> np.ndarray:
        return self._needs["correlation"].half / self._parity.frequencies

    def _along(self, amounts: np.ndarray) -> np.ndarray:
        """Frequencies fall by factors, and so do the forecasts differ."""
        return np.log(amounts)

    def _differences(self, runs: np.ndarray) -> list[Claim]:
        """By how much strength differs from a forecast of a quarter, a half and three quarters."""
        first, last = self.samples[0], self.samples[-1]
        claims = []
        for share, (statement, bounds) in _DIFFERENCES.items():
            at = 2 * share * self._forecast_half
            inside = np.flatnonzero((at >= first) & (at <= last)).tolist()
            if inside:
                reached = np.mean([self._strength_at(runs, k, np.log(at[k])) for k in inside], axis=0)
                claims.append(Claim.of_runs(f"forecast {share:g}", statement, reached - share, **bounds))
        return claims

    def check(self) -> None:
        """Training sets fill the largest one, and the smallest teaches less than there is."""
        super().check()
        least, most = self.samples[0], self.samples[-1]
        self.require(not any(most % size for size in self.samples), "samples", "give numbers that divide the last")
        self.require(
            least * self._parity.frequencies[-1] < self.features,
            "samples",
            "choose fewer samples to begin with, or more features",
            problem=f"the smallest of samples, {least}, teaches even the rarest skill of {self.features} features",
        )
        self.require(
            self.batch_size <= most, "batch_size", f"choose no more than the {most} samples of the largest training set"
        )

    @property
    def _description(self) -> list[str]:
        return [
            f"Networks of {self.width} neurons, {self.runs * _NETWORKS} for each number of samples.",
            f"The model of the theory has {self.features} features for each skill.",
        ]


@functools.cache
def _halved(every: int) -> Callable[[Any], Any]:
    """Descent at a rate that is halved again and again; one object, so that a compiled program is found."""

    def halved_descent(learning_rate: Any) -> Any:
        def rate(step: Any) -> Any:
            return learning_rate * 0.5 ** (step // every)

        return optax.sgd(rate)

    return halved_descent

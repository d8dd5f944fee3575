"""Training and prediction of deep linear networks with aligned or random layers on whitened inputs."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import numpy as np

from dynascope.errors import DivergenceError
from dynascope.flows import GradientFlow, Solver, gradient_flow
from dynascope.networks import DeepLinear
from dynascope.results.steps_seen import crossing_times
from dynascope.studies.linear_networks.deep_saddles.random_networks import Moments, moments_by_width
from dynascope.studies.power_fit import measured_exponents
from dynascope.tasks import Task
from dynascope.theory.deep_modes import initialisation_exponents, saddle_escape_time, strength_at, time_to_strength
from dynascope.theory.deep_modes.saddle import escape_slope

if TYPE_CHECKING:
    from dynascope.studies.linear_networks.deep_saddles.study import DeepSaddles

__all__ = ["Experiment"]

_MOST_STEPS = 5e5  # largest number of solver steps
_LARGEST_CORRECTION = (
    0.15  # of the escape slope; the tolerance is twice as large and must still exclude an error of a factor of two
)
_START = ("architecture", "exponent")


class Experiment:
    """Trains the networks of a study, and predicts their modes, plateaus and exponents.

    Attributes:
        study: The study, whose fields are the settings.
        targets: Singular values σᵢ of the target map.
        scales: Standard deviations width^(−γ/2) of the random weights, the largest first.
        initial_strength: Initial strength s₀ of the aligned modes. Their layers have norm scale·√width at the smallest
            scale, like random layers.
    """

    def __init__(self, study: DeepSaddles):
        self.study = study
        self.targets = np.asarray(study.singular_values, float)
        self.scales = study.width ** (-np.asarray(study.training_gammas, float) / 2)
        self.initial_strength = float((self.scales[-1] * study.width**0.5) ** study.depth)

    @functools.cached_property
    def times(self) -> np.ndarray:
        """Log-spaced times until long after the slowest mode of the smallest initialisation is learned."""
        slowest = float(saddle_escape_time(self.targets[-1], self.initial_strength, depth=self.study.depth))
        rise = self.targets[-1] ** -(2 - 2 / self.study.depth)
        last = 2.5 * slowest + 20 * rise
        return np.concatenate([[0.0], np.geomspace(0.01 / self.targets[0], last, self.study.times - 1)])

    @functools.cached_property
    def task(self) -> Task:
        """Whitened inputs and a diagonal target map; initial weights are isotropic, so any basis is equivalent."""
        modes = len(self.targets)
        inputs = np.sqrt(modes) * np.eye(modes)
        return Task(inputs, inputs * self.targets, name="whitened inputs")

    def trained(self) -> dict[str, Any]:
        """Train aligned and random networks by gradient flow, and measure many random networks at initialisation."""
        depth, modes = self.study.depth, len(self.targets)
        aligned = depth * [self.initial_strength ** (1 / depth) * np.eye(modes)]
        (strength,), (loss,) = self.train(aligned, [1.0])
        # Weights of unit variance, to be multiplied by each scale.
        sizes = [modes, *(depth - 1) * [self.study.width], modes]
        draw = np.random.default_rng([self.study.seed, 1])
        weights = [draw.normal(size=shape) for shape in itertools.pairwise(sizes)]
        random, random_loss = self.train(weights, self.scales)
        ranks = np.sum(random / self.targets, axis=-1)
        escapes = np.array([self.jump_times(each)[0] for each in ranks])
        plateau_rank, plateau_loss = self.plateaus(ranks[-1], random_loss[-1])
        return {
            "loss": loss,
            "mode_strength": (("time", "mode"), strength),
            "learned_rank": np.sum(strength / self.targets, axis=-1),
            "random_loss": (("scale", "time"), random_loss),
            "random_learned_rank": (("scale", "time"), ranks),
            "plateau_rank": ("level", plateau_rank),
            "plateau_loss": ("level", plateau_loss),
            "log_escape_time": ("scale", np.log10(escapes)),
            "escape_slope": ((), escape_slope(escapes, self.scales, self.targets[0], depth=depth)),
            **self.initial_exponents(),
        }

    def exact(self) -> dict[str, Any]:
        """Evaluate the closed form of the aligned modes, and the plateaus and exponents of the paper."""
        study, targets = self.study, self.targets
        path = strength_at(self.times[:, None], targets, self.initial_strength, depth=study.depth)
        ranks = np.sum(np.asarray(path.strength) / targets, axis=1)
        loss = np.sum(np.asarray(path.residual) ** 2, axis=1) / 2
        self.require_plateaus(ranks, loss)
        escapes = np.asarray(saddle_escape_time(targets[0], self.scales**study.depth, depth=study.depth))
        exponents = [[initialisation_exponents(depth, gamma) for gamma in study.gammas] for depth in study.depths]
        return {
            "loss": loss,
            "mode_strength": (("time", "mode"), path.strength),
            "learned_rank": ranks,
            "plateau_rank": ("level", np.arange(float(len(targets)))),
            "plateau_loss": ("level", [np.sum(targets[rank:] ** 2) / 2 for rank in range(len(targets))]),
            "escape_slope": ((), escape_slope(escapes, self.scales, targets[0], depth=study.depth)),
            "output_variance_exponent": (_START, [[float(each.output_variance) for each in row] for row in exponents]),
            "kernel_exponent": (_START, [[float(each.kernel) for each in row] for row in exponents]),
            "regime": (_START, [[str(each.regime) for each in row] for row in exponents]),
        }

    def train(self, weights: Sequence[np.ndarray], scales: Iterable[float]) -> tuple[np.ndarray, np.ndarray]:
        """Strengths of the target's modes, shape (scales, times, modes), and the loss, shape (scales, times)."""
        frame = DeepLinear([weights[0].shape[0], *(each.shape[1] for each in weights)])
        run = gradient_flow(
            self.task,
            eqx.tree_at(lambda network: network.weights, frame, tuple(weights)),
            GradientFlow(
                duration=float(self.times[-1]),
                solver=Solver(relative_tolerance=1e-10),
                save=self.times,
                statistics={"mode_strength": (_diagonal, ("mode",))},
                # The loss is constant after the last jump, but the solver would keep the short steps of the jump.
                loss_target=1e-18 * float(np.sum(self.targets**2)),
            ),
            scale=list(scales),
        )
        return run["mode_strength"].to_numpy(), run["loss"].to_numpy()

    def initial_exponents(self) -> dict[str, tuple[Any, np.ndarray]]:
        """Moments of random networks, and the exponents with which they scale with the width."""
        study, found = self.study, {}
        moments = moments_by_width(study.depths, study.gammas, study.widths, draws=study.draws, seed=study.seed)
        for name, values in zip(Moments._fields, moments, strict=True):
            found |= measured_exponents(name, np.asarray(study.widths, float), values, "exponent")
            found[f"log_{name}"] = (*_START, "scaling_parameter"), np.log10(values)
        return found

    def jump_times(self, ranks: np.ndarray) -> np.ndarray:
        """Times at which the learned rank, which need not be monotonic, first crosses ½, 1½, …."""
        halves = np.arange(len(self.targets)) + 0.5
        if ranks[-1] <= halves[-1]:
            problem = f"a random network has learned only a rank of {ranks[-1]:.2g}"
            remedy = "choose smaller training_gammas, or another seed"
            raise DivergenceError(problem, time=float(self.times[-1]), remedy=remedy)
        return crossing_times(self.times, -ranks, -halves)

    def plateaus(self, ranks: np.ndarray, loss: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Learned rank and loss halfway between successive jumps, counting t = 0 as the first jump."""
        middles = np.convolve([0.0, *self.jump_times(ranks)], [0.5, 0.5], "valid")
        return np.interp(middles, self.times, ranks), np.interp(middles, self.times, loss)

    def plateau_error(self, ranks: np.ndarray, loss: np.ndarray) -> float:
        """Largest deviation of ranks and losses from the predicted plateaus, relative to the highest plateau."""
        levels, plateaus = np.cumsum(self.targets[::-1] ** 2)[::-1] / 2, self.plateaus(ranks, loss)
        # The rank alone does not suffice: two half-learned modes also have an integer rank.
        off, above = plateaus[0] - np.arange(len(levels)), plateaus[1] - levels
        return float(max(np.abs(off).max() / (len(levels) - 1), np.abs(above).max() / levels[0]))

    @functools.cached_property
    def slope_correction(self) -> float:
        """Deviation of the escape slope from its leading order, for aligned layers with the norms of random layers."""
        depth, strongest = self.study.depth, self.targets[0]
        starts = (self.scales[-2:] * self.study.width**0.5) ** depth
        with jax.enable_x64(True):
            times = time_to_strength(strongest / 2, strongest, np.minimum(starts, strongest / 2), depth=depth)
        return abs(escape_slope(np.asarray(times), self.scales, strongest, depth=depth) - 1)

    def require_plateaus(self, ranks: np.ndarray, loss: np.ndarray) -> None:
        """Reject settings for which aligned modes have no plateaus, or plateaus that are too long to integrate.

        Raises:
            InputError: The plateaus are missing or too long.
        """
        require, singular_values, gammas = self.study.require, self.study.singular_values, self.study.training_gammas
        limit, _ = self.study.tolerance["plateau_rank"]
        problem = f"modes with singular values {singular_values} are learned together, without plateaus between them"
        remedy = "choose singular values further apart, or larger training_gammas"
        require(self.plateau_error(ranks, loss) < limit, "singular_values", remedy, problem=problem)
        problem = f"with training_gammas {gammas}, the first jump is too long compared with the plateau before it"
        require(self.slope_correction < _LARGEST_CORRECTION, "training_gammas", "choose larger values", problem=problem)
        # Once a mode is learned, the steps of the solver are at most a few time constants of its relaxation.
        resting = self.times[-1] - self.jump_times(ranks)[0]
        steps = resting * self.study.depth * self.targets[0] ** (2 - 2 / self.study.depth) / 3
        problem = f"with training_gammas {gammas}, the solver would need {steps:.0e} steps for the last plateaus"
        remedy = "choose a smaller last value, or singular values that are closer together"
        require(steps < _MOST_STEPS, "training_gammas", remedy, problem=problem)


def _diagonal(network: DeepLinear) -> Any:
    return functools.reduce(lambda product, weight: product @ weight, network.weights).diagonal()

"""Linear models with the same function class but different feature strengths learn different functions."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Interval

from dynascope.flows.solvers.solver import Solver
from dynascope.studies import Reference, Study, Values, exact, parameter
from dynascope.studies.features.linear_inductive_bias import page
from dynascope.studies.features.linear_models import exactly_learned, train_from_zero
from dynascope.studies.features.sines import centres, points_apart, sines
from dynascope.theory import papers
from dynascope.theory.features import learnability, mode_flow, training_flow
from dynascope.validation.bounded import PositiveInt, Seed


class LinearInductiveBias(Study):
    """Trains two models Σ_k w_k √ρ_k √2 sin(2πkx) with feature strengths ρ_k that fall or rise with k.

    Both models are trained on a few points and, separately, on densely sampled data (the population). The strengths
    (intensities) ρ_k are k^(−2α) in the first model and k^(2α) in the second, normalised to a maximum of one. The study
    compares the gradient flow of all coefficients with the exact solution. The learned fraction of each mode
    (learnability), averaged over random sets of points, and its prediction for Gaussian features are shown but do not
    affect the verdict.
    """

    samples: Annotated[int, Ge(2)] = parameter(4, "Number n of points, smaller than the number of modes.")
    modes: PositiveInt = parameter(10, "Number p of modes.")
    exponent: Annotated[float, Interval(gt=0, le=6)] = parameter(
        4.0, "Exponent α of the feature strengths k^(−2α) and k^(2α)."
    )
    draws: PositiveInt = parameter(
        2000, "Number of random sets of points over which the learned fractions are averaged."
    )
    times: Annotated[int, Ge(2)] = parameter(120, "Number of recorded times.")
    positions: PositiveInt = parameter(
        400, "Number of positions x (coordinate `sample`) at which the fits are recorded."
    )
    seed: Seed = parameter(0, "Seed of the points and their Gaussian labels.")

    reference = Reference.of(
        papers.EIGENLEARNING,
        "Among all functions that fit the samples, a linear model learns one in which the strongest modes of the model "
        "dominate. The model also learns these modes first.",
        also="The set-up is that of Y. Nam, DPhil thesis (2024), figure 1.2.",
    )
    theory = "modes of the training kernel and of the population"
    task = "a few points on a line"
    notes = (
        "The models have {modes} sine modes and are trained on {samples} points with Gaussian labels. The modes have "
        "strengths k^(-2a) or k^(2a), normalised to a maximum of one, with a = {exponent:g}.",
        "Learned fractions are means over {draws} random sets of uniformly distributed points.",
    )
    trains = "linear models on sine features"
    flow = "gradient flow"
    axes = ("run", "time")
    labelled = {"run": ("low first", "high first"), "sample": lambda study: centres(study.positions)}
    along = ("time", "sample")
    title = "Inductive bias of linear models"
    question = "If many functions fit the same few points, which one does a linear model learn?"
    figures, meaning = page.figures, page.meaning
    equation = r"\dot r = -\frac{1}{n} K r, \quad r(t) = \sum_k a_k (a_k \cdot r_0) \, e^{-\rho_k t}"
    minutes = 0.2
    names = {
        "coefficients": ("coefficient of the mode", "1"),
        "population_coefficients": ("coefficient of the mode during training on the population", "1"),
    }
    tolerance = exact(
        *("loss", "coefficients", "population_coefficients", "fitted"),
        error=1e-5,
        reason="the theory is exact, and the solver error is below 1e-9 per step",
    )
    tiny = {"modes": 6, "samples": 3, "exponent": 2.0, "draws": 100, "times": 20, "positions": 40}

    def check(self) -> None:
        """Require more modes than points."""
        few = f"choose at least two points, but fewer than the {self.modes} modes"
        self.require(self.samples < self.modes, "samples", few)

    def trained(self) -> Values:
        """Train both models on the points and on the population, and average learned fractions over random points."""
        x, y = self._data
        # Repeating the points leaves the loss unchanged and makes both tasks equally large, so they share one program.
        copies = 2 * self.modes // self.samples + 1
        grid = np.arange(copies * self.samples) / (copies * self.samples)
        loss, points = self._train(np.tile(x, copies), np.tile(y, copies))
        _, population = self._train(grid, np.sum(sines(grid, self.modes), axis=1))
        return self._curves(loss, points, population, self._mean_learnability())

    def exact(self) -> Values:
        """The exact flows on the points and on the population, and the learnability."""
        flows = self._flows(self._times)
        points = [np.sqrt(intensity) * flow.weights for intensity, flow in zip(self._intensity, flows, strict=True)]
        population = [mode_flow(self._times, each, np.ones(self.modes)).coefficients for each in self._intensity]
        learned = learnability(self._intensity, self.samples)
        return {
            **self._curves([flow.loss for flow in flows], points, population, learned),
            "intensity": (("run", "mode"), self._intensity),
        }

    def about(self) -> Values:
        """A description of the points and the models."""
        x, y = self._data
        return {**super().about(), "points": x.tolist(), "labels": y.tolist()}

    def _train(self, places: np.ndarray, labels: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Train both models; return losses and coefficients over time."""
        solver = Solver("stiff", relative_tolerance=1e-9, absolute_tolerance=1e-10)
        roots = np.sqrt(self._intensity)
        runs = [
            train_from_zero(root * sines(places, self.modes), labels[:, None], self._times, solver=solver)
            for root in roots
        ]
        coefficients = [root * run["weights"].to_numpy()[:, 0] for root, run in zip(roots, runs, strict=True)]
        return [run["loss"].to_numpy() for run in runs], coefficients

    def _curves(self, loss: Any, points: Sequence[Any], population: Sequence[Any], learned: Any) -> dict[str, Any]:
        coefficients = np.array(points)
        end = coefficients[:, -1]
        return {
            "loss": loss,
            "coefficients": (("run", "time", "mode"), coefficients),
            "population_coefficients": (("run", "time", "mode"), population),
            "fitted": (("run", "sample"), end @ sines(centres(self.positions), self.modes).T),
            "utilization": (("run", "mode"), end**2 / np.sum(end**2, axis=-1, keepdims=True)),
            "learnability": (("run", "mode"), learned),
        }

    def _mean_learnability(self) -> np.ndarray:
        places = np.random.default_rng([self.seed, 1]).uniform(size=self.draws * self.samples)
        basis = sines(places, self.modes).reshape(self.draws, self.samples, -1)
        return np.array([np.mean(exactly_learned(basis * np.sqrt(each)), axis=0) for each in self._intensity])

    def _flows(self, times: np.ndarray) -> list[Any]:
        x, y = self._data
        return [training_flow(times, np.sqrt(each) * sines(x, self.modes), y) for each in self._intensity]

    @functools.cached_property
    def _intensity(self) -> np.ndarray:
        """ρ of both models, normalised to a maximum of one, shape (2, p)."""
        modes = np.arange(1, self.modes + 1)
        return np.array([modes ** (-2.0 * self.exponent), (modes / self.modes) ** (2.0 * self.exponent)])

    @functools.cached_property
    def _data(self) -> tuple[np.ndarray, np.ndarray]:
        draw = np.random.default_rng(self.seed)
        return points_apart(self.samples, draw), draw.normal(size=self.samples)

    @functools.cached_property
    def _times(self) -> np.ndarray:
        """Recorded times, up to twenty time constants of the slowest mode of both models."""
        slowest = min(float(flow.intensity[-1]) for flow in self._flows(np.zeros(1)))
        return np.append(0.0, np.geomspace(0.1, 20 / min(slowest, float(self._intensity.min())), self.times - 1))

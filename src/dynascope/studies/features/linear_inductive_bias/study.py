"""Two linear models of the same functions and other intensities fit the same few points in other ways."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from dynascope.studies import Reference, Study, Values, exact
from dynascope.studies.features.linear_inductive_bias.page import FIGURES, MEANING
from dynascope.studies.features.linear_models import exactly_learned, train_from_zero
from dynascope.studies.features.sines import centres, points_apart, sines
from dynascope.studies.fields import count, positive, seed
from dynascope.theory import papers
from dynascope.theory.features import learnability, mode_flow, training_flow


class LinearInductiveBias(Study):
    """Models Σ_k w_k √ρ_k √2 sin(2πkx) with falling and with rising intensities, on a few points and on the population.

    The intensities are k^(−2α) in the one and k^(2α) in the other, over the largest of each. Compared are the exact
    flows of all coefficients. The mean learnability of each mode over random points, and the one that theory gives for
    features as if Gaussian, are recorded and not judged.
    """

    samples: int = count(4, "Number n of points, fewer than modes.", least=2)
    modes: int = count(10, "Number p of modes.")
    exponent: float = positive(4.0, "α > 0 of the intensities k^(−2α) and k^(2α), at most 6.", most=6.0)
    draws: int = count(2000, "Number of draws of random points for the mean learnability.")
    times: int = count(120, "Number of times at which both are recorded.", least=2)
    positions: int = count(400, "Number of places x, labels of `sample`, at which the fits are recorded.")
    seed: int = seed("Seed of the points and of their labels, which are Gaussian.")

    reference = Reference.of(
        papers.EIGENLEARNING,
        "Of all functions that fit the samples a linear model learns one in its most intense modes, which are "
        "also the modes that it learns first.",
        also="; set-up in Nam, DPhil thesis (2024), figure 1.2",
    )
    theory = "modes of the training kernel and of the population"
    task = "a few points on a line"
    told = (
        "{samples} points with Gaussian labels, and {modes} sine modes of intensities k^(-2a) and k^(2a) with a = "
        "{exponent:g}, over the largest of each.",
        "Learnabilities are means over {draws} draws of uniform points.",
    )
    trains = "linear models on sine features"
    flow = "gradient flow"
    axes = ("run", "time")
    labelled = {"run": ("low first", "high first"), "sample": lambda study: centres(study.positions)}
    along = ("time", "sample")
    title = "What linear models prefer"
    question = "If many functions fit the same few points, which of them is learned?"
    meaning = MEANING
    figures = FIGURES
    minutes = 0.2
    names = {
        "population_coefficients": ("coefficient, on the population", "1"),
    }
    tolerance = exact(
        *("loss", "coefficients", "population_coefficients", "fitted"),
        error=1e-5,
        reason="the theory is exact, and the solver keeps each step within 1e-9",
    )
    tiny = {"modes": 6, "samples": 3, "exponent": 2.0, "draws": 100, "times": 20, "positions": 40}

    def check(self) -> None:
        """Modes enough to choose among."""
        few = f"choose two or more, and fewer than modes, of which there are {self.modes}"
        self.require(self.samples < self.modes, "samples", few)

    def trained(self) -> Values:
        """Train both models on the points and on the population, and solve them for many random points."""
        x, y = self._data
        # Repeated points change no mean; both tasks then have the same size, and one program trains them.
        copies = 2 * self.modes // self.samples + 1
        grid = np.arange(copies * self.samples) / (copies * self.samples)
        loss, points = self._train(np.tile(x, copies), np.tile(y, copies))
        _, population = self._train(grid, np.sum(sines(grid, self.modes), axis=1))
        return self._curves(loss, points, population, self._mean_learnability())

    def exact(self) -> Values:
        """The modes of the training kernel and of the population, and the learnability."""
        flows = self._flows(self._times)
        points = [np.sqrt(intensity) * flow.weights for intensity, flow in zip(self._intensity, flows, strict=True)]
        population = [mode_flow(self._times, each, np.ones(self.modes)).coefficients for each in self._intensity]
        learned = learnability(self._intensity, self.samples)
        return {
            **self._curves([flow.loss for flow in flows], points, population, learned),
            "intensity": (("run", "mode"), self._intensity),
        }

    def about(self) -> Values:
        """The points and the models."""
        x, y = self._data
        return {**super().about(), "points": x.tolist(), "labels": y.tolist()}

    def _train(self, places: np.ndarray, labels: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Losses and coefficients of both models over time."""
        options = {"solver": "stiff", "relative_tolerance": 1e-9, "absolute_tolerance": 1e-10}
        roots = np.sqrt(self._intensity)
        runs = [
            train_from_zero(root * sines(places, self.modes), labels[:, None], self._times, **options) for root in roots
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
        """ρ of both models over the largest of each, (2, p)."""
        modes = np.arange(1, self.modes + 1)
        return np.array([modes ** (-2.0 * self.exponent), (modes / self.modes) ** (2.0 * self.exponent)])

    @functools.cached_property
    def _data(self) -> tuple[np.ndarray, np.ndarray]:
        draw = np.random.default_rng(self.seed)
        return points_apart(self.samples, draw), draw.normal(size=self.samples)

    @functools.cached_property
    def _times(self) -> np.ndarray:
        """Until the slowest of all modes has been learned."""
        slowest = min(float(flow.intensity[-1]) for flow in self._flows(np.zeros(1)))
        return np.append(0.0, np.geomspace(0.1, 20 / min(slowest, float(self._intensity.min())), self.times - 1))

"""A model that fits noisy labels exactly: harmless if its strong modes hold the target, harmful if they do not."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, Literal

import numpy as np
import xarray as xr

from dynascope.results import Comparison
from dynascope.studies import Reference, Study, exact
from dynascope.studies.features.averages import error_of_median
from dynascope.studies.features.chance import within_chance
from dynascope.studies.features.linear_models import least_norm, noise_power, train_from_zero
from dynascope.studies.features.overfitting.page import FIGURES, MEANING
from dynascope.studies.features.sines import NoisySines, Samples, centres, sines
from dynascope.studies.fields import choice, count, number, seed
from dynascope.theory import papers
from dynascope.theory.features import OverfittingSetup, overfitting_error, training_flow

_PURE_NOISE = (100, 400, 2000)  # numbers of modes of figure 1.4
_NOISY = 50  # samples of pure noise


class Overfitting(Study):
    """Linear models with a few strong and many weak sine modes, trained on noisy labels until they fit them exactly.

    The model Σ_k w_k √ρ_k √2 sin(2πkx) has d modes of intensity one and a tail of weak ones. The benign target lies in
    a strong mode, the malignant one in the tail. The exact flow on the samples is compared at all times, and with it
    the function at the end, whole, in its strong modes and in its tail; and the fraction of the target that is
    learned, in the median over many draws, with the learnability. Median test losses and the power of fits of pure
    noise (figure 1.4) stand beside their predictions and are not judged: in one dimension near-coincident samples make
    them differ from a theory of features as if Gaussian.
    """

    samples: int = count(100, "Number n of training samples.")
    modes: int = count(2000, "Number p of modes.")
    strong_modes: int = count(5, "Number d of strong modes.")
    benign_mode: int = count(1, "Mode of the benign target, at most d.")
    malignant_mode: int = count(10, "Mode of the malignant target, above d.")
    noise_variance: float = number(
        0.09, "Variance σ² of the noise in the labels; the target has the power ½.", least=0.0
    )
    tail: Literal["corrected", "printed"] = choice(
        "corrected", '"corrected" for tail intensities 1/(p − d), or "printed" for the n/(p − d) of the source.'
    )
    trained: int = count(3, "Number of draws that are trained at all times.")
    draws: int = count(300, "Number of draws that are solved for the end of training alone.")
    times: int = count(80, "Number of times at which both are recorded.", least=2)
    positions: int = count(
        400, "Number of places x, labels of `sample`, at which the function at the end is recorded, for one draw."
    )
    seed: int = seed("Seed of the draws.")

    reference = Reference.of(
        papers.EIGENLEARNING,
        "A model with few strong and many weak modes fits noise exactly, and is right away from the samples if "
        "the target lies in the strong modes, and wrong if it does not.",
        also="; set-ups in Nam, DPhil thesis (2024), 1.6",
    )
    task = "a sine with noise"
    told = (
        "{samples} samples, {modes} sine modes, {strong_modes} of them strong, tail intensities {_setups[0].tail:.3g} "
        "({tail}).",
        "Curves are medians over {trained} draws, learnabilities and test losses at the end medians over {draws}; the "
        "functions are those of the first draw.",
    )
    trains = "linear model on sine features"
    axes = ("run", "time")
    labelled = {
        **{"run": ("benign", "malignant"), "scaling_parameter": _PURE_NOISE},
        "sample": lambda study: centres(study.positions),
    }
    along = ("time", "sample", "run")
    title = "Benign and malignant overfitting"
    question = "When does it do no harm that a model fits the noise in its data?"
    meaning = MEANING
    figures = FIGURES
    minutes = 0.3
    flow = "gradient flow"
    names = {
        "asymptotic_test_loss": ("test loss, infinite-size limit", "1"),
        "window_test_loss": ("test loss within the window", "1"),
        "target_function": ("target function", "1"),
        "strong_part": ("part fitted by the strong modes", "1"),
        "strong_fraction": ("fraction fitted by the strong modes", "1"),
        "tail_part": ("part fitted by the weak modes", "1"),
        "noise_power": ("power of the fit of pure noise", "1"),
    }
    tolerance = exact(
        *("loss", "test_loss", "learned_fraction", "strong_fraction", "fitted", "strong_part", "tail_part"),
        error=1e-5,
        reason="the flow on the samples is exact, and the solver keeps each step within 1e-8",
    ) | exact(
        "learnability",
        error=0.03,
        reason="features on a line are not as if Gaussian: medians are off by up to about 0.3 n/p, or 0.5/n",
    )
    tiny = {"modes": 1000, "trained": 1, "draws": 200, "times": 20, "positions": 40}

    def check(self) -> None:
        """Set-ups that the theory knows, and targets where they belong."""
        for name, setup, wanted in zip(("benign_mode", "malignant_mode"), self._setups, (True, False), strict=True):
            remedy = f"choose a mode {'up to' if wanted else 'above'} strong_modes"
            self.require(setup.is_benign is wanted, name, remedy, beside="strong_modes")

    def judged(self, predicted: xr.Dataset) -> xr.Dataset:
        """With a wider tolerance of the learnability for a short tail or few samples."""
        wider = max(0.03, 0.3 * self.samples / self.modes, 0.5 / self.samples)
        names = ("learnability_tolerance", "learnability_maximum_tolerance")
        return super().judged(predicted).assign_attrs(dict.fromkeys(names, wider))

    def compare(self, observed: xr.Dataset, predicted: xr.Dataset) -> Comparison:
        """Within the chance of the draws."""
        errors: Any = {"learnability": observed["learnability_standard_error"]}
        return super().compare(observed, within_chance(predicted, errors, beside=0.5 / self.samples))

    def observe(self) -> xr.Dataset:
        """Train on a few draws of the samples, and solve many for the end of training."""
        losses, weights = [], []
        for draw in map(self._draw, range(self.trained)):
            run = train_from_zero(draw.features, draw.labels, self._times, absolute_tolerance=1e-9)
            weights.append(run["weights"].transpose("target", "time", "feature").to_numpy())
            losses.append(np.mean((weights[-1] @ draw.features.T - draw.labels.T[:, None]) ** 2, axis=-1) / 2)
        ends = [self._task.root * least_norm(*self._draw(number)).T for number in range(self.draws)]
        learned = np.array([self._task.learned_fraction(end) for end in ends])
        test_losses, draw = [self._task.test_loss(end) for end in ends], np.random.default_rng([self.seed, 1])
        return self.record(
            {
                **self._curves(losses, weights),
                "target_function": (("run", "sample"), self._task.targets @ self._basis.T),
                "learnability": ("run", np.median(learned, axis=0)),
                "learnability_standard_error": ("run", error_of_median(learned)),
                "median_test_loss": ("run", np.median(test_losses, axis=0)),
                "mean_test_loss": ("run", np.mean(test_losses, axis=0)),
                "noise_power": ("scaling_parameter", [noise_power(modes, _NOISY, draw) for modes in _PURE_NOISE]),
            }
        )

    def predict(self) -> xr.Dataset:
        """The exact flow on the same samples, and the learnability of the targets for any samples."""
        draws = [self._draw(number) for number in range(self.trained)]
        flows = [[training_flow(self._times, draw.features, labels) for labels in draw.labels.T] for draw in draws]
        losses, weights = ([[getattr(each, name) for each in both] for both in flows] for name in ("loss", "weights"))
        found = [overfitting_error(setup) for setup in self._setups]
        return self.record(
            {
                **self._curves(losses, weights),
                "learnability": ("run", [each.target_learnability for each in found]),
                "asymptotic_test_loss": ("run", [each.test_loss for each in found]),
                "window_test_loss": ("run", [each.window_mse / 2 for each in found]),
                "noise_power": ("scaling_parameter", _NOISY / (np.array(_PURE_NOISE) - _NOISY)),
            },
            theory="linear models that interpolate noise",
            reference=self.reference.paper,
            fitting_window=found[0].fitting_window,
            theory_warnings=list(found[0].warnings),
        )

    def _curves(self, losses: Any, weights: Any) -> dict[str, Any]:
        """Medians over the draws of the curves (run, time), and the functions at the end of the first draw."""
        task, strong, basis = self._task, self.strong_modes, self._basis
        found = np.moveaxis(self._task.root * np.array(weights), 1, 2)
        curves = {
            "test_loss": task.test_loss(found),
            "learned_fraction": task.learned_fraction(found),
            "strong_fraction": np.linalg.norm(found[..., :strong], axis=-1) / np.linalg.norm(task.targets, axis=-1),
        }
        end = found[0, -1]
        return {
            "loss": np.median(losses, axis=0),
            **{name: np.median(each, axis=0).T for name, each in curves.items()},
            "fitted": (("run", "sample"), end @ basis.T),
            "strong_part": (("run", "sample"), end[:, :strong] @ basis[:, :strong].T),
            "tail_part": (("run", "sample"), end[:, strong:] @ basis[:, strong:].T),
        }

    def _draw(self, number: int) -> Samples:
        return self._task.draw(self.seed, 0, number)

    @functools.cached_property
    def _setups(self) -> list[OverfittingSetup]:
        setup = OverfittingSetup(self.samples, self.modes, self.strong_modes, noise_variance=self.noise_variance)
        tail = setup.printed_tail if self.tail == "printed" else None
        modes = (self.benign_mode, self.malignant_mode)
        return [dataclasses.replace(setup, target_mode=mode, tail_intensity=tail) for mode in modes]

    @functools.cached_property
    def _task(self) -> NoisySines:
        targets = np.array([setup.target_coefficients for setup in self._setups])
        return NoisySines(self.samples, self._setups[0].intensity, targets, self.noise_variance)

    @functools.cached_property
    def _basis(self) -> np.ndarray:
        return sines(centres(self.positions), self.modes)

    @property
    def _times(self) -> np.ndarray:
        """Until the tail has long fitted what the strong modes left."""
        setup = self._setups[0]
        last = 10 * self.samples / (setup.tail * (self.modes - self.strong_modes))
        return np.append(0.0, np.geomspace(0.05, last, self.times - 1))

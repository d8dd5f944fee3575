"""How much of each mode of a target kernel regression learns from n samples, and what error is left."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from dynascope.plot import Chart
from dynascope.studies.curves_study import CurvesStudy, exact
from dynascope.studies.features.sine_modes import sines
from dynascope.studies.fields import choice, count, number, numbers, positive, seed
from dynascope.studies.study import Reference
from dynascope.theory.features.kernel_regression import KernelRegression, kernel_regression_error

__all__ = ["Learnability"]


class Learnability(CurvesStudy):
    """Learning curves of kernel ridge regression with a power-law spectrum, and the coefficients that it learns.

    The kernel is Σ_k k^(−a) e_k e_k, the target Σ_k k^(−b) e_k with noise. For each number of samples many training
    sets are drawn and solved; noise is averaged exactly within each draw of the inputs. The mean over draws is
    compared, and in the sine basis the median: near-coincident samples on a line make heavy tails there, and the
    theory, which takes features as if Gaussian, is within about a fifth of the median with a ridge, and may be far off
    without one.
    """

    samples: list[int] = numbers(
        [40, 60, 90, 130, 200],
        "Numbers n of training samples, increasing; with no ridge, none of them equal to the number of modes.",
        whole=True,
        increasing=True,
    )
    modes: int = count(300, "Number of modes.")
    exponent: float = positive(1.5, "a > 0 of the intensities k^(−a).")
    target_exponent: float = number(1.0, "b of the target's coefficients k^(−b).")
    ridge: float = number(0.5, "Ridge δ ≥ 0; zero for gradient flow to its end.", least=0.0)
    noise_variance: float = number(0.25, "Variance σ² ≥ 0 of the noise in the labels.", least=0.0)
    basis: str = choice(
        "gaussian", 'Gaussian features e_k, or "sine" for √2 sin(2πkx) with x uniform in [0, 1].', ("gaussian", "sine")
    )
    draws: int = count(300, "Number of training sets for each n.")
    seed: int = seed("Seed of the draws.")

    name: ClassVar[str] = "learnability"
    reference: ClassVar[Reference] = Reference(
        paper="J. B. Simon, M. Dickens, D. Karkada, M. R. DeWeese, The eigenlearning framework: a conservation law "
        "perspective on kernel regression and wide neural networks; Nam, DPhil thesis (2024), chapter 1",
        arxiv="2110.03922",
        claim="From n samples kernel regression learns the fraction ρ/(ρ + κ) of each mode of the target, where ρ is "
        "how strongly the kernel favours the mode and κ one number for all modes, and its training and test errors "
        "follow from these fractions.",
    )
    theory: ClassVar[str] = "kernel regression on features as if Gaussian"
    axes: ClassVar = ("samples",)
    along: ClassVar[str] = "samples"
    question: ClassVar[str] = "How much of a target can be learned from so many samples, and what error is left?"
    meaning: ClassVar[str] = (
        "A target made of {parameters.modes} independent parts, its modes, was fitted by kernel regression, a method "
        "that favours some modes over others. Of the most favoured mode "
        "{observed.learned_fraction[mode=1]:first:percent} was learned from {observed.samples:first} samples and "
        "{observed.learned_fraction[mode=1]:last:percent} from {observed.samples:last}; of the least favoured one as "
        "little as {observed.learned_fraction:least:percent}. The theory knows the strengths of the modes, the target "
        "and the noise, and no sample; its loss on new samples is off by {agreement.loss}, and its shares by "
        "{agreement.learned_fraction}, of their size. It takes features to be as random as Gaussian numbers: those of "
        "real data may be others, and a single training set differs from the typical one."
    )
    figures: ClassVar = (
        Chart(
            "learned_fraction",
            over="mode",
            log="x",
            points=True,
            x_label="mode, the most favoured first",
            y_label="share of the mode that is learned",
            caption="Modes are learned in the order in which the method prefers them, and more of them from more "
            "samples: {observed.samples:first} (lowest) to {observed.samples:last} (highest). Points are what was "
            "learned, lines what theory expects without any sample.",
        ),
        Chart(
            "loss",
            over="samples",
            log="xy",
            points=True,
            error="loss_deviation",
            x_label="number of training samples",
            y_label="loss on new samples",
            caption="The loss on new samples falls from {observed.loss:first} to {observed.loss:last} with more "
            "samples. Bars show how much it differs from one training set to another.",
        ),
        Chart(
            "coefficients",
            over="mode",
            log="xy",
            points=True,
            x_label="mode, the most favoured first",
            y_label="coefficient of the mode",
            caption="The coefficients that are learned: those of strong modes are those of the target, those of weak "
            "ones stay behind.",
        ),
    )
    names: ClassVar = {"loss": ("loss on new samples", "1")}
    minutes: ClassVar[float] = 0.2
    tolerance: ClassVar = exact(
        *("loss", "training_loss", "coefficients", "learned_fraction"),
        error=0.025,
        reason="the theory is asymptotic, off by about half of 1/n, "
        "and the mean over draws is known to about a percent",
    )
    tiny: ClassVar = {"samples": [60, 90], "modes": 120, "draws": 150}

    def judged(self, predicted: xr.Dataset) -> xr.Dataset:
        """With wider tolerances where the theory is known to be further off."""
        predicted = super().judged(predicted)
        # One over the degrees of freedom n − Σ L² that the fit leaves.
        correction = float((predicted["overfitting_coefficient"] / predicted["samples"]).max())
        usual, _ = self.tolerance["loss"]
        if self.basis == "sine":
            wider = 0.3, "features on a line are not as if Gaussian, and the medians of their heavy tails differ"
        elif correction > usual:
            wider = correction, "the theory is asymptotic, off by about 1/(n − Σ L²) where the fit leaves few samples"
        else:
            return predicted
        for name in predicted.data_vars:
            for end in ("", "_maximum"):
                predicted.attrs[f"{name}{end}_tolerance"], predicted.attrs[f"{name}{end}_tolerance_reason"] = wider
        return predicted

    def check(self) -> None:
        """An error that is finite."""
        self.require(
            self.ridge > 0 or self.modes not in self.samples,
            "samples",
            "choose a ridge above zero, or other numbers; the error is infinite there",
            problem=f"samples has {self.modes}, the number of modes",
        )

    def trained(self) -> Mapping[str, Any]:
        """Draw training sets, solve them, and average."""
        middle, shown = np.median if self.basis == "sine" else np.mean, self._shown - 1
        rows = []
        for n in self.samples:
            draw = np.random.default_rng([self.seed, n])
            found = [self._solve(self._features(draw, n)) for _ in range(self.draws)]
            loss, training_loss, learned, fraction = (np.array(each) for each in zip(*found, strict=True))
            rows.append(
                {
                    "loss": middle(loss),
                    "loss_deviation": np.std(loss),
                    "training_loss": middle(training_loss),
                    "coefficients": middle(learned[:, shown], axis=0),
                    "learned_fraction": middle(fraction[:, shown], axis=0),
                }
            )
        return self._named({name: np.array([row[name] for row in rows]) for name in rows[0]})

    def exact(self) -> Mapping[str, Any]:
        """The effective ridge, and what follows from it."""
        found, shown = self._error(), self._shown - 1
        return self._named(
            {
                "loss": found.test_loss,
                "training_loss": found.training_mse / 2,
                "coefficients": found.coefficient_mean[:, shown],
                "learned_fraction": found.learnability[:, shown],
                "overfitting_coefficient": found.overfitting_coefficient,
                "effective_ridge": found.effective_ridge,
            }
        )

    def said(self) -> Mapping[str, Any]:
        """Where the theory is to be taken with care."""
        return {"theory_warnings": list(self._error().warnings)}

    def labels(self) -> Mapping[str, Any]:
        """Numbers of samples, and modes."""
        return {"samples": self.samples, "mode": self._shown}

    def about(self) -> Mapping[str, Any]:
        """The target and the draws."""
        return {
            "task": "a noisy target with a power-law spectrum",
            "description": [
                f"Intensities k^(-{self.exponent:g}), target coefficients k^(-{self.target_exponent:g}), noise of "
                f"variance {self.noise_variance:g}, ridge {self.ridge:g}.",
                f"The {'median' if self.basis == 'sine' else 'mean'} over {self.draws} training sets, "
                f"{'sine features' if self.basis == 'sine' else 'Gaussian features'}; noise is averaged exactly.",
            ],
            "network": "kernel regression",
            "scale": 1.0,
        }

    def _named(self, values: dict[str, Any]) -> dict[str, Any]:
        """Without a ridge the training loss vanishes on both sides where n is below the number of modes."""
        kept = {name: each for name, each in values.items() if self.ridge > 0 or name != "training_loss"}
        return {name: (("samples", "mode")[: np.ndim(each)], each) for name, each in kept.items()}

    def _error(self) -> KernelRegression:
        options = {"ridge": self.ridge, "noise_variance": self.noise_variance}
        return kernel_regression_error(self._intensity, self._target, np.array(self.samples), **options)

    def _solve(self, features: np.ndarray) -> tuple[float, float, np.ndarray, np.ndarray]:
        """What one training set gives, in the mean over the noise.

        Test loss, training loss, learned coefficients, and for each mode the fraction learned of it as a target.
        """
        n, modes = features.shape
        if n < modes:
            scaled = features * self._intensity
            gram = scaled @ features.T
            gram[np.diag_indices(n)] += self.ridge
            estimator = np.linalg.solve(gram, scaled).T
        else:
            gram = features.T @ features
            gram[np.diag_indices(modes)] += self.ridge / self._intensity
            estimator = np.linalg.solve(gram, features.T)
        clean = features @ self._target
        learned = estimator @ clean
        noise = self.noise_variance * np.sum(estimator**2)
        fitted = features @ estimator
        left = np.mean((features @ learned - clean) ** 2) + self.noise_variance * np.mean(
            np.sum((fitted - np.eye(n)) ** 2, axis=1)
        )
        return (
            (np.sum((learned - self._target) ** 2) + noise) / 2,
            left / 2,
            learned,
            np.sum(estimator.T * features, axis=0),
        )

    def _features(self, draw: np.random.Generator, n: int) -> np.ndarray:
        if self.basis == "gaussian":
            return draw.normal(size=(n, self.modes))
        return sines(draw.uniform(size=n), self.modes)

    @functools.cached_property
    def _intensity(self) -> np.ndarray:
        return np.arange(1, self.modes + 1) ** -float(self.exponent)

    @functools.cached_property
    def _target(self) -> np.ndarray:
        return np.arange(1, self.modes + 1) ** -float(self.target_exponent)

    @functools.cached_property
    def _shown(self) -> np.ndarray:
        """The modes that are recorded, from the first to the last, on a logarithmic scale."""
        return np.unique(np.geomspace(1, self.modes, min(self.modes, 12)).round().astype(int))

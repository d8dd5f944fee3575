"""Overfitting to noisy labels is benign for a target in strong modes and malignant for a target in weak modes."""

from __future__ import annotations

import functools
from typing import Annotated, Any, Literal

import xarray as xr
from annotated_types import Ge

from dynascope.results import Comparison
from dynascope.studies import Reference, Study, Values, exact, parameter
from dynascope.studies.features.chance import within_chance
from dynascope.studies.features.overfitting import page
from dynascope.studies.features.overfitting.experiment import PURE_NOISE, Experiment
from dynascope.studies.features.sines import centres
from dynascope.theory import papers
from dynascope.theory.features import overfitting_error
from dynascope.validation.bounded import NonNegativeFloat, PositiveInt, Seed


class Overfitting(Study):
    """Trains linear models with a few strong and many weak sine modes until they fit noisy labels exactly.

    The model Σ_k w_k √ρ_k √2 sin(2πkx) has d strong modes with ρ_k = 1 and a tail of weak modes. The benign target is a
    strong mode, and the malignant target is a mode of the tail. The study compares gradient flow on the samples with
    the exact solution at all times. It also compares the final function, and its components in the strong modes and in
    the tail, with the exact solution. The median learned fraction of each target over many random sets of samples is
    compared with the predicted fraction (learnability). Median test losses and the mean square of fits to pure noise
    (figure 1.4 of the thesis cited below) are shown with their predictions but do not affect the verdict. The theory
    assumes Gaussian features; samples that nearly coincide violate this assumption.
    """

    samples: PositiveInt = parameter(100, "Number n of training samples.")
    modes: PositiveInt = parameter(2000, "Number p of modes.")
    strong_modes: PositiveInt = parameter(5, "Number d of strong modes.")
    benign_mode: PositiveInt = parameter(1, "Mode of the benign target, at most d.")
    malignant_mode: PositiveInt = parameter(10, "Mode of the malignant target, above d.")
    noise_variance: NonNegativeFloat = parameter(
        0.09, "Variance σ² of the label noise; the mean square of the target is ½."
    )
    tail: Literal["corrected", "printed"] = parameter(
        "corrected",
        '"corrected" for weak modes with ρ_k = 1/(p − d), or "printed" for ρ_k = n/(p − d) as printed in the paper.',
    )
    trained: PositiveInt = parameter(
        3, "Number of random sets of samples on which the model is trained by gradient flow."
    )
    draws: PositiveInt = parameter(
        300, "Number of random sets of samples for which only the final solution is computed."
    )
    times: Annotated[int, Ge(2)] = parameter(80, "Number of recorded times.")
    positions: PositiveInt = parameter(
        400, "Number of positions x (coordinate `sample`) at which the final function for the first set is recorded."
    )
    seed: Seed = parameter(0, "Seed of the random samples.")

    reference = Reference.of(
        papers.EIGENLEARNING,
        "A linear model with a few strong and many weak modes can fit noisy labels exactly and still generalise, but "
        "only if the target lies in its strong modes.",
        also="The set-ups are those of Y. Nam, DPhil thesis (2024), section 1.6.",
    )
    theory = "interpolation of noise by linear models"
    task = "a sine with label noise"
    notes = (
        "The model has {modes} sine modes and is trained on {samples} samples. Of the modes, {strong_modes} are "
        "strong, and the others have the strength {_experiment.setups[0].tail:.3g} ({tail}).",
        "Curves are medians over {trained} draws; final learned fractions and test losses are medians over {draws} "
        "draws. Functions are shown for the first draw.",
    )
    trains = "linear model on sine features"
    axes = ("run", "time")
    labelled = {
        **{"run": ("benign", "malignant"), "scaling_parameter": PURE_NOISE, "time": "_experiment.times"},
        "sample": lambda study: centres(study.positions),
    }
    along = ("time", "sample", "run")
    title = "Benign and malignant overfitting"
    question = "When is it harmless for a model to fit the noise in its data?"
    figures, meaning = page.figures, page.meaning
    equation = r"\dot r = -\frac{1}{n} K r, \quad K = \sum_k \rho_k \, e_k e_k^\top"
    minutes = 0.3
    flow = "gradient flow"
    names = {
        "asymptotic_test_loss": ("test loss in the infinite-size limit", "1"),
        "window_test_loss": ("test loss after the signal is fitted and before the noise is fitted", "1"),
        "target_function": ("target function", "1"),
        "strong_part": ("component of the fit in the strong modes", "1"),
        "strong_fraction": ("norm of the component in the strong modes, relative to the target", "1"),
        "tail_part": ("component of the fit in the weak modes", "1"),
        "noise_power": ("mean square of the fit to pure noise", "1"),
    }
    tolerance = exact(
        *("loss", "test_loss", "learned_fraction", "strong_fraction", "fitted", "strong_part", "tail_part"),
        error=1e-5,
        reason="the prediction is exact for the given samples, and the solver error is below 1e-8 per step",
    ) | exact(
        "learnability",
        error=0.03,
        reason="sine features are not Gaussian, and medians differ from the theory by up to about 0.3 n/p or 0.5/n",
    )
    tiny = {"modes": 1000, "trained": 1, "draws": 200, "times": 20, "positions": 40}

    def check(self) -> None:
        """Require sizes for which the theory is defined, and targets in the appropriate modes."""
        modes = zip(("benign_mode", "malignant_mode"), self._experiment.setups, (True, False), strict=True)
        for name, setup, benign in modes:
            remedy = f"choose a mode {'up to' if benign else 'above'} strong_modes"
            self.require(setup.is_benign is benign, name, remedy, beside="strong_modes")

    def with_tolerances(self, predicted: xr.Dataset) -> xr.Dataset:
        """Widen the tolerance of the learnability for a short tail or few samples."""
        wider = max(0.03, 0.3 * self.samples / self.modes, 0.5 / self.samples)
        names = ("learnability_tolerance", "learnability_maximum_tolerance")
        return super().with_tolerances(predicted).assign_attrs(dict.fromkeys(names, wider))

    def compared(self, observed: xr.Dataset, predicted: xr.Dataset) -> Comparison:
        """Allow for the sampling error of the median learnability."""
        errors: Any = {"learnability": observed["learnability_standard_error"]}
        return super().compared(observed, within_chance(predicted, errors, beside=0.5 / self.samples))

    def observed(self) -> xr.Dataset:
        """The record of the trained models, overridden because a field is named `trained`."""
        return self.record(self._experiment.trained())

    def exact(self) -> Values:
        """The exact flow on the samples, and the learnability of both targets."""
        return self._experiment.exact()

    def prediction_attributes(self) -> Values:
        """The time interval in which the signal is fitted but the noise is not, and the warnings of the theory."""
        found = overfitting_error(self._experiment.setups[0])
        return {"fitting_window": found.fitting_window, "theory_warnings": list(found.warnings)}

    @functools.cached_property
    def _experiment(self) -> Experiment:
        return Experiment(self)

"""Gradient flow minimises only the norm of the fastest-growing parameters, which can reduce the Euclidean margin."""

from __future__ import annotations

import dataclasses
import functools
from typing import Annotated

import xarray as xr
from annotated_types import Ge, Interval

from dynascope.results import Comparison, name_all
from dynascope.studies import Reference, Study, Values, curve_tolerance, parameter
from dynascope.studies.margins.max_margin import page
from dynascope.studies.margins.max_margin.classifiers import CLASSIFIERS
from dynascope.studies.margins.max_margin.experiment import Experiment
from dynascope.theory import papers
from dynascope.validation.bounded import PositiveInt, Seed

_LIMIT = (
    1e-4,
    "corrections to the limit decay roughly as 1/ν and are smaller than the tolerance at the final ν, 1e5 (1e6 on "
    "random data)",
)
_EXACT = (1e-5, "the closed form is exact, and the local error of the solver is below 1e-8")
_KEPT = (1e-5, "the normalised margin never decreases, and the local error of the solver is below 1e-8")
_DISTANCE = ("Euclidean margin", "1")


class MaxMargin(Study):
    """Tests the predicted limits of gradient flow on separable data, at losses of exp(−100,000) and below.

    Three classifiers f = Σ β_j x_j are trained on the same two samples. In the linear classifier, each β_j is a single
    weight; in the second, each β_j is a product of two weights; in the mixed classifier, β₁ is a single weight and β₂
    is a product. The first two are homogeneous: all parameters grow at the same rate, and gradient flow converges in
    direction to a max-margin classifier. At a given margin, this classifier has minimum ℓ2 norm for single weights and
    minimum ℓ1 norm for products. In the mixed classifier, the single weight grows faster, and gradient flow minimises
    its magnitude alone.

    With ν = log(1/L) for the loss L, the study compares β/ν with the solution of the asymmetric max-margin problem, in
    which only the fastest-growing parameters enter the norm (`weights`). The study also compares the Euclidean margin
    (`end_euclidean_margin`) and the value of L t (log t)^(2 − 2λ) at late times t (`rate_constant`) with their
    predicted limits. The predicted limit of `rate_constant` is 2λ²P, where λ is the largest growth rate and P is the
    optimal value of the max-margin problem. The same comparison of β/ν is made on random data, for linear and mixed
    classifiers (`random_weights`). On one sample that the product alone can separate, the study compares the
    contribution of the unnecessary single weight to the margin (`block_share`) with the exact solution.

    The networks consist of a linear layer with normalised features and a readout. The linear layer has growth rate
    zero, so its norm is not minimised. The features collapse to the simplex that minimises the norm of the readout
    (`feature_cosines`, `between_class_share`, `classifier_cost`). Without normalisation, features need not collapse;
    these networks are shown but do not affect the verdict.

    On random data, the classifiers are trained until ν = 1,000,000. Data sets are redrawn until the theory applies at
    this ν. The solution must be unique and have nonzero single weights, and samples that are not support vectors must
    exceed the margin by at least `gap`. The predicted distance from the limit (`support_offset`, `support_drift`) must
    be below a tenth of the tolerance. A check verifies that the normalised margin never decreases (`margin_kept`).
    """

    levels: Annotated[int, Ge(3)] = parameter(30, "Number of recorded values of ν = log(1/L).")
    inputs: list[Annotated[int, Interval(ge=2, le=6)]] = parameter([2, 3, 4, 5], "Dimensions of the random data.")
    draws: PositiveInt = parameter(3, "Number of random data sets for each dimension and classifier.")
    samples: Annotated[int, Interval(ge=10, le=50)] = parameter(20, "Number of samples in each random data set.")
    gap: Annotated[float, Interval(gt=0, le=0.1)] = parameter(
        0.05, "Smallest amount by which samples that are not support vectors exceed the margin, relative to the margin."
    )
    classes: Annotated[int, Interval(ge=3, le=5)] = parameter(4, "Number of classes in the task of the networks.")
    class_samples: Annotated[int, Interval(ge=2, le=3)] = parameter(2, "Number of samples per class.")
    features: Annotated[int, Interval(ge=5, le=20)] = parameter(
        10, "Number of features, larger than the number of classes."
    )
    likeness: Annotated[float, Interval(gt=0, le=0.9)] = parameter(
        0.8,
        "Factor c: c times the first sample of the next class is added to all samples of a class except the first.",
    )
    starts: PositiveInt = parameter(3, "Number of random initialisations of the networks.")
    seed: Seed = parameter(0, "Seed of the data and of the initial weights.")

    reference = Reference.of(
        papers.QUASI_HOMOGENEOUS,
        "The parameters of a quasi-homogeneous classifier can grow at different rates, and gradient flow minimises "
        "only the norm of the fastest-growing parameters. As a result, robustness can decrease, fast-growing "
        "parameters that are not needed are discarded, and normalised features collapse.",
    )
    theory = "asymmetric maximum margin"
    task = "separable samples"
    notes = (
        "The classifiers are trained on two samples, y x = (1, 0.2) and (10, −1), on one sample, (1, 1), and on "
        "{samples} Gaussian samples in {inputs} dimensions.",
        "The networks are trained on {class_samples} samples of each of {classes} classes. The inputs are linearly "
        "independent and contain {likeness:g} times a sample of the next class.",
    )
    trains = "linear, product and mixed classifiers, and networks with normalised features"
    flow = "gradient flow of the exponential loss up to ν = log(1/L) = 100000, and 1000000 on random data"
    axes = ("architecture",)
    along = ("architecture", "run", "parameter_block", "start")
    labelled = {
        "architecture": tuple(CLASSIFIERS),
        "margin_level": "experiment.levels",
        "run": "experiment.runs",
        "parameter_block": ("single weight", "product"),
    }
    title = "The margin that gradient flow maximises"
    question = "Many classifiers separate the data. Which one does training converge to, and how robust is it?"
    figures, meaning = page.figures, page.meaning
    names = {
        "weights": ("final weights divided by ν, β/ν", "1"),
        "end_euclidean_margin": ("final Euclidean margin", "1"),
        "euclidean_margin": _DISTANCE,
        "direction_distance": ("relative distance of β/ν from its limit", "1"),
        "rate_constant": ("prefactor of the loss over time, L t (log t)^(2 − 2λ)", "1"),
        "random_weights": ("final weights divided by ν, β/ν, on random data", "1"),
        "random_distance": ("relative distance of β/ν from its limit on random data", "1"),
        "random_own_error": ("predicted relative distance of β/ν from its limit on random data", "1"),
        "block_share": ("fraction of the margin contributed by the block of parameters", "1"),
        "feature_cosines": ("cosines between the normalised class means", "1"),
        "between_class_share": ("between-class fraction of the variance of normalised features", "1"),
        "classifier_cost": ("½‖W‖² of the readout at margin one", "1"),
        "normalised_nc1": ("within-class over between-class variance (NC1), normalised", "1"),
        "unnormalised_nc1": ("within-class over between-class variance (NC1), not normalised", "1"),
        "margin_kept": ("smallest ratio of the normalised margin to its running maximum", "1"),
        "seed": ("data set", "1"),
        "weight": ("weight β", "1"),
        "margin_level": ("margin log(1/L)", "1"),
        "parameter_block": ("block of parameters with the same growth rate", "1"),
    }
    equation = (
        r"\min_\theta \, \| \theta_{\text{fastest}} \|^2 \quad \text{subject to} \quad y_i f(x_i; \theta) "
        r"\geq 1"
    )
    minutes = 0.5
    tolerance = curve_tolerance(
        **dict.fromkeys(("weights", "end_euclidean_margin", "rate_constant", "random_weights"), _LIMIT),
        **dict.fromkeys(("feature_cosines", "between_class_share", "classifier_cost"), _LIMIT),
        block_share=_EXACT,
        margin_kept=_KEPT,
    )
    checks = ("margin_kept", "margin_kept_maximum")
    tiny = {"levels": 6, "inputs": [2, 3], "draws": 1, "classes": 3, "features": 5, "starts": 1}

    @functools.cached_property
    def experiment(self) -> Experiment:
        """Training, measurements and predictions with the fields of the study."""
        return Experiment(self)

    def check(self) -> None:
        """Check that there are enough features for a simplex."""
        self.require(self.features > self.classes, "features", "choose more features than classes", beside="classes")

    def trained(self) -> Values:
        """Train the classifiers and networks to large margins."""
        return self.experiment.trained()

    def exact(self) -> Values:
        """The solutions of the max-margin problems, and the simplex of collapsed features."""
        return self.experiment.exact()

    def compared(self, observed: xr.Dataset, predicted: xr.Dataset) -> Comparison:
        """Compare both records, and add the predicted limits of the Euclidean margin as lines for the figure."""
        result = super().compared(observed, predicted)
        line = predicted["end_euclidean_margin"].expand_dims(margin_level=observed["margin_level"]).drop_attrs()
        predicted = name_all(predicted.assign(euclidean_margin=line), {"euclidean_margin": _DISTANCE})
        return dataclasses.replace(result, predicted=predicted)

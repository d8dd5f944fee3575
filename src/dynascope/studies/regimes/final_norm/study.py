"""Larger initial weights lead to a larger norm of the trained network, and to a lower test accuracy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Interval

from dynascope.comparison import Claim
from dynascope.flows import track
from dynascope.networks import MLP
from dynascope.studies import ClaimsStudy, Reference, Values, curve_tolerance, parameter
from dynascope.studies.regimes.final_norm import page
from dynascope.studies.regimes.final_norm.claims import DECIDING, norm_claims
from dynascope.studies.regimes.fitted_digits import (
    MEASURED,
    centred_accuracy,
    fitted,
    layer_difference,
    norm_of,
    split_digits,
)
from dynascope.theory import papers
from dynascope.validation.bounded import Seed

_PIXELS, _CLASSES = 64, 10
_MEASURED = (*MEASURED, "initial_norm", "centred_accuracy")
_RANGE = 4  # smallest ratio of the largest to the smallest scale


class FinalNorm(ClaimsStudy):
    """Measures the norm and the test accuracy of ReLU networks trained from initial weights of different scales.

    All initial weights of a network with one hidden layer, drawn with variance 1/fan-in, are multiplied by the same
    scale. The networks are trained by gradient flow on handwritten digits until their training loss is a given fraction
    of the loss of the zero function. The claims are undecided unless all networks then classify every training digit
    correctly.

    The paper trains a residual network with batch normalisation. There, the scale of a layer that is followed by
    normalisation does not change the function, and acts as a learning rate. These networks have no normalisation, so
    the scale changes the function and its learning speed. No theory predicts the accuracies, so the claims state only
    an order: the norm after training increases from each scale to the next, and the test accuracy is lower at the
    largest than at the smallest scale. Whether the accuracy decreases from each scale to the next is reported but does
    not count. Gradient flow conserves the difference ‖W₂‖² − ‖W₁‖² between the layers, which is only checked.

    The random output of the initial network also grows with the scale. Training removes it on the training digits, but
    only partly on test digits. The networks are therefore also trained and tested without their initial output (as
    f − f₀). Whether their test accuracy decreases with the scale is reported, but does not count.
    """

    scales: list[Annotated[float, Interval(ge=0.1, le=8)]] = parameter(
        [0.25, 0.5, 1.0, 2.0, 4.0], "Factors on all initial weights.", fewest=2, increasing=True
    )
    width: Annotated[int, Ge(4)] = parameter(128, "Number of hidden neurons.")
    samples: Annotated[int, Interval(ge=50, le=1000)] = parameter(
        200, "Number of training digits; all others are test digits."
    )
    final_loss: Annotated[float, Interval(ge=1e-3, le=0.05)] = parameter(
        0.02, "Training loss at which training stops, divided by the loss of the zero function."
    )
    seeds: Annotated[int, Ge(2)] = parameter(5, "Number of networks, each with its own training digits.")
    seed: Seed = parameter(0, "Seed of the digits and of the initial weights.")

    reference = Reference.of(
        papers.ON_A_LINE,
        "Networks with large initial weights learn without aligned layers. They therefore end with a large norm, and "
        "generalise worse.",
    )
    title = "Initial scale, final norm and accuracy"
    question = "Why do networks with large initial weights generalise worse?"
    figures, meaning = page.figures, page.meaning
    equation = r"\theta(0) = \alpha \, \theta_0, \quad \|\theta(\infty)\|(\alpha)"
    minutes = 2.7
    theory = "conservation of the difference between the layers"
    along = "scale"
    axes = ("scale", "seed")
    task = "digits"
    notes = ("{samples} training digits; pixels have mean square one.",)
    trains = "two-layer ReLU with {width} neurons"
    flow = "gradient flow"
    deciding_claims = DECIDING
    labelled = {"scale": "scales"}
    names = {
        "scale": ("scale of the initial weights", "1"),
        "loss": ("training loss over that of the zero function", "1"),
        "accuracy": ("training accuracy", "1"),
        "test_accuracy": ("test accuracy", "1"),
        "norm": ("norm of the weights", "1"),
        "layer_difference": ("difference between the squared norms of the layers", "1"),
        "feature_change": ("relative change of the features", "1"),
        "mean_test_accuracy": ("test accuracy", "1"),
        "initial_norm": ("norm of the initial weights", "1"),
        "centred_accuracy": ("test accuracy without the initial output", "1"),
        "mean_centred_accuracy": ("test accuracy without the initial output", "1"),
        "mean_norm": ("norm of the weights after training", "1"),
        "mean_initial_norm": ("norm of the initial weights", "1"),
    }
    tolerance = curve_tolerance(
        layer_difference=(1e-3, "gradient flow conserves the difference, and the solver error is below this limit")
    )
    checks = tuple(tolerance)
    tiny = {"scales": [0.25, 2.0], "width": 32, "samples": 60, "seeds": 2, "final_loss": 0.05}

    def check(self) -> None:
        """Require scales that differ clearly."""
        apart = self.scales[-1] >= _RANGE * self.scales[0]
        self.require(apart, "scales", f"choose a largest scale of at least {_RANGE} times the smallest")

    def trained(self) -> Values:
        """Train a network from every scale until it fits its digits, and measure it."""
        runs = np.array(
            [[self._run(scale, seed) for seed in range(self.seeds)] for scale in track(self.scales, "scales")]
        )
        found = {name: runs[..., k] for k, name in enumerate(_MEASURED)}
        means = ("test_accuracy", "centred_accuracy", "norm", "initial_norm")
        return found | {f"mean_{name}": (("scale",), found[name].mean(axis=1)) for name in means}

    def claimed(self, found: Mapping[str, Any]) -> Sequence[Claim]:
        """Evaluate the claims about the order of norms and accuracies."""
        return norm_claims({name: found[name] for name in _MEASURED})

    def exact(self) -> Values:
        """The difference between the layers, which keeps its initial value."""
        starts = [[self._network(scale, seed) for seed in range(self.seeds)] for scale in self.scales]
        return {"layer_difference": np.array([[layer_difference(each) for each in row] for row in starts])}

    def _run(self, scale: float, seed: int) -> tuple[float, ...]:
        data, network = split_digits(self.samples, np.random.default_rng([self.seed, seed])), self._network(scale, seed)
        further = norm_of(network), centred_accuracy(network, data, self.final_loss)
        return (*fitted(network, data, self.final_loss), *further)

    def _network(self, scale: float, seed: int) -> MLP:
        return MLP((_PIXELS, self.width, _CLASSES), bias=False, scale=scale, seed=self.seed + seed)

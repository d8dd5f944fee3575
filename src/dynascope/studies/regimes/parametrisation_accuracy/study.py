"""The parametrisation of a wide network determines its test accuracy at equal training loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Interval

from dynascope.comparison import Claim
from dynascope.flows import track
from dynascope.networks import abc_network
from dynascope.studies import ClaimsStudy, Reference, Values, curve_tolerance, parameter
from dynascope.studies.regimes.fitted_digits import MEASURED, centred_accuracy, fitted, split_digits
from dynascope.studies.regimes.parametrisation_accuracy import page
from dynascope.studies.regimes.parametrisation_accuracy.claims import DECIDING, PAIRS, accuracy_claims
from dynascope.theory import papers
from dynascope.theory.regimes import ABCParametrisation, abc_of_two_layers, abc_parametrisations, phase_table
from dynascope.validation.bounded import Seed

_NAMES = tuple(name for pair in PAIRS.items() for name in pair)
_MEASURED = (*MEASURED, "centred_accuracy")
_WIDER = 4  # smallest ratio of the largest width to the base width at which parametrisations differ clearly


class ParametrisationAccuracy(ClaimsStudy):
    """Compares the test accuracy of wide ReLU networks in six parametrisations on handwritten digits.

    All networks have one hidden layer. The parametrisations coincide at the smallest width, the base width. Towards
    larger widths, initial weights, output multiplier and learning rates change with the exponents of table 1 of the
    paper. Mean field, Kaiming+ and Xavier+ learn features in the limit of infinite width. With NTK, Kaiming− and
    Xavier−, the tangent kernel is constant in this limit. The output multiplier is absorbed into the weights, so mean
    field and Xavier+ are the same ReLU network.

    Networks are trained by gradient flow until their training loss is a given fraction of the loss of the zero
    function. There are no batches, no regularisation and no normalisation layers. The paper instead trains by SGD on
    CIFAR-10.

    The verdict rests on three claims, one for each pair of parametrisations: the one that learns features has the
    higher test accuracy at the largest width. No theory predicts accuracies, so the claims state only their order.
    Equality at the base width is an identity, and is only checked. Further claims state that the features change more
    with the parametrisation that learns features.

    The random output of the initial network also lowers the test accuracy: training removes it on the training digits,
    but only partly on test digits. It does not vanish in wide networks in the kernel phase, and with Xavier− it grows
    as the square root of the width. The networks are therefore also trained and tested without their initial output
    (as f − f₀). Whether the accuracies then differ in the same order is reported, but does not count.
    """

    widths: list[Annotated[int, Ge(4)]] = parameter(
        [32, 128, 512],
        "Numbers of hidden neurons; all parametrisations coincide at the first one.",
        fewest=2,
        increasing=True,
    )
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
        "A change of the output multiplier and of the learning rates moves a wide network from the kernel phase to the "
        "feature-learning phase, or back. Networks that learn features reach the higher test accuracy.",
    )
    title = "Accuracy of wide networks by parametrisation"
    question = "Do wide networks that learn features classify better than those with a constant kernel?"
    figures, meaning = page.figures, page.meaning
    equation = (
        r"f(x) = \gamma \sum_{i=1}^{d} u_i \max(w_i \cdot x, 0), \quad \gamma \sim d^{c_\gamma}, \quad "
        r"\eta \sim d^{c_\eta}"
    )
    minutes = 7.9
    theory = "parametrisations that coincide at the base width"
    along = "architecture"
    axes = ("width", "architecture", "seed")
    task = "digits"
    notes = ("{samples} training digits; pixels have mean square one.",)
    trains = "two-layer ReLU"
    flow = "gradient flow"
    deciding_claims = DECIDING
    labelled = {"width": "widths", "architecture": lambda _: list(_NAMES)}
    names = {
        "width": ("number of hidden neurons", "1"),
        "architecture": ("parametrisation", "1"),
        "loss": ("training loss over that of the zero function", "1"),
        "accuracy": ("training accuracy", "1"),
        "test_accuracy": ("test accuracy", "1"),
        "norm": ("norm of the weights", "1"),
        "layer_difference": ("difference between the squared norms of the layers", "1"),
        "feature_change": ("relative change of the features", "1"),
        "mean_test_accuracy": ("test accuracy", "1"),
        "centred_accuracy": ("test accuracy without the initial output", "1"),
        "mean_centred_accuracy": ("test accuracy without the initial output", "1"),
        "mean_feature_change": ("relative change of the features", "1"),
        "base_accuracy_ratio": ("test accuracy at the base width over that of mean field", "1"),
    }
    tolerance = curve_tolerance(
        base_accuracy_ratio=(0.005, "at the base width, all parametrisations are the same network with the same rates")
    )
    checks = tuple(tolerance)
    tiny = {"widths": [16, 128], "samples": 60, "seeds": 2, "final_loss": 0.05}

    def check(self) -> None:
        """Require a largest width at which the parametrisations differ."""
        wide = self.widths[-1] >= _WIDER * self.widths[0]
        self.require(wide, "widths", f"choose a largest width of at least {_WIDER} times the smallest")

    def trained(self) -> Values:
        """Train all networks until they fit their digits, and measure them."""
        runs = np.array(
            [
                [
                    [self._run(width, entry, seed) for seed in range(self.seeds)]
                    for entry in _parametrisations().values()
                ]
                for width in track(self.widths, "widths")
            ]
        )
        found = {name: runs[..., k] for k, name in enumerate(_MEASURED)}
        base = found["test_accuracy"][0].mean(axis=1)
        means = ("test_accuracy", "centred_accuracy", "feature_change")
        return {
            **found,
            **{f"mean_{name}": (("width", "architecture"), found[name].mean(axis=2)) for name in means},
            "base_accuracy_ratio": (("architecture",), base / base[0]),
        }

    def claimed(self, found: Mapping[str, Any]) -> Sequence[Claim]:
        """Evaluate the claims about the order of the parametrisations."""
        return accuracy_claims({name: found[name][-1] for name in _MEASURED}, _NAMES)

    def exact(self) -> Values:
        """The ratio of accuracies at the base width, where all networks are equal."""
        return {"base_accuracy_ratio": (("architecture",), np.ones(len(_NAMES)))}

    def _run(self, width: int, entry: ABCParametrisation, seed: int) -> tuple[float, ...]:
        data = split_digits(self.samples, np.random.default_rng([self.seed, seed]))
        pixels, classes = data.task.input_dimension, data.task.output_dimension
        options = {"base_width": self.widths[0], "activation": "relu", "seed": self.seed + seed}
        network, rates = abc_network(entry, width, pixels, classes, **options)
        further = centred_accuracy(network, data, self.final_loss, rates)
        return (*fitted(network, data, self.final_loss, rates), further)


def _parametrisations() -> dict[str, ABCParametrisation]:
    """The six parametrisations of a network with one hidden layer."""
    found = abc_parametrisations() | {"NTK": abc_of_two_layers(phase_table()["NTK"]["default"])}
    return {name: found[name] for name in _NAMES}

"""Small targets make a network lazy: its function and features approach a limit at a predicted rate."""

from __future__ import annotations

import functools
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Interval

from dynascope.studies import Reference, Study, Values, curve_tolerance, exact, parameter
from dynascope.studies.regimes.lazy_rich_features import page
from dynascope.studies.regimes.lazy_rich_features.experiment import STEP, Experiment
from dynascope.tasks.data.labelled_images import LabelledImages
from dynascope.validation.bounded import PositiveFloat, PositiveInt, Seed

_LAZIEST = 1e6
_TWO_ORDERS = (1e-3, "the theory neglects the third order of the expansion, which is smaller by a factor of α²")
_ONE_ORDER = (0.02, "the theory neglects the next order of the expansion, which is smaller by a factor of α")
_SAME = (1e-6, "training and theory iterate the same linear recursion in independent code")
_EXACT = (1e-6, "the theory is exact for every step of gradient descent")


class LazyRichFeatures(Study):
    """Trains networks F = α (f − f₀), where f₀ is the initial network; learning is lazy for large α.

    In other words, f − f₀ learns the labels divided by α. The expansion in 1/α is F = F₁ + F₂/α + O(1/α²). Here, F₁ is
    the network linearised in all its weights at initialisation, not the network in which only the last layer is
    trained. Both terms, and the movement of the last-layer features, are computed without training. The verdict rests
    on a comparison with networks trained at large α. Five quantities are compared: the loss, the test error, the
    distance to the linearised network times α (`correction`), the movement of the features times α
    (`feature_movement`), and the distance κ_CKA of the features from minimum features (`lazy_kappa_cka`). Minimum
    features span only as many dimensions as the outputs. As checks, the linearised network and the last layer
    trained alone must follow their linear recursions.

    For values of α between the rich and lazy limits, the study reports how the features change with α. It tests
    hypotheses about κ_CKA, the effective dimension, the similarity to the initial features, the test error and the
    distances to both limits, with 95 % confidence intervals over initialisations.

    In a network with one input and many linear neurons, a single number measures richness: the final growth ln γ₊ of
    the weights (`final_log_growth`), which is known exactly. The study checks this number for initial weights ±1 and
    for three equally rich variants. In these variants, the weights are divided by √factor, the target is multiplied by
    the factor, or the output is divided by the factor. The study also checks lazier networks, which are wider and have
    outputs divided by √width.
    """

    data: str = parameter("digits", '"digits", or the path to labelled images.')
    samples: Annotated[int, Ge(2)] = parameter(200, "Number of training images.")
    test_samples: Annotated[int, Ge(2)] = parameter(500, "Maximum number of test images.")
    width: PositiveInt = parameter(32, "Number of neurons in each hidden layer.")
    hidden_layers: PositiveInt = parameter(3, "Number of hidden layers.")
    activation: Literal["tanh", "erf", "gelu"] = parameter(
        "tanh", 'Activation "tanh", "erf" or "gelu"; the expansion requires a smooth activation.'
    )
    rich: list[PositiveFloat] = parameter(
        [1.0, 3.0, 10.0, 30.0, 100.0],
        "Factors α at which the networks are measured but not compared with theory.",
        fewest=0,
        increasing=True,
    )
    lazy: list[Annotated[float, Interval(gt=0, le=_LAZIEST)]] = parameter(
        [300.0, 3000.0],
        "Larger factors α, at which the networks are also compared with theory. Beyond 1e6, rounding errors exceed "
        "f − f₀.",
        increasing=True,
    )
    duration: PositiveFloat = parameter(
        2000.0, "Training time, in units of the fastest time constant of the linearised network."
    )
    times: Annotated[int, Ge(2)] = parameter(50, "Number of recorded log-spaced times.")
    seeds: Annotated[int, Ge(2)] = parameter(4, "Number of initialisations.")
    factor: PositiveFloat = parameter(10.0, "Factor by which the scalar network is made richer.")
    scalar_neurons: PositiveInt = parameter(4, "Number of neurons of the scalar network; must be even.")
    scalar_target: PositiveFloat = parameter(3.0, "Slope S that the scalar network learns.")
    seed: Seed = parameter(0, "Seed of the data and of the first initialisation.")

    reference = Reference.of(
        "Y. Nam, Layerwise dynamics and inductive bias (DPhil thesis, chapter 6); L. Chizat, E. Oyallon, F. Bach, On "
        "Lazy Training in Differentiable Programming (arXiv 1812.07956)",
        "With small targets, a network trains like its linearisation and keeps its features. The corrections are "
        "proportional to the targets and are known before training.",
    )
    theory = "expansion in small targets"
    notes = (
        "Labels are divided by the scaling parameter and outputs are multiplied by it.",
        "Time is measured in units of the fastest time constant of the linearised network.",
    )
    trains = "{activation}, {hidden_layers} hidden layers of {width}"
    flow = "gradient descent, in steps of a quarter of the fastest time constant"
    names = {
        "time": ("training time in units of the fastest time constant", "1"),
        "final_test_error": ("final test error", "1"),
        "linearised_test_error": ("test error of the linearised network", "1"),
        "last_layer_test_error": ("test error of last-layer training", "1"),
        "final_log_growth": ("final growth ln γ of the weights", "1"),
        "feature_movement": ("movement of the features", "1"),
        "feature_similarity": ("similarity of the features to the initial features", "1"),
        "distance_to_linearised": ("distance to the linearised network", "1"),
        "distance_to_last_layer": ("distance to last-layer training", "1"),
        "correction": ("correction to lazy learning", "1"),
        "lazy_kappa_cka": ("distance κ of lazy features to minimum features", "1"),
    }
    axes = ("seed", "scaling_parameter", "time")
    labelled = {
        "scaling_parameter": "lazy",
        "dial": lambda study: list(study._experiment.scalars),
        "seed": lambda study: study.seed + np.arange(study.seeds),
        "time": lambda study: STEP * study._experiment.steps,
    }
    along = ("time", "scaling_parameter", "dial")
    title = "Features from rich to lazy learning"
    question = "How do the features of a trained network change as its targets become smaller?"
    figures, meaning = page.figures, page.meaning
    equation = r"F = \alpha \, (f - f_0) = F_1 + \frac{F_2}{\alpha} + O\left( \alpha^{-2} \right)"
    minutes = 1.5
    tolerance = curve_tolerance(
        **dict.fromkeys(("loss", "test_error", "lazy_kappa_cka"), _TWO_ORDERS),
        correction=_ONE_ORDER,
        feature_movement=_ONE_ORDER,
        linearised_test_error=_SAME,
        last_layer_test_error=_EXACT,
        final_log_growth=(1e-6, "the theory is exact, and training lasts for thirty time constants"),
    )
    checks = tuple(exact("linearised_test_error", "last_layer_test_error", "final_log_growth"))
    tiny = {
        **{"samples": 40, "test_samples": 50, "width": 12, "hidden_layers": 1},
        **{"rich": [3.0], "lazy": [300.0], "duration": 20.0, "times": 10},
    }

    def check(self) -> None:
        """Check the order and number of factors, the number of times, and that the scalar network has zero output."""
        alphas = [*self.rich, *self.lazy]
        increasing = len(alphas) >= 2 and bool(np.all(np.diff(alphas) > 0))
        self.require(increasing, "lazy", "choose at least two factors in increasing order, rich before lazy")
        resolved = self.times <= round(self.duration / STEP)
        self.require(resolved, "times", "choose fewer times, or a longer duration", beside="duration")
        even = self.scalar_neurons % 2 == 0
        self.require(even, "scalar_neurons", "choose an even number, so that the initial output is zero")

    def trained(self) -> Values:
        """Train the networks at every α, the networks of both limits, and the scalar networks."""
        return self._experiment.trained()

    def exact(self) -> Values:
        """Evaluate the expansion, the linear theory of last-layer training, and the limit of the scalar networks."""
        return self._experiment.exact()

    @functools.cached_property
    def _experiment(self) -> Experiment:
        return Experiment(self)

    @property
    def _task(self) -> LabelledImages:
        return self._experiment.data

"""Four changes in the training settings shorten the grokking delay of networks trained on digits."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Interval

from dynascope.studies import ClaimsStudy, Reference, Values, curve_tolerance, parameter
from dynascope.studies.grokking.grokking_digits import page
from dynascope.studies.grokking.grokking_digits.experiment import ScaledRuns
from dynascope.studies.grokking.grokking_digits.images_in_rows import ImagesInRows, images_in_rows
from dynascope.studies.grokking.grokking_digits.remedies import DECIDING, TABLE, TWINS, remedies, remedy_claims
from dynascope.studies.grokking.grokking_digits.twins import ScaleFactors
from dynascope.tasks.data.labelled_images import labelled_images
from dynascope.validation.bounded import PositiveFloat, PositiveInt, Seed

_HIDDEN_LAYERS = 3
_BLANK = 4  # largest number of blank pixels whose weights are recorded
_FIRST_RECORD = 10
_RUNS, _RATIOS = ("run", "seed"), ("dial", "seed", "step")


class GrokkingDigits(ClaimsStudy):
    """Trains an MLP on digits from large initial weights, so it generalises long after it fits the training data.

    A four-layer tanh MLP, y = b·f(a·x), is trained with Adam on one-hot targets multiplied by T, with squared loss and
    the penalty ½ λ‖θ‖² (weight decay λ). The delay is the number of steps between the training accuracy and the test
    accuracy reaching their thresholds. Four remedies for the delay change one setting each: smaller initial weights,
    larger targets T, smaller inputs a, or smaller outputs b. For a network that fits the training images but does not
    generalise by the end of training, the number of steps from the fit to the end of training is recorded as a lower
    bound on the delay. In this case, `generalised` is false, and the claims about the delay are undecided. The study
    also reports, with confidence intervals over seeds, whether the remedies bring the features closer to minimum
    features (a smaller distance κ_CKA).

    Three laws that hold for any data are checked:

    - `loss_ratio`: Three remedies are repeated by twin runs with equivalent settings. Twins have the same loss at every
      step up to a known factor. Multiplying b and T by a factor, and λ and the ε of Adam by the square of this factor,
      leaves a run unchanged. Smaller outputs are therefore equivalent to larger targets with a weight decay that is
      larger by the factor 1/b². Similarly, smaller inputs are equivalent to smaller initial weights, a smaller learning
      rate and a larger weight decay in the first layer. Smaller outputs are also equivalent to the same changes in the
      last layer.
    - `blank_weight`: Only weight decay acts on the weights of pixels that are blank in all images. Adam reduces the
      root mean square of these weights by about η per step, however small λ is. Values below η are replaced by η,
      because Adam amplifies rounding errors near zero.
    - `total_utilization_after`: The utilization of a feature is the fraction of the outputs that the feature explains.
      The outputs lie in the span of the features, so the utilizations sum to one.
    """

    data: str = parameter("digits", 'Images: "digits", or the path to labelled images.')
    samples: Annotated[int, Ge(2)] = parameter(1000, "Number of training images.")
    test_samples: Annotated[int, Ge(2)] = parameter(1000, "Maximum number of test images.")
    width: PositiveInt = parameter(128, "Number of neurons in each of the three hidden layers.")
    weight_scale: PositiveFloat = parameter(
        5.0, "Factor on the initial weights; their variance before scaling is 1/fan-in."
    )
    target_scale: PositiveFloat = parameter(3.0, "Factor T on the targets.")
    small_weights: PositiveFloat = parameter(1.0, "Factor on the initial weights in the run with smaller weights.")
    large_targets: PositiveFloat = parameter(30.0, "Factor T on the targets in the run with larger targets.")
    small_inputs: PositiveFloat = parameter(0.01, "Factor a on the inputs in the run with smaller inputs.")
    small_outputs: PositiveFloat = parameter(0.1, "Factor b on the outputs in the run with smaller outputs.")
    learning_rate: PositiveFloat = parameter(1e-3, "Learning rate η of Adam.")
    weight_decay: PositiveFloat = parameter(
        5e-4,
        "Weight decay λ, which adds ½ λ‖θ‖² to the loss. The paper averages the squared error over ten outputs and "
        "omits the factor ½, so the value 10⁻⁴ in the paper corresponds to 5·10⁻⁴ here.",
    )
    batch_size: PositiveInt = parameter(128, "Number of images per step.", most="samples")
    steps: Annotated[int, Ge(2 * _FIRST_RECORD)] = parameter(8000, "Number of training steps.")
    records: Annotated[int, Ge(3)] = parameter(60, "Number of recorded steps, with approximately geometric spacing.")
    train_threshold: Annotated[float, Interval(gt=0, le=1)] = parameter(
        0.99, "Training accuracy at which the training images count as fitted."
    )
    test_threshold: Annotated[float, Interval(gt=0, le=1)] = parameter(
        0.9, "Test accuracy at which a network counts as generalising."
    )
    seeds: Annotated[int, Ge(2)] = parameter(4, "Number of initialisations of each run.")
    seed: Seed = parameter(0, "Seed for the choice of training images.")

    reference = Reference.of(
        "Y. Nam, Layerwise dynamics and inductive bias (DPhil thesis, section 6.4.3); Y. Nam, S. H. Lee, C. Domine, "
        "Y. C. Park, C. London, W. Choi, N. Goring, S. Lee, Position: Solve layerwise linear models first to "
        "understand neural dynamical phenomena (arXiv 2502.21009)",
        "Smaller initial weights, smaller inputs, smaller outputs and larger targets shorten the grokking delay.",
    )
    theory = "exact equivalences between settings of Adam, and exact decay of the weights of blank pixels"
    trains = "tanh MLP with four layers"
    flow = "Adam with weight decay, learning rate {learning_rate:g} and {batch_size} images per step"
    axes = ("run", "seed", "step")
    labelled = {"run": TABLE, "dial": tuple(TWINS), "step": "_recorded"}
    recorded_fields = ("train_threshold", "test_threshold")
    along = ("step", "run")
    deciding_claims = DECIDING
    title = "Grokking on digits"
    question = "Which training settings shorten the delay between fitting and generalising?"
    figures, meaning = page.figures, page.meaning
    equation = r"y = b \, f(a x), \quad \text{delay} = k_{\text{test}} - k_{\text{train}}"
    minutes = 2.0
    names = {
        "dial": ("twin", "1"),
        "loss_ratio": ("loss of the twin run divided by the loss of the run that it repeats", "1"),
        "blank_weight": ("root mean square of the weights of blank pixels, relative to initialisation", "1"),
        "delay_decades": ("delay from fitting to generalising, in decades", "decades"),
        "kappa_before": ("distance κ to minimum features when the training images are fitted", "1"),
        "kappa_after": ("distance κ to minimum features at the end of training", "1"),
        "test_kappa_before": ("distance κ to minimum features on test images when the training images are fitted", "1"),
        "test_kappa_after": ("distance κ to minimum features on test images at the end of training", "1"),
        "total_utilization_before": (
            "fraction of the outputs explained by all features when the training images are fitted",
            "1",
        ),
        "total_utilization_after": ("fraction of the outputs explained by all features at the end of training", "1"),
        "effective_dimension_before": ("effective dimension of the features when the training images are fitted", "1"),
        "effective_dimension_after": ("effective dimension of the features at the end of training", "1"),
        "delay_resolution": ("resolution of the delay", "1"),
        "fitted": ("whether the training threshold is reached", "1"),
        "generalised": ("whether the test threshold is reached", "1"),
    }
    tolerance = curve_tolerance(
        loss_ratio=(1e-6, "all factors are powers of two, so both runs have the same rounding errors"),
        blank_weight=(1e-3, "the recursion is exact up to the single-precision rounding of training"),
        total_utilization_after=(
            1e-6,
            "outputs and features are computed in float64, and modes of relative size below 1e-12 are omitted",
        ),
    )
    checks = tuple(tolerance)
    tiny = {
        **{"samples": 120, "test_samples": 60, "width": 16, "batch_size": 30, "learning_rate": 0.01},
        **{"steps": 300, "records": 40, "train_threshold": 0.8, "test_threshold": 0.5, "seeds": 2},
    }

    def trained(self) -> Values:
        """Train the default run, the remedies and the twins from all seeds."""
        runs = [self._trainings.measured(TABLE, seed) for seed in range(self.seeds)]
        ratios = [[run[name]["loss"] / run[of]["loss"] for run in runs] for name, of in TWINS.items()]
        return {
            "loss_ratio": (_RATIOS, ratios),
            **{
                name: (self.axes[: 2 + np.ndim(value)], [[run[each][name] for run in runs] for each in TABLE])
                for name, value in runs[0]["default"].items()
            },
        }

    def claimed(self, found: Mapping[str, Any]) -> Values:
        """Evaluate every claim."""
        of_runs = {name: values for name, (axes, values) in found.items() if axes == _RUNS}
        return remedy_claims({name: dict(zip(TABLE, values, strict=True)) for name, values in of_runs.items()})

    def exact(self) -> Values:
        """The loss ratios of the twins, the weights of blank pixels, and the sum of the utilizations."""
        runs, shape = self._runs, (self.seeds, len(self._recorded))
        ratios = [(runs[name].target / runs[run].target) ** 2 for name, run in TWINS.items()]
        blank = {"blank_weight": [self._trainings.blank_weights(name, range(self.seeds)) for name in TABLE]}
        return {
            "loss_ratio": (_RATIOS, [np.full(shape, ratio) for ratio in ratios]),
            "total_utilization_after": (_RUNS, np.ones((len(TABLE), self.seeds))),
            **(blank if len(self._task.blank) else {}),
        }

    @functools.cached_property
    def _task(self) -> ImagesInRows:
        data = labelled_images(self.data, self.samples, self.test_samples, self.seed)
        for name, number in (("samples", self.samples), ("test_samples", len(data.test_inputs))):
            problem = f"{name} selects {number} images of {data.classes} classes"
            self.require(number > data.classes, name, "choose more images than classes", problem=problem)
        images = images_in_rows(data)
        return images._replace(blank=images.blank[:_BLANK])

    @functools.cached_property
    def _runs(self) -> dict[str, ScaleFactors]:
        turned = {"weights": self.small_weights, "targets": self.large_targets}
        default = ScaleFactors(self.weight_scale, self.target_scale)
        return remedies(default, **turned, inputs=self.small_inputs, outputs=self.small_outputs)

    @functools.cached_property
    def _recorded(self) -> np.ndarray:
        spread = np.geomspace(_FIRST_RECORD, self.steps, self.records - 1).round().astype(int)
        return np.unique(np.append(0, spread))

    @functools.cached_property
    def _trainings(self) -> ScaledRuns:
        thresholds = self.train_threshold, self.test_threshold
        options: dict[str, Any] = {"weight_decay": self.weight_decay, "learning_rate": self.learning_rate}
        options |= {"batch_size": self.batch_size, "recorded": self._recorded, "thresholds": thresholds}
        return ScaledRuns(self._task, self._runs, (self.width,) * _HIDDEN_LAYERS, **options)

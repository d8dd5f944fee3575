"""Grokking of digits: what four dials do to the delay, and which of them are one dial in disguise."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from dynascope.studies import ClaimsStudy, Reference, Values, curve_tolerance
from dynascope.studies.fields import count, fraction, positive, seed, text
from dynascope.studies.grokking.grokking_digits.experiment import DialledRuns
from dynascope.studies.grokking.grokking_digits.page import FIGURES, MEANING
from dynascope.studies.grokking.grokking_digits.remedies import DECIDING, TABLE, TWINS, put_claims, remedies
from dynascope.studies.grokking.grokking_digits.twins import Dials
from dynascope.tasks.data.labelled_images import ImagesInRows, images_in_rows, labelled_images

_HIDDEN_LAYERS = 3
_BLANK = 4  # blank pixels whose weights are followed, at most
_FIRST_RECORD = 10
_RUNS, _RATIOS = ("run", "seed"), ("dial", "seed", "step")


class GrokkingDigits(ClaimsStudy):
    """Large initial weights make an MLP fit digits long before it generalises; four dials are said to cure it.

    A tanh MLP of four layers, y = b·f(a·x), learns T times the one-hot class by squared loss, with Adam and a weight
    decay λ that is part of the loss. Each remedy turns one dial: smaller weights, larger targets T, smaller inputs a,
    smaller outputs b. The delay is that between the steps at which training and test accuracy pass their thresholds;
    one that is not passed counts as passed at the last step, `reached` is false, and decides nothing. That remedies
    bring fewer features, by the distance κ_CKA to a minimum, is reported too, with intervals over seeds.

    Checked is what theory says whatever the data. (1) Twins (`theory.grokking.twins`): b and T are one dial b/T as long
    as λ and the ε of Adam go with T², and small inputs are small weights of the first layer at a small rate, small
    outputs small weights of the last. Three remedies are trained a second time, each by such a twin of its dial, and
    the ratio of the losses (`loss_ratio`) is known at every step. Hence outputs downscaled are targets upscaled with a
    decay that is stronger by 1/b². (2) The weights of pixels that are blank in all images feel the decay alone
    (`blank_weight`, their root mean square over the first): Adam takes them to zero at its own rate, about η a step,
    however small λ is. Smaller ones count as η, for about zero Adam amplifies their rounding. (3) The outputs lie in
    the span of the features, so that the utilizations add up to one (`total_utilization_after`).
    """

    data: str = text("digits", '"digits", or the path of labelled images.')
    samples: int = count(1000, "Number of training images.", least=2)
    test_samples: int = count(1000, "Largest number of test images.", least=2)
    width: int = count(128, "Neurons in each of the three hidden layers.")
    weight_scale: float = positive(5.0, "Factor on initial weights of variance 1/(input width).")
    target_scale: float = positive(3.0, "T, the factor on the targets.")
    small_weights: float = positive(1.0, "Factor on the initial weights in the remedy by weights.")
    large_targets: float = positive(30.0, "T in the remedy by targets.")
    small_inputs: float = positive(0.01, "a in the remedy by inputs.")
    small_outputs: float = positive(0.1, "b in the remedy by outputs.")
    learning_rate: float = positive(1e-3, "η of Adam.")
    weight_decay: float = positive(
        5e-4,
        "λ of ½λ‖θ‖². The 10⁻⁴ of the source, beside an error without ½ that is averaged over ten outputs, is 5·10⁻⁴ "
        "here.",
    )
    batch_size: int = count(128, "Images in a step.", most="samples")
    steps: int = count(8000, "Number of steps of training.", least=2 * _FIRST_RECORD)
    records: int = count(60, "Number of steps at which all is measured, in nearly equal ratios.", least=3)
    train_threshold: float = fraction(0.99, "Training accuracy that counts as learned.", open_below=True)
    test_threshold: float = fraction(0.9, "Test accuracy that counts as generalising.", open_below=True)
    seeds: int = count(4, "Number of initialisations of each run.", least=2)
    seed: int = seed("Seed of the choice of training images.")

    reference = Reference.of(
        "Y. Nam, Layerwise dynamics and inductive bias (DPhil thesis, section 6.4.3); Y. Nam, S. H. Lee, C. Domine, "
        "Y. C. Park, C. London, W. Choi, N. Goring, S. Lee, Position: Solve layerwise linear models first to "
        "understand neural dynamical phenomena (arXiv 2502.21009)",
        "Smaller weights, inputs or outputs and larger targets shorten the delay of grokking.",
    )
    theory = "symmetries of Adam with decay, and weights that feel nothing else"
    trains = "mlp, tanh, four layers"
    flow = "Adam with weight decay, of rate {learning_rate:g}, with {batch_size} images in a step"
    axes = ("run", "seed", "step")
    labelled = {"run": TABLE, "dial": tuple(TWINS), "step": "_recorded"}
    says = ("train_threshold", "test_threshold")
    along = ("step", "run")
    judged_claims = DECIDING
    title = "Grokking of digits"
    question = "What makes a network know new digits long after its own, and what cures it?"
    meaning = MEANING
    figures = FIGURES
    minutes = 2.0
    names = {
        "loss_ratio": ("loss of the twin over that of its run", "1"),
        "blank_weight": ("size of the weights on blank pixels", "1"),
        "delay_decades": ("delay from fitting to generalising, decades", "1"),
        "delay_resolution": ("resolution of the delay", "1"),
        "reached": ("whether the network generalises", "1"),
    }
    tolerance = curve_tolerance(
        loss_ratio=(1e-6, "the factors are powers of two, so that both runs round alike"),
        blank_weight=(1e-3, "the recursion is exact; the weights were trained in single precision"),
        total_utilization_after=(
            1e-6,
            "outputs and features are those of the network in float64, down to modes of size 1e-12",
        ),
    )
    checks = tuple(tolerance)
    tiny = {
        **{"samples": 120, "test_samples": 60, "width": 16, "batch_size": 30, "learning_rate": 0.01},
        **{"steps": 300, "records": 40, "train_threshold": 0.8, "test_threshold": 0.5, "seeds": 2},
    }

    def trained(self) -> Values:
        """Train the default, the remedies and the twins from all seeds."""
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
        """What the runs say of the hypotheses."""
        of_runs = {name: values for name, (axes, values) in found.items() if axes == _RUNS}
        return put_claims({name: dict(zip(TABLE, values, strict=True)) for name, values in of_runs.items()})

    def exact(self) -> Values:
        """The ratio of the losses of twins, the weights of blank pixels, and the sum of the utilizations."""
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
            problem = f"{name} has {number} images of {data.classes} classes"
            self.require(number > data.classes, name, "choose more than there are classes", problem=problem)
        images = images_in_rows(data)
        return images._replace(blank=images.blank[:_BLANK])

    @functools.cached_property
    def _runs(self) -> dict[str, Dials]:
        turned = {"weights": self.small_weights, "targets": self.large_targets}
        default = Dials(self.weight_scale, self.target_scale)
        return remedies(default, **turned, inputs=self.small_inputs, outputs=self.small_outputs)

    @functools.cached_property
    def _recorded(self) -> np.ndarray:
        spread = np.geomspace(_FIRST_RECORD, self.steps, self.records - 1).round().astype(int)
        return np.unique(np.append(0, spread))

    @functools.cached_property
    def _trainings(self) -> DialledRuns:
        thresholds = self.train_threshold, self.test_threshold
        options: dict[str, Any] = {"weight_decay": self.weight_decay, "learning_rate": self.learning_rate}
        options |= {"batch_size": self.batch_size, "recorded": self._recorded, "thresholds": thresholds}
        return DialledRuns(self._task, self._runs, (self.width,) * _HIDDEN_LAYERS, **options)

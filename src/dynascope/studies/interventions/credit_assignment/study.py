"""Several learning rules train deep networks without sending errors back through the transposed weights."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import xarray as xr
from annotated_types import Ge, Interval

from dynascope.comparison import Claim
from dynascope.interventions import CREDIT_RULES, CreditTraining
from dynascope.studies import ClaimsStudy, Reference, Values, curve_tolerance, parameter
from dynascope.studies.interventions.credit_assignment import page
from dynascope.studies.interventions.credit_assignment.claims import (
    DECIDING,
    credit_claims,
    transfer_losses,
    working_shares,
)
from dynascope.studies.interventions.credit_assignment.runs import GRID_RULES, CreditRuns
from dynascope.studies.tolerances import with_limits
from dynascope.tasks import Labelled
from dynascope.tasks.data.labelled_images import labelled_images
from dynascope.theory.interventions import mirror_misalignment
from dynascope.validation.bounded import NonNegativeFloat, PositiveFloat, PositiveInt, Seed

_RECORDS = 6
_CLASSES = 10
_STATIONARY = 3  # warm-up in units of 1/η_B
_CHANCE = 2.5  # standard errors
_DRIFT, _LIMIT = 0.02, 0.037
_REASON = (
    "the theory assumes fixed weights, but training slowly changes the weights and the fixed point (2 percent); the "
    "rest is the sampling error of the angle"
)


class CreditAssignment(ClaimsStudy):
    """Trains digit classifiers with backpropagation and with seven rules that replace the transposed weights.

    Backpropagation sends errors back through the transposed weights. The other rules use separate feedback weights,
    which are random (feedback alignment), copy the signs of the weights (sign symmetry), receive the same updates as
    the weights (Kolen-Pollack), or are trained by descent on a regulariser (weight mirror, information alignment,
    activation alignment and symmetric alignment). The regularisers are evaluated on Gaussian noise, and feedback
    weights are aligned before training starts.

    For each rule and depth, the study records the test accuracy and two angles: the angle between the feedback weights
    and the forward weights, and the angle between the approximate gradient of the rule and the exact gradient. The
    angle of the weight mirror is compared with the stationary angle that the theory predicts for fixed weights. At one
    depth, the study trains with every combination of several learning rates and rule strengths (factors on the
    coefficients that align feedback weights), and repeats this with a convolutional network of the same depth. A rule
    is fragile if few combinations train the network. A rule transfers if the best settings for the MLP also work well
    for the convolutional network. Further runs add noise to the updates of symmetric alignment. For these runs, the
    theory predicts the angle that remains (the noise floor).

    All claims have confidence intervals over seeds and count towards the verdict. In the default run, the
    settings of activation alignment that are best for the MLP fail on the convolutional network, so the verdict is
    "disagree".
    """

    depths: list[Annotated[int, Interval(ge=2, le=12)]] = parameter(
        [2, 3, 4, 5, 6], "Numbers of layers of the MLPs.", fewest=2, increasing=True
    )
    width: PositiveInt = parameter(48, "Width of the hidden layers.")
    samples: Annotated[int, Interval(ge=100, le=1500)] = parameter(1400, "Number of training digits.")
    test_samples: Annotated[int, Ge(20)] = parameter(397, "Maximum number of test digits.")
    learning_rate: PositiveFloat = parameter(0.02, "Learning rate of the runs at all depths.")
    weight_decay: NonNegativeFloat = parameter(1e-3, "Weight decay of all rules except Kolen-Pollack.")
    kolen_pollack_decay: PositiveFloat = parameter(
        1e-2, "Weight decay of the Kolen-Pollack rule, which sets the rate at which its feedback weights align."
    )
    feedback_rate: Annotated[float, Interval(gt=0, lt=1)] = parameter(0.1, "Learning rate of the feedback weights.")
    steps: PositiveInt = parameter(840, "Number of training steps of the runs at all depths, a multiple of 6.")
    warm_up: PositiveInt = parameter(100, "Number of steps that align feedback weights before training starts.")
    batch_size: PositiveInt = parameter(50, "Samples per step.", most="samples")
    grid_depth: Annotated[int, Interval(ge=3, le=12)] = parameter(
        4, "Number of layers of the networks that are trained on the grid of settings and with noise."
    )
    grid_steps: PositiveInt = parameter(280, "Number of training steps for each combination of settings.")
    learning_rates: list[PositiveFloat] = parameter(
        [0.01, 0.04, 0.16, 0.64], "Learning rates of the grid.", increasing=True
    )
    strengths: list[PositiveFloat] = parameter([0.25, 1.0, 4.0], "Rule strengths of the grid.", increasing=True)
    trained_accuracy: Annotated[float, Interval(gt=0, lt=1)] = parameter(
        0.8, "Test accuracy at which a network on the grid counts as trained."
    )
    noises: list[PositiveFloat] = parameter(
        [0.1, 0.3, 1.0], "Standard deviations of the noise in the updates of feedback weights.", increasing=True
    )
    seeds: Annotated[int, Ge(2)] = parameter(8, "Number of initialisations of each network.")
    seed: Seed = parameter(0, "Seed of the data and the batches.")

    reference = Reference.of(
        "D. Kunin, A. Nayebi, J. Sagastuy-Brena, S. Ganguli, J. Bloom, D. L. K. Yamins, Two Routes to Scalable Credit "
        "Assignment without Weight Symmetry (arXiv 2003.01513)",
        "Without symmetric weights, local rules such as information alignment and non-local rules such as symmetric "
        "alignment train networks as well as backpropagation. These rules are more stable than an earlier rule, the "
        "weight mirror, and tolerate noise.",
    )
    title = "Credit assignment without weight symmetry"
    question = "Which rules train a network if errors are not sent back through the transposed weights?"
    figures, meaning = page.figures, page.meaning
    equation = r"\delta_l = \phi'(z_l) \odot \delta_{l+1} B_{l+1}^\top, \quad \Delta B = -\eta_B \nabla_B \mathcal{R}"
    minutes = 4.0
    theory = "stationary misalignment of feedback weights"
    task = "handwritten digits"
    notes = ("The networks are trained on {samples} digits of 8 × 8 pixels.", "The loss is the cross-entropy.")
    trains = "ReLU MLPs and convolutional networks with feedback weights"
    flow = "SGD with learning rate {learning_rate:g} and minibatches of {batch_size}"
    along = "depth"
    labelled = {
        **{"rule": lambda _: list(CREDIT_RULES), "tuned": lambda _: list(GRID_RULES), "depth": "depths"},
        **{"noise": "noises", "learning_rate": "learning_rates", "strength": "strengths"},
    }
    names = {
        "rule": ("rule", "1"),
        "tuned": ("rule", "1"),
        "depth": ("layers", "1"),
        "noise": ("noise in the feedback updates", "1"),
        "strength": ("rule strength", "1"),
        "test_accuracy": ("test accuracy", "1"),
        "weight_angle": ("angle between feedback weights and weights", "degrees"),
        "gradient_angle": ("angle between the approximate and the exact gradient", "degrees"),
        "mirror_angle": ("weight-mirror angle", "degrees"),
        "working_share": ("share of the settings that train the network", "1"),
        "transfer_loss": ("test accuracy lost with transferred settings", "1"),
        "grid_accuracy": ("test accuracy of the MLP on the grid", "1"),
        "transferred_grid_accuracy": ("test accuracy of the convolutional network on the grid", "1"),
        "noisy_accuracy": ("test accuracy with noisy updates", "1"),
        "noisy_angle": ("angle with noisy updates", "degrees"),
        "noise_floor": ("predicted noise floor of the angle", "degrees"),
        "feedback_alignment_accuracy": ("test accuracy of feedback alignment at the depth of the noisy runs", "1"),
    }
    tolerance = curve_tolerance(mirror_angle=(_LIMIT, _REASON))
    deciding_claims = DECIDING
    tiny = {
        **{"depths": [3, 4], "width": 32, "samples": 200, "test_samples": 50, "steps": 120, "warm_up": 60},
        **{"grid_depth": 3, "grid_steps": 20, "learning_rates": [0.04, 0.16], "strengths": [1.0], "noises": [0.3]},
        **{"seeds": 8},
    }

    def with_tolerances(self, predicted: xr.Dataset) -> xr.Dataset:
        """Allow for the sampling error of the angle, which is an average over finitely many feedback weights."""
        spread = max(_angle_error(depth, self.width) for depth in self.depths)
        # Fluctuations decay within 1/η_B steps, and the later half of the records is averaged.
        records = min(_RECORDS / 2, max(1.0, self.feedback_rate * self.steps / 2))
        error = _CHANCE * spread / math.sqrt(self.seeds * records)
        return with_limits(predicted, dict.fromkeys(self.tolerance, (max(_LIMIT, _DRIFT + error), _REASON)))

    def check(self) -> None:
        """Require equally spaced records, and runs at the depth of the grid."""
        self.require(self.steps % _RECORDS == 0, "steps", f"choose a multiple of {_RECORDS}")
        remedy = f"choose at least {_STATIONARY}/feedback_rate steps, after which feedback weights are stationary"
        self.require(self.warm_up * self.feedback_rate >= _STATIONARY, "warm_up", remedy, beside="feedback_rate")
        self.require(self.grid_depth in self.depths, "grid_depth", "choose one of the depths", beside="depths")

    def trained(self) -> Values:
        """Train with every rule at all depths, on the grid of settings, and with noise."""
        runs = self._runs
        deep, noisy = runs.over_depth(), runs.with_noise()
        first = runs.over_grid(lambda seed: runs.mlp(self.grid_depth, seed))
        other = runs.over_grid(runs.convolutional)
        rules = list(CREDIT_RULES)
        fixed = deep["test_accuracy"][rules.index("feedback alignment"), self.depths.index(self.grid_depth)]
        grid = ("tuned", "learning_rate", "strength", "seed")
        return {
            **{name: (("rule", "depth", "seed"), values) for name, values in deep.items()},
            **{name: (("noise", "seed"), values) for name, values in noisy.items()},
            "mirror_angle": ("depth", deep["weight_angle"][rules.index("weight mirror")].mean(axis=1)),
            "feedback_alignment_accuracy": ("seed", fixed),
            "grid_accuracy": (grid, first),
            "transferred_grid_accuracy": (grid, other),
            "working_share": (("tuned", "seed"), working_shares(first, self.trained_accuracy)),
            "transfer_loss": (("tuned", "seed"), transfer_losses(first, other)),
        }

    def claimed(self, found: Mapping[str, Any]) -> Sequence[Claim]:
        """Evaluate every claim."""
        return credit_claims({name: np.asarray(values[1]) for name, values in found.items()}, self.depths)

    def exact(self) -> Values:
        """The stationary angle of the weight mirror, the same at every depth because it depends on the width only."""
        ones, options = np.ones((self.width, 1)), {"feedback_rate": self.feedback_rate}
        angle = float(mirror_misalignment(ones, self.batch_size, **options).angle)
        return {"mirror_angle": ("depth", np.full(len(self.depths), angle))}

    @functools.cached_property
    def _runs(self) -> CreditRuns:
        data = labelled_images("digits", self.samples, self.test_samples, self.seed)
        sets = [(data.inputs, data.labels), (data.test_inputs, data.test_labels)]
        names = tuple(str(label) for label in range(data.classes))
        training, test = (Labelled(x.reshape(len(x), -1).astype(np.float32), y, names) for x, y in sets)
        settings = CreditTraining(
            self.learning_rate,
            self.weight_decay,
            self.feedback_rate,
            batch_size=self.batch_size,
            steps=self.steps,
            warm_up=self.warm_up,
            records=_RECORDS,
        )
        return self.part(CreditRuns, data=training, test=test, training=settings)


def _angle_error(depth: int, width: int) -> float:
    """Return the relative standard error of the angle, averaged over layers, at one time in one network.

    The squared sine of a small angle is a sum over N independent entries, so the angle of a layer has the relative
    standard error 1/√(2N).
    """
    entries = [width**2] * (depth - 2) + [width * _CLASSES]
    return math.sqrt(sum(1 / (2 * count) for count in entries)) / len(entries)

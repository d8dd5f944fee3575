"""Networks that have fitted part of a modular arithmetic table can later generalise to the rest of the table."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge, Interval

from dynascope.comparison.effect import Hypothesis, report_runs
from dynascope.probes.last_layer import SPAN
from dynascope.studies import ClaimsStudy, Reference, Values, curve_tolerance, parameter
from dynascope.studies.grokking.grokking_modular import page
from dynascope.studies.grokking.grokking_modular.experiment import HEADS, ModularRuns
from dynascope.theory.grokking import grokking_delay
from dynascope.training.losses import Loss
from dynascope.validation.bounded import NonNegativeFloat, OpenFraction, PositiveFloat, PositiveInt, Seed

_DIMENSION = "effective_dimension"
_RENAMED_STEPS = 50  # few enough that renamed runs differ by rounding alone
_AFTER = "training once overfitted"
_CLAIMS = (
    Hypothesis(
        "kind of sample", "step", 1, "H1", "The test samples are learned after the training samples.", median=True
    ),
    Hypothesis(_AFTER, "kappa_cka", -1, "H2", "After overfitting, the features come closer to minimum features."),
    Hypothesis(
        *(_AFTER, f"{_DIMENSION}_utilization", -1, "H3"),
        "After overfitting, the number of features used by the outputs falls.",
    ),
    Hypothesis(_AFTER, _DIMENSION, -1, "H4", "After overfitting, the effective number of features falls."),
)


class GrokkingModular(ClaimsStudy):
    """Trains a network with AdamW on part of the table of an operation modulo p, to observe whether it learns the rest.

    Here, grokking is an empirical observation that no theory predicts. The verdict rests on the claim that the test
    samples are learned after the training samples. The claim is about the median over runs, because a run may not
    generalise by the end of training (by default, one of six does not). The claim is undecided if any run does not fit
    its training samples. The study also reports whether the features approach minimum features after overfitting. Each
    seed has different initial weights and a different split of the table. The step `overfitted_step`, at which a
    network counts as overfitted, is the geometric mean of two steps: the step at which the network has first learned
    the training samples, and the step at which it has first learned the test samples. The features at `overfitted_step`
    are compared with those at the last step.

    Four laws that hold for every run, whether it groks or not, are checked:

    - `renamed_loss`: With one-hot inputs, numbers are only labels. If every nonzero number is renamed to its discrete
      logarithm, and zero to an extra label, a·b modulo p becomes a sum modulo p − 1, and a/b a difference. Training on
      either table gives the same loss if the rows and columns of the initial weights are permuted accordingly. For sums
      and differences, renaming a to −a also leaves the loss unchanged. The ratio of the two losses after 50 steps is
      one.
    - `gradient_balance`: For activations of degree k, ⟨W₁, ∂L/∂W₁⟩ = k ⟨W₂, ∂L/∂W₂⟩ at every step and for every loss,
      where W₁ is the layer before and W₂ the layer after the last hidden neurons.
    - `total_utilization`: The outputs lie in the span of the features, so the utilizations sum to one.
    - `unused_weight`: Weights that do not affect the output for any training sample are multiplied by 1 − ηλ at each
      step. In a two-layer network trained on division, these are the input weights of the divisor zero.
    """

    operation: Literal["addition", "subtraction", "multiplication", "division"] = parameter(
        "division", "Operation whose table the network learns."
    )
    p: Annotated[int, Ge(3)] = parameter(31, "Modulus p, a prime for multiplication and division.")
    train_fraction: OpenFraction = parameter(0.7, "Fraction of the table used for training.")
    network: Literal["relu", "quadratic", "transformer"] = parameter(
        "transformer",
        'Network: "relu" or "quadratic" (two layers), or "transformer" (one block with ReLU and four heads).',
    )
    width: PositiveInt = parameter(
        256,
        "Number of hidden neurons of a two-layer network; the residual stream of the transformer is a quarter as wide.",
    )
    loss: Literal["cross_entropy", "squared"] = parameter("cross_entropy", "Training loss.")
    learning_rate: PositiveFloat = parameter(
        1e-3, "Learning rate η of AdamW with β = (0.9, 0.98) and full-batch gradients."
    )
    weight_decay: NonNegativeFloat = parameter(
        2.0, "Weight decay λ of AdamW: each step shrinks the weights by the factor 1 − ηλ."
    )
    steps: PositiveInt = parameter(3000, "Number of training steps.")
    times: Annotated[int, Ge(2)] = parameter(60, "Number of recorded steps, denser early in training.")
    train_threshold: Annotated[float, Interval(gt=0, le=1)] = parameter(
        0.99, "Training accuracy at which the training samples count as fitted."
    )
    test_threshold: Annotated[float, Interval(gt=0, le=1)] = parameter(
        0.9, "Test accuracy at which a network counts as generalising."
    )
    seeds: Annotated[int, Ge(2)] = parameter(6, "Number of runs; with fewer than six, the claim is undecided.")
    seed: Seed = parameter(0, "Seed of the first run; the other runs use consecutive seeds.")

    reference = Reference.of(
        "A. Power, Y. Burda, H. Edwards, I. Babuschkin, V. Misra, Grokking: Generalization beyond overfitting on small "
        "algorithmic datasets (arXiv 2201.02177)",
        "Networks learn the held-out entries of a modular arithmetic table after they have fitted the training "
        "entries.",
        also="See also Y. Nam, Layerwise dynamics and inductive bias, DPhil thesis, chapter 6.",
    )
    theory = "symmetries of training on one-hot encoded numbers"
    flow = "full-batch AdamW with learning rate {learning_rate:g} and weight decay {weight_decay:g}"
    task = "modular {operation}, p = {p}"
    notes = (
        "Each seed has different initial weights and a different split.",
        "Features are the inputs of the last layer, on the training samples.",
    )
    trains = "{network}"
    recorded_fields = ("train_threshold", "test_threshold")
    axes = ("seed", "step")
    labelled = {"seed": lambda study: study.seed + np.arange(study.seeds), "step": "_runs.recorded"}
    along = ("step", "seed")
    deciding_claims = ("H1",)
    title = "Grokking of modular arithmetic"
    question = "When does a network that has memorised its training samples learn the underlying rule?"
    figures, meaning = page.figures, page.meaning
    equation = r"f(a, b) = a \circ b \bmod p"
    minutes = 1.6
    names = {
        "renamed_loss": ("loss with renamed numbers divided by the original loss", "1"),
        "unused_weight": ("norm of the unused weights, relative to initialisation", "1"),
        "gradient_balance": ("gradient balance of the last two layers", "1"),
        "delay_resolution": ("resolution of the delay", "1"),
        "overfitted_step": ("step at which the network counts as overfitted", "optimiser steps"),
        "generalised": ("whether the network generalises", "1"),
    }
    tolerance = curve_tolerance(
        renamed_loss=(1e-6, "over 50 steps in float64, the runs differ only by the rounding of reordered sums"),
        gradient_balance=(1e-6, "the identity is exact, and the gradients are computed in float64"),
        total_utilization=(1e-6, SPAN),
        unused_weight=(1e-3, "the law is exact up to float32 rounding at every step"),
    )
    checks = tuple(tolerance)
    tiny = {
        **{"p": 5, "train_fraction": 0.6, "network": "relu", "width": 12},
        **{"learning_rate": 3e-3, "weight_decay": 1.0, "steps": 300, "times": 6, "seeds": 6},
    }
    tiny_limits = (
        "This version tests only the four laws described below; the claim is undecided, because some networks of this "
        "size do not fit their training samples."
    )

    def trained(self) -> Values:
        """Train and measure all seeds, then train for a few steps with original and renamed numbers."""
        curves = self._runs.curves()
        thresholds, last = (self.train_threshold, self.test_threshold), float(self._runs.recorded[-1])
        delays = [
            grokking_delay(self._runs.recorded, *pair, *thresholds).recorded(last)
            for pair in zip(curves["accuracy"], curves["test_accuracy"], strict=True)
        ]
        of_seeds: dict[str, Any] = {name: [each[name] for each in delays] for name in delays[0]}
        middle = np.sqrt(np.multiply(of_seeds["train_step"], of_seeds["test_step"]))
        of_seeds["overfitted_step"] = self._runs.recorded[np.abs(self._runs.recorded - middle[:, None]).argmin(axis=1)]
        of_seeds["renamed_loss"] = self._runs.renamed_losses(_RENAMED_STEPS)
        return {**curves, **{name: ("seed", values) for name, values in of_seeds.items()}}

    def claimed(self, found: Mapping[str, Any]) -> Values:
        """Evaluate every hypothesis; H1 is undecided unless all runs fit their training samples."""
        overfitted = np.arange(self.seeds), np.searchsorted(self._runs.recorded, found["overfitted_step"][1])
        runs = {each.metric: [found[each.metric][overfitted], found[each.metric][:, -1]] for each in _CLAIMS[1:]}
        runs["step"] = [found["train_step"][1], np.where(found["generalised"][1], found["test_step"][1], np.inf)]
        fitted = np.asarray(found["fitted"][1])
        few = f"{fitted.sum()} of {fitted.size} networks fitted their training samples"
        undecided = {} if fitted.all() else {"H1": few}
        return report_runs([(each, runs[each.metric]) for each in _CLAIMS], undecided=undecided)

    def exact(self) -> Values:
        """Laws that hold for every run."""
        shape = (self.seeds, len(self._runs.recorded))
        decay = (1 - self.learning_rate * self.weight_decay) ** self._runs.recorded
        return {
            "total_utilization": np.ones(shape),
            "gradient_balance": np.full(shape, 2.0 if self.network == "quadratic" else 1.0),
            "renamed_loss": ("seed", np.ones(self.seeds)),
            **({"unused_weight": np.broadcast_to(decay, shape)} if self._runs.has_unused else {}),
        }

    def about(self) -> Values:
        """A description of the table and the network."""
        table = self._runs.tables[0].train
        network = "transformer" if self.network == "transformer" else f"two-layer {self.network}"
        convention = f"{Loss(self.loss).convention}; if a threshold is not reached, the last step is recorded instead"
        attributes = {"samples": table.samples, "network": network, "convention": convention}
        return {**super().about(), "description": [*table.description, *self.notes], **attributes}

    def check(self) -> None:
        """Require a stable weight decay, a modulus with discrete logarithms, and more pairs than classes."""
        multiple = 4 * HEADS if self.network == "transformer" else 1
        self.require(self.width % multiple == 0, "width", f"choose a multiple of {multiple}")
        remedy = "choose zero or a positive number below 1/learning_rate"
        self.require(self.weight_decay * self.learning_rate < 1, "weight_decay", remedy, beside="learning_rate")
        defined = self.operation in ("addition", "subtraction") or all(self.p % k for k in range(2, self.p))
        prime = "choose a prime number, so that all nonzero numbers have discrete logarithms"
        self.require(defined, "p", prime, beside="operation")
        enough = f"choose a fraction that trains on more than {self.p} pairs, the number of classes"
        self.require(int(self._runs.tables[0].trained.sum()) > self.p, "train_fraction", enough, beside="p")

    @functools.cached_property
    def _runs(self) -> ModularRuns:
        return self.part(ModularRuns)

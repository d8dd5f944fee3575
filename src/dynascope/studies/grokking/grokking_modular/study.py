"""Networks that learn arithmetic modulo p: the fit, the late generalisation, and the features on the way."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from dynascope.comparison.effect import Hypothesis, report_runs
from dynascope.probes.last_layer import SPAN
from dynascope.studies import ClaimsStudy, Reference, Values, curve_tolerance
from dynascope.studies.fields import choice, count, fraction, number, positive, seed
from dynascope.studies.grokking.grokking_modular.experiment import HEADS, ModularRuns
from dynascope.studies.grokking.grokking_modular.page import FIGURES, MEANING
from dynascope.theory.grokking import grokking_delay
from dynascope.training.losses import Loss

_DIMENSION = "effective_dimension"
_RENAMED_STEPS = 50  # after which two runs that are the same but for names still differ by rounding alone
_AFTER = "training once overfitted"
_CLAIMS = (
    Hypothesis("kind of sample", "step", 1, "H1", "Test samples are learned after training samples.", median=True),
    Hypothesis(_AFTER, "kappa_cka", -1, "H2", "An overfitted network comes closer to minimum features."),
    Hypothesis(
        *(_AFTER, f"{_DIMENSION}_utilization", -1, "H3"),
        "The outputs of an overfitted network come to use fewer features.",
    ),
    Hypothesis(_AFTER, _DIMENSION, -1, "H4", "An overfitted network comes to have fewer features."),
)


class GrokkingModular(ClaimsStudy):
    """A network learns a part of the table of an operation modulo p by AdamW, and the rest of it long after.

    What is known of this is empirical: that the test samples come late, which decides the verdict, and that features go
    from extended towards minimum ones afterwards. Seeds have their own weights and their own split. The verdict is on
    the median, as a run may never know the rest within its steps (by default one of six); it is undecided if one never
    knows its samples. Overfitted is the network half way, in ratio, between the steps at which it has learned the
    training and the test samples (`overfitted_step`); it is compared with that of the last step.

    Checked is what theory says of every run, grokking or not:

    - `renamed_loss`: numbers are only names to a network that reads them one-hot. With discrete logarithms for names,
      a·b modulo p is a sum modulo p − 1 and a/b a difference, zero apart, so that training on either table, from
      weights whose rows and columns are renamed alike, gives the same losses; with −a for the name of a, the same holds
      of sums and differences. The ratio of the two losses after 50 steps is one.
    - `gradient_balance`: activations of degree k give ⟨W₁, ∂L/∂W₁⟩ = k ⟨W₂, ∂L/∂W₂⟩ for the layers W₁ before and W₂
      after the last hidden neurons, at any step and for any loss.
    - `total_utilization`: outputs lie in the span of the features, so that utilizations sum to one.
    - `unused_weight`: what no sample reads only decays, by 1 − ηλ at each step. In division by all but zero, these are
      the weights of the divisor zero of a two-layer network.
    """

    operation: Literal["addition", "subtraction", "multiplication", "division"] = choice(
        "division", "What the table shows of two numbers."
    )
    p: int = count(31, "The modulus, prime for multiplication and division.", least=3)
    train_fraction: float = fraction(0.7, "Fraction of the table that is trained on.", open_below=True, open_above=True)
    network: Literal["relu", "quadratic", "transformer"] = choice(
        "transformer", '"relu" or "quadratic" (two layers), or "transformer" (one block with ReLU, of four heads).'
    )
    width: int = count(256, "Hidden neurons of two layers; the stream of the transformer is a quarter as wide.")
    loss: Literal["cross_entropy", "squared"] = choice("cross_entropy", "The loss that training lowers.")
    learning_rate: float = positive(1e-3, "η of AdamW with β = (0.9, 0.98), on all training samples at each step.")
    weight_decay: float = number(2.0, "λ of AdamW: each step takes off η λ of the weights.", least=0.0)
    steps: int = count(3000, "Number of steps of training.")
    times: int = count(60, "Number of steps at which all is measured, denser at first.", least=2)
    train_threshold: float = fraction(0.99, "Training accuracy that counts as fitted.", open_below=True)
    test_threshold: float = fraction(0.9, "Test accuracy that counts as generalising.", open_below=True)
    seeds: int = count(6, "Number of runs; of fewer than six the claim is undecided.", least=2)
    seed: int = seed("Seed of the first run; the others follow it.")

    reference = Reference.of(
        "A. Power, Y. Burda, H. Edwards, I. Babuschkin, V. Misra, Grokking: Generalization beyond overfitting on small "
        "algorithmic datasets (arXiv 2201.02177)",
        "Networks learn the held-out part of a table of modular arithmetic after they have learned the rest.",
        also="; Y. Nam, Layerwise dynamics and inductive bias (DPhil thesis, chapter 6)",
    )
    theory = "symmetries of training on one-hot numbers"
    flow = "AdamW on all training pairs, of rate {learning_rate:g} and decay {weight_decay:g}"
    task = "modular {operation}, p = {p}"
    told = (
        "Each seed has its own weights and its own split.",
        "Features are the inputs of the last layer on the training samples.",
    )
    trains = "{network}"
    says = ("train_threshold", "test_threshold")
    axes = ("seed", "step")
    labelled = {"seed": lambda study: study.seed + np.arange(study.seeds), "step": "_runs.recorded"}
    along = ("step", "seed")
    judged_claims = ("H1",)
    title = "Grokking of modular arithmetic"
    question = "When does a network that knows its examples by heart come to know the rule behind them?"
    meaning = MEANING
    figures = FIGURES
    minutes = 1.6
    names = {
        "renamed_loss": ("loss under other names over that under the old ones", "1"),
        "unused_weight": ("size of the unused weights", "1"),
        "gradient_balance": ("balance of the gradients", "1"),
        "delay_resolution": ("resolution of the delay", "1"),
        "overfitted_step": ("step at which the network overfits", "optimiser steps"),
        "generalised": ("whether the network generalises", "1"),
    }
    tolerance = curve_tolerance(
        renamed_loss=(1e-6, "the runs are the same but for the order of sums, in float64 and for 50 steps"),
        gradient_balance=(1e-6, "the identity is exact, and the slopes are taken in float64"),
        total_utilization=(1e-6, SPAN),
        unused_weight=(1e-3, "the law is exact, and each step rounds to float32"),
    )
    checks = tuple(tolerance)
    tiny = {
        **{"p": 5, "train_fraction": 0.6, "network": "relu", "width": 12},
        **{"learning_rate": 3e-3, "weight_decay": 1.0, "steps": 300, "times": 6, "seeds": 6},
    }

    def trained(self) -> Values:
        """Train all seeds and measure them on the way; then train anew for a while under other names."""
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
        """What the runs say of each hypothesis; of the steps nothing, unless all know their samples."""
        overfitted = np.arange(self.seeds), np.searchsorted(self._runs.recorded, found["overfitted_step"][1])
        runs = {each.metric: [found[each.metric][overfitted], found[each.metric][:, -1]] for each in _CLAIMS[1:]}
        runs["step"] = [found["train_step"][1], np.where(found["generalised"][1], found["test_step"][1], np.inf)]
        fitted = np.asarray(found["fitted"][1])
        few = f"{fitted.sum()} of {fitted.size} networks fitted their training samples"
        undecided = {} if fitted.all() else {"H1": few}
        return report_runs([(each, runs[each.metric]) for each in _CLAIMS], undecided=undecided)

    def exact(self) -> Values:
        """What holds of every run."""
        shape = (self.seeds, len(self._runs.recorded))
        decay = (1 - self.learning_rate * self.weight_decay) ** self._runs.recorded
        return {
            "total_utilization": np.ones(shape),
            "gradient_balance": np.full(shape, 2.0 if self.network == "quadratic" else 1.0),
            "renamed_loss": ("seed", np.ones(self.seeds)),
            **({"unused_weight": np.broadcast_to(decay, shape)} if self._runs.has_unused else {}),
        }

    def about(self) -> Values:
        """The table and the network."""
        table = self._runs.tables[0].train
        own = "transformer" if self.network == "transformer" else f"two-layer {self.network}"
        convention = f"{Loss(self.loss).convention}; where a threshold was not reached, its step is the last one"
        said = {"samples": table.samples, "network": own, "convention": convention}
        return {**super().about(), "description": [*table.description, *self.told], **said}

    def check(self) -> None:
        """Weights do not grow by decay, numbers have other names, and there are more pairs than classes."""
        multiple = 4 * HEADS if self.network == "transformer" else 1
        self.require(self.width % multiple == 0, "width", f"choose a multiple of {multiple}")
        remedy = "choose zero or a positive number below 1/learning_rate"
        self.require(self.weight_decay * self.learning_rate < 1, "weight_decay", remedy, beside="learning_rate")
        defined = self.operation in ("addition", "subtraction") or all(self.p % k for k in range(2, self.p))
        prime = "choose a prime number, so that all but zero have discrete logarithms"
        self.require(defined, "p", prime, beside="operation")
        enough = f"choose one that trains on more than {self.p} pairs, the number of classes"
        self.require(int(self._runs.tables[0].trained.sum()) > self.p, "train_fraction", enough, beside="p")

    @functools.cached_property
    def _runs(self) -> ModularRuns:
        return ModularRuns(**{field.name: getattr(self, field.name) for field in dataclasses.fields(ModularRuns)})

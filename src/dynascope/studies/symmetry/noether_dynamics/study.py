"""The norm of a normalised layer acts as an adaptive learning rate: steps increase it, and weight decay reduces it."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import xarray as xr
from annotated_types import Ge, Interval

from dynascope.comparison import Claim, claim_on_mean
from dynascope.results import Comparison, name_all
from dynascope.results.numbers import percent
from dynascope.studies import ClaimsStudy, Reference, Values, curve_tolerance, parameter
from dynascope.studies.symmetry.noether_dynamics import page
from dynascope.studies.symmetry.noether_dynamics.experiment import Experiment, white_share
from dynascope.theory import papers
from dynascope.training import Loss
from dynascope.validation.bounded import Fraction, PositiveFloat, PositiveInt, Seed

_RUNS = ("full batch, no decay", "minibatches")
_CLAIMS = (
    "full batch: coherent",
    "minibatches: white",
    "minibatches: norm at equilibrium",
    "minibatches: angle of a step",
)
_FACTOR = 1.25  # tolerated ratio to a closure; the two closures differ by a factor (1 + β)/(1 − β)
_CLOSE = 0.05  # tolerated relative difference at equilibrium


class NoetherDynamics(ClaimsStudy):
    """Measures the squared norms r = ‖W‖² of scale-invariant layers during SGD with momentum and weight decay.

    A tanh network with normalised layers learns to classify digits, some of them with random labels. The gradients are
    orthogonal to the weights of a layer, so steps can only increase its norm, and only weight decay reduces it. The
    growth depends on the correlation of gradients between steps, and two closures (closed equations for r) describe the
    limiting cases. Coherent gradients hardly change within 1/(1 − β) steps, which leads to (r²)' = −4λ/(1 − β)
    r² + 2η(1 + β)/(1 − β)³ ‖ĝ‖², where ĝ is the gradient at unit norm. White gradients are independent between steps;
    the second term is then multiplied by (1 − β)/(1 + β). `growth_share` is the measured growth due to steps, divided
    by the growth under the coherent closure, which is computed from ‖ĝ‖² at every step.

    The study performs two runs with the same learning rate and momentum: full-batch training without weight decay, in
    which only steps change the norm, and minibatch training with weight decay until equilibrium. Two claims state that
    the coherent closure describes the first run, and the white closure the second, to within a factor of 1.25. Two
    further claims are about the second half of the minibatch run: r is at its equilibrium for white gradients, and a
    step rotates a layer by √(2ηλ/(1 + β)), both within 5 percent. Both closures require 4ηλ ≪ (1 − β)². The coherent
    closure does not cover the first 1/(1 − β) steps, in which momentum builds up. The claim about the coherent closure
    is undecided if these steps contribute more than a fifth of the growth (`startup_share`). The claims about
    equilibrium are undecided if the initial weights still contribute more than 5 percent of the fourth power of a norm
    (`remembered_share`). As a check, the norm must follow its exact law under momentum, weight decay and minibatches:
    `within_rounding` is the fraction of steps that agree up to rounding.
    """

    samples: Annotated[int, Interval(ge=10, le=1797)] = parameter(200, "Number of training digits.")
    width: PositiveInt = parameter(32, "Number of neurons in each of the two hidden layers.")
    random_labels: Fraction = parameter(0.5, "Fraction of random labels, which keep the gradient noise from vanishing.")
    learning_rate: PositiveFloat = parameter(0.002, "Learning rate η.")
    momentum: Annotated[float, Interval(ge=0.3, le=0.99)] = parameter(
        0.9, "Momentum β (heavy ball). The closures differ more for a larger momentum."
    )
    decay_ratio: Annotated[float, Interval(gt=0, le=0.1)] = parameter(
        0.016, "Ratio 4ηλ/(1 − β)², which determines the weight decay λ of the minibatch run; it must be far below one."
    )
    batch_size: Annotated[int, Ge(2)] = parameter(
        4, "Number of digits per minibatch, drawn with replacement.", most="samples"
    )
    equilibrations: Annotated[float, Ge(4)] = parameter(
        12.0, "Length of the minibatch run, in units of (1 − β)/(4ηλ) steps."
    )
    coherent_steps: Annotated[int, Ge(20)] = parameter(1000, "Number of steps of the full-batch run.")
    starts: Annotated[int, Ge(2)] = parameter(4, "Number of networks per run, with different initial weights.")
    seed: Seed = parameter(0, "Seed of the labels, the initial weights and the minibatches.")

    reference = Reference.of(
        papers.NOETHER_DYNAMICS,
        "The norm of a normalised layer reflects an average of its squared gradients and thereby adapts the learning "
        "rate of the layer, as in RMSProp. At equilibrium, every step rotates the layer by an angle that depends only "
        "on the hyperparameters.",
        also="The rotation angle per step at equilibrium is also derived in arXiv 2006.08419.",
    )
    title = "Norms as adaptive learning rates"
    question = "How do learning rate, weight decay and momentum control the norm of scale-invariant weights?"
    figures, meaning = page.figures, page.meaning
    equation = (
        r"\frac{d r^2}{dt} = -\frac{4 \lambda}{1 - \beta} \, r^2 + \frac{2 \eta (1 + \beta)}{(1 - \beta)^3} "
        r"\left\| \hat g \right\|^2 \quad \text{(coherent gradients)}"
    )
    minutes = 0.2
    theory = "closures of scale-invariant weights"
    task = "digits with random labels"
    notes = (
        "{samples} digits of 8 × 8 pixels, a fraction {random_labels:g} of which have random labels; cross-entropy "
        "loss.",
        "Batch normalisation with ε = 0, without gain and shift; the last layer is divided by its norm.",
    )
    trains = "mlp, tanh, three normalised layers"
    convention = Loss("cross_entropy").convention
    flow = (
        "SGD with learning rate {learning_rate:g} and momentum {momentum:g}; weight decay "
        "{experiment.weight_decay:g} on minibatches, none on the full batch"
    )
    along = "charge"
    labelled = {"run": _RUNS, "step": "experiment.recorded_steps", "charge": ("‖W₁‖²", "‖W₂‖²", "‖W₃‖²")}
    names = {"within_rounding": ("fraction of steps that agree with the exact law up to rounding", "1")}
    deciding_claims = _CLAIMS
    tolerance = curve_tolerance(within_rounding=(0.0, "the law is exact, and the bound covers all rounding"))
    checks = tuple(tolerance)
    tiny = {
        **{"samples": 100, "width": 16, "learning_rate": 0.02, "momentum": 0.5},
        **{"coherent_steps": 100, "equilibrations": 10.0, "starts": 3},
    }

    @functools.cached_property
    def experiment(self) -> Experiment:
        """The networks, the data and both runs."""
        return Experiment(self)

    def trained(self) -> Values:
        """Train on the full batch and on minibatches, and compute the norms predicted by both closures."""
        return self.experiment.trained()

    def exact(self) -> Values:
        """The predictions without gradients: growth relative to the coherent closure, angle, and exact law."""
        return self.experiment.exact()

    def claimed(self, found: Mapping[str, Any]) -> Sequence[Claim]:
        """Evaluate the claims about the closures and the equilibrium, on means over the layers of each network."""
        (free, noisy), white = np.mean(found["growth_share"][1], axis=2), white_share(self.momentum)
        norms, angles = (np.mean(found[name][1], axis=1) for name in ("equilibrium_share", "late_angle"))
        factor, close = {"least": 1 / _FACTOR, "most": _FACTOR}, {"least": 1 - _CLOSE, "most": 1 + _CLOSE}
        stated = (
            ("On the full batch, ‖W‖⁴ grows as predicted for coherent gradients (measured / predicted).", free, factor),
            (
                "On minibatches, ‖W‖⁴ grows as predicted for white gradients (measured / predicted).",
                noisy / white,
                factor,
            ),
            ("On minibatches, the mean of ‖W‖² is at its equilibrium (measured / predicted).", norms, close),
            (
                "On minibatches, a step rotates a layer by √(2ηλ/(1 + β)) (measured / predicted).",
                angles / self.experiment.angle,
                close,
            ),
        )
        claims = [claim_on_mean(name, *each, **bounds) for name, (*each, bounds) in zip(_CLAIMS, stated, strict=True)]
        startup, remembered = (float(np.max(found[name][1])) for name in ("startup_share", "remembered_share"))
        early = (
            f"the first steps, in which momentum builds up, contribute {percent(startup, 2)} of the growth of a norm"
        )
        transient = f"{percent(remembered, 2)} of the fourth power of a norm remains from the initial weights"
        known = [(startup <= 1 - 1 / _FACTOR, early), (True, ""), *[(remembered <= _CLOSE, transient)] * 2]
        return [each.if_known(sure, reason) for each, (sure, reason) in zip(claims, known, strict=True)]

    def compared(self, observed: xr.Dataset, predicted: xr.Dataset) -> Comparison:
        """Compare the records, and add the norms predicted by the closure of each run to the figures."""
        result = super().compared(observed, predicted)
        closures = {"squared_norm": observed["white_norm"], "relative_growth": observed["coherent_growth"]}
        predicted = predicted.assign({name: each.drop_attrs() for name, each in closures.items()})
        return dataclasses.replace(result, predicted=name_all(predicted, self.names))

"""Stochastic collapse: gradient noise can drive weights to a loss maximum at zero, or repel them from zero."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Interval

from dynascope.comparison import Claim
from dynascope.studies import ClaimsStudy, Reference, Values, curve_tolerance, parameter
from dynascope.studies.noise.stochastic_collapse import page
from dynascope.studies.noise.stochastic_collapse.models import SQUARES, STRONG, THEORY, CollapseModels
from dynascope.studies.noise.stochastic_collapse.network_runs import NETWORKS, training_shares
from dynascope.studies.noise.stochastic_collapse.networks import CollapseNetworks
from dynascope.theory import papers
from dynascope.validation.bounded import PositiveFloat, Seed


class StochasticCollapse(ClaimsStudy):
    """Simulates gradient noise that vanishes with the weights and either drives them to zero or repels them from zero.

    Some sets of weights are invariant under training, for example the set in which all weights of one unit are zero.
    Near an invariant set, noise multiplies the distance from the set by random factors, and the mean logarithm of these
    factors determines whether the distance shrinks. The study simulates three models. In the double well dθ = (θ − θ³)
    dt + ζθ dW, θ² has a stationary Gamma distribution for ζ² < 2. For larger ζ², θ decays to zero at the rate ζ²/2 − 1,
    although zero is a maximum of the loss. A student uv trained at learning rate η on labels with noise variance ς²
    behaves like such a double well: it learns max(s − ης²/2, 0) from a teacher of strength s. Under isotropic label
    noise, a neuron with n inputs and m outputs shrinks to zero if n = m = 1. If n = m ≥ 3, the neuron grows at the rate
    (n − 2)/2 ης². For other sizes, see `theory.noise.matrix_noise_exponent`.

    The verdict rests on five claims, each tested jointly over all noise levels or sizes:

    - The Kolmogorov-Smirnov distance between the distribution of θ² and the Gamma law is at most 3 percent.
    - Above the threshold, the decay rates of the weights agree with theory within 0.05.
    - The threshold of students agrees with the predicted value ης²/2 within 2 percent. The measured threshold is the
      zero of a line fitted to the strengths learned from strong teachers.
    - The growth rates of neurons agree with theory within 0.05.
    - Noise repels all neurons for which theory predicts growth.

    To reduce the variance of the results for students and neurons, the study subtracts a zero-mean term that is linear
    in the noise. As a check, the imbalance of the layers must follow its exact law (u² − v²)ₙ = (u² − v²)₀ Π(1 − η²z²),
    where z is the error at each step (`imbalance_ratio`).

    The study also reports claims about trained networks, with confidence intervals over initial weights; these claims
    do not affect the verdict. A ReLU network with one hidden layer and a convolutional network learn to classify digits
    with squared loss, plain SGD and weight decay. At each of several learning rates, networks are trained for the same
    time. Either all labels are true, or a fraction of them is redrawn at random at every step. All networks are then
    trained further at the smallest rate with true labels. A unit counts as vanished if its norm is below 10⁻³ times the
    norm of the largest unit. Two units count as one if all their weights agree to within 10⁻² (`probes.redundancy`). A
    dead unit is inactive on every digit. In further runs of the MLP, one neuron starts at 10⁻¹² of its usual initial
    norm. Its growth rate is compared with −n̂ᵀHn̂ − λ, where n̂ is the direction of its weights. The Hessian H is
    either averaged over all data and over the preceding training steps, or computed on a single minibatch.
    """

    settling: list[Annotated[float, Interval(ge=0.05, le=0.7)]] = parameter(
        [0.2, 0.4, 0.65], "Noise levels ζ²/2 of double wells in which the weight stays away from zero.", increasing=True
    )
    collapsing: list[Annotated[float, Interval(ge=1.3, le=6)]] = parameter(
        [1.6, 3.0], "Noise levels ζ²/2 of double wells in which the weight decays to zero.", increasing=True
    )
    well_runs: Annotated[int, Ge(100)] = parameter(8000, "Number of paths per double well.")
    student_rates: list[PositiveFloat] = parameter(
        [0.006, 0.008, 0.01], "Learning rates η of the students.", increasing=True
    )
    label_variance: PositiveFloat = parameter(
        80.0, "Variance ς² of the students' label noise; η²ς² must be between 0.001 and 0.01."
    )
    teachers: list[Annotated[float, Interval(ge=0.1, le=6)]] = parameter(
        [0.5, 2.0, 3.0, 4.0],
        "Strengths of the teachers relative to the threshold ης²/2; at least two must be 1.8 or more.",
        fewest=3,
        increasing=True,
    )
    student_runs: Annotated[int, Ge(8)] = parameter(64, "Number of students per teacher and learning rate.")
    inputs: list[Annotated[int, Interval(ge=1, le=8)]] = parameter(
        [1, 2, 3, 1, 2], "Numbers of inputs n of the neurons.", fewest=2, repeats=True
    )
    outputs: list[Annotated[int, Interval(ge=1, le=8)]] = parameter(
        [1, 2, 3, 4, 3], "Numbers of outputs m of the neurons, in the same order.", fewest=2, repeats=True
    )
    neuron_runs: Annotated[int, Ge(8)] = parameter(64, "Number of neurons per size.")
    neuron_steps: Annotated[int, Ge(1500)] = parameter(6000, "Number of steps for each neuron.")
    networks: list[str] = parameter(
        NETWORKS, 'Networks trained on digits, "mlp" and "convolutional".', options=NETWORKS
    )
    samples: Annotated[int, Interval(ge=20, le=1500)] = parameter(300, "Number of training digits.")
    units: Annotated[int, Ge(8)] = parameter(
        32, "Number of hidden neurons of the MLP; the second convolution has a quarter as many channels."
    )
    rates: list[Annotated[float, Interval(gt=0, le=0.4)]] = parameter(
        [0.1, 0.2, 0.4],
        "Learning rates η of the MLP; the convolutional network uses half of each.",
        fewest=2,
        increasing=True,
    )
    label_noise: Annotated[float, Interval(gt=0, le=1)] = parameter(
        0.5, "Fraction of the digit labels redrawn at random at every step."
    )
    batch_size: Annotated[int, Ge(4)] = parameter(4, "Number of digits per minibatch.", most="samples")
    weight_decay: Annotated[float, Interval(gt=0, le=0.02)] = parameter(0.004, "Weight decay λ.")
    time: PositiveFloat = parameter(
        3000.0,
        "Training time of the MLP (sum of learning rates); the convolutional network trains for a thirtieth of this "
        "time.",
    )
    later_time: PositiveFloat = parameter(60.0, "Further training time at the smallest learning rate with true labels.")
    window: PositiveFloat = parameter(
        100.0, "Training time over which the growth of a neuron near zero is first predicted, then measured."
    )
    starts: Annotated[int, Ge(2)] = parameter(8, "Number of networks per setting.")
    seed: Seed = parameter(0, "Seed of all noise, of the data and of the initial weights.")

    reference = Reference.of(
        papers.STOCHASTIC_COLLAPSE,
        "SGD noise drives weights into invariant sets, even to maxima of the loss. Networks therefore end up with "
        "fewer independent units, especially at large learning rates.",
    )
    title = "Stochastic collapse"
    question = "When does gradient noise drive weights to zero, and when does it repel them from zero?"
    figures, meaning = page.figures, page.meaning
    equation = r"d\theta = (\theta - \theta^3) \, dt + \zeta \, \theta \, dW"
    minutes = 1.5
    theory = "multiplicative noise near invariant sets"
    task = "digits with noisy labels"
    notes = (
        "{samples} digits of 8 × 8 pixels; a fraction {label_noise:g} of the labels is redrawn at every step.",
        "Squared loss.",
    )
    trains = "double wells, students, neurons; MLP and convolutional network, ReLU"
    flow = "SGD with weight decay {weight_decay:g} and minibatches of {batch_size}"
    along = "charge"
    labelled = {
        **{"noise_level": "_wells", "square": lambda _: SQUARES, "teacher": "teachers", "student": "student_rates"},
        **{"neuron": "_size_names", "run": ("true labels", "noisy labels"), "learning_rate": "rates"},
        **{"architecture": "networks", "time": lambda _: training_shares(), "charge": "_charges"},
    }
    names = {
        "noise_level": ("noise level ζ²/2", "1"),
        "square": ("θ²", "1"),
        "teacher": ("strength of the teacher relative to the threshold", "1"),
        "time": ("fraction of the training time", "1"),
        "neuron": ("inputs × outputs of the neuron", "1"),
        "student": ("learning rate of the student", "1"),
    }
    deciding_claims = THEORY
    tolerance = curve_tolerance(
        imbalance_ratio=(1e-9, "the law is exact, and the imbalance is recorded while it is far above rounding error")
    )
    checks = tuple(tolerance)
    tiny = {
        **{"settling": [0.2, 0.4], "collapsing": [3.0], "student_rates": [0.007, 0.009], "student_runs": 48},
        **{"inputs": [1, 2], "outputs": [1, 3], "neuron_steps": 3000},
        **{"networks": ["mlp"], "samples": 100, "units": 16, "rates": [0.1, 0.4]},
        **{"time": 40.0, "later_time": 10.0, "window": 20.0, "starts": 3},
    }

    def check(self) -> None:
        """Require a suitable label variance, enough strong teachers, and equal numbers of inputs and outputs."""
        steps = [rate**2 * self.label_variance for rate in self.student_rates]
        inside = min(steps) >= 0.001 and max(steps) <= 0.01
        self.require(inside, "label_variance", "choose η²ς² between 0.001 and 0.01", beside="student_rates")
        strong = sum(each >= STRONG for each in self.teachers) >= 2
        self.require(strong, "teachers", "choose at least two strengths of 1.8 or more")
        remedy = "pass inputs and outputs of equal length"
        self.require(len(self.inputs) == len(self.outputs), "outputs", remedy, beside="inputs")

    def trained(self) -> Values:
        """Simulate the three models and train the networks."""
        return {**self._models.measured(), **self._trainings.measured()}

    def claimed(self, found: Mapping[str, Any]) -> Sequence[Claim]:
        """Evaluate the claims about the three models and about the networks."""
        values = {name: np.asarray(each[1]) for name, each in found.items()}
        return [*self._models.claims(values), *self._trainings.claims(values)]

    def exact(self) -> Values:
        """The predictions for the three models."""
        return self._models.exact()

    @functools.cached_property
    def _models(self) -> CollapseModels:
        return self.part(CollapseModels, sizes=self._sizes)

    @functools.cached_property
    def _trainings(self) -> CollapseNetworks:
        return self.part(CollapseNetworks)

    @property
    def _wells(self) -> list[float]:
        return [*self.settling, *self.collapsing]

    @property
    def _charges(self) -> list[str]:
        return [f"u² − v² of strength {each:g}" for each in self.teachers]

    @property
    def _sizes(self) -> list[tuple[int, int]]:
        return [(int(n), int(m)) for n, m in zip(self.inputs, self.outputs, strict=True)]

    @property
    def _size_names(self) -> list[str]:
        return [f"{n} × {m}" for n, m in self._sizes]

"""Stochastic collapse: noise draws weights to zero, even where that is a maximum of the loss, or keeps them away."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynascope.comparison import Claim
from dynascope.results import Chart
from dynascope.studies import ClaimsStudy, Reference, Values, curve_tolerance
from dynascope.studies.fields import choices, count, fraction, numbers, positive, seed
from dynascope.studies.noise.stochastic_collapse.models import SQUARES, STRONG, THEORY, CollapseModels
from dynascope.studies.noise.stochastic_collapse.network_runs import NETWORKS, training_shares
from dynascope.studies.noise.stochastic_collapse.networks import CollapseNetworks
from dynascope.studies.noise.stochastic_collapse.page import FIGURES, MEANING
from dynascope.theory import papers


class StochasticCollapse(ClaimsStudy):
    """Where the noise of batches and labels vanishes with the weights, it draws them to zero, or keeps them away.

    Near a set that steps never leave, such as that of units whose weights are all zero, noise multiplies the distance
    by random factors. Of these the mean logarithm decides, not the mean: dθ = (θ − θ³) dt + ζθ dW ends in a Gamma law
    of θ² where ζ² < 2, and otherwise falls to the maximum at zero, at the rate 1 − ζ²/2. A student uv of noisy labels
    is such a double well, and learns of a teacher s only max(s − ης²/2, 0). A neuron of n inputs and m outputs under
    isotropic noise of its labels is driven to zero if n = m = 1, and away from it if n = m ≥ 3, at the rate
    (n − 2)/2 ης² (`theory.noise.matrix_noise_exponent` of other sizes).

    All three are simulated many times. Judged is whether, for all levels of noise together, θ² has that law to 3
    percent of probability (by the distance of Kolmogorov and Smirnov), weights fall at that rate to 0.05, the strength
    from which students learn, by a straight line through what they learn of stronger teachers, is ης²/2 to 2 percent,
    neurons grow at their rates to 0.05, and noise repels where theory says so. Of what students learn, and of the
    growth of neurons, what is linear in the noise is left out, for its expectation is zero. Checked is that layers
    become balanced by the exact law (u² − v²)ₙ = (u² − v²)₀ Π(1 − η²z²), z the errors (`imbalance_ratio`).

    What is said of trained networks is reported beside it, with intervals over starts, and decides nothing: a ReLU
    network with one hidden layer and a convolutional one learn digits with squared loss, plain descent and decay of
    weights, at several rates for equal times, from true labels and from labels a share of which are random in every
    step; then all go on at the smallest rate with true labels. A unit vanishes below 10⁻³ of the largest, and two are
    one if all their weights are within 10⁻² (`probes.redundancy`); a dead one is active on no digit. In further runs of
    the first network one neuron starts at 10⁻¹² of its size. How fast it then grows is held against −n̂ᵀHn̂ − λ, with n̂
    the direction of its weights and H the Hessian along them, of all data and averaged over the time before, and of a
    single batch.
    """

    settling: list[float] = numbers(
        [0.2, 0.4, 0.65], "ζ²/2 of double wells in which the weight settles.", least=0.05, most=0.7, increasing=True
    )
    collapsing: list[float] = numbers(
        [1.6, 3.0], "ζ²/2 of those in which it falls to zero.", least=1.3, most=6.0, increasing=True
    )
    well_runs: int = count(8000, "Paths of each double well.", least=100)
    student_rates: list[float] = numbers(
        [0.006, 0.008, 0.01], "Learning rates η of the students.", above=0.0, increasing=True
    )
    label_variance: float = positive(80.0, "ς² of the labels of students, of which η²ς² is from 0.001 to 0.01.")
    teachers: list[float] = numbers(
        [0.5, 2.0, 3.0, 4.0],
        "Strengths of teachers over the threshold ης²/2; two or more of them from 1.8 on.",
        fewest=3,
        increasing=True,
        least=0.1,
        most=6.0,
    )
    student_runs: int = count(64, "Students of each teacher at each rate.", least=8)
    inputs: list[int] = numbers(
        [1, 2, 3, 1, 2], "Inputs n of neurons.", fewest=2, different=False, whole=True, least=1, most=8
    )
    outputs: list[int] = numbers(
        [1, 2, 3, 4, 3], "Outputs m of the same neurons.", fewest=2, different=False, whole=True, least=1, most=8
    )
    neuron_runs: int = count(64, "Neurons of each size.", least=8)
    neuron_steps: int = count(6000, "Steps of these neurons.", least=1500)
    networks: list[str] = choices(NETWORKS, "Networks trained on digits, of mlp and convolutional.", NETWORKS)
    samples: int = count(300, "Number of training digits.", least=20, most=1500)
    units: int = count(32, "Neurons of the MLP; the second convolution has a quarter as many channels.", least=8)
    rates: list[float] = numbers(
        [0.1, 0.2, 0.4],
        "Learning rates η of the MLP; the convolutional network has half of them.",
        fewest=2,
        above=0.0,
        most=0.4,
        increasing=True,
    )
    label_noise: float = fraction(0.5, "Share of the labels of digits that are random in every step.", open_below=True)
    batch_size: int = count(4, "Digits in a step.", least=4, most="samples")
    weight_decay: float = positive(0.004, "λ.", most=0.02)
    time: float = positive(3000.0, "Sum of the learning rates of the MLP; the convolutional network has a thirtieth.")
    later_time: float = positive(60.0, "The same afterwards, at the smallest rate with true labels.")
    window: float = positive(
        100.0, "The same in which the growth of a neuron near zero is foretold, then in which it is seen."
    )
    starts: int = count(8, "Number of networks of each setting.", least=2)
    seed: int = seed("Seed of all noise, of the data and of the first weights.")

    reference = Reference.of(
        papers.STOCHASTIC_COLLAPSE,
        "The noise of descent draws weights into sets that it never leaves, even at a maximum of the loss, so that "
        "networks end with fewer independent units, and more so at larger learning rates.",
    )
    title = "Stochastic collapse"
    question = "When does noise make weights vanish, and when does it keep them from that?"
    meaning = MEANING
    figures = FIGURES
    minutes = 1.5
    theory = "noise that vanishes on invariant sets"
    task = "digits with noisy labels"
    told = (
        "{samples} digits of 8 × 8 pixels, a share {label_noise:g} of the labels random in every step; squared loss.",
    )
    trains = "double wells, students, neurons; mlp and convolutional, relu"
    flow = "plain descent with decay {weight_decay:g} on batches of {batch_size}"
    along = "charge"
    labelled = {
        **{"noise_level": "_wells", "square": "_squares", "teacher": "teachers", "student": "student_rates"},
        **{"neuron": "_size_names", "run": ("true labels", "noisy labels"), "learning_rate": "rates"},
        **{"architecture": "networks", "time": "_shares", "charge": "_charges"},
    }
    names = {
        "noise_level": ("half the variance of the noise, ζ²/2", "1"),
        "square": ("θ²", "1"),
        "teacher": ("strength of the teacher over the threshold", "1"),
        "time": ("share of the training time", "1"),
        "neuron": ("inputs × outputs of the neuron", "1"),
        "student": ("learning rate of the student", "1"),
    }
    judged_claims = THEORY
    tolerance = curve_tolerance(
        imbalance_ratio=(1e-9, "the law is exact, and the imbalance is followed while it is far above rounding")
    )
    checks = tuple(tolerance)
    tiny = {
        **{"settling": [0.2, 0.4], "collapsing": [3.0], "student_rates": [0.007, 0.009], "student_runs": 48},
        **{"inputs": [1, 2], "outputs": [1, 3], "neuron_steps": 3000},
        **{"networks": ["mlp"], "samples": 100, "units": 16, "rates": [0.1, 0.4]},
        **{"time": 40.0, "later_time": 10.0, "window": 20.0, "starts": 3},
    }

    def charts(self) -> tuple[Chart, ...]:
        """Those that are declared; neurons near zero are those of the MLP."""
        return tuple(each for each in self.figures if "mlp" in self.networks or "near_growth" not in each.variables)

    def check(self) -> None:
        """What fields must be together."""
        steps = [rate**2 * self.label_variance for rate in self.student_rates]
        inside = min(steps) >= 0.001 and max(steps) <= 0.01
        self.require(inside, "label_variance", "choose η²ς² from 0.001 to 0.01", beside="student_rates")
        strong = sum(each >= STRONG for each in self.teachers) >= 2
        self.require(strong, "teachers", "give two or more strengths of at least 1.8")
        self.require(len(self.inputs) == len(self.outputs), "outputs", "give as many as inputs", beside="inputs")

    def trained(self) -> Values:
        """Simulate the three models, and train the networks."""
        return {**self._models.measured(), **self._trainings.measured()}

    def claimed(self, found: Mapping[str, Any]) -> Sequence[Claim]:
        """How near the models are to theory, and what networks say."""
        values = {name: np.asarray(each[1]) for name, each in found.items()}
        return [*self._models.claims(values), *self._trainings.claims(values)]

    def exact(self) -> Values:
        """What theory says of the three models."""
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

    @property
    def _squares(self) -> np.ndarray:
        return SQUARES

    @property
    def _shares(self) -> np.ndarray:
        return training_shares()

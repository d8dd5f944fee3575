"""Alternating gradient flow as an optimiser: adding one neuron at a time, compared with SGD and Adam."""

from __future__ import annotations

import itertools
from functools import cached_property
from typing import Annotated, Literal

import numpy as np
import xarray as xr
from annotated_types import Ge

from dynascope.alternating.optimizer import active_set_descent, by_neurons
from dynascope.networks import TwoLayer
from dynascope.studies import Reference, Study, curve_tolerance, parameter
from dynascope.studies.staircases.agf_optimizer import page
from dynascope.studies.staircases.smallest_width import best_of_widths
from dynascope.tasks import Task, digits
from dynascope.tasks.data.digits import drawn_digits
from dynascope.tasks.random_maps import relu_teacher
from dynascope.theory import papers
from dynascope.theory.staircase import linear_staircase
from dynascope.training.optimizers import annealed
from dynascope.validation.bounded import PositiveInt, Seed

_INPUTS, _TARGETS = 10, 4  # numbers of inputs and outputs of the teacher
_SAME = 1e-3  # relative difference below which two decreases of the loss count as equal
_RATES: dict[Literal["sgd", "adam"], tuple[float, ...]] = {"sgd": (0.1, 0.3, 1.0), "adam": (0.003, 0.01, 0.03)}


class AgfOptimizer(Study):
    """Trains a network by repeatedly adding the neuron with the largest utility, and compares its loss with theory.

    The utility of a neuron with weights of norm one is the mean inner product of its output with the residual, which is
    the targets minus the network outputs. The predictions are computed before training. For linear neurons, the `loss`
    with k neurons equals the loss of the best map of rank k. Neuron k initially grows at the rate σ₁(Σyx − P_{k−1}
    Σyx), the `growth_rate`, where P_{k−1} projects onto the first k − 1 learned output directions. This rate is zero
    beyond the rank of the targets. Each ReLU neuron lowers the loss by at least the amount that its utility guarantees
    (`guarantee` is the decrease divided by this amount, capped at one). At a minimum, E‖f‖² + 2L = E‖y‖²
    (`power_balance` is the ratio of the two sides).

    The study also reports quantities that do not affect the verdict. `relu_loss` is the loss of this method with k ReLU
    neurons. `sgd_loss` and `adam_loss` are the lowest losses of ReLU networks of the same width over three learning
    rates and all seeds. Wall times exclude compilation. `relu_seconds` is the time to train k neurons. `sgd_seconds`
    and `adam_seconds` are the total times over all learning rates and seeds for each width; all networks are padded to
    the largest width. The attribute `neurons_to_one_percent` is the number of neurons with which each method first
    reaches one percent of the initial loss (0 if it never does).
    """

    data: Literal["teacher", "digits"] = parameter(
        "teacher", '"teacher" (a ReLU network on Gaussian inputs) or "digits".'
    )
    neurons: Annotated[int, Ge(2)] = parameter(10, "Maximum number of neurons.")
    teacher: PositiveInt = parameter(6, "Number of neurons of the teacher.")
    samples: PositiveInt = parameter(256, "Number of samples.")
    starts: PositiveInt = parameter(64, "Number of random starting directions for each maximisation of the utility.")
    steps: PositiveInt = parameter(
        4000, "Number of steps of SGD and Adam, with a cosine learning-rate schedule that decays to zero."
    )
    batch_size: PositiveInt = parameter(32, "Batch size of SGD and Adam.")
    seeds: PositiveInt = parameter(2, "Number of initialisations for SGD and Adam.")
    seed: Seed = parameter(0, "Seed of the data and of the random directions.")

    reference = Reference.of(
        papers.ALTERNATING,
        "Repeatedly adding the neuron with the largest utility and minimising the loss trains a network feature by "
        "feature. Linear neurons reach the best map of each rank, and each ReLU neuron lowers the loss by at least "
        "the amount that its utility guarantees.",
    )
    title = "Training one neuron at a time"
    question = "Can a network be trained by repeatedly adding the neuron that lowers the loss fastest?"
    figures, meaning = page.figures, page.meaning
    trains = "two-layer"
    axes = ("neuron",)
    labelled = {"neuron": "_widths"}
    names = {
        "neuron": ("number of neurons", "1"),
        "relu_loss": ("final loss with the active-set method", "1"),
        "adam_loss": ("final loss with Adam", "1"),
        "sgd_loss": ("final loss with SGD", "1"),
        "relu_growth_rate": ("growth rate of the ReLU neuron", "1"),
        "guarantee": ("decrease in the loss, relative to its guaranteed value", "1"),
        "power_balance": ("sum of explained and remaining power, divided by the target power", "1"),
        "relu_seconds": ("duration of the active-set method", "s"),
        "adam_seconds": ("duration of Adam", "s"),
        "sgd_seconds": ("duration of SGD", "s"),
    }
    along = "neuron"
    equation = (
        r"\theta^* = \mathrm{arg\,max}_{\| \theta \| = 1} E \left\langle f(x; \theta), \, y - "
        r"f_{\text{active}}(x) \right\rangle"
    )
    minutes = 0.3
    tolerance = curve_tolerance(
        loss=(1e-5, "each minimisation stops when no entry of the gradient exceeds 1e-6 times the initial loss"),
        growth_rate=(
            1e-3,
            "its error is linear in the distance from the minimum, whereas the error of the loss is quadratic",
        ),
        guarantee=(1e-6, "the bound is exact up to rounding"),
        power_balance=(0.005, "the quasi-Newton method stops short of minima at kinks of the ReLU"),
    )
    tiny = {"neurons": 3, "teacher": 2, "samples": 40, "starts": 16, "steps": 100, "batch_size": 20}

    def check(self) -> None:
        """Check that there are enough digits."""
        most = digits().samples
        self.require(self.data != "digits" or self.samples <= most, "samples", f"choose at most {most}")

    def observed(self) -> xr.Dataset:
        """Train linear and ReLU neurons by the active-set method, then ReLU networks by SGD and Adam."""
        power = self._task.target_power
        linear, relu = (self._active_set(activation) for activation in ("linear", "relu"))
        values = {
            "loss": linear["loss"],
            "growth_rate": linear["growth_rate"],
            "guarantee": relu["guarantee"],
            "power_balance": relu["power"] / power + 2 * relu["loss"] / power,
            **{f"relu_{name}": relu[name] for name in ("loss", "growth_rate", "seconds")},
        }
        for name in _RATES:
            values[f"{name}_loss"], values[f"{name}_seconds"] = self._train_with(name)
        enough = {name: np.flatnonzero(values[f"{name}_loss"] <= 0.005 * power) for name in ("relu", *_RATES)}
        fewest = {name: int(found[0]) + 1 if len(found) else 0 for name, found in enough.items()}
        fewest = {"active set" if name == "relu" else name: number for name, number in fewest.items()}
        flow = "active-set descent, SGD and Adam"
        return self.record(values, neurons_to_one_percent=fewest, flow=flow)

    def predicted(self) -> xr.Dataset:
        """Reduced-rank regression, the singular values of its residuals, and the identities for ReLU networks."""
        cross = self._task.cross_moment
        ranks = linear_staircase(cross, self._task.input_moment, self._task.target_power, scale=1e-6)
        # If two features lower the loss equally, the theory does not determine which of them is learned first.
        drops = -np.diff(ranks.levels)[: self.neurons]
        for first, (drop, following) in enumerate(itertools.pairwise(drops), start=1):
            problem = (
                f"with seed {self.seed}, linear features {first} and {first + 1} lower the loss by the same amount"
            )
            remedy = "choose another seed, or another number of samples"
            self.require(following <= (1 - _SAME) * drop, "seed", remedy, problem=problem)
        _, features = ranks.features["output_feature"]
        learned = [features[:k].T @ features[:k] for k in range(len(features) + 1)]
        rates = np.array([np.linalg.norm(cross - each @ cross, 2) for each in learned])
        rates[rates < 1e-12 * rates[0]] = 0.0
        values = {
            "loss": ranks.levels[np.minimum(self._widths, len(features))],
            "growth_rate": rates[np.minimum(self._widths - 1, len(features))],
            **dict.fromkeys(("guarantee", "power_balance"), np.ones(self.neurons)),
        }
        return self.record(values, theory="greedy low-rank learning", reference=ranks.reference)

    @property
    def _widths(self) -> np.ndarray:
        return np.arange(1, self.neurons + 1)

    @cached_property
    def _task(self) -> Task:
        draw, teacher = np.random.default_rng(self.seed), (_INPUTS, self.teacher, _TARGETS)
        if self.data == "digits":
            return drawn_digits(self.samples, draw)
        return relu_teacher(draw, self.samples, *teacher)

    def _active_set(self, activation: str) -> dict[str, np.ndarray]:
        """Results with at most k neurons for k = 1, 2, …, and the growth rate of neuron k."""
        network = TwoLayer(self._task.input_dimension, 1, self._task.output_dimension, activation=activation)
        record, _ = active_set_descent(
            self._task, network, max_neurons=self.neurons, starts=self.starts, least_growth=1e-3, seed=self.seed
        )
        return by_neurons(record, self.neurons)

    def _train_with(self, optimizer: Literal["sgd", "adam"]) -> tuple[np.ndarray, np.ndarray]:
        """The best loss for each width, and the training time in seconds."""
        sizes = self._task.input_dimension, self.neurons, self._task.output_dimension
        options = {"learning_rate": _RATES[optimizer], "batches": min(self.batch_size, self._task.samples)}
        # Clipping the gradient norm keeps training finite at the largest rates.
        options |= {"optimizer": annealed(optimizer, self.steps, largest_gradient=1.0), "seed": self.seed}
        return best_of_widths(sizes, "relu", self._task, steps=self.steps, seeds=self.seeds, **options)

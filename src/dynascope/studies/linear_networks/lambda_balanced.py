"""From lazy to rich: one number, the balance of the layers, sets how far representation and kernel move."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import xarray as xr

from dynascope.networks import TwoLayer
from dynascope.networks.balanced_linear import balanced_networks
from dynascope.probes.kernel.path import kernel_sum_path
from dynascope.results import Chart
from dynascope.studies import Reference, Values, exact
from dynascope.studies.fields import count, positive, seed, weakest
from dynascope.studies.linear_networks.balanced_study import BalancedStudy
from dynascope.tasks import Task
from dynascope.tasks.random_maps import random_map, whitened
from dynascope.theory import papers
from dynascope.theory.balanced import gram


class LambdaBalanced(BalancedStudy):
    """Loss, kernel and representations of two-layer linear networks of several balances, from small to learned.

    W₂ W₂ᵀ − W₁ᵀ W₁ = λ I, for whitened inputs and a random target map. Near λ = 0 the kernel turns and grows; for large
    |λ| it stays. The representations of inputs, v_iᵀ W₁W₁ᵀ v_i, and of outputs, u_iᵀ W₂ᵀW₂ u_i, are taken along the
    singular vectors of the map; with a hidden layer narrower than its rank only the strongest modes are learned.
    """

    inputs: int = count(5, "Number of inputs.")
    width: int = count(2, "Number of hidden neurons, at most that of inputs and outputs.")
    outputs: int = count(3, "Number of outputs.")
    strongest: float = positive(2.0, "Largest singular value of the target map.")
    weakest: float = weakest(0.8)
    largest_balance: float = positive(5.0, "Largest λ; the smallest is its negative.")
    balances: int = count(5, "Number of equally spaced λ.", least=2)
    initial_size: float = positive(0.3, "Size of the smaller layer at the start.")
    first_rate: float = positive(1.0, "Learning rate of the first layer.")
    second_rate: float = positive(1.0, "Learning rate of the second layer.")
    times: int = count(200, "Number of times at which both are recorded.", least=2)
    seed: int = seed("Seed of the task and of the initial weights.")

    reference = Reference.of(
        papers.BALANCED,
        "Function, representations and kernel of a two-layer linear network follow exactly from its start and "
        "the balance of its layers, which moves it from lazy to rich.",
    )
    title = "From lazy to rich by the balance of the layers"
    question = "What does the balance of its two layers decide about how a network learns?"
    figures = (
        Chart(
            "kernel_distance",
            title="How far the tangent kernel turns",
            caption="The tangent kernel says how a step on one input moves the answer to another. It turns most where "
            "the layers are about equal, near λ = 0: such networks learn richly. Where one layer is much the larger it "
            "turns little, and they learn lazily.",
        ),
        Chart(
            "kernel_change",
            over="balance",
            places={"time": (-1,)},
            title="How far the kernel has moved in the end",
            caption="How far the kernel has moved at the end, relative to its start, against the balance λ of the "
            "layers.",
            x_label="balance λ (left: first layer larger, right: second)",
            points=True,
        ),
        Chart(
            "loss",
            title="The loss",
            caption="The loss over time for each balance. With a hidden layer narrower than the task it ends above "
            "zero.",
        ),
    )
    meaning = (
        "Linear networks with {parameters.width} hidden neurons were trained on a random map of {parameters.inputs} "
        "inputs to {parameters.outputs} outputs; they differ in the balance λ of their layers, which training keeps: "
        "from a large first layer (λ = −{parameters.largest_balance}) over equal ones to a large second one. From the "
        "start alone theory gives the loss, the representations and the tangent kernel at every time. At the end the "
        "kernel had changed by {observed.kernel_change[time=last]:least} times its size in the network where it moved "
        "least, and by {observed.kernel_change[time=last]:most} times where it moved most. By theory it is decided by "
        "how the size is shared between the layers, and not only by how large the weights are; the inputs are white, "
        "and the networks linear."
    )
    minutes = 0.2
    names = {
        "input_representation": ("representation of the inputs", "1"),
        "output_representation": ("representation of the outputs", "1"),
    }
    tolerance = exact("loss", "kernel_distance", "kernel_change", "input_representation", "output_representation")
    tiny = {"inputs": 3, "outputs": 2, "balances": 2, "times": 30}

    def trained(self) -> xr.Dataset:
        """Train by gradient flow on the weights."""
        rates = {"first": self.first_rate, "second": self.second_rate}
        run = self.followed(self._networks, _grams, learning_rate=rates, relative_tolerance=1e-10)
        measured = self._measured(run["inner"].to_numpy(), run["outer"].to_numpy())
        return self.run_record(run, measured, members="balance", without=["inner", "outer"])

    def exact(self) -> Values:
        """The exact solution, from the initial weights."""
        first, second = (np.stack([getattr(each, name) for each in self._networks]) for name in ("first", "second"))
        target = self._task.cross_moment.T
        found = gram(first, second, target, self._times, first_rate=self.first_rate, second_rate=self.second_rate)
        missed = np.asarray(found.product) - target
        return {
            **self._measured(np.asarray(found.first), np.asarray(found.second)),
            "loss": np.sum(missed**2, axis=(-2, -1)) / 2,
        }

    def _measured(self, inner: np.ndarray, outer: np.ndarray) -> dict[str, Any]:
        """What both sides are compared in, from W₁W₁ᵀ and W₂ᵀW₂ over balances and times."""
        left, _, right = np.linalg.svd(self._task.cross_moment.T, full_matrices=False)
        angle, size = kernel_sum_path(self.second_rate * inner, self.first_rate * outer)
        by_mode = (*self.axes, "mode")
        return {
            "kernel_distance": angle,
            "kernel_change": size,
            "input_representation": (by_mode, np.einsum("im,btij,jm->btm", left, inner, left)),
            "output_representation": (by_mode, np.einsum("mi,btij,mj->btm", right, outer, right)),
        }

    @functools.cached_property
    def _task(self) -> Task:
        strengths = np.linspace(self.strongest, self.weakest, min(self.inputs, self.outputs))
        target = random_map(np.random.default_rng(self.seed), self.inputs, self.outputs, strengths)
        return whitened(target, "a random map")

    @functools.cached_property
    def _networks(self) -> list[TwoLayer]:
        sizes, ratio = (self.inputs, self.width, self.outputs), self.first_rate / self.second_rate
        return balanced_networks(sizes, self._balances, scale=self.initial_size, rate_ratio=ratio, seed=self.seed)

    @functools.cached_property
    def _times(self) -> np.ndarray:
        """Until modes of the weakest strength would have been learned from the start in balance."""
        rate = self.weakest * (self.first_rate * self.second_rate) ** 0.5
        return np.linspace(0.0, 4.0 / rate, self.times)


def _grams(network: TwoLayer) -> dict[str, tuple[tuple[str, str], Any]]:
    inner, outer = network.first @ network.first.T, network.second.T @ network.second
    return {"inner": (("feature", "weight"), inner), "outer": (("target", "neuron"), outer)}

"""From lazy to rich: the imbalance between the layers determines how much the representations and the NTK change."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import xarray as xr
from annotated_types import Ge

from dynascope.flows.solvers.solver import Solver
from dynascope.networks import TwoLayer
from dynascope.networks.balanced_linear import balanced_networks
from dynascope.probes.kernel.path import kernel_sum_path
from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded
from dynascope.studies import Reference, Values, exact, parameter
from dynascope.studies.linear_networks.balanced_study import BalancedStudy
from dynascope.tasks import Task
from dynascope.tasks.random_maps import random_map, whitened
from dynascope.theory import LayerRates, papers
from dynascope.theory.balanced import gram
from dynascope.validation.bounded import PositiveFloat, PositiveInt, Seed


class LambdaBalanced(BalancedStudy):
    """Tests exact solutions for the loss, NTK and representations of linear networks with different layer imbalances.

    The networks satisfy W₂ W₂ᵀ − W₁ᵀ W₁ = λ I and learn a random target map from whitened inputs. The representations
    of inputs, v_iᵀ W₁W₁ᵀ v_i, and of outputs, u_iᵀ W₂ᵀW₂ u_i, are measured along the singular vectors of the map. If
    the hidden layer has fewer neurons than the rank of the map, the network learns only the strongest modes.
    """

    inputs: PositiveInt = parameter(5, "Number of inputs.")
    width: PositiveInt = parameter(2, "Number of hidden neurons, at most the smaller of `inputs` and `outputs`.")
    outputs: PositiveInt = parameter(3, "Number of outputs.")
    strongest: PositiveFloat = parameter(2.0, "Largest singular value of the target map.")
    weakest: PositiveFloat = parameter(
        0.8,
        "Smallest singular value; the others are equally spaced between `strongest` and `weakest`.",
        most="strongest",
    )
    largest_balance: PositiveFloat = parameter(5.0, "Largest value of λ; the smallest value is its negative.")
    balances: Annotated[int, Ge(2)] = parameter(5, "Number of equally spaced values of λ.")
    initial_size: PositiveFloat = parameter(
        0.3, "Initial scale of the smaller layer, whose entries have standard deviation `initial_size`/√`width`."
    )
    first_rate: PositiveFloat = parameter(1.0, "Learning rate of the first layer.")
    second_rate: PositiveFloat = parameter(1.0, "Learning rate of the second layer.")
    times: Annotated[int, Ge(2)] = parameter(200, "Number of recorded times.")
    seed: Seed = parameter(0, "Seed of the task and of the initial weights.")

    reference = Reference.of(
        papers.BALANCED,
        "The function, representations and NTK of a two-layer linear network have exact solutions in terms of its "
        "initial weights. The imbalance between its layers controls the transition from lazy to rich learning.",
    )
    title = "Layer balance: from lazy to rich learning"
    question = "How does the imbalance between the two layers of a network affect learning?"
    equation = (
        r"\dot P = F P + P F - P^2, \quad F = \begin{pmatrix} -\frac{\lambda}{2} I & \Sigma \\ \Sigma^\top & "
        r"\frac{\lambda}{2} I \end{pmatrix}, \quad P = Q Q^\top, \quad Q = \begin{pmatrix} W_1 \\ W_2^\top "
        r"\end{pmatrix}"
    )
    minutes = 0.2
    names = {
        "input_representation": ("representation of the inputs", "1"),
        "output_representation": ("representation of the outputs", "1"),
    }
    tolerance = exact("loss", "kernel_distance", "kernel_change", "input_representation", "output_representation")
    batched = ("largest_balance", "initial_size")
    tiny = {"inputs": 3, "outputs": 2, "balances": 2, "times": 30}

    def trained(self) -> xr.Dataset:
        """Train by gradient flow on the weights."""
        return self._measured_run(self._flow(self._networks))

    @classmethod
    def trained_many(cls, studies: Sequence[LambdaBalanced]) -> list[xr.Dataset]:
        """Train the networks of studies with the same task and times as one ensemble."""
        run = studies[0]._flow([network for study in studies for network in study._networks])
        return [study._measured_run(part) for study, part in zip(studies, _parts(run, studies), strict=True)]

    @classmethod
    def memory(cls, studies: Sequence[LambdaBalanced]) -> float:
        """Bytes of both Gram matrices of all networks at all times."""
        return sum(8 * each.balances * each.times * (each.inputs**2 + each.outputs**2) for each in studies)

    def _flow(self, networks: Sequence[TwoLayer]) -> xr.Dataset:
        rates = {"first": self.first_rate, "second": self.second_rate}
        return self.integrate(networks, _grams, learning_rate=rates, solver=Solver(relative_tolerance=1e-10))

    def _measured_run(self, run: xr.Dataset) -> xr.Dataset:
        measured = self._measured(run["inner"].to_numpy(), run["outer"].to_numpy())
        return self.run_record(run, measured, members="balance", without=["inner", "outer"])

    def exact(self) -> Values:
        """Solve the dynamics exactly from the initial weights."""
        first, second = (np.stack([getattr(each, name) for each in self._networks]) for name in ("first", "second"))
        target = self._task.cross_moment.T
        found = gram(first, second, target, self._times, rates=LayerRates(self.first_rate, self.second_rate))
        missed = np.asarray(found.product) - target
        return {
            **self._measured(np.asarray(found.first), np.asarray(found.second)),
            "loss": np.sum(missed**2, axis=(-2, -1)) / 2,
        }

    def figures(self, result: Comparison) -> list[Chart]:
        """The figures: the change in the NTK over time and against the imbalance, and the loss."""
        distance = result.observed["kernel_distance"].isel(time=-1)
        return [
            Chart(
                "kernel_distance",
                title="Rotation of the NTK",
                caption="Distance 1 − cos φ, where φ is the angle between the current and the initial NTK. If the NTK "
                "hardly rotates, learning is lazy; if it rotates strongly, the network learns features. The final "
                f"distance is between {rounded(distance.min())} and {rounded(distance.max())}, depending on the "
                "imbalance λ.",
            ),
            Chart(
                "kernel_change",
                over="balance",
                places={"time": (-1,)},
                title="Final change in the NTK",
                caption="Change in the NTK by the end of training, relative to its initial norm, against the imbalance "
                "λ.",
                x_label="imbalance λ (left: larger first-layer weights, right: larger second-layer weights)",
                points=True,
            ),
            Chart(
                "loss",
                title="Loss",
                caption="Loss over time for each λ. If the hidden layer has fewer neurons than the "
                "rank of the target, the loss converges to a positive value.",
            ),
        ]

    def meaning(self, result: Comparison) -> str:
        """Summarise the effect of the imbalance, with the smallest and the largest change in the NTK."""
        change, largest = result.observed["kernel_change"].isel(time=-1), rounded(self.largest_balance)
        return (
            f"Linear networks with {self.width} hidden neurons were trained on a random map from {self.inputs} inputs "
            f"to {self.outputs} outputs. The networks differ in the imbalance λ between their layers, which gradient "
            f"flow conserves. The imbalances range from λ = −{largest} (larger weights in the first layer) to λ = "
            f"{largest} (larger weights in the second layer). From the initial weights alone, the theory predicts the "
            "loss, the representations and the NTK at every time. By the end of training, the change in the NTK ranges "
            f"from {rounded(change.min())} to {rounded(change.max())} times its initial norm. According to the theory, "
            "the imbalance between the layers, and not only the overall size of the weights, determines whether "
            "learning is lazy or rich. The theory assumes whitened inputs and linear networks."
        )

    def _measured(self, inner: np.ndarray, outer: np.ndarray) -> dict[str, Any]:
        """Change in the NTK, and the representations, from W₁W₁ᵀ and W₂ᵀW₂ over imbalances and times."""
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
        """Four time constants of the weakest mode of balanced layers."""
        rate = self.weakest * (self.first_rate * self.second_rate) ** 0.5
        return np.linspace(0.0, 4.0 / rate, self.times)


def _parts(run: xr.Dataset, studies: Sequence[LambdaBalanced]) -> list[xr.Dataset]:
    """The members of each study, numbered as in a run of their own."""
    count = studies[0].balances
    parts = [run.isel(seed=slice(k * count, (k + 1) * count)) for k in range(len(studies))]
    return [part.assign_coords(seed=np.arange(count)) for part in parts]


def _grams(network: TwoLayer) -> dict[str, tuple[tuple[str, str], Any]]:
    inner, outer = network.first @ network.first.T, network.second.T @ network.second
    return {"inner": (("feature", "weight"), inner), "outer": (("target", "neuron"), outer)}

"""Continual learning: layer imbalance affects the time course of forgetting, but not the final loss on the old task."""

from __future__ import annotations

import functools
from typing import Annotated

import numpy as np
import xarray as xr
from annotated_types import Ge

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded
from dynascope.studies import Reference, Values, exact, parameter
from dynascope.studies.linear_networks.balanced_study import TwoTasksStudy
from dynascope.tasks.random_maps import random_map
from dynascope.theory import papers
from dynascope.theory.balanced.convergence import slowest_rate
from dynascope.theory.transfer import forgetting
from dynascope.validation.bounded import PositiveFloat, PositiveInt, Seed


class ContinualLearning(TwoTasksStudy):
    """Tests exact solutions for the losses on an old and a new task while linear networks learn the new task.

    The networks satisfy W₂ W₂ᵀ − W₁ᵀ W₁ = λ I, and their width is the smaller of the input and output dimensions. Both
    targets are random maps with the same singular values. The networks are trained to convergence on the old task
    before they are trained on the new task.
    """

    inputs: PositiveInt = parameter(5, "Number of inputs.")
    outputs: PositiveInt = parameter(3, "Number of outputs.")
    strongest: PositiveFloat = parameter(2.0, "Largest singular value of both target maps.")
    weakest: PositiveFloat = parameter(
        1.0,
        "Smallest singular value of both target maps; the others are equally spaced between `strongest` and `weakest`.",
        most="strongest",
    )
    largest_balance: PositiveFloat = parameter(2.0, "Largest value of λ; the smallest value is its negative.")
    balances: Annotated[int, Ge(2)] = parameter(5, "Number of equally spaced values of λ.")
    times: Annotated[int, Ge(2)] = parameter(300, "Number of recorded times.")
    seed: Seed = parameter(0, "Seed of the tasks and of the initial weights.")

    reference = Reference.of(
        papers.BALANCED,
        "While a two-layer linear network learns a new task, the loss on the old task is determined exactly by the two "
        "tasks and the imbalance between the layers. The imbalance affects the time course of forgetting, but not the "
        "final loss on the old task.",
    )
    question = "How does a network forget an old task while it learns a new one?"
    equation = (
        r"\dot P = F P + P F - P^2, \quad F = \begin{pmatrix} -\frac{\lambda}{2} I & \Sigma \\ \Sigma^\top & "
        r"\frac{\lambda}{2} I \end{pmatrix}, \quad P = Q Q^\top, \quad Q = \begin{pmatrix} W_1 \\ W_2^\top "
        r"\end{pmatrix}"
    )
    minutes = 0.2
    names = {
        "old_loss": ("loss on the old task", "1"),
        "old_loss_at_the_end": ("final loss on the old task", "1"),
    }
    tolerance = exact("loss", "old_loss")
    tiny = {"inputs": 3, "outputs": 2, "balances": 2, "times": 200}

    def trained(self) -> xr.Dataset:
        """Train to convergence on the old task, then on the new task, by gradient flow."""
        run = self._flow(self._converged(self._slowest), self._task, self._times)
        # The inputs are whitened and the targets are exactly linear, so this is the loss on the old task.
        missed = run["product"].to_numpy() - self._old_task.cross_moment.T
        values = {"old_loss": np.sum(missed**2, axis=(-2, -1)) / 2}
        return self.run_record(run, values, members="balance", without=["product"])

    def exact(self) -> Values:
        """Solve the new task exactly, from the converged layers of the old task."""
        old, new = self._old_task.cross_moment.T, self._task.cross_moment.T
        found = forgetting(*self._converged_layers(), old, new, self._times)
        return {"loss": found.new_error, "old_loss": found.old_error, "old_loss_at_the_end": ((), found.end)}

    def figures(self, result: Comparison) -> list[Chart]:
        """The figures: losses on the old and the new task."""
        end = rounded(result.predicted["old_loss_at_the_end"])
        return [
            Chart(
                "old_loss",
                title="Forgetting",
                caption="Loss on the old task while the networks learn the new task. According to the theory, the "
                "imbalance λ between the layers determines the time course of the loss, but the final value, "
                f"{end}, depends on the tasks alone.",
            ),
            Chart(
                "loss",
                log="y",
                decades=8,
                title="Learning",
                caption="Loss on the new task. If there are more inputs than outputs, networks with larger weights in "
                "the first layer (λ < 0) learn slowly, because this layer must rotate towards the input directions "
                "that the new task uses.",
            ),
        ]

    def meaning(self, result: Comparison) -> str:
        """Summarise the predicted and measured final loss on the old task."""
        end, measured = result.predicted["old_loss_at_the_end"], result.observed["old_loss"].isel(time=-1)
        largest = rounded(self.largest_balance)
        return (
            f"Linear networks were trained to convergence on a task with {self.inputs} inputs and {self.outputs} "
            "outputs, and then on an unrelated task. The networks differ in the imbalance λ between their layers, "
            f"W₂W₂ᵀ − W₁ᵀW₁ = λI, from −{largest} (larger weights in the first layer) to {largest} (larger weights in "
            "the second layer). The prediction uses the two tasks and λ, but not the trained weights. The predicted "
            f"final loss on the old task is {rounded(end)} for every λ. The observed final loss was between "
            f"{rounded(measured.min())} and {rounded(measured.max())}. According to the theory, layer imbalance can "
            "delay forgetting but cannot reduce it. The theory applies to linear networks without rehearsal of the old "
            "task."
        )

    @functools.cached_property
    def _maps(self) -> tuple[np.ndarray, np.ndarray]:
        strengths = np.linspace(self.strongest, self.weakest, min(self.inputs, self.outputs))
        draw = np.random.default_rng(self.seed)
        one, other = (random_map(draw, self.inputs, self.outputs, strengths) for _ in range(2))
        return one, other

    @functools.cached_property
    def _times(self) -> np.ndarray:
        """Four time constants of the slowest network on the new task."""
        return np.linspace(0.0, 4.0 / self._slowest, self.times)

    @property
    def _slowest(self) -> float:
        return slowest_rate(self.inputs, self.outputs, self.weakest, self._balances)

"""Continual learning: the balance of the layers decides how a task is forgotten, not how much of it."""

from __future__ import annotations

import functools

import numpy as np
import xarray as xr

from dynascope.results import Chart
from dynascope.studies import Reference, Values, exact
from dynascope.studies.fields import count, positive, seed, weakest
from dynascope.studies.linear_networks.balanced_study import TwoTasksStudy
from dynascope.tasks.random_maps import random_map
from dynascope.theory import papers
from dynascope.theory.balanced.convergence import slowest_rate
from dynascope.theory.transfer import forgetting


class ContinualLearning(TwoTasksStudy):
    """Error on an old task, and on a new one, while two-layer linear networks train on the new one.

    W₂ W₂ᵀ − W₁ᵀ W₁ = λ I for several balances λ; they are as wide as they have inputs or outputs, whichever are fewer.
    Both targets are random and have the same singular values; the first are trained to convergence.
    """

    inputs: int = count(5, "Number of inputs.")
    outputs: int = count(3, "Number of outputs.")
    strongest: float = positive(2.0, "Largest singular value of both target maps.")
    weakest: float = weakest(1.0, "Smallest singular value of both")
    largest_balance: float = positive(2.0, "Largest λ; the smallest is its negative.")
    balances: int = count(5, "Number of equally spaced λ.", least=2)
    times: int = count(300, "Number of times at which both are recorded.", least=2)
    seed: int = seed("Seed of the tasks and of the initial weights.")

    reference = Reference.of(
        papers.BALANCED,
        "How a two-layer linear network forgets a task while it learns another follows exactly from the two "
        "tasks and the balance of its layers, which sets the time course but not the end.",
    )
    question = "How is an old task forgotten while a new one is learned?"
    figures = (
        Chart(
            "old_loss",
            title="Forgetting",
            caption="The loss on the old task while the new one is learned. The balance λ of the layers sets the time "
            "course; the two tasks set the end, {predicted.old_loss_at_the_end}.",
        ),
        Chart(
            "loss",
            log="y",
            decades=8,
            title="Learning",
            caption="The loss on the new task. With more inputs than outputs, a large first layer (λ < 0) has to turn "
            "towards the inputs that the new task uses, which takes long.",
        ),
    )
    meaning = (
        "Linear networks learned a task of {parameters.inputs} inputs and {parameters.outputs} outputs until they had "
        "it, and then an unrelated one; they differ in λ, which says how much larger their second layer is than their "
        "first, from −{parameters.largest_balance} to {parameters.largest_balance}. Theory knows the two tasks and λ, "
        "and not the weights. It says that in the end the loss on the old task is {predicted.old_loss_at_the_end} for "
        "every λ; training ended between {observed.old_loss[time=last]:least} and "
        "{observed.old_loss[time=last]:most}. By this theory, which is one of linear networks without rehearsal, the "
        "balance of the layers can delay forgetting and not lessen it."
    )
    minutes = 0.2
    names = {
        "old_loss": ("loss on the old task", "1"),
        "old_loss_at_the_end": ("loss on the old task, at the end", "1"),
    }
    tolerance = exact("loss", "old_loss")
    tiny = {"inputs": 3, "outputs": 2, "balances": 2, "times": 200}

    def trained(self) -> xr.Dataset:
        """Train on the old task until it is learned, then on the new one, by gradient flow on the weights."""
        run = self._flow(self._converged(self._slowest), self._task, self._times)
        # Inputs are whitened, and the targets an exact map of them.
        missed = run["product"].to_numpy() - self._old_task.cross_moment.T
        values = {"old_loss": np.sum(missed**2, axis=(-2, -1)) / 2}
        return self.run_record(run, values, members="balance", without=["product"])

    def exact(self) -> Values:
        """The exact solution from the layers that every start of that balance ends in."""
        old, new = self._old_task.cross_moment.T, self._task.cross_moment.T
        found = forgetting(*self._ends(), old, new, self._times)
        return {"loss": found.new_error, "old_loss": found.old_error, "old_loss_at_the_end": ((), found.end)}

    @functools.cached_property
    def _maps(self) -> tuple[np.ndarray, np.ndarray]:
        strengths = np.linspace(self.strongest, self.weakest, min(self.inputs, self.outputs))
        draw = np.random.default_rng(self.seed)
        one, other = (random_map(draw, self.inputs, self.outputs, strengths) for _ in range(2))
        return one, other

    @functools.cached_property
    def _times(self) -> np.ndarray:
        """Until the slowest network has long learned the new task."""
        return np.linspace(0.0, 4.0 / self._slowest, self.times)

    @property
    def _slowest(self) -> float:
        return slowest_rate(self.inputs, self.outputs, self.weakest, self._balances)

"""Base classes of studies of two-layer linear networks with different layer imbalances."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import numpy as np

from dynascope.flows import GradientFlow, Solver, gradient_flow
from dynascope.networks import TwoLayer
from dynascope.networks.balanced_linear import balanced_networks
from dynascope.protocols import Learnable
from dynascope.studies import Study
from dynascope.tasks import Task
from dynascope.tasks.random_maps import whitened
from dynascope.theory.transfer import converged_layers

__all__ = ["BalancedStudy", "TwoTasksStudy"]


class BalancedStudy(Study):
    """A study of networks with W₂ W₂ᵀ − W₁ᵀ W₁ = λ I. The curves depend on λ and time."""

    theory = "balanced two-layer linear networks"
    trains = "linear"
    symbols = {"balance": "λ"}
    axes = ("balance", "time")
    labelled = {"balance": "_balances"}

    if TYPE_CHECKING:
        largest_balance: float
        balances: int
        times: int
        seed: int

    @functools.cached_property
    def _balances(self) -> np.ndarray:
        return np.linspace(-self.largest_balance, self.largest_balance, self.balances)


class TwoTasksStudy(BalancedStudy):
    """A study of networks that are trained to convergence on one task and then on another task.

    The width of the hidden layer is the smaller of the input and output dimensions.

    Attributes:
        tasks: Names of the two tasks.
        accuracy: Relative tolerance of the solver.
    """

    tasks: ClassVar[tuple[str, str]] = "the old task", "the new task"
    accuracy: ClassVar[float] = 1e-10

    @functools.cached_property
    def _maps(self) -> tuple[np.ndarray, np.ndarray]:
        """The target maps of the old and the new task."""
        raise NotImplementedError

    @functools.cached_property
    def _old_task(self) -> Task:
        return whitened(self._maps[0], self.tasks[0])

    @functools.cached_property
    def _task(self) -> Task:
        return whitened(self._maps[1], self.tasks[1])

    def _converged(self, rate: float) -> list[TwoLayer]:
        """Networks trained on the old task for 30 time constants of the slowest mode."""
        inputs, outputs = self._maps[0].shape
        sizes = inputs, min(inputs, outputs), outputs
        networks = balanced_networks(sizes, self._balances, one_sign=True, seed=self.seed)
        times = np.linspace(0.0, 30.0 / rate, self.times)
        _, stacked = self._flow(networks, self._old_task, times, return_networks=True)
        return [jax.tree.map(lambda weights, i=i: weights[i], stacked) for i in range(len(networks))]

    def _flow(self, networks: list[TwoLayer], task: Learnable, times: np.ndarray, **outcome: Any) -> Any:
        """Integrate gradient flow over these times and record W₁ W₂ of every network as `product`."""
        # With the same number of times and the same statistics, both tasks share one compiled program.
        solver = Solver(relative_tolerance=self.accuracy)
        method = GradientFlow(duration=times[-1], solver=solver, save=times, statistics=_PRODUCT)
        return gradient_flow(task, networks, method, **outcome)

    def _spread(self, first: float, last: float) -> np.ndarray:
        """Times up to `last`: half equally spaced for plateaus, half log-spaced from `first` for fast changes."""
        fast = np.geomspace(first, last, self.times // 2 + 1)[:-1]
        return np.sort(np.concatenate([np.linspace(0.0, last, self.times - len(fast)), fast]))

    def _converged_layers(self) -> tuple[np.ndarray, np.ndarray]:
        """The layers to which networks converge on the old task, for each imbalance λ."""
        old = self._old_task.cross_moment.T
        ends = [converged_layers(old, balance, min(old.shape)) for balance in self._balances]
        first, second = zip(*ends, strict=True)
        return np.stack(first), np.stack(second)


_PRODUCT = {"product": (lambda network: network.first @ network.second, ("feature", "target"))}

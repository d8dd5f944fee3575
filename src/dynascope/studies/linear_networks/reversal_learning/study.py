"""Reversal learning: networks with unbalanced layers relearn quickly, but exactly balanced networks never relearn."""

from __future__ import annotations

import functools
from typing import Annotated, Literal

import numpy as np
import xarray as xr
from annotated_types import Ge

from dynascope.probes.half_strength import first_zero
from dynascope.studies import Reference, Values, exact, parameter
from dynascope.studies.linear_networks.balanced_study import TwoTasksStudy
from dynascope.studies.linear_networks.reversal_learning import page
from dynascope.tasks.random_maps import random_map
from dynascope.theory import papers
from dynascope.theory.balanced.convergence import slowest_rate
from dynascope.theory.transfer import reversal_time, reversal_trajectory
from dynascope.validation.bounded import PositiveFloat, PositiveInt, Seed

_BALANCED = 1e-7  # least |λ| over the strongest mode: solver errors of 1e-13 then grow to a tenth of the tolerance
_INTERPOLATED = 2e-5  # largest relative error of an interpolated time, a fifth of its tolerance


class ReversalLearning(TwoTasksStudy):
    """Tests exact solutions for two-layer linear networks that relearn a task after its targets have changed sign.

    Networks with W₂ W₂ᵀ − W₁ᵀ W₁ = λ I, for several imbalances λ, are trained to convergence on a random target map and
    then on its negative. The study compares three quantities with the exact solutions: the loss and the strength of
    every mode over time, and the time at which each mode crosses zero. The crossing time grows as log(1/|λ|) as λ
    vanishes.
    """

    inputs: PositiveInt = parameter(4, "Number of inputs.")
    outputs: PositiveInt = parameter(2, "Number of outputs.")
    strongest: PositiveFloat = parameter(2.0, "Largest singular value of the target map.")
    weakest: PositiveFloat = parameter(
        1.0,
        "Smallest singular value; the others are equally spaced between `strongest` and `weakest`.",
        most="strongest",
    )
    largest_balance: PositiveFloat = parameter(1.0, "Largest absolute imbalance |λ|, with W₂ W₂ᵀ − W₁ᵀ W₁ = λ I.")
    smallest_balance: PositiveFloat = parameter(1e-3, "Smallest |λ|.", below="largest_balance")
    balances: Annotated[int, Ge(2)] = parameter(4, "Number of log-spaced values of |λ|.")
    sign: Literal[1, -1] = parameter(1, "Sign of λ, 1 or -1; the prediction does not depend on the sign.")
    times: Annotated[int, Ge(10)] = parameter(1000, "Number of recorded times.")
    seed: Seed = parameter(0, "Seed of the task and of the initial weights.")

    reference = Reference.of(
        papers.BALANCED,
        "After the targets of a two-layer linear network change sign, the time at which each mode crosses zero has a "
        "closed form. This time grows logarithmically as the imbalance between the layers approaches zero.",
    )
    along = ("time", "balance")
    question = "How long does a network take to relearn a task whose targets have changed sign?"
    figures, meaning = page.figures, page.meaning
    tasks = ("a task", "the reversed task")
    accuracy = 1e-12
    equation = (
        r"\dot P = F P + P F - P^2, \quad F = \begin{pmatrix} -\frac{\lambda}{2} I & \Sigma \\ \Sigma^\top & "
        r"\frac{\lambda}{2} I \end{pmatrix}, \quad P = Q Q^\top, \quad Q = \begin{pmatrix} W_1 \\ W_2^\top "
        r"\end{pmatrix}"
    )
    minutes = 0.2
    names = {
        "reversal_time": ("time at which the mode crosses zero", "gradient-flow time"),
    }
    tolerance = {
        **exact(
            *("loss", "mode_strength"),
            error=1e-5,
            reason="the theory is exact; near the saddle, solver errors grow by a factor of up to `strongest`/|λ|",
        ),
        **exact(
            "reversal_time",
            error=1e-4,
            reason="the theory is exact; the observed time is interpolated by a cubic spline",
        ),
    }
    tiny = {"inputs": 3, "balances": 2, "smallest_balance": 0.1, "times": 200}

    def check(self) -> None:
        """Check that the smallest imbalance, and not rounding, determines when the weights leave the saddle."""
        least = _BALANCED * self.strongest
        self.require(self.smallest_balance >= least, "smallest_balance", f"choose at least {least:g}")

    def trained(self) -> xr.Dataset:
        """Train to convergence on the task, then on its negative, by gradient flow."""
        slowest = slowest_rate(self.inputs, self.outputs, self.weakest, self._balances)
        run = self._flow(self._converged(slowest), self._task, self._times)
        left, _, right = np.linalg.svd(self._old_task.cross_moment.T, full_matrices=False)
        strength = np.einsum("...fo,fm,mo->...m", run["product"].to_numpy(), left, right)
        values = {
            "mode_strength": ((*self.axes, "mode"), strength),
            "reversal_time": (("balance", "mode"), self._crossings(strength)),
        }
        return self.run_record(run, values, members="balance", without=["product"])

    def exact(self) -> Values:
        """Evaluate the closed form of each mode for each imbalance, starting from converged layers."""
        balances = self._balances[:, None]
        path = reversal_trajectory(self._times[:, None], self._strengths, balances[:, None])
        passed = np.asarray(reversal_time(self._strengths, balances))
        resolved = np.abs(self._crossings(np.asarray(path.strength)) / passed - 1).max() < _INTERPOLATED
        problem = f"with times {self.times}, the records are too far apart to locate the zero crossings of the modes"
        self.require(resolved, "times", "choose more times", problem=problem)
        return {
            "loss": np.sum(np.square(path.residual), axis=-1) / 2,
            "mode_strength": ((*self.axes, "mode"), path.strength),
            "reversal_time": (("balance", "mode"), passed),
        }

    def _crossings(self, strength: np.ndarray) -> np.ndarray:
        """First time at which each mode is zero, shape (imbalance, mode)."""
        # Near the saddle, s changes exponentially but arsinh(2 s/|λ|) changes linearly in time, so the latter can be
        # interpolated on a coarse grid of times.
        angle = np.arcsinh(2 * strength / np.abs(self._balances)[:, None, None])
        return np.apply_along_axis(lambda path: first_zero(self._times, path), 1, angle)

    @functools.cached_property
    def _maps(self) -> tuple[np.ndarray, np.ndarray]:
        target = random_map(np.random.default_rng(self.seed), self.inputs, self.outputs, self._strengths)
        return target, -target

    @property
    def _strengths(self) -> np.ndarray:
        return np.linspace(self.strongest, self.weakest, min(self.inputs, self.outputs))

    @functools.cached_property
    def _balances(self) -> np.ndarray:
        return np.sort(self.sign * np.geomspace(self.smallest_balance, self.largest_balance, self.balances))

    @functools.cached_property
    def _times(self) -> np.ndarray:
        """Times until the slowest mode has reversed, which takes at least twice its zero-crossing time."""
        passed = np.asarray(reversal_time(self._strengths[:, None], self._balances))
        return self._spread(passed.min() / 10, 2.5 * float(passed.max()) + 1.0 / self.weakest)

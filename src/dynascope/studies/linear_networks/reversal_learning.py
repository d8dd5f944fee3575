"""Reversal learning: unlearning is cheap if the layers are unequal, and never happens if they are exactly balanced."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import xarray as xr

from dynascope.probes.half_strength import first_zero
from dynascope.results import Chart
from dynascope.studies import Reference, Values, exact
from dynascope.studies.fields import choice, count, positive, seed, weakest
from dynascope.studies.linear_networks.balanced_study import TwoTasksStudy
from dynascope.tasks.random_maps import random_map
from dynascope.theory import papers
from dynascope.theory.balanced.convergence import slowest_rate
from dynascope.theory.transfer import reversal_time, reversal_trajectory

_BALANCED = 1e-7  # |λ| over the strongest mode at which errors of 1e-13 come to a tenth of what is tolerated
_TOLD = 2e-5  # relative error of a time between those of the record, a fifth of its tolerance


class ReversalLearning(TwoTasksStudy):
    """Strength of every mode while two-layer linear networks relearn a task whose targets have changed their sign.

    Networks of several balances λ, W₂ W₂ᵀ − W₁ᵀ W₁ = λ I, are trained to convergence on random targets and then on
    their negatives. Judged are the loss, the strength of every mode over time, and when it passes zero; the latter
    grows as log(1/|λ|) as λ vanishes.
    """

    inputs: int = count(4, "Number of inputs.")
    outputs: int = count(2, "Number of outputs.")
    strongest: float = positive(2.0, "Largest singular value of the target map.")
    weakest: float = weakest(1.0)
    largest_balance: float = positive(1.0, "Largest |λ|, by which the layers differ: W₂ W₂ᵀ − W₁ᵀ W₁ = λ I.")
    smallest_balance: float = positive(1e-3, "Smallest |λ|.", below="largest_balance")
    balances: int = count(4, "Number of |λ|, equally spaced in their logarithms.", least=2)
    sign: int = choice(1, "Sign of λ, 1 or -1, which makes no difference to what is predicted.", (1, -1))
    times: int = count(1000, "Number of times at which both are recorded.", least=10)
    seed: int = seed("Seed of the task and of the initial weights.")

    reference = Reference.of(
        papers.BALANCED,
        "When its targets change their sign, every mode of a two-layer linear network passes zero at a time in "
        "closed form, which grows as the logarithm of how nearly balanced the layers are.",
    )
    along = ("time", "balance")
    question = "How long does it take to unlearn what has become the opposite of the truth?"
    figures = (
        Chart(
            "mode_strength",
            places={"mode": (-1,)},
            title="Unlearning",
            caption="The strength of the weakest mode after all targets have changed their sign: it has to pass zero, "
            "where gradients vanish, and waits there the longer the more equal the layers are (λ near 0).",
        ),
        Chart(
            "reversal_time",
            over="balance",
            log="x",
            title="When zero is passed",
            caption="The time at which each mode is zero, against the balance λ. On a logarithmic axis the points come "
            "to lie on straight lines as λ falls: the time grows as the logarithm of 1/|λ|.",
            points=True,
        ),
    )
    meaning = (
        "Linear networks learned a task, and then the same with all targets of the opposite sign. Each mode must pass "
        "zero, which is a resting point of training if both layers are exactly equal. With layers as unequal as |λ| = "
        "{parameters.largest_balance} the modes were zero at {observed.reversal_time:least} at the earliest, and with "
        "|λ| = {parameters.smallest_balance} at {observed.reversal_time:most} at the latest; theory says "
        "{predicted.reversal_time:least} and {predicted.reversal_time:most}. By theory a small inequality of the "
        "layers is enough to unlearn quickly, and exactly balanced networks never do; this is about gradient flow, "
        "and the noise of steps would end the wait."
    )
    tasks = ("a task", "the reversed task")
    accuracy = 1e-12
    minutes = 0.2
    names = {
        "reversal_time": ("time at which the mode changes its sign", "gradient-flow time"),
    }
    tolerance = {
        **exact(
            *("loss", "mode_strength"),
            error=1e-5,
            reason="the theory is exact; near the saddle the solver's error is amplified by up to s/|λ|",
        ),
        **exact(
            "reversal_time",
            error=1e-4,
            reason="the theory is exact; the observed time is interpolated by a cubic spline",
        ),
    }
    tiny = {"inputs": 3, "balances": 2, "smallest_balance": 0.1, "times": 200}

    def check(self) -> None:
        """No balance at which the rounding of the weights decides when they leave the saddle."""
        least = _BALANCED * self.strongest
        self.require(self.smallest_balance >= least, "smallest_balance", f"choose at least {least:g}")

    def trained(self) -> xr.Dataset:
        """Train on the task until it is learned, then on its negative, by gradient flow on the weights."""
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
        """The closed form of each mode from the layers that every start of that balance ends in."""
        balances = self._balances[:, None]
        path = reversal_trajectory(self._times[:, None], self._strengths, balances[:, None])
        passed = np.asarray(reversal_time(self._strengths, balances))
        told = np.abs(self._crossings(np.asarray(path.strength)) / passed - 1).max() < _TOLD
        problem = f"{self.times} times are too far apart to tell when modes of such strengths pass zero"
        self.require(told, "times", "choose more", problem=problem)
        return {
            "loss": np.sum(np.square(path.residual), axis=-1) / 2,
            "mode_strength": ((*self.axes, "mode"), path.strength),
            "reversal_time": (("balance", "mode"), passed),
        }

    def charts(self) -> tuple[Chart, ...]:
        """Those that are declared; negative λ have no logarithm."""
        return self.figures if self.sign > 0 else tuple(dataclasses.replace(each, log="") for each in self.figures)

    def _crossings(self, strength: np.ndarray) -> np.ndarray:
        """The first time at which each mode is zero, shape (balance, mode)."""
        # Half of arsinh(2 s/|λ|) moves at the rate of what is left to learn: on a straight line where s itself leaves
        # the saddle exponentially, so that times far apart tell when it is zero.
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
        """Until the slowest mode has been reversed, which it has not before twice the time at which it is zero."""
        passed = np.asarray(reversal_time(self._strengths[:, None], self._balances))
        return self._spread(passed.min() / 10, 2.5 * float(passed.max()) + 1.0 / self.weakest)

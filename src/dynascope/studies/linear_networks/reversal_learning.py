"""Reversal learning: unlearning is cheap if the layers are unequal, and never happens if they are exactly balanced."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any, ClassVar

from dynascope.studies.study import Reference, Study, curve_tolerance

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr

    from dynascope.tasks import Task

__all__ = ["ReversalLearning"]


@dataclasses.dataclass(frozen=True)
class ReversalLearning(Study):
    """Strength of every mode while two-layer linear networks relearn a task whose targets have changed their sign.

    Networks of several balances λ, W₂ W₂ᵀ − W₁ᵀ W₁ = λ I, are trained to convergence on random targets and then on
    their negatives. Judged are the loss, the strength of every mode over time, and when it passes zero; the latter
    grows as log(1/|λ|) as λ vanishes.

    Attributes:
        inputs: Number of inputs.
        outputs: Number of outputs.
        strongest: Largest singular value of the target map.
        weakest: Smallest singular value; the others are equally spaced between them.
        largest_balance: Largest |λ|.
        smallest_balance: Smallest |λ|.
        balances: Number of |λ|, equally spaced in their logarithms.
        sign: Sign of λ, 1 or -1, which makes no difference to what is predicted.
        times: Number of times at which both are recorded.
        seed: Seed of the task and of the initial weights.
    """

    inputs: int = 4
    outputs: int = 2
    strongest: float = 2.0
    weakest: float = 1.0
    largest_balance: float = 1.0
    smallest_balance: float = 1e-3
    balances: int = 4
    sign: int = 1
    times: int = 1000
    seed: int = 0

    name: ClassVar[str] = "reversal-learning"
    reference: ClassVar[Reference] = Reference(
        paper="C. C. J. Dominé, N. Anguita, A. M. Proca, L. Braun, D. Kunin, P. A. M. Mediano, A. M. Saxe, From Lazy "
        "to Rich: Exact Learning Dynamics in Deep Linear Networks",
        arxiv="2409.14623",
        claim="When its targets change their sign, every mode of a two-layer linear network passes zero at a time in "
        "closed form, which grows as the logarithm of how nearly balanced the layers are.",
    )
    along: ClassVar = ("time", "balance")
    minutes: ClassVar[float] = 0.3
    tolerance: ClassVar = curve_tolerance(
        **dict.fromkeys(
            ("loss", "mode_strength"),
            (1e-5, "the theory is exact; near the saddle the solver's error is amplified by up to s/|λ|"),
        ),
        reversal_time=(1e-4, "the theory is exact; the observed time is interpolated by a cubic spline"),
    )
    tiny: ClassVar = {"inputs": 3, "balances": 2, "smallest_balance": 0.1, "times": 200}

    def observe(self) -> xr.Dataset:
        """Train on the task until it is learned, then on its negative, by gradient flow on the weights."""
        import numpy as np

        from dynascope.flows import gradient_flow
        from dynascope.studies.linear_networks.continual_learning import balanced_networks, learned_map, trained

        task, reversed_task = self._tasks
        networks = balanced_networks(self.inputs, self.outputs, self._balances, seed=self.seed)
        # With as many times and the same statistics, training on either task is one compiled program.
        options: dict[str, Any] = {
            "statistics": {"product": (learned_map, ("feature", "target"))},
            "relative_tolerance": 1e-12,
        }
        networks = trained(networks, task, duration=30.0 / self._slowest, save=self.times, **options)
        run = gradient_flow(networks, reversed_task, duration=self._times[-1], save=self._times, **options)
        left, _, right = np.linalg.svd(task.cross_moment.T, full_matrices=False)
        strength = np.einsum("...fo,fm,mo->...m", run["product"].to_numpy(), left, right)
        run = run.rename(seed="balance").assign_coords(balance=self._balances, mode=self._modes)
        run = run.drop_vars(["product", "feature", "target"]).assign(
            mode_strength=(("balance", "time", "mode"), strength)
        )
        return run.assign(reversal_time=(("balance", "mode"), self._crossings(strength)))

    def predict(self) -> xr.Dataset:
        """The closed form of each mode from the layers that every start of that balance ends in."""
        import jax
        import numpy as np

        from dynascope.record import make_record
        from dynascope.theory.transfer import reversal_time, reversal_trajectory

        balances = self._balances[:, None]
        with jax.enable_x64(True):
            path = reversal_trajectory(self._times[:, None], self._strengths, balances[:, None])
            crossings = reversal_time(self._strengths, balances)
        return make_record(
            {
                "loss": (("balance", "time"), np.sum(np.square(path.residual), axis=-1) / 2),
                "mode_strength": (("balance", "time", "mode"), path.strength),
                "reversal_time": (("balance", "mode"), crossings),
            },
            {"time": self._times, "balance": self._balances, "mode": self._modes},
            attributes={
                "theory": "balanced two-layer linear networks",
                "network": "linear",
                "reference": self.reference.paper,
                "scale": 1.0,
                **self._tasks[1].attributes(),
            },
        )

    def _crossings(self, strength: np.ndarray) -> np.ndarray:
        """The first time at which each mode is zero, shape (balance, mode)."""
        import numpy as np
        from scipy.interpolate import CubicSpline

        def first(path: np.ndarray) -> float:
            crossings = CubicSpline(self._times, path).roots(extrapolate=False)
            return crossings[0] if len(crossings) else np.inf

        return np.apply_along_axis(first, 1, strength)

    @functools.cached_property
    def _tasks(self) -> tuple[Task, Task]:
        import numpy as np

        from dynascope.studies.linear_networks.continual_learning import random_map, whitened_task

        target_map = random_map(np.random.default_rng(self.seed), self.inputs, self.outputs, self._strengths)
        return whitened_task(target_map, "a task"), whitened_task(-target_map, "the reversed task")

    @functools.cached_property
    def _strengths(self) -> np.ndarray:
        import numpy as np

        from dynascope.arguments import require, require_positive

        require_positive(inputs=self.inputs, outputs=self.outputs)
        require(
            0 < self.weakest <= self.strongest < np.inf,
            f"weakest is {self.weakest} and strongest {self.strongest}",
            argument="weakest",
            value=self.weakest,
            remedy="choose a positive number up to the strongest",
        )
        return np.linspace(self.strongest, self.weakest, min(self.inputs, self.outputs))

    @property
    def _modes(self) -> np.ndarray:
        import numpy as np

        return np.arange(1, len(self._strengths) + 1)

    @functools.cached_property
    def _balances(self) -> np.ndarray:
        import numpy as np

        from dynascope.arguments import require

        require(
            0 < self.smallest_balance < self.largest_balance < np.inf,
            f"smallest_balance is {self.smallest_balance} and largest_balance {self.largest_balance}",
            argument="smallest_balance",
            value=self.smallest_balance,
            remedy="choose a positive number below the largest",
        )
        require(
            self.balances >= 2,
            f"balances is {self.balances}",
            argument="balances",
            value=self.balances,
            remedy="choose two or more",
        )
        require(self.sign in (-1, 1), f"sign is {self.sign}", argument="sign", value=self.sign, remedy="choose 1 or -1")
        return np.sort(self.sign * np.geomspace(self.smallest_balance, self.largest_balance, self.balances))

    @property
    def _slowest(self) -> float:
        from dynascope.studies.linear_networks.continual_learning import slowest_rate

        return slowest_rate(self.inputs, self.outputs, self.weakest, self._balances)

    @functools.cached_property
    def _times(self) -> np.ndarray:
        """Until the slowest mode has been reversed, which it has not before twice the time at which it is zero."""
        import jax
        import numpy as np

        from dynascope.arguments import require
        from dynascope.theory.transfer import reversal_time

        require(
            self.times >= 10, f"times is {self.times}", argument="times", value=self.times, remedy="choose ten or more"
        )
        with jax.enable_x64(True):
            last = float(reversal_time(self._strengths[:, None], self._balances).max())
        return np.linspace(0.0, 2.5 * last + 1.0 / self.weakest, self.times)

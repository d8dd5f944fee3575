"""Transfer learning: the imbalance between the layers determines which old features a new task can reuse."""

from __future__ import annotations

import functools
from typing import Annotated

import numpy as np
import xarray as xr
from annotated_types import Ge

from dynascope.flows.objective import FrozenFirst, Samples
from dynascope.studies import Reference, Values, exact, parameter
from dynascope.studies.linear_networks.balanced_study import TwoTasksStudy
from dynascope.studies.linear_networks.transfer_learning import page
from dynascope.studies.linear_networks.transfer_learning.readout import decay_rates, reachable_share
from dynascope.tasks.random_maps import rotation, whitened
from dynascope.theory import papers
from dynascope.theory.transfer import joint_transfer, transfer_error, transfer_speed
from dynascope.validation.bounded import PositiveFloat, PositiveInt, Seed

_LEFT = 0.01  # remaining part of a mode below which solver errors would affect the fit of its speed
_LOST = 1e-6  # size of a feature, relative to the largest, below which it counts as lost


class TransferLearning(TwoTasksStudy):
    """Tests how square two-layer linear networks learn a new output from the features of an old task.

    Networks with W₂ W₂ᵀ − W₁ᵀ W₁ = λ I, for several imbalances λ, are trained to convergence on an old task. The old
    task uses only some input directions; the new target uses all directions equally. The study then trains the networks
    in two ways:

    - A new readout is trained from zero weights on the frozen first layer. The study compares four quantities with the
      theory: the `loss`; the `mode_strength` along each input direction of the old task; the learning `speed` √(s² +
      λ²/4) − λ/2 of this mode, whose singular value in the old task is s; and `reachable_share`, the share of the new
      target in the span of the trained features. The loss cannot fall below half the squared norm of the unreachable
      part of the target.
    - An output with zero weights is added, and all layers are trained on both targets. The study compares the losses on
      the old and the new task, `old_loss` and `new_loss`, with the theory.
    """

    dimension: PositiveInt = parameter(3, "Number of inputs, of outputs of the old task, and of hidden neurons.")
    rank: PositiveInt = parameter(2, "Number of input directions that the old task uses.", most="dimension")
    strongest: PositiveFloat = parameter(2.0, "Largest singular value of the old target map.")
    weakest: PositiveFloat = parameter(
        1.0,
        "Smallest nonzero singular value; the others are equally spaced between `strongest` and `weakest`.",
        most="strongest",
    )
    largest_balance: PositiveFloat = parameter(3.0, "Largest value of λ; the smallest value is its negative.")
    balances: Annotated[int, Ge(2)] = parameter(
        4,
        "Number of equally spaced values of λ. An even number excludes λ = 0, at which the network never completely "
        "forgets unused directions.",
    )
    times: Annotated[int, Ge(10)] = parameter(300, "Number of recorded times.")
    seed: Seed = parameter(0, "Seed of the tasks and of the initial weights.")

    reference = Reference.of(
        papers.BALANCED,
        "A two-layer linear network with larger weights in the first layer keeps features of all inputs, so it can "
        "learn any new readout. A network with larger weights in the second layer keeps only the features of its task. "
        "Along each input direction, the learning speed of a new readout has a closed form.",
    )
    question = "Which features of an old task can a new task reuse?"
    figures, meaning = page.figures, page.meaning
    tasks = ("the old task", "a new task")
    equation = r"\text{speed}(s) = \sqrt{s^2 + \frac{\lambda^2}{4}} - \frac{\lambda}{2}"
    minutes = 0.2
    along = ("time", "balance")
    names = {
        "reachable_share": ("share of the new target in the span of the old features", ""),
        "old_loss": ("loss on the old task", "1"),
        "new_loss": ("loss on the new task", "1"),
        "floor": ("floor of the loss", "1"),
    }
    tolerance = {
        **exact("loss", "mode_strength", "old_loss", "new_loss"),
        **exact(
            "speed",
            error=1e-4,
            reason="the fit ends when 1 % of a mode remains to be learned, and the solver error is a hundred times "
            "smaller",
        ),
        **exact(
            "reachable_share", error=1e-6, reason="features smaller than a millionth of the largest are treated as lost"
        ),
    }
    tiny = {"dimension": 2, "rank": 1, "balances": 2, "times": 40}

    def check(self) -> None:
        """Check that no imbalance is zero."""
        self.require(self.balances % 2 == 0, "balances", "choose an even number")

    def trained(self) -> xr.Dataset:
        """Train on the old task, then train either a readout or all layers, by gradient flow."""
        networks, unlearned = self._converged(np.abs(self._balances).min() / 2), np.zeros((self.dimension, 1))
        new, both = self._task, whitened(np.hstack(self._maps), "both tasks")
        attributes = (("task", new.name), ("description", new.description))
        frozen = FrozenFirst(Samples(new.inputs, new.targets), attributes)
        readouts = [each.with_neurons(np.hstack([each.first.T, unlearned])) for each in networks]
        run = self._flow(readouts, frozen, self._times)
        enlarged = [each.with_neurons(np.hstack([each.first.T, each.second, unlearned])) for each in networks]
        joint = self._flow(enlarged, both, self._times)["product"].to_numpy()
        strength = run["product"].to_numpy()[..., 0] @ self._directions
        squares = np.sum((joint - both.cross_moment.T) ** 2, axis=-2) / 2
        reached = [reachable_share(np.asarray(each.first), self._maps[1], _LOST) for each in networks]
        values = {
            "mode_strength": ((*self.axes, "mode"), strength),
            "speed": (("balance", "mode"), decay_rates(self._times, 1 - strength, _LEFT)),
            "reachable_share": ("balance", reached),
            "old_loss": np.sum(squares[..., :-1], axis=-1),
            "new_loss": squares[..., -1],
        }
        return self.run_record(run, values, members="balance", without=["product"])

    def exact(self) -> Values:
        """Solve both kinds of training exactly, from the converged layers of the old task."""
        old, new = self._old_task.cross_moment.T, self._task.cross_moment.T
        first, second = self._converged_layers()
        readouts = [transfer_error(each, new, self._times) for each in first]
        joint = joint_transfer(first, second, old, new, self._times)
        speeds = np.asarray(transfer_speed(self._strengths, self._balances[:, None]))
        floor = np.stack([each.floor for each in readouts])
        return {
            "loss": np.stack([each.error for each in readouts]),
            "mode_strength": ((*self.axes, "mode"), -np.expm1(-speeds[:, None] * self._times[:, None])),
            "old_loss": joint.old_error,
            "new_loss": joint.new_error,
            "floor": ("balance", floor),
            "reachable_share": ("balance", 1 - 2 * floor / np.sum(new**2)),
            "speed": (("balance", "mode"), speeds),
        }

    @functools.cached_property
    def _maps(self) -> tuple[np.ndarray, np.ndarray]:
        right = rotation(np.random.default_rng([self.seed, 2]), self.dimension)
        return self._directions * self._strengths @ right.T, self._directions.sum(axis=1, keepdims=True)

    @functools.cached_property
    def _directions(self) -> np.ndarray:
        """Input directions of the old task, one per column, strongest first; unused directions come last."""
        return rotation(np.random.default_rng(self.seed), self.dimension)

    @property
    def _strengths(self) -> np.ndarray:
        """Singular values of the old target map, zero for unused directions."""
        used = np.linspace(self.strongest, self.weakest, self.rank)
        return np.concatenate([used, np.zeros(self.dimension - self.rank)])

    @functools.cached_property
    def _times(self) -> np.ndarray:
        """Times until the readout has learned the slowest direction that the old task used."""
        slowest = float(transfer_speed(self._strengths[self.rank - 1], self._balances[-1]))
        fastest = float(transfer_speed(self.strongest, self._balances[0]))
        return self._spread(0.1 / fastest, 4.0 / slowest)

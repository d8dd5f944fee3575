"""Transfer learning: the balance of the layers decides which features of an old task serve a new one."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any, ClassVar

from dynascope.studies.study import Reference, Study, curve_tolerance

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr

    from dynascope.tasks import Task

__all__ = ["TransferLearning"]


@dataclasses.dataclass(frozen=True)
class TransferLearning(Study):
    """What a new output learns from the features of an old task, in square two-layer linear networks.

    Networks of several balances λ, W₂ W₂ᵀ − W₁ᵀ W₁ = λ I, are trained to convergence on old targets that use only some
    directions of the inputs; the new target uses all directions equally. Then (i) the first layer is frozen and a new
    readout is trained from zero: judged are `loss` and `mode_strength`, its part along each input direction of the old
    task; (ii) an output with weights zero is added and all layers are trained on old and new targets: judged are
    `old_loss` and `new_loss`.

    With λ < 0 the first layer keeps features of all directions, which are learned at the speed √(s² + λ²/4) − λ/2; with
    λ > 0 those that the old task did not use are lost, and the loss of the readout ends on a floor.

    Attributes:
        dimension: Number of inputs, of old outputs and of hidden neurons.
        rank: Number of input directions that the old task uses.
        strongest: Largest singular value of the old target map.
        weakest: Smallest one that is not zero; the others are equally spaced between them.
        largest_balance: Largest λ; the smallest is its negative.
        balances: Number of equally spaced λ; even, since at λ = 0 unused directions are never quite forgotten.
        times: Number of times at which both are recorded.
        seed: Seed of the tasks and of the initial weights.
    """

    dimension: int = 3
    rank: int = 2
    strongest: float = 2.0
    weakest: float = 1.0
    largest_balance: float = 3.0
    balances: int = 4
    times: int = 300
    seed: int = 0

    name: ClassVar[str] = "transfer-learning"
    reference: ClassVar[Reference] = Reference(
        paper="C. C. J. Dominé, N. Anguita, A. M. Proca, L. Braun, D. Kunin, P. A. M. Mediano, A. M. Saxe, From Lazy "
        "to Rich: Exact Learning Dynamics in Deep Linear Networks",
        arxiv="2409.14623",
        claim="A large first layer keeps features of all inputs and serves any new task, a large second layer keeps "
        "only those of the old task, and the speed of a new readout along each is known in closed form.",
    )
    minutes: ClassVar[float] = 0.5
    tolerance: ClassVar = curve_tolerance(
        **dict.fromkeys(
            ("loss", "mode_strength", "old_loss", "new_loss"),
            (1e-6, "the theory is exact, and the solver keeps each step within 1e-10"),
        )
    )
    tiny: ClassVar = {"dimension": 2, "rank": 1, "balances": 2, "times": 40}

    def observe(self) -> xr.Dataset:
        """Train on the old task, then a readout on its own and all layers together, by gradient flow."""
        import numpy as np

        from dynascope.flows import gradient_flow
        from dynascope.studies.linear_networks.continual_learning import balanced_networks, learned_map, trained
        from dynascope.tasks.expectation import Expectation

        networks = balanced_networks(self.dimension, self.dimension, self._balances, seed=self.seed)
        options: dict[str, Any] = {
            "statistics": {"product": (learned_map, ("feature", "target"))},
            "relative_tolerance": 1e-10,
        }
        old, new, both = self._tasks
        networks = trained(networks, old, duration=60.0 / np.abs(self._balances).min(), save=self.times, **options)
        options |= {"duration": self._times[-1], "save": self._times}
        unlearned = np.zeros((self.dimension, 1))
        frozen = Expectation(lambda network: new.loss(_frozen(network)), new.name, new.description)
        readout = gradient_flow([_with_second(each, unlearned) for each in networks], frozen, **options)
        enlarged = [_with_second(each, np.hstack([each.second, unlearned])) for each in networks]
        joint = gradient_flow(enlarged, both, **options)["product"].to_numpy()

        run = readout.rename(seed="balance").assign_coords(balance=self._balances, mode=self._modes)
        dimensions = ("balance", "time")
        strength = readout["product"].to_numpy()[..., 0] @ self._directions
        squares = np.sum((joint - both.cross_moment.T) ** 2, axis=-2) / 2
        return run.drop_vars(["product", "feature", "target"]).assign(
            mode_strength=((*dimensions, "mode"), strength),
            old_loss=(dimensions, np.sum(squares[..., :-1], axis=-1)),
            new_loss=(dimensions, squares[..., -1]),
        )

    def predict(self) -> xr.Dataset:
        """The exact solutions from the layers that every start of that balance ends in."""
        import jax
        import numpy as np

        from dynascope.record import make_record
        from dynascope.theory.transfer import converged_layers, joint_transfer, transfer_error, transfer_speed

        times = self._times
        old, new, _ = (task.cross_moment.T for task in self._tasks)
        with jax.enable_x64(True):
            layers = [converged_layers(old, balance, self.dimension) for balance in self._balances]
            readouts = [transfer_error(first, new, times) for first, _ in layers]
            first, second = map(np.stack, zip(*layers, strict=True))
            joint = joint_transfer(first, second, old, new, times)
            speeds = np.asarray(transfer_speed(self._strengths, self._balances[:, None]))
        return make_record(
            {
                "loss": (("balance", "time"), np.stack([each.error for each in readouts])),
                "mode_strength": (("balance", "time", "mode"), -np.expm1(-speeds[:, None] * times[:, None])),
                "old_loss": (("balance", "time"), joint.old_error),
                "new_loss": (("balance", "time"), joint.new_error),
                "floor": (("balance",), np.stack([each.floor for each in readouts])),
                "speed": (("balance", "mode"), speeds),
            },
            {"time": times, "balance": self._balances, "mode": self._modes},
            attributes={
                "theory": "balanced two-layer linear networks",
                "network": "linear",
                "reference": self.reference.paper,
                "scale": 1.0,
                **self._tasks[1].attributes(),
            },
        )

    @functools.cached_property
    def _tasks(self) -> tuple[Task, Task, Task]:
        """The old one, the new one, and both."""
        import numpy as np

        from dynascope.studies.linear_networks.continual_learning import random_rotation, whitened_task

        right = random_rotation(np.random.default_rng([self.seed, 2]), self.dimension)
        old = self._directions * self._strengths @ right.T
        new = self._directions.sum(axis=1, keepdims=True)
        return (
            whitened_task(old, "the old task"),
            whitened_task(new, "a new task"),
            whitened_task(np.hstack([old, new]), "both tasks"),
        )

    @functools.cached_property
    def _directions(self) -> np.ndarray:
        """Input directions of the old task, one in each column, strongest first; the last ones it does not use."""
        import numpy as np

        from dynascope.studies.linear_networks.continual_learning import random_rotation

        return random_rotation(np.random.default_rng(self.seed), self.dimension)

    @functools.cached_property
    def _strengths(self) -> np.ndarray:
        """Singular values of the old target map, of every direction."""
        import numpy as np

        from dynascope.arguments import require

        require(
            1 <= self.rank <= self.dimension,
            f"rank is {self.rank} and dimension {self.dimension}",
            argument="rank",
            value=self.rank,
            remedy="choose a rank from one to the dimension",
        )
        require(
            0 < self.weakest <= self.strongest < np.inf,
            f"weakest is {self.weakest} and strongest {self.strongest}",
            argument="weakest",
            value=self.weakest,
            remedy="choose a positive number up to the strongest",
        )
        used = np.linspace(self.strongest, self.weakest, self.rank)
        return np.concatenate([used, np.zeros(self.dimension - self.rank)])

    @property
    def _modes(self) -> np.ndarray:
        import numpy as np

        return np.arange(1, self.dimension + 1)

    @functools.cached_property
    def _balances(self) -> np.ndarray:
        import numpy as np

        from dynascope.arguments import require, require_positive

        require_positive(largest_balance=self.largest_balance)
        require(
            self.balances >= 2 and self.balances % 2 == 0,
            f"balances is {self.balances}",
            argument="balances",
            value=self.balances,
            remedy="choose an even number",
        )
        return np.linspace(-self.largest_balance, self.largest_balance, self.balances)

    @functools.cached_property
    def _times(self) -> np.ndarray:
        """Until the readout has learned the slowest direction that the old task used."""
        import jax
        import numpy as np

        from dynascope.arguments import require
        from dynascope.theory.transfer import transfer_speed

        require(
            self.times >= 2, f"times is {self.times}", argument="times", value=self.times, remedy="choose two or more"
        )
        with jax.enable_x64(True):
            slowest = float(transfer_speed(self._strengths[self.rank - 1], self._balances[-1]))
        return np.linspace(0.0, 4.0 / slowest, self.times)


def _frozen(network):
    """The network with a first layer that gradients do not reach."""
    import equinox as eqx
    import jax

    return eqx.tree_at(lambda layers: layers.first, network, jax.lax.stop_gradient(network.first))


def _with_second(network, second: np.ndarray):
    import equinox as eqx

    return eqx.tree_at(lambda layers: layers.second, network, second)

"""Continual learning: the balance of the layers decides how a task is forgotten, not how much of it."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any, ClassVar

from dynascope.studies.study import Reference, Study, curve_tolerance

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr

    from dynascope.networks import TwoLayer
    from dynascope.tasks import Task

__all__ = [
    "ContinualLearning",
    "balanced_networks",
    "learned_map",
    "random_map",
    "slowest_rate",
    "trained",
    "whitened_task",
]


@dataclasses.dataclass(frozen=True)
class ContinualLearning(Study):
    """Error on an old task, and on a new one, while two-layer linear networks train on the new one.

    Networks of several balances λ, W₂ W₂ᵀ − W₁ᵀ W₁ = λ I, as wide as they have inputs or outputs, whichever are fewer,
    are trained to convergence on random targets, and then on others with the same singular values. The prediction
    knows the two tasks and λ, not the weights. With more inputs than outputs a large first layer, λ < 0, has to turn
    towards the inputs that the new task uses, which takes long.

    Attributes:
        inputs: Number of inputs.
        outputs: Number of outputs.
        strongest: Largest singular value of both target maps.
        weakest: Smallest singular value of both; the others are equally spaced between them.
        largest_balance: Largest λ; the smallest is its negative.
        balances: Number of equally spaced λ.
        times: Number of times at which both are recorded.
        seed: Seed of the tasks and of the initial weights.
    """

    inputs: int = 5
    outputs: int = 3
    strongest: float = 2.0
    weakest: float = 1.0
    largest_balance: float = 2.0
    balances: int = 5
    times: int = 300
    seed: int = 0

    name: ClassVar[str] = "continual-learning"
    reference: ClassVar[Reference] = Reference(
        paper="C. C. J. Dominé, N. Anguita, A. M. Proca, L. Braun, D. Kunin, P. A. M. Mediano, A. M. Saxe, From Lazy "
        "to Rich: Exact Learning Dynamics in Deep Linear Networks",
        arxiv="2409.14623",
        claim="How a two-layer linear network forgets a task while it learns another follows exactly from the two "
        "tasks and the balance of its layers, which sets the time course but not the end.",
    )
    minutes: ClassVar[float] = 0.3
    tolerance: ClassVar = curve_tolerance(
        **dict.fromkeys(
            ("loss", "old_loss"), (1e-6, "the theory is exact, and the solver keeps each step within 1e-10")
        )
    )
    tiny: ClassVar = {"inputs": 3, "outputs": 2, "balances": 2, "times": 200}

    def observe(self) -> xr.Dataset:
        """Train on the old task until it is learned, then on the new one, by gradient flow on the weights."""
        import numpy as np

        from dynascope.flows import gradient_flow

        old, new = self._tasks
        networks = balanced_networks(self.inputs, self.outputs, self._balances, seed=self.seed)
        # With as many times and the same statistics, training on either task is one compiled program.
        options: dict[str, Any] = {
            "statistics": {"product": (learned_map, ("feature", "target"))},
            "relative_tolerance": 1e-10,
        }
        networks = trained(networks, old, duration=30.0 / self._slowest, save=self.times, **options)
        run = gradient_flow(networks, new, duration=self._times[-1], save=self._times, **options)
        run = run.rename(seed="balance").assign_coords(balance=self._balances)
        # Inputs are whitened, and the targets an exact map of them.
        missed = run["product"].to_numpy() - old.cross_moment.T
        old_loss = (("balance", "time"), np.sum(missed**2, axis=(-2, -1)) / 2)
        return run.drop_vars(["product", "feature", "target"]).assign(old_loss=old_loss)

    def predict(self) -> xr.Dataset:
        """The exact solution from the layers that every start of that balance ends in."""
        import jax
        import numpy as np

        from dynascope.record import make_record
        from dynascope.theory.transfer import converged_layers, forgetting

        old, new = (task.cross_moment.T for task in self._tasks)
        with jax.enable_x64(True):
            layers = [converged_layers(old, balance, self._width) for balance in self._balances]
            first, second = map(np.stack, zip(*layers, strict=True))
            solution = forgetting(first, second, old, new, self._times)
        return make_record(
            {
                "loss": (("balance", "time"), solution.new_error),
                "old_loss": (("balance", "time"), solution.old_error),
                "old_loss_at_the_end": ((), solution.end),
            },
            {"time": self._times, "balance": self._balances},
            attributes={
                "theory": "balanced two-layer linear networks",
                "network": "linear",
                "reference": self.reference.paper,
                "scale": 1.0,
                **self._tasks[1].attributes(),
            },
        )

    @functools.cached_property
    def _tasks(self) -> tuple[Task, Task]:
        import numpy as np

        from dynascope.arguments import require

        require(
            0 < self.weakest <= self.strongest < np.inf,
            f"weakest is {self.weakest} and strongest {self.strongest}",
            argument="weakest",
            value=self.weakest,
            remedy="choose a positive number up to the strongest",
        )
        strengths = np.linspace(self.strongest, self.weakest, self._width)
        draw = np.random.default_rng(self.seed)
        old, new = (random_map(draw, self.inputs, self.outputs, strengths) for _ in range(2))
        return whitened_task(old, "the old task"), whitened_task(new, "the new task")

    @property
    def _width(self) -> int:
        from dynascope.arguments import require_positive

        require_positive(inputs=self.inputs, outputs=self.outputs)
        return min(self.inputs, self.outputs)

    @property
    def _slowest(self) -> float:
        return slowest_rate(self.inputs, self.outputs, self.weakest, self._balances)

    @functools.cached_property
    def _balances(self) -> np.ndarray:
        import numpy as np

        from dynascope.arguments import require, require_positive

        require_positive(largest_balance=self.largest_balance)
        require(
            self.balances >= 2,
            f"balances is {self.balances}",
            argument="balances",
            value=self.balances,
            remedy="choose two or more",
        )
        return np.linspace(-self.largest_balance, self.largest_balance, self.balances)

    @functools.cached_property
    def _times(self) -> np.ndarray:
        """Until the slowest network has long learned the new task."""
        import numpy as np

        from dynascope.arguments import require

        require(
            self.times >= 2, f"times is {self.times}", argument="times", value=self.times, remedy="choose two or more"
        )
        return np.linspace(0.0, 4.0 / self._slowest, self.times)


def slowest_rate(inputs: int, outputs: int, weakest: float, balances: np.ndarray) -> float:
    """The smallest rate at which networks as wide as they have inputs or outputs converge, over all λ.

    It is the gap between the eigenvalue ω of the weakest mode and that of the strongest direction that is left out.
    """
    import numpy as np

    omega = np.hypot(weakest, balances / 2)
    left_out = -omega if inputs == outputs else np.sign(outputs - inputs) * balances / 2
    return float(np.min(omega - left_out))


def random_map(draw: np.random.Generator, inputs: int, outputs: int, strengths: np.ndarray) -> np.ndarray:
    """U diag(s) Vᵀ, shape (inputs, outputs), between random directions that are turned but not mirrored.

    Balanced layers, λ = 0, cannot change the sign of a determinant, so square maps of one sign can be learned in turn.
    """
    left, right = (random_rotation(draw, dimension)[:, : len(strengths)] for dimension in (inputs, outputs))
    return left * strengths @ right.T


def random_rotation(draw: np.random.Generator, dimension: int) -> np.ndarray:
    """A random orthogonal matrix of determinant one."""
    import numpy as np

    rotation, _ = np.linalg.qr(draw.normal(size=(dimension, dimension)))
    rotation[:, 0] *= np.sign(np.linalg.det(rotation))
    return rotation


def whitened_task(target_map: np.ndarray, name: str) -> Task:
    """Inputs with E[x xᵀ] = I exactly, and targets x Σ."""
    from dynascope.tasks import regression

    inputs = len(target_map)
    drawn = regression(samples=4 * inputs, input_covariance=[1.0] * inputs, target_map=target_map, exact_moments=True)
    return type(drawn)(drawn.inputs, drawn.targets, name=name, description=drawn.description)


def balanced_networks(inputs: int, outputs: int, balances: np.ndarray, *, seed: int) -> list[TwoLayer]:
    """Random networks with W₂ W₂ᵀ − W₁ᵀ W₁ = λ I, one for each λ, as wide as they have inputs or outputs."""
    import equinox as eqx
    import numpy as np

    from dynascope.networks.balanced_linear import balanced_linear

    width, networks = min(inputs, outputs), []
    for balance in balances:
        network = balanced_linear(inputs, width, outputs, balance=float(balance), seed=seed)
        mirrored = inputs == outputs and np.linalg.det(network.first @ network.second) < 0
        signs = np.where(mirrored & (np.arange(outputs) == 0), -1.0, 1.0)
        networks.append(eqx.tree_at(lambda layers: layers.second, network, network.second * signs))
    return networks


def trained(networks: list[Any], task: Any, **options: Any) -> list[Any]:
    """The networks after `flows.gradient_flow` on a task with these options."""
    import jax

    from dynascope.flows import gradient_flow

    _, stacked = gradient_flow(networks, task, return_networks=True, **options)
    return [jax.tree.map(lambda weights, i=i: weights[i], stacked) for i in range(len(networks))]


def learned_map(network: Any) -> Any:
    """W₁ W₂ of a two-layer linear network, shape (inputs, outputs)."""
    return network.first @ network.second

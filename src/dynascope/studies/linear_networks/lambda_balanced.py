"""From lazy to rich: one number, the balance of the layers, sets how far representation and kernel move."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any, ClassVar

from dynascope.studies.study import Reference, Study, curve_tolerance

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr

    from dynascope.tasks import Task

__all__ = ["LambdaBalanced"]


@dataclasses.dataclass(frozen=True)
class LambdaBalanced(Study):
    """Loss, kernel and representations of two-layer linear networks of several balances, from small to learned.

    W₂ W₂ᵀ − W₁ᵀ W₁ = λ I, for whitened inputs and a random target map. Near λ = 0 the kernel turns and grows; for large
    |λ| it stays. The representations of inputs, v_iᵀ W₁W₁ᵀ v_i, and of outputs, u_iᵀ W₂ᵀW₂ u_i, are taken along the
    singular vectors of the map; with a hidden layer narrower than its rank only the strongest modes are learned.

    Attributes:
        inputs: Number of inputs.
        width: Number of hidden neurons, at most that of inputs and outputs.
        outputs: Number of outputs.
        strongest: Largest singular value of the target map.
        weakest: Smallest one; the others are equally spaced between them.
        largest_balance: Largest λ; the smallest is its negative.
        balances: Number of equally spaced λ.
        initial_size: Size of the smaller layer at the start.
        first_rate: Learning rate of the first layer.
        second_rate: Learning rate of the second layer.
        times: Number of times at which both are recorded.
        seed: Seed of the task and of the initial weights.
    """

    inputs: int = 5
    width: int = 2
    outputs: int = 3
    strongest: float = 2.0
    weakest: float = 0.8
    largest_balance: float = 5.0
    balances: int = 5
    initial_size: float = 0.3
    first_rate: float = 1.0
    second_rate: float = 1.0
    times: int = 200
    seed: int = 0

    name: ClassVar[str] = "lambda-balanced"
    reference: ClassVar[Reference] = Reference(
        paper="C. C. J. Dominé, N. Anguita, A. M. Proca, L. Braun, D. Kunin, P. A. M. Mediano, A. M. Saxe, From Lazy "
        "to Rich: Exact Learning Dynamics in Deep Linear Networks",
        arxiv="2409.14623",
        claim="Function, representations and kernel of a two-layer linear network follow exactly from its start and "
        "the balance of its layers, which moves it from lazy to rich.",
    )
    minutes: ClassVar[float] = 0.2
    tolerance: ClassVar = curve_tolerance(
        **dict.fromkeys(
            ("loss", "kernel_distance", "kernel_change", "input_representation", "output_representation"),
            (1e-6, "the theory is exact, and the solver keeps each step within 1e-10"),
        )
    )
    tiny: ClassVar = {"inputs": 3, "outputs": 2, "balances": 2, "times": 30}

    def observe(self) -> xr.Dataset:
        """Train by gradient flow on the weights."""
        from dynascope.flows import gradient_flow

        task = self._task
        run = gradient_flow(
            self._networks,
            task,
            duration=self._times[-1],
            save=self._times,
            learning_rate={"first": self.first_rate, "second": self.second_rate},
            statistics={"input_gram": (_input_gram, ("weight",)), "output_gram": (_output_gram, ("neuron",))},
            relative_tolerance=1e-10,
        )
        inner = run["input_gram"].to_numpy().reshape(self.balances, self.times, self.inputs, self.inputs)
        outer = run["output_gram"].to_numpy().reshape(self.balances, self.times, self.outputs, self.outputs)
        run = run.drop_vars(["input_gram", "output_gram", "weight", "neuron"])
        run = run.rename(seed="balance").assign_coords(balance=self._balances)
        variables, coordinates = self._measured(inner, outer)
        return run.assign(variables).assign_coords(coordinates)

    def predict(self) -> xr.Dataset:
        """The exact solution, from the initial weights."""
        import jax
        import numpy as np

        from dynascope.record import make_record
        from dynascope.theory.balanced import gram

        target = self._task.cross_moment.T
        first, second = (np.stack([getattr(each, name) for each in self._networks]) for name in ("first", "second"))
        with jax.enable_x64(True):
            solution = gram(
                first, second, target, self._times, first_rate=self.first_rate, second_rate=self.second_rate
            )
            found = jax.device_get(solution)
        variables, coordinates = self._measured(found.first, found.second)
        variables["loss"] = (("balance", "time"), np.sum((found.product - target) ** 2, axis=(-2, -1)) / 2)
        return make_record(
            variables,
            {"time": self._times, "balance": self._balances, **coordinates},
            attributes={
                "theory": "balanced two-layer linear networks",
                "network": "linear",
                "reference": self.reference.paper,
                "scale": 1.0,
                **self._task.attributes(),
            },
        )

    def _measured(self, inner: np.ndarray, outer: np.ndarray) -> tuple[dict[str, Any], dict[str, Any]]:
        """What both sides are compared in, from W₁W₁ᵀ and W₂ᵀW₂ over balances and times."""
        import numpy as np

        left, strengths, right = np.linalg.svd(self._task.cross_moment.T, full_matrices=False)
        angle, size = _kernel_movement(self.second_rate * inner, self.first_rate * outer)
        along = ("balance", "time")
        variables = {
            "kernel_distance": (along, angle),
            "kernel_change": (along, size),
            "input_representation": ((*along, "mode"), np.einsum("im,btij,jm->btm", left, inner, left)),
            "output_representation": ((*along, "mode"), np.einsum("mi,btij,mj->btm", right, outer, right)),
        }
        return variables, {"mode": np.arange(1, len(strengths) + 1)}

    @functools.cached_property
    def _task(self) -> Task:
        import numpy as np

        from dynascope.arguments import require, require_positive
        from dynascope.studies.linear_networks.continual_learning import random_map, whitened_task

        require_positive(inputs=self.inputs, outputs=self.outputs, weakest=self.weakest)
        require(
            self.weakest <= self.strongest < np.inf,
            f"weakest is {self.weakest} and strongest {self.strongest}",
            argument="weakest",
            value=self.weakest,
            remedy="choose a positive number up to the strongest",
        )
        strengths = np.linspace(self.strongest, self.weakest, min(self.inputs, self.outputs))
        target = random_map(np.random.default_rng(self.seed), self.inputs, self.outputs, strengths)
        return whitened_task(target, "a random map")

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
    def _networks(self) -> list[Any]:
        import equinox as eqx

        from dynascope.arguments import require_positive
        from dynascope.networks.balanced_linear import balanced_linear

        require_positive(first_rate=self.first_rate, second_rate=self.second_rate)
        ratio = (self.first_rate / self.second_rate) ** 0.25
        networks = []
        for balance in self._balances:
            drawn = balanced_linear(
                self.inputs, self.width, self.outputs, balance=float(balance), scale=self.initial_size, seed=self.seed
            )
            # In the units of the rates, in which gradient flow conserves the balance.
            layers = drawn.first * ratio, drawn.second / ratio
            networks.append(eqx.tree_at(lambda each: (each.first, each.second), drawn, layers))
        return networks

    @functools.cached_property
    def _times(self) -> np.ndarray:
        """Until modes of the weakest strength would have been learned from the start in balance."""
        import numpy as np

        from dynascope.arguments import require

        require(
            self.times >= 2, f"times is {self.times}", argument="times", value=self.times, remedy="choose two or more"
        )
        rate = self.weakest * (self.first_rate * self.second_rate) ** 0.5
        return np.linspace(0.0, 4.0 / rate, self.times)


def _kernel_movement(inner: np.ndarray, outer: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Half the squared distance of unit kernels, and ‖K(t) − K(0)‖/‖K(0)‖, of K = I ⊗ A + B ⊗ I on whitened inputs."""
    import numpy as np

    inputs, outputs = inner.shape[-1], outer.shape[-1]

    def size(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        trace = np.trace(a, axis1=-2, axis2=-1) * np.trace(b, axis1=-2, axis2=-1)
        return np.sqrt(outputs * np.sum(a**2, axis=(-2, -1)) + 2 * trace + inputs * np.sum(b**2, axis=(-2, -1)))

    start, now = size(inner[:, :1], outer[:, :1]), size(inner, outer)
    units = [each / now[..., None, None] - each[:, :1] / start[..., None, None] for each in (inner, outer)]
    return size(*units) ** 2 / 2, size(inner - inner[:, :1], outer - outer[:, :1]) / start


def _input_gram(network: Any) -> Any:
    return (network.first @ network.first.T).ravel()


def _output_gram(network: Any) -> Any:
    return (network.second.T @ network.second).ravel()

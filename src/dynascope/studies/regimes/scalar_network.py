"""Weights, target, input and output of a scalar network are four knobs of one dial, from lazy to rich."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any, ClassVar

from dynascope.studies.study import Reference, Study, curve_tolerance

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr

    from dynascope.tasks import Task
    from dynascope.theory.modes.scalar import Limit, Scaling

__all__ = ["ScalarNetwork"]

_KNOBS = ("target", "output", "input", "weights")


@dataclasses.dataclass(frozen=True)
class ScalarNetwork(Study):
    """The network f(x) = (x/Z) Σ aᵢ bᵢ learns y = S x under four knobs, each turned by the same factors c.

    The knobs are the target times c, the output divided by c, the input divided by c for the same labels, and the
    weights divided by √c. Each is trained on samples at the learning rate that undoes its clock, and at which the
    distance to the target falls as exp(−t) in the end; theory then says that the four coincide at all times, with the
    same growth of the weights ln γ, and the same part of the target and of the loss.

    Attributes:
        factors: Factors c; large ones make learning rich, small ones lazy.
        neurons: Number of hidden neurons.
        target: S ≠ 0, of any sign, before it is scaled.
        weight_scale: Standard deviation of the initial weights, times the square root of the number of neurons.
        input_power: E[x²] before it is scaled.
        divisor: Z ≠ 0 before it is scaled.
        samples: Number of samples.
        times: Number of times at which both are recorded.
        seed: Seed of the initial weights and of the samples.
    """

    factors: list[float] = dataclasses.field(default_factory=lambda: [0.1, 1.0, 10.0])
    neurons: int = 8
    target: float = 1.0
    weight_scale: float = 1.0
    input_power: float = 1.0
    divisor: float = 1.0
    samples: int = 10
    times: int = 200
    seed: int = 0

    name: ClassVar[str] = "scalar-network"
    reference: ClassVar[Reference] = Reference(
        paper="Y. Nam, S. H. Lee, C. C. J. Dominé, Y. Park, C. London, W. Choi, N. Göring, S. Lee, Position: Solve "
        "Layerwise Linear Models First to Understand Neural Dynamical Phenomena; theorem in Nam, DPhil thesis (2024)",
        arxiv="2502.21009",
        claim="Small weights, a large target, a small output and a small input make a two-layer network rich in "
        "exactly the same way: the four trainings differ in nothing but their clock.",
    )
    minutes: ClassVar[float] = 0.3
    tolerance: ClassVar = curve_tolerance(
        **dict.fromkeys(
            ("loss", "relative_loss", "learned_fraction", "log_growth"),
            (1e-6, "the theory is exact, and the solver keeps each step within 1e-10"),
        )
    )
    tiny: ClassVar = {"factors": [0.5, 4.0], "neurons": 3, "samples": 4, "times": 40}

    def observe(self) -> xr.Dataset:
        """Train every network on its samples by gradient flow."""
        import numpy as np

        from dynascope.record import make_record

        runs = [[self._train(self._scalings[c][knob], self._ends[c]) for c in self.factors] for knob in _KNOBS]
        variables: dict[str, Any] = {
            name: (("knob", "scaling_parameter", "time"), np.array([[run[name] for run in row] for row in runs]))
            for name in runs[0][0]
        }
        variables["final_log_growth"] = (("knob", "scaling_parameter"), variables["log_growth"][1][..., -1])
        return make_record(variables, self._coordinates, attributes=self._about())

    def predict(self) -> xr.Dataset:
        """The exact solution of every network."""
        import jax
        import numpy as np

        from dynascope.record import make_record
        from dynascope.theory.modes.scalar import limit, trajectory

        scalings, times = self._scalings, self._times
        with jax.enable_x64(True):
            runs, ends = [], []
            for knob in _KNOBS:
                for c in self.factors:
                    setting = scalings[c][knob].setting
                    path = trajectory(setting, times, learning_rate=self._rate(scalings[c][knob], self._ends[c]))
                    fraction = 1 - path.residual / setting.target
                    runs.append((path.loss, path.loss / path.loss[0], fraction, path.log_growth))
                    ends.append(limit(setting).log_growth)
        shape = (len(_KNOBS), len(self.factors))
        values = np.moveaxis(np.asarray(jax.device_get(runs)), 1, 0).reshape(4, *shape, -1)
        names = ("loss", "relative_loss", "learned_fraction", "log_growth")
        variables: dict[str, Any] = {
            name: (("knob", "scaling_parameter", "time"), each) for name, each in zip(names, values, strict=True)
        }
        variables["final_log_growth"] = (("knob", "scaling_parameter"), np.reshape(ends, shape))
        return make_record(
            variables,
            self._coordinates,
            attributes={"theory": "scalar network", "reference": self.reference.paper, **self._about()},
        )

    def _train(self, scaling: Scaling, end: Limit) -> dict[str, np.ndarray]:
        import equinox as eqx
        import numpy as np

        from dynascope.flows import gradient_flow
        from dynascope.networks import TwoLayer

        target, a, b, power, divisor = map(np.asarray, scaling.setting)
        network = eqx.tree_at(
            lambda network: (network.first, network.second),
            TwoLayer(1, self.neurons, 1, activation="linear"),
            (b[None, :], a[:, None]),
        )
        sign = float(np.sign(divisor))
        run = gradient_flow(
            network,
            self._task(float(target), float(power), float(divisor)),
            duration=float(self._times[-1]),
            save=self._times,
            learning_rate=float(self._rate(scaling, end)),
            statistics={"overlap": (_overlap, ()), "size": (_size, ())},
            relative_tolerance=1e-10,
        )
        loss, overlap, size = (run[name].to_numpy() for name in ("loss", "overlap", "size"))
        # Σ (a ± b)²: the one that grows keeps its digits.
        grows = 1.0 if target > 0 else -1.0
        power = size + 2 * grows * sign * overlap
        return {
            "loss": loss,
            "relative_loss": loss / loss[0],
            "learned_fraction": overlap / (divisor * target),
            "log_growth": grows * np.log(power / power[0]),
        }

    def _task(self, target: float, power: float, divisor: float) -> Task:
        import numpy as np

        from dynascope.tasks import Task

        x = np.random.default_rng([self.seed, 1]).normal(size=(self.samples, 1))
        x *= np.sqrt(power / np.mean(x**2))
        # A linear network whose outputs are divided is one whose inputs are, and all divisors have one program.
        return Task(x / divisor, target * x, name="a line through the origin")

    @functools.cached_property
    def _scalings(self) -> dict[float, dict[str, Scaling]]:
        import jax
        import numpy as np

        from dynascope.arguments import require, require_array, require_positive, require_seed
        from dynascope.theory.modes.scalar import Setting, equivalent_scalings

        require_seed(self.seed)
        require_positive(neurons=self.neurons, weight_scale=self.weight_scale, samples=self.samples)
        factors = require_array("factors", self.factors, (None,))
        require(
            len(factors) > 0 and bool(np.all(factors > 0)) and len(set(self.factors)) == len(factors),
            f"factors is {self.factors}",
            argument="factors",
            value=self.factors,
            remedy="give one or more different positive numbers",
        )
        require(
            bool(np.isfinite(self.target)) and self.target != 0,
            f"target is {self.target}",
            argument="target",
            value=self.target,
            remedy="choose a finite number other than zero, so that there is something to learn",
        )
        draw = np.random.default_rng(self.seed).normal(size=(2, self.neurons))
        weights = self.weight_scale / np.sqrt(self.neurons) * draw
        setting = Setting(self.target, weights[0], weights[1], self.input_power, self.divisor)
        with jax.enable_x64(True):
            return {c: equivalent_scalings(setting, c) for c in self.factors}

    @functools.cached_property
    def _ends(self) -> dict[float, Limit]:
        """Where the networks with a scaled target end; the others end there by their own clocks."""
        import jax

        from dynascope.theory.modes.scalar import limit

        with jax.enable_x64(True):
            return {c: limit(each["target"].setting) for c, each in self._scalings.items()}

    @staticmethod
    def _rate(scaling: Scaling, end: Limit) -> float:
        return 1 / (float(scaling.clock) * float(end.rate))

    @functools.cached_property
    def _times(self) -> np.ndarray:
        """Until the richest network has long left the saddle and come to its end."""
        import numpy as np

        from dynascope.arguments import require

        require(
            self.times >= 2, f"times is {self.times}", argument="times", value=self.times, remedy="choose two or more"
        )
        return np.linspace(0.0, 8.0 + max(float(end.richness) for end in self._ends.values()), self.times)

    @property
    def _coordinates(self) -> dict[str, Any]:
        return {"knob": list(_KNOBS), "scaling_parameter": self.factors, "time": self._times}

    def _about(self) -> dict[str, Any]:
        return {
            "task": "a line through the origin",
            "description": [
                f"{self.samples} inputs of second moment {self.input_power:g}, and targets of slope {self.target:g}.",
                "Times are in units of the final rate of approach.",
            ],
            "network": "two-layer linear",
            "scale": 1.0,
        }


def _overlap(network: Any) -> Any:
    return network.first[0] @ network.second[:, 0]


def _size(network: Any) -> Any:
    return (network.first**2).sum() + (network.second**2).sum()

"""A network of four parameters learns a parity neuron by neuron, at times that its equations predict."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any, ClassVar

from dynascope.studies.study import Reference, Study, curve_tolerance

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr

    from dynascope.theory.skills.parity_relu import TiedWeights

__all__ = ["FourParameterParity"]

_MODES = 3
_SETTLED = 12.0  # time constants of the slowest relaxation after which nothing is left to learn
_FIGURE = 1 / 3  # ℬ² of the multilinear model in the figure of the source
_EXACT = (1e-6, "the equations are exact, and both integrators keep each step within 1e-10")
_TIME = (1e-5, "what remains is the interpolation between recorded times")
_END = (1e-4, "the network is trained for at least twelve times the slowest time constant of the fixed point")


@dataclasses.dataclass(frozen=True)
class FourParameterParity(Study):
    """A ReLU network w·σ(W x + b) + c with tied weights on all eight inputs of three bits, whose parity it learns.

    The rows of W are α(−1, 1, −1), β(−1, 1, −1) and γ(1, −1, 1), b = (0, β, −γ) and w = (−2α, β, γ). Trained by
    gradient flow on (α, β, γ, c), through the network, it is compared with the equations for α², β², γ² and c: all
    parameters, the loss and the strength of each neuron at all times, the times at which a neuron first has half its
    final strength, and the end at α² = β² = γ² = 2S and c = −S. The strength of the skill is their sum, and rises over
    a longer time than the logistic of the multilinear model (`multilinear_strength`), which is shown and not judged.

    Attributes:
        target_scale: S, the size of the targets ±S.
        scales: Scales of the start.
        neurons: α, β and γ at the start at scale one, positive.
        bias: c at the start at scale one.
        learning_rate: Learning rate η.
        times: Number of times at which both are recorded.
    """

    target_scale: float = 5.0
    scales: list[float] = dataclasses.field(default_factory=lambda: [0.1, 0.01, 0.001])
    neurons: list[float] = dataclasses.field(default_factory=lambda: [1.0, 1.0, 1.0])
    bias: float = 0.0
    learning_rate: float = 1.0
    times: int = 400

    name: ClassVar[str] = "four-parameter-parity"
    reference: ClassVar[Reference] = Reference(
        paper="Y. Nam, N. Fonseca, S. H. Lee, C. Mingard, A. A. Louis, An exactly solvable model for emergence and "
        "scaling laws in the multitask sparse parity problem; appendix C.4 of Nam, DPhil thesis (2024), corrected",
        arxiv="2404.17563",
        claim="In a network of four parameters each neuron learns its part of a parity at a time of its own, so that "
        "the skill saturates more slowly than one mode would.",
    )
    along: ClassVar = ("time", "scale")
    minutes: ClassVar[float] = 0.1
    tolerance: ClassVar = curve_tolerance(
        **dict.fromkeys(("loss", "parameters", "mode_strength", "strength"), _EXACT),
        half_saturation_time=_TIME,
        final_parameters=_END,
    )
    tiny: ClassVar = {"scales": [0.3, 0.1], "target_scale": 2.0, "times": 200}

    def observe(self) -> xr.Dataset:
        """Train the network itself by gradient flow, from every scale of the start."""
        import numpy as np

        from dynascope.flows import gradient_flow
        from dynascope.record import make_record
        from dynascope.tasks import Task
        from dynascope.theory.skills.parity_relu import INPUTS

        parity = self.target_scale * (-1.0) ** INPUTS.sum(axis=1, keepdims=True)
        run, end = gradient_flow(
            _network()(np.asarray(self.neurons, float), np.asarray(self.bias, float)),
            Task(INPUTS, parity, name="parity of three bits"),
            duration=self._duration,
            save=self._times,
            scale=self.scales,
            learning_rate=self.learning_rate,
            statistics=_STATISTICS,
            relative_tolerance=1e-10,
            return_networks=True,
        )
        outputs = run["neuron_outputs"].to_numpy().reshape(*run["loss"].shape, _MODES, len(INPUTS))
        strength = outputs @ parity[:, 0] / (len(INPUTS) * self.target_scale**2)
        return make_record(
            {
                "loss": (("scale", "time"), run["loss"].to_numpy()),
                "parameters": (("scale", "time", "weight"), run["parameters"].to_numpy()),
                "mode_strength": (("scale", "time", "mode"), strength),
                "strength": (("scale", "time"), strength.sum(axis=-1)),
                "half_saturation_time": (
                    ("scale", "mode"),
                    [_first_halves(self._times, each, self.target_scale) for each in run["parameters"].to_numpy()],
                ),
                "final_parameters": (("scale", "weight"), np.column_stack([end.neurons**2, end.bias])),
            },
            self._coordinates,
            attributes=self._about(),
        )

    def predict(self) -> xr.Dataset:
        """The integrated equations, and where they end."""
        import numpy as np

        from dynascope.record import make_record
        from dynascope.theory.skills import parity_relu
        from dynascope.theory.skills.multilinear import skill_strengths

        scale = self.target_scale
        paths = [
            parity_relu.integrated_path(self._times, start, target_scale=scale, learning_rate=self.learning_rate)
            for start in self._starts
        ]
        modes = np.array([parity_relu.mode_strengths(path, scale) for path in paths])
        multilinear = [
            skill_strengths(
                self._times,
                [1.0],
                target_scale=1.0,
                initial_strength=start,
                learning_rate=_FIGURE * scale * self.learning_rate,
            )[:, 0]
            for start in modes[:, 0].sum(axis=-1)
        ]
        return make_record(
            {
                "loss": (("scale", "time"), [parity_relu.loss(path, scale) for path in paths]),
                "parameters": (("scale", "time", "weight"), [np.stack(path, axis=-1) for path in paths]),
                "mode_strength": (("scale", "time", "mode"), modes),
                "strength": (("scale", "time"), modes.sum(axis=-1)),
                "multilinear_strength": (("scale", "time"), multilinear),
                "half_saturation_time": (("scale", "mode"), self._half_times),
                "final_parameters": (
                    ("scale", "weight"),
                    np.tile(np.array(parity_relu.fixed_point(scale)), (len(self.scales), 1)),
                ),
            },
            self._coordinates,
            attributes={"theory": "four-parameter parity", "reference": self.reference.paper, **self._about()},
        )

    @functools.cached_property
    def _starts(self) -> list[TiedWeights]:
        import numpy as np

        from dynascope.arguments import require, require_array, require_positive
        from dynascope.theory.skills.parity_relu import TiedWeights

        require_positive(target_scale=self.target_scale, learning_rate=self.learning_rate)
        neurons = require_array("neurons", self.neurons, (_MODES,))
        scales = require_array("scales", self.scales, (None,))
        bias = float(require_array("bias", self.bias, ()))
        for name, values, given in (("neurons", neurons, self.neurons), ("scales", scales, self.scales)):
            require(
                len(values) > 0 and bool(np.all(values > 0)),
                f"{name} is {given}",
                argument=name,
                value=given,
                remedy="give positive numbers",
            )
        require(
            float((scales.max() * neurons.max()) ** 2) < self.target_scale,
            f"scales is {self.scales}, from which a neuron starts above half its strength",
            argument="scales",
            value=self.scales,
            remedy="give smaller ones, so that (scale·neuron)² is below target_scale",
        )
        first, second, third = neurons**2
        return [TiedWeights(first * s**2, second * s**2, third * s**2, bias * s) for s in scales]

    @functools.cached_property
    def _half_times(self) -> np.ndarray:
        import numpy as np

        from dynascope.theory.skills.parity_relu import half_saturation_times

        return np.array(
            [
                half_saturation_times(start, target_scale=self.target_scale, learning_rate=self.learning_rate)
                for start in self._starts
            ]
        )

    @functools.cached_property
    def _times(self) -> np.ndarray:
        """Until twice as long as the last neuron takes for half its strength."""
        import numpy as np

        from dynascope.arguments import require

        require(
            self.times >= 200,
            f"times is {self.times}",
            argument="times",
            value=self.times,
            remedy="choose two hundred or more, so that times between two of them can be told",
        )
        return np.linspace(0.0, 2 * self._half_times.max(), self.times)

    @property
    def _duration(self) -> float:
        # The slowest rate at the fixed point is η 3/8, of the bias, at large S and η 4S/7 at small S; the sum of both
        # time constants bounds that of any S.
        return float(self._times[-1] + _SETTLED * (8 / 3 + 7 / (4 * self.target_scale)) / self.learning_rate)

    @property
    def _coordinates(self) -> dict[str, Any]:
        return {
            "scale": self.scales,
            "time": self._times,
            "mode": range(1, _MODES + 1),
            "weight": ["α²", "β²", "γ²", "c"],
        }

    def _about(self) -> dict[str, Any]:
        return {
            "task": "parity of three bits",
            "description": [f"All eight inputs, with targets ±{self.target_scale:g}."],
            "network": "ReLU, three tied neurons and a bias",
            "scale": 1.0,
        }


def _first_halves(times: np.ndarray, parameters: np.ndarray, level: float) -> list[float]:
    """When each of α², β² and γ² first passes half of 2S, on a cubic spline of its logarithm; infinite if it does not.

    Args:
        times: Shape (times,).
        parameters: Shape (times, 4).
        level: S.
    """
    import numpy as np
    from scipy.interpolate import CubicSpline

    found = [CubicSpline(times, np.log(each / level)).roots(extrapolate=False) for each in parameters[:, :_MODES].T]
    return [float(roots[0]) if len(roots) else np.inf for roots in found]


@functools.cache
def _network() -> Any:
    """The network as a module of which there is one, so that a compiled program is found."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    class TiedParity(eqx.Module):
        """f(x) = w·σ(W x + b) + c with W, b and w made of α, β and γ."""

        neurons: Any
        bias: Any

        def outputs(self, x: Any) -> Any:
            """What each neuron adds to the output, shape (n, 3)."""
            first, second, third = self.neurons
            rows = jnp.outer(self.neurons, jnp.array([-1, 1, -1])) * jnp.array([[1], [1], [-1]])
            hidden = jax.nn.relu(x @ rows.T + jnp.stack([0 * first, second, -third]))
            return hidden * jnp.stack([-2 * first, second, third])

        def __call__(self, x: Any) -> Any:
            return self.outputs(x).sum(axis=-1, keepdims=True) + self.bias

    return TiedParity


def _parameters(network: Any) -> Any:
    import jax.numpy as jnp

    return jnp.append(network.neurons**2, network.bias)


def _neuron_outputs(network: Any) -> Any:
    from dynascope.theory.skills.parity_relu import INPUTS

    return network.outputs(INPUTS).T.ravel()


_STATISTICS = {"parameters": (_parameters, ("weight",)), "neuron_outputs": (_neuron_outputs, ("sample",))}

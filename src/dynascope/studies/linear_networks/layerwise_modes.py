"""Modes of a diagonal network rise as sigmoids, one after the other."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, ClassVar

from dynascope.studies.study import Reference, Study, curve_tolerance

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr

__all__ = ["LayerwiseModes"]


@dataclasses.dataclass(frozen=True)
class LayerwiseModes(Study):
    """Strength of every mode, and the loss, over time, for independent inputs with power-law variances.

    The model is f(x) = Σ aᵢ bᵢ xᵢ with E[xᵢ xⱼ] = λᵢ δᵢⱼ, λᵢ = i^−(exponent + 1), and targets y = target · Σ xᵢ.

    Attributes:
        modes: Number of modes.
        exponent: α of the spectrum λᵢ = i^−(α + 1).
        target: Strength S that every mode has in the target; may be negative.
        initial_strength: |a·b| at the start of every mode, below the size of the target; its sign is the target's.
        imbalance: log(b/a) at the start; zero starts both layers equal.
        samples: Number of samples; the inputs are transformed so that their moments are exact.
        times: Number of times at which both are recorded.
        seed: Seed of the inputs.
    """

    modes: int = 5
    exponent: float = 0.6
    target: float = 1.0
    initial_strength: float = 1e-4
    imbalance: float = 0.0
    samples: int = 50
    times: int = 400
    seed: int = 0

    name: ClassVar[str] = "layerwise-modes"
    reference: ClassVar[Reference] = Reference(
        paper="A. M. Saxe, J. L. McClelland, S. Ganguli, Exact solutions to the nonlinear dynamics of learning in deep "
        "linear neural networks",
        arxiv="1312.6120",
        claim="Each mode of a two-layer diagonal network follows its own closed-form sigmoid, so that modes are "
        "learned in stages, strongest first.",
    )
    minutes: ClassVar[float] = 0.2
    tolerance: ClassVar = curve_tolerance(
        **dict.fromkeys(
            ("loss", "mode_strength"), (1e-6, "the theory is exact, and the solver keeps each step within 1e-9")
        )
    )
    tiny: ClassVar = {"modes": 2, "samples": 6, "times": 40, "initial_strength": 1e-2}

    def observe(self) -> xr.Dataset:
        """Train by gradient flow on the weights."""
        import equinox as eqx

        from dynascope.networks import DiagonalLinear
        from dynascope.observation import observe

        network = eqx.tree_at(lambda layers: (layers.u, layers.v), DiagonalLinear(self.modes), self._start())
        return observe(
            self._task(),
            network,
            duration=self._times()[-1],
            save=self._times(),
            probes=[_mode_strength],
            relative_tolerance=1e-9,
            absolute_tolerance=1e-12,
        )

    def predict(self) -> xr.Dataset:
        """The closed form of each mode, and the loss that they add up to."""
        import jax
        import numpy as np

        from dynascope.record import make_record
        from dynascope.theory.modes import mode_strength

        task, (a, b), times = self._task(), self._start(), self._times()
        powers = np.diag(task.input_moment)
        with jax.enable_x64(True):
            mode = jax.device_get(mode_strength(times[:, None], self.target, powers, a, b))
        return make_record(
            {
                "loss": (("time",), np.sum(powers * mode.residual**2, axis=1) / 2),
                "mode_strength": (("time", "mode"), mode.strength),
            },
            {"time": times, "mode": np.arange(1, self.modes + 1)},
            attributes={
                "theory": "sigmoidal modes",
                "network": "diagonal",
                "reference": self.reference.paper,
                "scale": 1.0,
                **task.attributes(),
            },
        )

    def _task(self):
        import numpy as np

        from dynascope.tasks import regression

        return regression(
            samples=self.samples,
            input_covariance=np.diag(np.arange(1.0, self.modes + 1) ** -(self.exponent + 1)),
            target_map=np.full((self.modes, 1), self.target),
            seed=self.seed,
            exact_moments=True,
        )

    def _start(self) -> tuple[np.ndarray, np.ndarray]:
        import numpy as np

        from dynascope.arguments import require

        require(
            0 < self.initial_strength < abs(self.target),
            f"initial_strength is {self.initial_strength} for a target of {self.target}",
            argument="initial_strength",
            value=self.initial_strength,
            remedy="choose a positive number below the size of the target",
        )
        size, ratio = np.full(self.modes, np.sqrt(self.initial_strength)), np.exp(self.imbalance / 2)
        # From the other sign a mode would have to pass zero, where equal layers stay.
        return size / ratio, np.sign(self.target) * size * ratio

    def _times(self) -> np.ndarray:
        """Until the weakest mode has long been learned."""
        import numpy as np

        from dynascope.arguments import require

        require(
            self.times >= 2, f"times is {self.times}", argument="times", value=self.times, remedy="choose two or more"
        )
        rate = 2 * abs(self.target) * self.modes ** -(self.exponent + 1)
        return np.linspace(0.0, (np.log(abs(self.target) / self.initial_strength) + 8) / rate, self.times)


def _mode_strength(network):
    return {"mode_strength": (("mode",), network.coefficients)}

"""Two linear models of the same functions and other intensities fit the same few points in other ways."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any, ClassVar

from dynascope.studies.study import Reference, Study, curve_tolerance

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr

__all__ = ["LinearInductiveBias"]

_RUNS = ("low first", "high first")


@dataclasses.dataclass(frozen=True)
class LinearInductiveBias(Study):
    """Models Σ_k w_k √ρ_k √2 sin(2πkx) with falling and with rising intensities, on a few points and on the population.

    The intensities are k^(−2α) in the one and k^(2α) in the other, over the largest of each, so that both span the same
    functions and differ in their preference alone. On the population both learn every mode, the most intense first. On
    fewer points than modes both fit exactly: the one by low frequencies, the other by high ones. Compared are the
    exact flows of all coefficients. The mean learnability of each mode over random points, and the one that theory
    gives for features as if Gaussian, are recorded and not judged.

    Attributes:
        samples: Number n of points, fewer than modes.
        modes: Number p of modes.
        exponent: α > 0, at most 6.
        draws: Number of draws of random points for the mean learnability.
        times: Number of times at which both are recorded.
        positions: Number of places x, labels of `sample`, at which the fits are recorded.
        seed: Seed of the points and of their labels, which are Gaussian.
    """

    samples: int = 4
    modes: int = 10
    exponent: float = 4.0
    draws: int = 2000
    times: int = 120
    positions: int = 400
    seed: int = 0

    name: ClassVar[str] = "linear-inductive-bias"
    reference: ClassVar[Reference] = Reference(
        paper="J. B. Simon, M. Dickens, D. Karkada, M. R. DeWeese, The eigenlearning framework: a conservation law "
        "perspective on kernel regression and wide neural networks; set-up in Nam, DPhil thesis (2024), figure 1.2",
        arxiv="2110.03922",
        claim="Of all functions that fit the samples a linear model learns one in its most intense modes, which are "
        "also the modes that it learns first.",
    )
    along: ClassVar = ("time", "sample")
    minutes: ClassVar[float] = 0.2
    tolerance: ClassVar = curve_tolerance(
        **dict.fromkeys(
            ("loss", "coefficients", "population_coefficients", "fitted"),
            (1e-5, "the theory is exact, and the solver keeps each step within 1e-9"),
        )
    )
    tiny: ClassVar = {"modes": 6, "samples": 3, "exponent": 2.0, "draws": 100, "times": 20, "positions": 40}

    def observe(self) -> xr.Dataset:
        """Train both models on the points and on the population, and solve them for many random points."""
        import equinox as eqx
        import numpy as np

        from dynascope.flows import gradient_flow
        from dynascope.networks import MLP
        from dynascope.record import make_record
        from dynascope.tasks import Task

        model = MLP((self.modes, 1), activation="linear", bias=False)
        model = eqx.tree_at(lambda model: model.weights[0], model, np.zeros((self.modes, 1)))
        x, y = self._data
        # Repeated points change no mean; both tasks then have the same size, and one program trains them.
        copies = 2 * self.modes // self.samples + 1
        grid = np.arange(copies * self.samples) / (copies * self.samples)
        found: dict[str, list[np.ndarray]] = {"loss": [], "points": [], "grid": []}
        for intensity in self._intensity:
            root = np.sqrt(intensity)
            for name, places, labels in (
                ("points", np.tile(x, copies), np.tile(y, copies)),
                ("grid", grid, np.sum(_sines(grid, self.modes), axis=1)),
            ):
                run = gradient_flow(
                    model,
                    Task(root * _sines(places, self.modes), labels[:, None], name="points"),
                    duration=self._times[-1],
                    save=self._times,
                    statistics={"weights": (_weights, ("feature",))},
                    solver="stiff",
                    relative_tolerance=1e-9,
                    absolute_tolerance=1e-10,
                )
                found[name].append(root * run["weights"].transpose("time", "feature").to_numpy())
                if name == "points":
                    found["loss"].append(run["loss"].to_numpy())
        return make_record(
            {
                **self._curves(found["loss"], found["points"], found["grid"]),
                "learnability": (("run", "mode"), self._mean_learnability()),
            },
            self._coordinates,
            attributes=self._about(),
        )

    def predict(self) -> xr.Dataset:
        """The modes of the training kernel and of the population, and the learnability."""
        import jax
        import numpy as np

        from dynascope.record import make_record
        from dynascope.theory.features.ridge import learnability
        from dynascope.theory.features.spectrum import mode_flow

        flows = self._flows(self._times)
        with jax.enable_x64(True):
            population = [
                np.asarray(mode_flow(self._times, intensity, np.ones(self.modes)).coefficients)
                for intensity in self._intensity
            ]
            learned = np.asarray(learnability(self._intensity, self.samples))
        points = [np.sqrt(intensity) * flow.weights for intensity, flow in zip(self._intensity, flows, strict=True)]
        x, y = self._data
        return make_record(
            {
                **self._curves([flow.loss for flow in flows], points, population),
                "learnability": (("run", "mode"), learned),
                "intensity": (("run", "mode"), self._intensity),
            },
            self._coordinates,
            attributes={
                "theory": "modes of the training kernel and of the population",
                "reference": self.reference.paper,
                "points": x.tolist(),
                "labels": y.tolist(),
                **self._about(),
            },
        )

    def _curves(self, loss: list[np.ndarray], points: list[np.ndarray], population: list[np.ndarray]) -> dict[str, Any]:
        import numpy as np

        coefficients = np.array(points)
        return {
            "loss": (("run", "time"), np.array(loss)),
            "coefficients": (("run", "time", "mode"), coefficients),
            "population_coefficients": (("run", "time", "mode"), np.array(population)),
            "fitted": (("run", "sample"), coefficients[:, -1] @ _sines(self._positions, self.modes).T),
            "utilization": (
                ("run", "mode"),
                coefficients[:, -1] ** 2 / np.sum(coefficients[:, -1] ** 2, axis=-1, keepdims=True),
            ),
        }

    def _mean_learnability(self) -> np.ndarray:
        """Mean over random points of the share ρ_k e_k(X)ᵀ K⁻¹ e_k(X) of e_k that the exact fit of e_k learns."""
        import numpy as np

        draw = np.random.default_rng([self.seed, 1])
        basis = _sines(draw.uniform(size=self.draws * self.samples), self.modes).reshape(self.draws, self.samples, -1)
        shares = []
        for intensity in self._intensity:
            # An orthonormal basis of the rows of each feature matrix: well-conditioned where the kernel is not.
            rows, _ = np.linalg.qr((basis * np.sqrt(intensity)).mT)
            shares.append(np.mean(np.sum(rows**2, axis=-1), axis=0))
        return np.array(shares)

    def _flows(self, times: np.ndarray) -> list[Any]:
        import numpy as np

        from dynascope.theory.features.spectrum import training_flow

        x, y = self._data
        return [training_flow(times, np.sqrt(each) * _sines(x, self.modes), y) for each in self._intensity]

    @functools.cached_property
    def _intensity(self) -> np.ndarray:
        """ρ of both models over the largest of each, (2, p)."""
        import numpy as np

        from dynascope.arguments import require

        require(
            0 < self.exponent <= 6,
            f"exponent is {self.exponent}",
            argument="exponent",
            value=self.exponent,
            remedy="choose a positive number up to six",
        )
        modes = np.arange(1, self.modes + 1)
        return np.array([modes ** (-2.0 * self.exponent), (modes / self.modes) ** (2.0 * self.exponent)])

    @functools.cached_property
    def _data(self) -> tuple[np.ndarray, np.ndarray]:
        """Points that are well apart, also from each other's mirror images, at which all sines are opposite."""
        import numpy as np

        from dynascope.arguments import require, require_positive, require_seed

        require_seed(self.seed)
        require_positive(samples=self.samples, modes=self.modes, draws=self.draws, positions=self.positions)
        require(
            2 <= self.samples < self.modes,
            f"samples is {self.samples} and modes {self.modes}",
            argument="samples",
            value=self.samples,
            remedy="choose two or more, and fewer than modes",
        )
        draw = np.random.default_rng(self.seed)
        half = (np.arange(self.samples) + draw.uniform(0.2, 0.8, size=self.samples)) / (2 * self.samples)
        x = np.where(draw.uniform(size=self.samples) < 0.5, half, 1 - half)
        return x, draw.normal(size=self.samples)

    @functools.cached_property
    def _times(self) -> np.ndarray:
        """Until the slowest of all modes has been learned."""
        import numpy as np

        from dynascope.arguments import require

        require(
            self.times >= 2, f"times is {self.times}", argument="times", value=self.times, remedy="choose two or more"
        )
        slowest = min(float(flow.intensity[-1]) for flow in self._flows(np.zeros(1)))
        return np.append(0.0, np.geomspace(0.1, 20 / min(slowest, float(self._intensity.min())), self.times - 1))

    @functools.cached_property
    def _positions(self) -> np.ndarray:
        import numpy as np

        return (np.arange(self.positions) + 0.5) / self.positions

    @property
    def _coordinates(self) -> dict[str, Any]:
        return {
            "run": list(_RUNS),
            "time": self._times,
            "mode": list(range(1, self.modes + 1)),
            "sample": self._positions,
        }

    def _about(self) -> dict[str, Any]:
        return {
            "task": "a few points on a line",
            "description": [
                f"{self.samples} points with Gaussian labels, and {self.modes} sine modes of intensities k^(-2a) and "
                f"k^(2a) with a = {self.exponent:g}, over the largest of each.",
                f"Learnabilities are means over {self.draws} draws of uniform points.",
            ],
            "network": "linear models on sine features",
            "scale": 1.0,
        }


def _sines(x: np.ndarray, modes: int) -> np.ndarray:
    """√2 sin(2πkx), orthonormal on the unit interval, (n, p)."""
    import numpy as np

    return np.sqrt(2) * np.sin(2 * np.pi * np.outer(x, np.arange(1, modes + 1)))


def _weights(model: Any) -> Any:
    return model.weights[0][:, 0]

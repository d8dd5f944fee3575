"""Networks with several outputs: the imbalance of the layers alone tells how their function moves."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any, ClassVar

from dynascope.studies.study import Reference, Study, curve_tolerance

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr

    from dynascope.tasks import Task

__all__ = ["WideLinear"]

_EXACT = (1e-6, "the theory is exact, and the solvers keep each step within 1e-10")
_FIRST_ORDER = (0.03, "the drift is predicted to first order in the step, which changes the map by below a hundredth")
_LONGEST_STEP = 0.004  # step of discrete descent, in units of the fastest time constant
_SPAN = 5.0  # duration, in units of the slowest time constant


@dataclasses.dataclass(frozen=True)
class WideLinear(Study):
    """Function and tangent kernel of isotropic two-layer linear networks over time, from one initial function.

    One network is as wide as it has outputs, with a large second layer (δ > 0), the other as wide as it has inputs,
    with a large first layer (δ < 0). Both should follow one equation of the function, in which only δ² appears.
    Discrete descent in two step sizes shows by how much steps break the conservation of Δ: in proportion to the step.

    Attributes:
        inputs: Number of inputs.
        outputs: Number of outputs.
        imbalance: δ > 0 of η₁ A Aᵀ − η₂ Wᵀ W = δ I; shown beside −δ.
        initial_size: Standard deviation of the entries of the initial map, common to both.
        first_rate: Learning rate η₁ of the first layer W.
        second_rate: Learning rate η₂ of the second layer A.
        whitened: Whether the inputs are white; otherwise their variances fall from 1 to 0.3.
        samples: Number of samples, at least that of inputs.
        times: Number of times at which both are recorded.
        seed: Seed of the task and of the initial map.
    """

    inputs: int = 3
    outputs: int = 2
    imbalance: float = 0.5
    initial_size: float = 0.1
    first_rate: float = 1.0
    second_rate: float = 1.0
    whitened: bool = False
    samples: int = 20
    times: int = 200
    seed: int = 0

    name: ClassVar[str] = "wide-linear"
    reference: ClassVar[Reference] = Reference(
        paper="D. Kunin, A. Raventós, C. Dominé, F. Chen, D. Klindt, A. Saxe, S. Ganguli, "
        "Get rich quick: exact solutions reveal how unbalanced initializations promote rapid feature learning",
        arxiv="2406.06158",
        claim="The function of an isotropic two-layer linear network moves by an equation of its own that depends on "
        "the size of the imbalance of its layers and not on its sign.",
    )
    along: ClassVar = ("time", "learning_rate")
    minutes: ClassVar[float] = 0.3
    tolerance: ClassVar = curve_tolerance(
        **dict.fromkeys(("loss", "coefficients", "kernel_trace", "kernel_change"), _EXACT),
        step_drift=_FIRST_ORDER,
    )
    tiny: ClassVar = {"samples": 4, "times": 30}

    def observe(self) -> xr.Dataset:
        """Train both by gradient flow, and by discrete descent in two step sizes."""
        import jax
        import numpy as np
        import xarray as xr

        from dynascope.flows import gradient_flow
        from dynascope.theory.wide import conserved_matrix, preconditioner_matrix

        rates = {"first_rate": self.first_rate, "second_rate": self.second_rate}
        runs = []
        for imbalance, network in zip(self._imbalances, self._networks, strict=True):
            run = gradient_flow(
                network,
                self._task,
                duration=self._times[-1],
                save=self._times,
                learning_rate={"first": self.first_rate, "second": self.second_rate},
                statistics={"first": (_first, ("weight",)), "second": (_second, ("neuron",))},
                relative_tolerance=1e-10,
            )
            first = run["first"].to_numpy().reshape(self.times, self.inputs, -1)
            second = run["second"].to_numpy().reshape(self.times, -1, self.outputs)
            with jax.enable_x64(True):
                kernel = np.asarray(preconditioner_matrix(first, second, **rates))
                charge = np.asarray(conserved_matrix(first, second, **rates))
            broken = charge - imbalance * np.eye(charge.shape[-1])
            runs.append(
                run.drop_vars(["first", "second", "weight", "neuron"]).assign(
                    coefficients=(("time", "feature", "target"), first @ second),
                    conserved_drift=("time", np.linalg.norm(broken, axis=(-2, -1))),
                    step_drift=("learning_rate", self._step_drift(network)),
                    **self._kernel(kernel, ("time",)),
                )
            )
        joined = xr.concat(runs, "imbalance", combine_attrs="drop_conflicts", join="exact")
        return joined.assign_coords(imbalance=self._imbalances, learning_rate=self._steps, **self._names)

    def predict(self) -> xr.Dataset:
        """The equation of the function alone, and the first-order drift that follows from its path."""
        import jax
        import numpy as np
        from scipy.integrate import simpson

        from dynascope.record import make_record
        from dynascope.theory.wide import isotropic_flow, isotropic_preconditioner

        task, widths, rate = self._task, (self.outputs, self.inputs), (self.first_rate * self.second_rate) ** 0.5
        end = self._times[-1]
        between = -(-2000 // (self.times - 1))  # the drift is an integral over finer times than those of the record
        fine = np.linspace(0.0, end, (self.times - 1) * between + 1)
        found: dict[str, list[Any]] = {"loss": [], "coefficients": [], "kernel_trace": [], "kernel_change": []}
        drifts = []
        with jax.enable_x64(True):
            for imbalance, width in zip(self._imbalances, widths, strict=True):
                start = self._start, imbalance, width
                path = jax.device_get(isotropic_flow(fine, task.inputs, task.targets, *start, rate=rate))
                loss, coefficients = path.loss[::between], path.coefficients[::between]
                kernel = isotropic_preconditioner(coefficients, imbalance, width, rate=rate)
                measured = {name: value for name, (_, value) in self._kernel(np.asarray(kernel), ("time",)).items()}
                for name, value in {"loss": loss, "coefficients": coefficients, **measured}.items():
                    found[name].append(value)
                gradient = task.input_moment @ path.coefficients - task.cross_moment.T
                speed = rate**2 * _drift_speed(path.coefficients, gradient, imbalance, rate)
                drifts.append(self._steps * simpson(speed, x=fine))
        members = ("imbalance", "time", "feature", "target")
        curves = {name: (members[: np.ndim(value)], np.stack(value)) for name, value in found.items()}
        return make_record(
            {**curves, "step_drift": (("imbalance", "learning_rate"), np.stack(drifts))},
            {
                "imbalance": self._imbalances,
                "time": self._times,
                "learning_rate": self._steps,
                **self._names,
            },
            attributes={
                "theory": "isotropic two-layer linear networks in function space",
                "network": "linear",
                "reference": self.reference.paper,
                "scale": 1.0,
                **task.attributes(),
            },
        )

    def _step_drift(self, network: Any) -> np.ndarray:
        """The change of tr Δ over discrete descent, for each step size."""
        import numpy as np

        from dynascope.flows import descend

        drifts = []
        for step in self._steps:
            steps = round(self._times[-1] / step)
            rates = {"first": step * self.first_rate, "second": step * self.second_rate}
            _, end = descend(
                network, self._task, steps=steps, learning_rate=rates, record_steps=[0, steps], return_networks=True
            )
            charges = [
                self.first_rate * np.sum(np.asarray(each.second) ** 2)
                - self.second_rate * np.sum(np.asarray(each.first) ** 2)
                for each in (network, end)
            ]
            drifts.append(charges[1] - charges[0])
        return np.array(drifts)

    def _kernel(self, kernel: np.ndarray, dimensions: tuple[str, ...]) -> dict[str, Any]:
        """The trace of the matrix M over time and how far it has moved, ‖M(t) − M(0)‖/‖M(0)‖."""
        import numpy as np

        change = np.linalg.norm(kernel - kernel[:1], axis=(-2, -1)) / np.linalg.norm(kernel[0])
        trace = np.trace(kernel, axis1=-2, axis2=-1)
        return {"kernel_trace": (dimensions, trace), "kernel_change": (dimensions, change)}

    @property
    def _names(self) -> dict[str, list[str]]:
        return {"feature": list(self._task.feature_names), "target": list(self._task.target_names)}

    @functools.cached_property
    def _task(self) -> Task:
        import numpy as np

        from dynascope.arguments import require_positive, require_seed
        from dynascope.tasks import regression

        require_positive(inputs=self.inputs, outputs=self.outputs)
        require_seed(self.seed)
        target = np.random.default_rng(self.seed).normal(size=(self.inputs, self.outputs))
        return regression(
            samples=self.samples,
            input_covariance=np.geomspace(1.0, 1.0 if self.whitened else 0.3, self.inputs),
            target_map=target / np.linalg.norm(target, 2),
            seed=self.seed,
            exact_moments=True,
        )

    @functools.cached_property
    def _imbalances(self) -> np.ndarray:
        import numpy as np

        from dynascope.arguments import require_positive

        require_positive(imbalance=self.imbalance, first_rate=self.first_rate, second_rate=self.second_rate)
        return np.array([self.imbalance, -self.imbalance])

    @functools.cached_property
    def _start(self) -> np.ndarray:
        """The initial map of both, (d, c)."""
        import numpy as np

        from dynascope.arguments import require_positive

        require_positive(initial_size=self.initial_size)
        self._task  # noqa: B018  # for its checks
        return self.initial_size * np.random.default_rng([self.seed, 1]).normal(size=(self.inputs, self.outputs))

    @functools.cached_property
    def _networks(self) -> list[Any]:
        """Layers of that map with η₁ A Aᵀ − η₂ Wᵀ W = ±δ I."""
        import equinox as eqx
        import numpy as np

        from dynascope.networks import TwoLayer

        left, sizes, right = np.linalg.svd(self._start)
        ratio, rate = (self.first_rate / self.second_rate) ** 0.25, (self.first_rate * self.second_rate) ** 0.5
        half = self.imbalance / (2 * rate)
        networks = []
        for width, positive in ((self.outputs, True), (self.inputs, False)):
            large = np.sqrt(np.hypot(np.pad(sizes, (0, width - len(sizes))), half) + half)
            basis = right.T if positive else left
            square = (basis * large) @ basis.T
            other = self._start @ np.linalg.inv(square) if positive else np.linalg.inv(square) @ self._start
            first, second = (other, square) if positive else (square, other)
            network = TwoLayer(self.inputs, width, self.outputs, activation="linear")
            networks.append(
                eqx.tree_at(lambda each: (each.first, each.second), network, (first * ratio, second / ratio))
            )
        return networks

    @functools.cached_property
    def _times(self) -> np.ndarray:
        """Until the direction of least variance has been learned at the imbalance that is there from the start."""
        import numpy as np

        from dynascope.arguments import require

        require(
            self.times >= 2, f"times is {self.times}", argument="times", value=self.times, remedy="choose two or more"
        )
        slowest = (1.0 if self.whitened else 0.3) * self._fastest
        return np.linspace(0.0, _SPAN / slowest, self.times)

    @property
    def _fastest(self) -> float:
        """The rate of the strongest mode at its target, of size one."""
        product = self.first_rate * self.second_rate
        return float((4 * product + self._imbalances[0] ** 2) ** 0.5)

    @functools.cached_property
    def _steps(self) -> np.ndarray:
        """Two step sizes that both divide the duration."""
        import numpy as np

        count = np.ceil(self._times[-1] * self._fastest / _LONGEST_STEP)
        return self._times[-1] / np.array([2 * count, count])


def _drift_speed(beta: np.ndarray, gradient: np.ndarray, imbalance: float, rate: float) -> np.ndarray:
    """tr(Gᵀ η₂WWᵀ G) − tr(G η₁AᵀA Gᵀ) over time: what a step h adds to tr Δ, over κ²h².

    The layers are those of the isotropic family, √(κ²ββᵀ + δ²/4) − δ/2 and √(κ²βᵀβ + δ²/4) + δ/2.
    """
    import numpy as np

    left, sizes, right = np.linalg.svd(beta, full_matrices=False)
    half = abs(imbalance) / 2
    excess = np.hypot(rate * sizes, half) - half
    inner = np.sum(excess[..., None] * (np.swapaxes(left, -1, -2) @ gradient) ** 2, axis=(-2, -1))
    outer = np.sum(excess[..., None, :] * (gradient @ np.swapaxes(right, -1, -2)) ** 2, axis=(-2, -1))
    return inner - outer - imbalance * np.sum(gradient**2, axis=(-2, -1))


def _first(network: Any) -> Any:
    return network.first.ravel()


def _second(network: Any) -> Any:
    return network.second.ravel()

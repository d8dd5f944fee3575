"""A single linear neuron is lazy, rich or delayed rich by the imbalance of its two layers."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dynascope.studies.study import Reference, Study, curve_tolerance

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr

__all__ = ["SingleNeuron"]

_LEARNED = 1e-13  # loss over the initial loss at which training ends: the map is then within 1e-6 of its limit
_EXACT = (1e-6, "the theory is exact, and the solvers keep each step within 1e-9")


@dataclasses.dataclass(frozen=True)
class SingleNeuron(Study):
    """Weights, function and tangent kernel of f(x) = a wᵀx over time, from one initial function, for three imbalances.

    A neuron with the larger output weight is upstream (δ > 0), with the larger input weights downstream (δ < 0).

    Attributes:
        imbalance: δ = weight_rate · a² − output_rate · ‖w‖², conserved in training; shown beside 0 and −δ.
        initial_strength: ‖β‖ of the initial function β = a w; that of the target is 1.
        alignment: Cosine of the angle between the initial function and the target, above −1.
        output_rate: Learning rate η_a of the output weight.
        weight_rate: Learning rate η_w of the input weights.
        inputs: "whitened", where the weights are known in closed form, or "low-rank", where one direction is never
            seen and the variances of the others fall from 1 to ½, and the function alone follows an equation.
        dimension: Number of inputs, at least two.
        samples: Number of samples, at least the dimension; the inputs are transformed so that their moments are exact.
        times: Number of times at which both are recorded.
        seed: Seed of the inputs and of the directions of the target and the start.
    """

    imbalance: float = -4.0
    initial_strength: float = 0.1
    alignment: float = 0.2
    output_rate: float = 1.0
    weight_rate: float = 1.0
    inputs: Literal["whitened", "low-rank"] = "whitened"
    dimension: int = 2
    samples: int = 20
    times: int = 300
    seed: int = 0

    name: ClassVar[str] = "single-neuron"
    reference: ClassVar[Reference] = Reference(
        paper="D. Kunin, A. Raventós, C. Dominé, F. Chen, D. Klindt, A. Saxe, S. Ganguli, "
        "Get rich quick: exact solutions reveal how unbalanced initializations promote rapid feature learning",
        arxiv="2406.06158",
        claim="The imbalance of its two layers alone makes a linear neuron learn lazily, richly or richly after a "
        "delay, along an exact path, to a map that is known without training.",
    )
    along: ClassVar = ("time", "feature")
    planes: ClassVar = (
        ("output_weight", "weight_along_target"),
        ("coefficient_along_target", "coefficient_across_target"),
    )
    minutes: ClassVar[float] = 0.3
    tolerance: ClassVar = curve_tolerance(
        **dict.fromkeys(
            (
                *("loss", "output_weight", "weights", "weight_along_target", "coefficients"),
                *("coefficient_along_target", "coefficient_across_target", "kernel_distance", "kernel_change"),
            ),
            _EXACT,
        ),
        interpolator=(1e-5, "training stops when the map is within about 1e-6 of its limit"),
    )
    tiny: ClassVar = {"imbalance": 1.0, "samples": 4, "times": 40}

    def observe(self) -> xr.Dataset:
        """Train all three by gradient flow on the weights, and take their kernels on the samples."""
        import numpy as np

        from dynascope.observation import observe

        record = observe(
            self._task,
            self._networks(),
            duration=self._times[-1],
            save=self._times,
            learning_rate={"first": self.weight_rate, "second": self.output_rate},
            probes=[_weights],
            relative_tolerance=1e-9,
            absolute_tolerance=1e-12,
        )
        record = record.rename(seed="imbalance").assign_coords(imbalance=self._imbalances)
        a, w = record["output_weight"].to_numpy()[..., None], record["weights"].to_numpy()
        layers = self.weight_rate * a[..., None] ** 2 * np.eye(self.dimension)
        layers += self.output_rate * w[..., :, None] * w[..., None, :]
        distance, change = self._kernel_motion(layers)
        members = ("imbalance", "time")
        curves = {"kernel_distance": distance, "kernel_change": change, **self._coordinates(a[..., 0], a * w)}
        return record.assign(
            {
                "coefficients": ((*members, "feature"), a * w),
                "interpolator": (("imbalance", "feature"), a[:, -1] * w[:, -1]),
                **{name: (members, values) for name, values in curves.items()},
            }
        )

    def predict(self) -> xr.Dataset:
        """The closed form for whitened inputs, else the flow of the function; and the limit without training."""
        from dynascope.record import make_record

        path, dimensions = self._path(self._times), ("imbalance", "time", "feature")
        regimes = self._regimes(path)
        curves = {name: (dimensions[: values.ndim], values) for name, values in path.items()}
        return make_record(
            {**curves, "interpolator": (("imbalance", "feature"), self._end()), "regime": (("imbalance",), regimes)},
            {"imbalance": self._imbalances, "time": self._times, "feature": list(self._task.feature_names)},
            attributes={
                "theory": "exact single linear neuron",
                "network": "single linear neuron",
                "reference": self.reference.paper,
                "regime": str(regimes[0]),
                "scale": 1.0,
                **self._task.attributes(),
            },
        )

    def _path(self, times: np.ndarray) -> dict[str, np.ndarray]:
        """What theory says of the neurons at some times, by the name that it has in the record."""
        import jax
        import numpy as np

        from dynascope.theory.neuron.function_space import function_space_flow, preconditioner
        from dynascope.theory.neuron.whitened import trajectory

        (a, w), imbalances = self._start(), self._imbalances[:, None]
        with jax.enable_x64(True):
            if self.inputs == "whitened":
                run = trajectory(a, w, self._maps[1], times, **self._rates)
                path = {"output_weight": run.output_weight, "weights": run.weights, "loss": run.excess_loss}
                signs = None
            else:
                data = self._task.inputs, self._task.targets
                run = function_space_flow(times, *data, a[:, None] * w, imbalances[:, 0], **self._rates)
                path, signs = {"loss": run.loss}, np.where(run.reversed, -1, 1)
            layers = np.asarray(preconditioner(run.coefficients, imbalances, **self._rates))
        if signs is not None:
            # The trace of M is d η_w a² + η_a ‖w‖², which the imbalance takes apart.
            power = (np.trace(layers, axis1=-2, axis2=-1) + imbalances) / (self.dimension + 1)
            path["output_weight"] = signs * np.sqrt(power / self.weight_rate)
        distance, change = self._kernel_motion(layers)
        path |= {"coefficients": run.coefficients, "kernel_distance": distance, "kernel_change": change}
        path |= self._coordinates(np.asarray(path["output_weight"]), np.asarray(run.coefficients))
        return {name: np.asarray(values) for name, values in path.items()}

    def _coordinates(self, a: np.ndarray, coefficients: np.ndarray) -> dict[str, np.ndarray]:
        """Where the neurons are in the plane of their start and their target."""
        import numpy as np

        start, target = self._maps
        along = target / np.linalg.norm(target)
        across = start - along * (start @ along)
        length = np.linalg.norm(across)
        # A start along the target has no other direction than those that rounding makes.
        across = across / length if length > 1e-9 * np.linalg.norm(start) else 0 * across
        return {
            "weight_along_target": coefficients @ along / a,
            "coefficient_along_target": coefficients @ along,
            "coefficient_across_target": coefficients @ across,
        }

    def _end(self) -> np.ndarray:
        import jax
        import numpy as np

        from dynascope.theory.neuron.interpolation import interpolator

        with jax.enable_x64(True):
            end = interpolator(self._task.inputs, self._task.targets, *self._start(), **self._rates)
        return np.asarray(end.coefficients)

    def _regimes(self, path: dict[str, np.ndarray]) -> np.ndarray:
        """Lazy if the kernel ends within a tenth of where it was, delayed rich if it waits to turn, else rich."""
        import numpy as np

        if self.inputs == "whitened":
            from dynascope.theory.neuron import regime

            return regime(*self._start(), self._maps[1], **self._rates).regime
        learned = path["coefficients"] @ self._maps[1] >= 0.5
        half_learned = self._times[np.argmax(learned, axis=1)]
        # δ below −4 κ times the target's length, and a plateau ten times as long as the norm takes to fit.
        downstream = self._imbalances < -4 * np.sqrt(self.output_rate * self.weight_rate)
        delayed = downstream & (half_learned * np.abs(self._imbalances) > 10)
        return np.select([path["kernel_change"][:, -1] < 0.1, delayed], ["lazy", "delayed rich"], "rich")

    def _kernel_motion(self, layers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How far the tangent kernel X M Xᵀ has turned and moved since the start, S and ρ, for M over time."""
        import numpy as np

        variances, axes = np.linalg.eigh(self._task.input_moment)
        root = (axes * np.sqrt(np.maximum(variances, 0))) @ axes.T
        kernels = root @ layers @ root
        sizes = np.linalg.norm(kernels, axis=(-2, -1), keepdims=True)
        turned = np.linalg.norm(kernels / sizes - (kernels / sizes)[:, :1], axis=(-2, -1)) ** 2 / 2
        moved = np.linalg.norm(kernels - kernels[:, :1], axis=(-2, -1)) / sizes[:, :1, 0, 0]
        return turned, moved

    def _networks(self) -> list[Any]:
        import equinox as eqx

        from dynascope.networks import TwoLayer

        neuron = TwoLayer(self.dimension, 1, 1)
        return [
            eqx.tree_at(lambda neuron: (neuron.first, neuron.second), neuron, (w[:, None], a.reshape(1, 1)))
            for a, w in zip(*self._start(), strict=True)
        ]

    def _start(self) -> tuple[np.ndarray, np.ndarray]:
        """The weights a (members,) and w (members, d), all with the same map."""
        import numpy as np

        (start, _), delta = self._maps, self._imbalances
        product = self.output_rate * self.weight_rate * self.initial_strength**2
        large = (np.hypot(delta, 2 * np.sqrt(product)) + np.abs(delta)) / 2
        a = np.sqrt(np.where(delta >= 0, large, product / large) / self.weight_rate)
        return a, start / a[:, None]

    @property
    def _rates(self) -> dict[str, float]:
        return {"output_rate": self.output_rate, "weight_rate": self.weight_rate}

    @functools.cached_property
    def _imbalances(self) -> np.ndarray:
        """The one that is asked for first."""
        import numpy as np

        from dynascope.arguments import require

        require(
            np.isfinite(self.imbalance),
            f"imbalance is {self.imbalance}",
            argument="imbalance",
            value=self.imbalance,
            remedy="choose a finite number, positive for a large output weight",
        )
        return np.array(list(dict.fromkeys((float(self.imbalance), 0.0, -float(self.imbalance)))))

    @functools.cached_property
    def _maps(self) -> tuple[np.ndarray, np.ndarray]:
        """The maps at the start and of the target, (d,) each."""
        import numpy as np

        from dynascope.arguments import require, require_positive, require_seed

        require_positive(
            initial_strength=self.initial_strength, output_rate=self.output_rate, weight_rate=self.weight_rate
        )
        require(
            self.dimension >= 2,
            f"dimension is {self.dimension}",
            argument="dimension",
            value=self.dimension,
            remedy="choose two or more, so that the neuron has a direction to learn",
        )
        require(
            -1 < self.alignment <= 1,
            f"alignment is {self.alignment}",
            argument="alignment",
            value=self.alignment,
            remedy="choose a cosine above -1, from where a balanced neuron would end in the saddle",
        )
        require_seed(self.seed)
        draw = np.random.default_rng(self.seed)
        target = draw.normal(size=self.dimension)
        target = self._axes @ (self._axes.T @ target)
        target /= np.linalg.norm(target)
        across = draw.normal(size=self.dimension)
        across -= across @ target * target
        across /= np.linalg.norm(across)
        start = self.alignment * target + np.sqrt(1 - self.alignment**2) * across
        return self.initial_strength * start, target

    @functools.cached_property
    def _axes(self) -> np.ndarray:
        """The directions in which the inputs vary, (d, rank)."""
        import numpy as np

        from dynascope.arguments import require

        require(
            self.inputs in ("whitened", "low-rank"),
            f"inputs is {self.inputs!r}",
            argument="inputs",
            value=self.inputs,
            remedy="choose whitened or low-rank",
        )
        if self.inputs == "whitened":
            return np.eye(self.dimension)
        draw = np.random.default_rng([self.seed, 1]).normal(size=(self.dimension, self.dimension - 1))
        return np.linalg.qr(draw)[0]

    @functools.cached_property
    def _task(self):
        import numpy as np

        from dynascope.tasks import regression

        (_, target), axes = self._maps, self._axes
        task = regression(
            samples=self.samples,
            input_covariance=np.geomspace(1.0, 1.0 if self.inputs == "whitened" else 0.5, axes.shape[1]),
            target_map=axes.T @ target,
            seed=self.seed,
            exact_moments=True,
        )
        return dataclasses.replace(task, inputs=task.inputs @ axes.T, feature_names=())

    @functools.cached_property
    def _times(self) -> np.ndarray:
        """Until the last of the three has learned, closer at the start."""
        import numpy as np

        from dynascope.arguments import require

        require(
            self.times >= 10, f"times is {self.times}", argument="times", value=self.times, remedy="choose ten or more"
        )
        self._start()  # for its checks
        # Near the target, of length one, no direction is slower than (R − |δ|)/2 times its variance, which is ½ or 1.
        product, size = self.output_rate * self.weight_rate, abs(self.imbalance)
        slowest = 2 * product / (np.hypot(size, 2 * np.sqrt(product)) + size)
        guesses = np.append(0.0, np.geomspace(1, 100, self.times - 1) / slowest)
        loss = self._path(guesses)["loss"]
        learned = np.all(loss <= _LEARNED * loss[:, :1], axis=0)
        require(
            learned.any(),
            f"from initial_strength {self.initial_strength} the neuron does not learn in a hundred time constants",
            argument="initial_strength",
            value=self.initial_strength,
            remedy="choose a larger one, or a larger alignment",
        )
        last = guesses[np.argmax(learned)]
        return np.append(0.0, np.geomspace(1e-4 * last, last, self.times - 1))


def _weights(network):
    return {"output_weight": ((), network.second[0, 0]), "weights": (("feature",), network.first[:, 0])}

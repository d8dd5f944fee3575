"""The layers of a linear network align, or disalign, as target and start decide before training."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import TYPE_CHECKING, Any, ClassVar

from dynascope.studies.study import Reference, Study, curve_tolerance

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr

    from dynascope.tasks import Task

__all__ = ["LineAlignment"]

_STARTS = ("small", "large orthogonal", "nearly parallel", "parallel", "opposite")
_DESCENTS = tuple(itertools.product(("linear", "relu"), ("sgd", "adam")))


@dataclasses.dataclass(frozen=True)
class LineAlignment(Study):
    """Alignment and norms of both layers, and the loss, of two-layer networks on inputs along a line.

    The network is f(x) = x W u, the inputs are x = a n, and the targets y = S a with noise. It starts "small" (Gaussian
    and a fifth of the size that S needs), "large orthogonal" (the kernel phase: the layers stay nearly orthogonal),
    "nearly parallel" (with too large an output: the layers disalign and shrink), "parallel" (they only shrink) and
    "opposite" (the output has the wrong sign: they shrink, then grow).

    Judged is the linear network under gradient flow, which the theory solves exactly. Reported and not judged is the
    alignment along the steps of SGD and of Adam, of the same linear network (`linear_sgd_alignment`,
    `linear_adam_alignment`) and of a ReLU network (`relu_sgd_alignment`, `relu_adam_alignment`), whose weights start
    √2 times as large, as half of its neurons answer each input. The attribute `signs_as_predicted` of the residual says
    for how many of the starts the alignment of each ended on the side of its beginning that theory predicts for the
    linear network under gradient flow.

    Attributes:
        width: Number of hidden neurons h, at least two.
        input_dimension: d.
        target: Slope S of the targets along the line, of any sign but not zero.
        noise: Standard deviation of the noise on the targets, relative to S.
        disturbance: Angle between the layers that are nearly parallel, or nearly opposite, in radians.
        first_rate: Learning rate of W.
        second_rate: Learning rate of u.
        samples: Number of samples.
        descent: Whether SGD and Adam are trained too.
        batch_size: Samples in a step of SGD or Adam.
        times: Number of times at which both sides are recorded.
        seed: Seed of the data, of the initial weights and of the batches.
    """

    width: int = 50
    input_dimension: int = 3
    target: float = 1.0
    noise: float = 0.1
    disturbance: float = 0.3
    first_rate: float = 1.0
    second_rate: float = 0.5
    samples: int = 100
    descent: bool = True
    batch_size: int = 10
    times: int = 200
    seed: int = 0

    name: ClassVar[str] = "line-alignment"
    reference: ClassVar[Reference] = Reference(
        paper="Y. Xu, L. Ziyin, When Does Feature Learning Happen? Perspective from an Analytically Solvable Model",
        arxiv="2401.07085",
        claim="On inputs along a line the layers of a two-layer linear network of any width and learning rates follow "
        "an exact solution: they align or disalign, and grow or shrink, as target and initial output decide.",
    )
    minutes: ClassVar[float] = 0.3
    tolerance: ClassVar = curve_tolerance(
        **dict.fromkeys(
            ("loss", "alignment", "first_norm", "second_norm"),
            (1e-6, "the theory is exact, and the solver keeps each step within 1e-9"),
        )
    )
    tiny: ClassVar = {"width": 4, "input_dimension": 2, "samples": 20, "descent": False, "times": 40}

    def observe(self) -> xr.Dataset:
        """Train all starts by gradient flow, then linear and ReLU networks by SGD and Adam."""
        from dynascope.observation import observe

        run = observe(
            self._task,
            self._networks("linear"),
            learning_rate=self._rates(1.0),
            duration=self._times[-1],
            save=self._times,
            probes=[self._probe],
            relative_tolerance=1e-9,
            absolute_tolerance=1e-12,
        )
        run = run.rename(seed="start").assign_coords(start=list(_STARTS)).assign_attrs(scale=1.0)
        if not self.descent:
            return run
        descended = {
            f"{network}_{optimizer}_alignment": self._descended(network, optimizer) for network, optimizer in _DESCENTS
        }
        return run.assign(descended)

    def predict(self) -> xr.Dataset:
        """The exact solution from each start, and what it says before training."""
        import jax
        import numpy as np

        from dynascope.record import make_record
        from dynascope.theory import line

        (first, second), data, times = self._layers, self._data, self._times
        rates = {"first_rate": self.first_rate, "second_rate": self.second_rate}
        with jax.enable_x64(True):
            run = line.trajectory(first, second, data, times, **rates)
            norms = line.layer_norms(first, second, data, times, **rates)
            change = line.alignment_change(first, second, data, **rates)
            alignment = line.alignment(first, second, data, times, **rates)
            scale = line.time_scale(first, second, data, **rates)
            rescaling = line.rescaling(first, second, data, **rates)
        return make_record(
            {
                "loss": (("start", "time"), np.asarray(run.loss)),
                "alignment": (("start", "time"), np.asarray(alignment)),
                "first_norm": (("start", "time"), np.asarray(norms.first)),
                "second_norm": (("start", "time"), np.asarray(norms.second)),
                "alignment_change": (("start",), change.size),
                "alignment_sign": (("start",), change.sign),
                "rescaling": (("start",), rescaling.case),
                "time_scale": (("start",), np.asarray(scale.time)),
            },
            {"start": list(_STARTS), "time": times},
            attributes={
                "theory": "exact solution on a line",
                "network": "linear",
                "reference": self.reference.paper,
                "scale": 1.0,
                **self._task.attributes(),
            },
        )

    def compare(self, observed: xr.Dataset, predicted: xr.Dataset) -> xr.DataTree:
        """Loss, alignment and norms under gradient flow; of descent, the sign of the change is counted."""
        import json

        import numpy as np

        tree = super().compare(observed, predicted)
        sign = predicted["alignment_sign"].to_numpy()
        counts = {}
        for network, optimizer in _DESCENTS if self.descent else ():
            curve = observed[f"{network}_{optimizer}_alignment"].transpose("step", "start").to_numpy()
            right = np.sign(curve[-1] - curve[0])[sign != 0] == sign[sign != 0]
            counts[f"{network} {optimizer}"] = f"{right.sum()} of {right.size}"
        tree["residual"].attrs["signs_as_predicted"] = json.dumps(counts)
        return tree

    def _descended(self, activation: str, optimizer: str) -> xr.DataArray:
        import numpy as np
        import optax

        from dynascope.observation import observe

        step = self._step
        steps = int(np.ceil(self._times[-1] / step))
        # Enough for every weight to go some times as far as the largest start is from zero.
        adam = 15 * np.sqrt(abs(self.target) / self.width) / steps
        run = observe(
            self._task,
            self._networks(activation),
            flow="descent",
            steps=steps,
            learning_rate=self._rates(step) if optimizer == "sgd" else float(adam),
            optimizer="sgd" if optimizer == "sgd" else optax.adam,
            batch_size=self.batch_size,
            record_steps=np.unique(np.linspace(0, steps, self.times).astype(int)),
            probes=[self._probe],
            seed=self.seed,
        )
        return run["alignment"].rename(seed="start").assign_coords(start=list(_STARTS))

    def _rates(self, step: float) -> dict[str, float]:
        return {"first": step * self.first_rate, "second": step * self.second_rate}

    @property
    def _step(self) -> float:
        """A step of SGD far below what the curvature at the largest start allows."""
        largest = 9 * abs(self.target)
        return 0.05 / (float(self._data.power) * (self.first_rate + self.second_rate) * largest)

    @property
    def _probe(self) -> _Layers:
        return _Layers(tuple(map(float, self._data.direction)))

    @functools.cached_property
    def _times(self) -> np.ndarray:
        """Until ten of the longest time scale."""
        import jax
        import numpy as np

        from dynascope.theory.line import time_scale

        with jax.enable_x64(True):
            scale = time_scale(*self._layers, self._data, first_rate=self.first_rate, second_rate=self.second_rate)
        return np.linspace(0.0, 10 * float(np.max(np.asarray(scale.time))), self.times)

    @functools.cached_property
    def _data(self) -> Any:
        from dynascope.theory.line import line_data

        return line_data(self._task.inputs, self._task.targets)

    @functools.cached_property
    def _task(self) -> Task:
        import numpy as np

        from dynascope.tasks import Task

        self._check()
        draw = np.random.default_rng(self.seed)
        direction = draw.normal(size=self.input_dimension)
        along = draw.normal(size=self.samples)
        inputs = np.outer(along, direction / np.linalg.norm(direction))
        # Like the loss, the reader of the line does not know which way it points.
        sign = np.sign(direction[np.argmax(np.abs(direction))])
        targets = self.target * (sign * along + self.noise * draw.normal(size=self.samples))
        return Task(
            inputs,
            targets[:, None],
            name="inputs on a line",
            description=(
                f"{self.samples} Gaussian inputs along a line in {self.input_dimension} dimensions.",
                "Targets are linear in them, with noise.",
            ),
        )

    @functools.cached_property
    def _layers(self) -> tuple[np.ndarray, np.ndarray]:
        """W and u of every start, shapes (start, d, h) and (start, h)."""
        import numpy as np

        data = self._data
        draw = np.random.default_rng([self.seed, 1])
        one, other = np.linalg.qr(draw.normal(size=(self.width, 2)))[0].T
        turned = np.cos(self.disturbance) * one + np.sin(self.disturbance) * other
        random = draw.normal(size=(2, self.width)) / np.sqrt(self.width)
        sign = np.sign(float(data.target))
        second = np.stack([0.2 * random[0], 3.0 * one, 1.5 * sign * one, 1.5 * sign * one, 0.8 * sign * one])
        along = np.stack([0.2 * random[1], 3.0 * other, 1.5 * turned, 1.5 * one, -0.8 * turned])
        size = np.sqrt(abs(float(data.target)))
        first = 0.3 / np.sqrt(self.width) * draw.normal(size=(self.input_dimension, self.width))
        first = first - np.outer(data.direction, data.direction @ first)
        return size * (first + data.direction[:, None] * along[:, None, :]), size * second

    def _networks(self, activation: str) -> list[Any]:
        import equinox as eqx
        import numpy as np

        from dynascope.networks import TwoLayer

        network = TwoLayer(self.input_dimension, self.width, 1, activation=activation)
        size = np.sqrt(2.0) if activation == "relu" else 1.0
        return [
            eqx.tree_at(lambda layers: (layers.first, layers.second), network, (size * first, size * second[:, None]))
            for first, second in zip(*self._layers, strict=True)
        ]

    def _check(self) -> None:
        import numpy as np

        from dynascope.arguments import require, require_positive, require_seed

        require_positive(first_rate=self.first_rate, second_rate=self.second_rate, input_dimension=self.input_dimension)
        require_seed(self.seed)
        for name, least in (("width", 2), ("samples", 2), ("times", 2), ("batch_size", 1)):
            value = getattr(self, name)
            require(value >= least, f"{name} is {value}", argument=name, value=value, remedy=f"choose at least {least}")
        require(
            np.isfinite(self.target) and self.target != 0,
            f"target is {self.target}",
            argument="target",
            value=self.target,
            remedy="choose a finite number other than zero",
        )
        require(
            self.batch_size <= self.samples,
            f"batch_size is {self.batch_size} for {self.samples} samples",
            argument="batch_size",
            value=self.batch_size,
            remedy="choose no more than there are samples",
        )
        for name, value in (("noise", self.noise), ("disturbance", self.disturbance)):
            require(0 <= value <= 1, f"{name} is {value}", argument=name, value=value, remedy="choose between 0 and 1")


@dataclasses.dataclass(frozen=True)
class _Layers:
    """Alignment and norms of the layers, with the first seen along the line."""

    direction: tuple[float, ...]

    def __call__(self, network: Any) -> dict[str, tuple[tuple[str, ...], Any]]:
        import numpy as np

        u, v = network.second[:, 0], np.array(self.direction) @ network.first
        first, second = (v @ v) ** 0.5, (u @ u) ** 0.5
        return {
            "alignment": ((), u @ v / (first * second)),
            "first_norm": ((), first),
            "second_norm": ((), second),
        }

"""Neurons of a ReLU network turn to few directions before anything is learned."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, ClassVar, Literal

from dynascope.record.clock import other_scale
from dynascope.studies.study import Reference, Study, curve_tolerance

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr

__all__ = ["ReluAlignment"]

# Size of the largest neuron at the end of the alignment, and e-folds by which one may shrink meanwhile.
_LARGE = 1e-3
_SHRUNK = 3.0


@dataclasses.dataclass(frozen=True)
class ReluAlignment(Study):
    """Directions and growth of every neuron of a ReLU network, or the staircase that follows on orthogonal inputs.

    The network is f(x) = Σ aᵢ relu(wᵢ·x) with |aᵢ| = ‖wᵢ‖ at the start. On data in the plane the neurons are followed
    until the largest has reached a thousandth. Those that theory expects to shrink more than twentyfold on the way are
    left out: training keeps them balanced only up to the size of its steps, which comes to matter once they are small.

    Attributes:
        data: "plane" for Gaussian inputs and targets in the plane; "orthogonal" for orthogonal inputs, as many as
            samples, with targets of both signs; "general" for Gaussian inputs in three dimensions and targets of two
            teacher neurons of opposite sign, where only alternating gradient flow can tell the staircase.
        samples: Number of samples; with general data ten times as many.
        width: Number of neurons.
        scale: Factor on the initial weights; with orthogonal data the slopes are measured between it and 1e-4 of it.
        seed: Seed of the data and of the initial weights.
    """

    data: Literal["plane", "orthogonal", "general"] = "plane"
    samples: int = 6
    width: int = 60
    scale: float = 1e-8
    seed: int = 10

    name: ClassVar[str] = "relu-alignment"
    reference: ClassVar[Reference] = Reference(
        paper="H. Maennel, O. Bousquet, S. Gelly, Gradient descent quantizes ReLU network features",
        arxiv="1803.08367",
        claim="From vanishing initialisation the neurons of a ReLU network turn, along exactly known paths, to a few "
        "directions that the data alone fix; with orthogonal inputs the loss then falls in one jump for each sign of "
        "the targets (arXiv 2206.00939).",
    )
    minutes: ClassVar[float] = 0.2
    tiny: ClassVar = {"samples": 3, "width": 8, "scale": 1e-6}

    def observe(self) -> xr.Dataset:
        """Train: along the alignment by small steps of descent, through the jumps by gradient flow."""
        import numpy as np

        from dynascope.observation import observe

        if self.data != "plane":
            return self._staircase_observed(self.scale)
        # An adaptive solver would shorten its steps without end where a neuron slides along a kink.
        run = observe(
            self._task,
            self._network,
            scale=self.scale,
            flow="descent",
            steps=int(self._steps[-1]),
            learning_rate=self._learning_rate,
            record_steps=self._steps,
            probes=[_alignment],
        ).isel(neuron=self._judged)
        return run.assign(growth=np.log(run["size"] / run["size"][0])).drop_vars("size")

    def predict(self) -> xr.Dataset:
        """The exact path of each neuron under frozen residuals, or the staircase."""
        if self.data == "general":
            return self._alternation
        return self._staircase_predicted() if self.data == "orthogonal" else self._paths_predicted()

    @functools.cached_property
    def _at_other_scale(self) -> xr.Dataset:
        """Trained once, however often it is compared."""
        return self._staircase_observed(other_scale(self.scale))

    def compare(self, observed: xr.Dataset, predicted: xr.Dataset) -> xr.DataTree:
        """Directions, growth and loss over time, or levels and times at one scale and slopes between two."""
        from dynascope.comparison import compare

        other = None if self.data == "plane" else self._at_other_scale
        return compare(observed, predicted, at_other_scale=other, attributes=self.attributes())

    def _staircase_observed(self, scale: float) -> xr.Dataset:
        from dynascope.observation import observe
        from dynascope.record import training_time

        if self.data == "general":
            duration = training_time(self._alternation, scale)
        else:
            duration = 1.25 * float(self._staircase(scale).times[-1])
        # No neuron slides along a kink here, but all cross some, where the error of a step is of first order.
        return observe(self._task, self._network, scale=scale, duration=duration, save=2000, relative_tolerance=1e-6)

    @functools.cached_property
    def _alternation(self) -> xr.Dataset:
        from dynascope.prediction import predict

        return predict(self._task, self._network, scale=self.scale, jumps=2)

    def _staircase_predicted(self) -> xr.Dataset:
        import numpy as np

        from dynascope.record import staircase_record

        return staircase_record(
            self._staircase(self.scale),
            self._task,
            scale=self.scale,
            network="relu",
            jump_time_tolerance=(
                1.0 / -float(np.log(self.scale)),
                "times are known up to an offset, which was below 0.5 in random problems: 1/log(1/scale)",
            ),
            slope_tolerance=(0.02, "neurons that do not see all the data move the slopes by up to one percent"),
        )

    def _staircase(self, scale: float):
        from dynascope.theory.relu_alignment import orthogonal_staircase

        task, network = self._task, self._network
        return orthogonal_staircase(task.inputs, task.targets, scale=scale, first=network.first, second=network.second)

    def _paths_predicted(self) -> xr.Dataset:
        import numpy as np

        from dynascope.record import make_record

        times = self._steps * self._learning_rate
        paths = [self._paths[neuron] for neuron in self._judged]
        directions, growths = zip(*(path.at(times) for path in paths), strict=True)
        judged = curve_tolerance(
            loss=(1e-3, "the outputs stay below a thousandth of the targets"),
            direction=(2e-3, "descent lags behind the flow by a share of its step, and rattles about a kink"),
            growth=(5e-3, "descent lags behind the flow by a share of its step"),
        )
        return make_record(
            {
                "loss": (("time",), np.full(len(times), self._task.target_power / 2)),
                "direction": (("time", "neuron", "feature"), np.stack(directions, axis=1)),
                "growth": (("time", "neuron"), np.stack(growths, axis=1)),
                "extremal_direction": (("neuron", "feature"), np.array([path.end for path in paths])),
                "kind": (("neuron",), np.array([path.kind for path in paths])),
                "rate": (("neuron",), np.array([path.rate for path in paths])),
            },
            {"time": times, "neuron": self._judged, "feature": np.arange(2)},
            attributes={
                "theory": "early alignment of ReLU networks",
                "reference": self.reference.paper,
                "network": "relu",
                "scale": self.scale,
                **{f"{name}_tolerance": value for name, (value, _) in judged.items()},
                **{f"{name}_tolerance_reason": reason for name, (_, reason) in judged.items()},
                **self._task.attributes(),
            },
        )

    @functools.cached_property
    def _task(self):
        import numpy as np

        from dynascope.arguments import require, require_seed
        from dynascope.tasks import Task

        require(
            self.data in ("plane", "orthogonal", "general"),
            f"data is {self.data!r}",
            argument="data",
            value=self.data,
            remedy="choose plane, orthogonal or general",
        )
        require(
            self.samples >= 2,
            f"samples is {self.samples}",
            argument="samples",
            value=self.samples,
            remedy="choose at least two",
        )
        require(
            0 < self.scale <= 1e-4,
            f"scale is {self.scale}",
            argument="scale",
            value=self.scale,
            remedy="choose a positive number up to 1e-4, so that neurons are aligned before they are large",
        )
        require_seed(self.seed)
        draw = np.random.default_rng(self.seed)
        if self.data == "plane":
            inputs, targets = draw.normal(size=(self.samples, 2)), draw.normal(size=self.samples)
        elif self.data == "general":
            inputs = draw.normal(size=(10 * self.samples, 3))
            teacher = np.linalg.qr(draw.normal(size=(3, 3)))[0][:, :2]
            targets = np.maximum(inputs @ teacher, 0) @ [2.0, -1.0]
        else:
            turned, _ = np.linalg.qr(draw.normal(size=(self.samples, self.samples)))
            inputs = np.sqrt(self.samples) * draw.uniform(0.7, 1.4, self.samples)[:, None] * turned
            # The weaker sign comes later by far enough for a plateau.
            targets = draw.uniform(0.7, 1.3, self.samples) * np.where(np.arange(self.samples) % 2, -0.5, 1.0)
        return Task(inputs, targets[:, None], name=f"{self.data} data")

    @functools.cached_property
    def _network(self):
        import equinox as eqx
        import numpy as np

        from dynascope.networks import TwoLayer

        task = self._task
        network = TwoLayer(task.input_dimension, self.width, 1, activation="relu", seed=self.seed)
        balanced = np.linalg.norm(network.first, axis=0)[:, None] * np.sign(network.second)
        return eqx.tree_at(lambda layers: layers.second, network, balanced)

    @functools.cached_property
    def _paths(self):
        import numpy as np

        from dynascope.theory.relu_alignment import alignment_path

        task, network = self._task, self._network
        return [
            alignment_path(task.inputs, task.targets, start, sign=int(sign))
            for start, sign in zip(network.first.T, np.sign(network.second[:, 0]), strict=True)
        ]

    @property
    def _learning_rate(self) -> float:
        """A small fraction of the shortest time in which a neuron can turn."""
        import numpy as np

        task = self._task
        return 5e-4 / float(np.mean(np.abs(task.targets[:, 0]) * np.linalg.norm(task.inputs, axis=1)))

    @functools.cached_property
    def _steps(self) -> np.ndarray:
        """Recorded steps, up to the time when the first neuron is large."""
        import numpy as np

        from dynascope.arguments import require

        fastest = max(path.rate for path in self._paths)
        require(
            fastest > 0,
            f"none of {self.width} neurons grows",
            argument="width",
            value=self.width,
            remedy="choose more neurons, or another seed",
        )
        times = np.linspace(0.0, -2 * np.log(self.scale) / fastest, 10_000)
        largest = np.max([path.at(times)[1] for path in self._paths], axis=0)
        end = times[np.argmax(largest > np.log(_LARGE / self.scale))]
        return np.unique(np.linspace(0, end / self._learning_rate, 200).astype(int))

    @functools.cached_property
    def _judged(self) -> np.ndarray:
        """Neurons that do not shrink too much."""
        import numpy as np

        times = self._steps * self._learning_rate
        return np.array([i for i, path in enumerate(self._paths) if path.at(times)[1].min() > -_SHRUNK])


def _alignment(network):
    import jax.numpy as jnp

    sizes = jnp.linalg.norm(network.first, axis=0)
    return {
        "direction": (("neuron", "feature"), (network.first / sizes).T),
        "size": (("neuron",), sizes),
    }

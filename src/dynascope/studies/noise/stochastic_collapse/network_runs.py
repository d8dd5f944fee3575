"""Networks trained on digits whose labels are noisy in every step: which units are left, and what they then know."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Float

from dynascope.networks import MLP, Convolutional
from dynascope.networks.convolution import convolved, mean_pooled
from dynascope.probes.redundancy import UnitGroup, UnitPart, redundant_units, unit_weights
from dynascope.tasks import Labelled, Task
from dynascope.tasks.data.digits import digits
from dynascope.training.descend import descend
from dynascope.training.optimizers import decayed

__all__ = ["NETWORKS", "NoisyDigits", "training_shares", "unit_statistics"]

NETWORKS = ("mlp", "convolutional")
_COPIES = 20  # of each digit, so that what noise says of a digit cannot be learned
_CHANNELS, _FEATURES = 4, 16  # of the first convolution, and of the last layer
_RECORDS = 12
_SCALE = 2**0.5  # at which ReLU keeps the size of what passes through


@dataclasses.dataclass(frozen=True)
class NoisyDigits:
    """A ReLU network of ten outputs, trained by plain descent with decay on batches of digits, by squared loss.

    Attributes:
        network: "mlp", whose units are the neurons of its hidden layer, or "convolutional", whose units are the
            channels of the second of two convolutions.
        samples: Number of digits for training; all others are held out.
        units: Number of units.
        batch_size: Samples in a step, drawn with replacement.
        weight_decay: λ, added to gradients.
        starts: How many networks are trained at a time, each on batches of its own.
        seed: Seed of the data, and of the first weights; the others follow it.
    """

    network: Literal["mlp", "convolutional"]
    samples: int
    units: int
    batch_size: int
    weight_decay: float
    starts: int
    seed: int

    def collapse(
        self, learning_rate: float, label_noise: float, *, time: float, later_rate: float, later_time: float
    ) -> dict[str, Any]:
        """Train at a rate on noisy labels, then at another one on true labels.

        Args:
            learning_rate: η.
            label_noise: Share of the labels that are drawn at random in every step.
            time: Sum of the learning rates of the steps.
            later_rate: The rate afterwards.
            later_time: The time for which it is kept.

        Returns:
            Of each start `independent_fraction`, `vanishing_fraction`, `dead_fraction` and `loss` at the recorded
            shares of the time, shape (starts, records); and `late_accuracy`, the accuracy on held-out digits
            afterwards, shape (starts,).
        """
        run, trained = self.trained(self.first, label_noise, learning_rate, _recorded(time / learning_rate))
        after, _ = self.trained(_apart(trained, self.starts), 0.0, later_rate, _recorded(later_time / later_rate))
        units = zip(run["incoming"].to_numpy(), run["outgoing"].to_numpy(), strict=True)
        rows = [redundant_units(*each) for each in units]
        kept = ("independent_fraction", "vanishing_fraction")
        return {
            **{name: np.array([each[name][1] for each in rows], float) for name in kept},
            "dead_fraction": np.mean(run["active"].to_numpy() == 0, axis=2),
            "loss": run["loss"].to_numpy().astype(float),
            "late_accuracy": after["right"].to_numpy()[:, -1].astype(float),
        }

    def trained(
        self,
        networks: Sequence[Any],
        label_noise: float,
        learning_rate: float,
        recorded: Sequence[int] | np.ndarray,
        statistics: Mapping[str, Any] | None = None,
    ) -> tuple[xr.Dataset, Any]:
        """The record of training, and the networks at its end.

        Args:
            networks: As many as there are starts.
            label_noise: Share of the labels that are drawn at random in every step.
            learning_rate: η.
            recorded: Steps at which to record; the last one is the last step.
            statistics: What is recorded; if left out the weights of the units, and what networks know.
        """
        # All digits go to the statistics as an argument of the program, which other seeds and noises then share.
        own = unit_statistics(self.network, self.units, self.samples)
        # Networks of single precision train twice as fast.
        with jax.enable_x64(False):
            return descend(
                networks,
                [self.task(label_noise)] * self.starts,
                steps=int(recorded[-1]),
                learning_rate=learning_rate,
                optimizer=decayed(optax.sgd, np.float32(self.weight_decay)),
                batch_size=self.batch_size,
                batches="independent",
                replacement=True,
                record_steps=recorded,
                seed=self.seed,
                return_networks=True,
                statistics=own if statistics is None else statistics,
                reference=Labelled(*self.data) if statistics is None else None,
            )

    @functools.cached_property
    def first(self) -> list[Any]:
        """The networks before training."""
        seeds, outputs = range(self.seed, self.seed + self.starts), 10
        if self.network == "mlp":
            made: list[Any] = [MLP((64, self.units, outputs), scale=_SCALE, seed=each) for each in seeds]
        else:
            shape: dict[str, Any] = {"channels": (_CHANNELS, self.units), "width": _FEATURES, "scale": _SCALE}
            made = [Convolutional((8, 8), outputs, **shape, seed=each) for each in seeds]
        return [jax.tree.map(lambda leaf: leaf.astype(np.float32), each) for each in made]

    @functools.cached_property
    def data(self) -> tuple[np.ndarray, np.ndarray]:
        """Inputs and labels, those for training first."""
        whole = digits()
        rows = np.random.default_rng([self.seed, 3]).permutation(whole.samples)
        return whole.inputs[rows].astype(np.float32), whole.targets[rows].argmax(axis=1)

    def task(self, noise: float) -> Task:
        """Copies of the digits, so many of which have random labels as there are in a batch on average."""
        inputs, labels = (each[: self.samples] for each in self.data)
        random = np.random.default_rng([self.seed, 4]).integers(10, size=(_COPIES, self.samples))
        chosen = np.where(np.arange(_COPIES)[:, None] < round(noise * _COPIES), random, labels)
        return Task(np.tile(inputs, (_COPIES, 1)), np.eye(10, dtype=np.float32)[chosen.ravel()], name="digits")


def training_shares() -> Float[np.ndarray, " records"]:
    """Shares of the training time at which networks are measured, from the start to the end."""
    return np.linspace(0, 1, _RECORDS)


def _recorded(steps: float) -> np.ndarray:
    """Steps at those shares, of no fewer than there are shares."""
    return (training_shares() * max(round(steps), _RECORDS)).round().astype(int)


@functools.cache
def unit_statistics(kind: str, units: int, samples: int) -> dict[str, Any]:
    """Weights of the units, on how many training digits each is active, and the accuracy on all others.

    Args:
        kind: The network.
        units: Number of units.
        samples: How many of the digits that the statistics are given are for training, the first ones.
    """
    if kind == "mlp":
        group = UnitGroup(units, [("weights.0", 1), ("biases.0", 0)], [("weights.1", 0)])
    else:
        incoming = [("kernels.1", 3), ("kernel_biases.1", 0)]
        group = UnitGroup(units, incoming, [UnitPart("hidden", 0, interleaved=True)])
    entering = _into_neurons if kind == "mlp" else _into_channels

    def active(network: Any, inputs: Any, _: Any) -> Any:
        return jnp.sum(entering(network, inputs[:samples]) > 0, axis=0)

    def right(network: Any, inputs: Any, labels: Any) -> Any:
        return jnp.mean(jnp.argmax(network(inputs[samples:]), axis=1) == labels[samples:])

    return {
        "incoming": (lambda network: unit_weights(network, group).incoming, ("neuron", "feature")),
        "outgoing": (lambda network: unit_weights(network, group).outgoing, ("neuron", "weight")),
        "active": (active, ("neuron",)),
        "right": (right, ()),
    }


def _into_neurons(network: Any, inputs: Any) -> Any:
    return inputs @ network.weights[0] + network.biases[0]


def _into_channels(network: Any, inputs: Any) -> Any:
    """What enters the second convolution's activation, largest over the places of the image."""
    images = jnp.asarray(inputs).reshape(-1, 8, 8, 1)
    images = jax.nn.relu(convolved(images, network.kernels[0]) + network.kernel_biases[0])
    return (convolved(mean_pooled(images, 2), network.kernels[1]) + network.kernel_biases[1]).max(axis=(1, 2))


def _apart(networks: Any, count: int) -> list[Any]:
    """Networks whose weights lie in front of each other."""
    return [jax.tree.map(lambda leaf, at=each: np.asarray(leaf[at]), networks) for each in range(count)]

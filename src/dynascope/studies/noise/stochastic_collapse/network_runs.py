"""Independent units and test accuracy of networks trained on digits, with some labels redrawn at every step."""

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
from dynascope.training.batches import Batches
from dynascope.training.descend import Descent, descend
from dynascope.training.optimizers import decayed

__all__ = ["NETWORKS", "NoisyDigits", "training_shares", "unit_statistics"]

NETWORKS = ("mlp", "convolutional")
_COPIES = 20  # copies of each digit with independent label noise, so that networks cannot memorise the noise
_CHANNELS, _FEATURES = 4, 16  # channels of the first convolution, and inputs of the last layer
_RECORDS = 12
_SCALE = 2**0.5  # scale of the initial weights at which ReLU layers preserve the norm of their inputs


@dataclasses.dataclass(frozen=True)
class NoisyDigits:
    """ReLU networks with ten outputs, trained on digits by SGD with squared loss and weight decay.

    Attributes:
        network: "mlp", whose units are the neurons of its hidden layer, or "convolutional", whose units are the
            channels of the second of two convolutions.
        samples: Number of training digits; all others are held out.
        units: Number of units.
        batch_size: Samples per minibatch, drawn with replacement.
        weight_decay: λ; λθ is added to the gradients.
        starts: Number of networks, each trained on different minibatches.
        seed: Seed of the data and of the first network; further networks use the following seeds.
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
        """Train on noisy labels at one learning rate, then on true labels at another.

        Args:
            learning_rate: η.
            label_noise: Fraction of the labels redrawn at random at every step.
            time: Training time (sum of learning rates).
            later_rate: Learning rate of the further training on true labels.
            later_time: Training time of the further training.

        Returns:
            For each network `independent_fraction`, `vanishing_fraction`, `dead_fraction` and `loss` at the recorded
            fractions of the training time, shape (starts, records); and `late_accuracy`, the accuracy on held-out
            digits after the further training, shape (starts,).
        """
        run, trained = self.trained(self.first, label_noise, learning_rate, _recorded(time / learning_rate))
        after, _ = self.trained(_apart(trained, self.starts), 0.0, later_rate, _recorded(later_time / later_rate))
        units = zip(run["incoming"].to_numpy(), run["outgoing"].to_numpy(), strict=True)
        rows = [redundant_units(*each) for each in units]
        kept = ("independent_fraction", "vanishing_fraction")
        return {
            **{name: np.array([getattr(each, name) for each in rows], float) for name in kept},
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
        """Train networks, and return the record and the final networks.

        Args:
            networks: The `starts` initial networks.
            label_noise: Fraction of the labels redrawn at random at every step.
            learning_rate: η.
            recorded: Recorded steps; the last recorded step is the last step of training.
            statistics: Recorded statistics; by default weights and activity of the units, and accuracy.
        """
        # All digits are passed as an argument, so that other seeds and noise levels reuse the compiled program.
        usual = unit_statistics(self.network, self.units, self.samples)
        # Networks train twice as fast in single precision.
        with jax.enable_x64(False):
            return descend(
                [self.task(label_noise)] * self.starts,
                networks,
                Descent(
                    decayed(optax.sgd, np.float32(self.weight_decay)),
                    learning_rate=learning_rate,
                    steps=int(recorded[-1]),
                    batches=Batches(self.batch_size, independent=True, replacement=True),
                    save=recorded,
                    statistics=usual if statistics is None else statistics,
                    reference=Labelled(*self.data) if statistics is None else None,
                ),
                seed=self.seed,
                return_networks=True,
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
        """Inputs and labels, training digits first."""
        whole = digits()
        rows = np.random.default_rng([self.seed, 3]).permutation(whole.samples)
        return whole.inputs[rows].astype(np.float32), whole.targets[rows].argmax(axis=1)

    def task(self, noise: float) -> Task:
        """Copies of the digits, a fraction `noise` of which have random labels."""
        inputs, labels = (each[: self.samples] for each in self.data)
        random = np.random.default_rng([self.seed, 4]).integers(10, size=(_COPIES, self.samples))
        chosen = np.where(np.arange(_COPIES)[:, None] < round(noise * _COPIES), random, labels)
        return Task(np.tile(inputs, (_COPIES, 1)), np.eye(10, dtype=np.float32)[chosen.ravel()], name="digits")


def training_shares() -> Float[np.ndarray, " records"]:
    """Fractions of the training time at which networks are measured, from 0 to 1."""
    return np.linspace(0, 1, _RECORDS)


def _recorded(steps: float) -> np.ndarray:
    """Steps at the fractions `training_shares` of the training time, at least one step apart."""
    return (training_shares() * max(round(steps), _RECORDS)).round().astype(int)


@functools.cache
def unit_statistics(kind: str, units: int, samples: int) -> dict[str, Any]:
    """Statistics: weights of the units, number of training digits that activate each unit, and test accuracy.

    Args:
        kind: The architecture.
        units: Number of units.
        samples: Number of training digits, which precede the held-out digits.
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
    """The pre-activations of the second convolution, maximised over image positions."""
    images = jnp.asarray(inputs).reshape(-1, 8, 8, 1)
    images = jax.nn.relu(convolved(images, network.kernels[0]) + network.kernel_biases[0])
    return (convolved(mean_pooled(images, 2), network.kernels[1]) + network.kernel_biases[1]).max(axis=(1, 2))


def _apart(networks: Any, count: int) -> list[Any]:
    """Split stacked networks into a list."""
    return [jax.tree.map(lambda leaf, at=each: np.asarray(leaf[at]), networks) for each in range(count)]

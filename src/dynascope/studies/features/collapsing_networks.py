"""Networks on digits with labels that mean more or less, and what collapses in them while they train."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from dynascope.comparison import Claim
from dynascope.flows import descend
from dynascope.flows.steps.decay import annealed
from dynascope.networks import MLP, Convolutional
from dynascope.probes.features import effective_dimension, kappa_cka
from dynascope.probes.neural_collapse import neural_collapse
from dynascope.tasks import Task, digits

__all__ = ["LABELS", "NETWORKS", "CollapsingNetworks"]

NETWORKS = ("convolutional", "mlp")
LABELS = ("true labels", "10 % random labels", "100 % random labels", "scalar regression")
_CLASSES = LABELS[:3]
_LEARNED = 0.99  # of the labels of training, from which on classes are said to collapse
_RECORDS = 20  # steps at which networks are measured
_METRICS = ("nc1", "nc2_angle", "nc2_norm", "nc3", "nc4")


@dataclasses.dataclass(frozen=True)
class CollapsingNetworks:
    """Networks that are trained by Adam on digits, and measured.

    Attributes:
        networks: Which networks, of "convolutional" and "mlp".
        labels: How digits are labelled, of "true labels", "10 % random labels", "100 % random labels" and "scalar
            regression".
        samples: Number of digits for training; as many others are held out.
        width: Number of features of the networks.
        learning_rate: Learning rate at the start, which falls to zero as a cosine.
        weight_decay: λ of the term λ‖θ‖²/2 in the loss.
        steps: Number of steps of training.
        batch_size: Samples in a step.
        starts: How often each is trained, from other weights and by other batches.
        seed: Seed of the labels, and of the first weights and batches; the others follow it.
    """

    networks: Sequence[str]
    labels: Sequence[str]
    samples: int
    width: int
    learning_rate: float
    weight_decay: float
    steps: int
    batch_size: int
    starts: int
    seed: int

    def measure(self) -> dict[str, Any]:
        """Their metrics over the steps of training, by name: dimensions and values."""
        if not self.networks or not self.labels:
            return {}
        # Networks of single precision train twice as fast.
        with jax.enable_x64(False):
            runs = [
                [[self._trained(network, each, start) for start in self.seeds] for each in self.labels]
                for network in self.networks
            ]
        return {
            f"network_{name}": (
                ("architecture", "run", "seed", "step"),
                np.array([[[run[name] for run in starts] for starts in row] for row in runs], float),
            )
            for name in runs[0][0][0]
        }

    def claimed(self, found: Mapping[str, Any]) -> list[Claim]:
        """That each network collapses on each kind of labels, by what `measure` found.

        Networks collapse once they have learned their labels; of those that have not, nothing is known.
        """
        nc1, learned = found["network_nc1"][1], found["network_accuracy"][1][..., -1] >= _LEARNED
        claims = []
        for i, network in enumerate(self.networks):
            for j, labels in enumerate(self.labels):
                change = np.log10(nc1[i, j, :, -1] / nc1[i, j, :, 0])
                words = "log₁₀ of the spread within classes, over that between, falls by one or more"
                claim = Claim.of_runs(
                    _named(network, labels), f"Classes collapse ({network}, {labels}): {words}.", change, most=-1.0
                )
                unknown = dataclasses.replace(claim, low=-np.inf, high=np.inf)
                claims.append(claim if learned[i, j].all() else unknown)
        return claims

    @property
    def deciding(self) -> tuple[str, ...]:
        """Names of the claims on labels that are classes."""
        return tuple(_named(network, each) for network in self.networks for each in self.labels if each in _CLASSES)

    @property
    def seeds(self) -> range:
        """Seeds of the starts."""
        return range(self.seed, self.seed + self.starts)

    def _trained(self, name: str, labels: str, start: int) -> dict[str, np.ndarray]:
        data = self.digits(labels)
        outputs = data.targets.shape[1]
        if name == "mlp":
            network: Any = MLP((data.inputs.shape[1], self.width, self.width, outputs), seed=start)
        else:
            network = Convolutional((8, 8), outputs, width=self.width, seed=start)
        low = jax.tree.map(lambda leaf: leaf.astype(np.float32) if eqx.is_inexact_array(leaf) else leaf, network)
        run = descend(
            low,
            Task(data.inputs[: self.samples], data.targets),
            steps=self.steps,
            learning_rate=self.learning_rate,
            optimizer=annealed("adam", self.steps, weight_decay=self.weight_decay),
            batch_size=self.batch_size,
            record_steps=self.recorded,
            statistics={
                "features": (self._seen, ("sample", "feature")),
                "classifier": (_last_weights, ("feature", "target")),
                "bias": (_last_bias, ("target",)),
            },
            seed=start,
        )
        measured = [
            self._measured(
                data, *(run[each].to_numpy()[i].astype(float) for each in ("features", "classifier", "bias"))
            )
            for i in range(len(self.recorded))
        ]
        return {"loss": run["loss"].to_numpy()} | {each: np.array([m[each] for m in measured]) for each in measured[0]}

    def _measured(self, digits: _Digits, h: np.ndarray, classifier: np.ndarray, bias: np.ndarray) -> dict[str, Any]:
        n = self.samples
        # The nearest digit to one output f, min (f − t_i)², has the largest t_i f − t_i²/2.
        levels = digits.levels
        if levels is not None:
            classifier, bias, outputs = classifier * levels, bias * levels - levels**2 / 2, h[:n] @ classifier
        else:
            outputs = h[:n] @ classifier
        found = neural_collapse(h[:n], digits.labels, classifier, bias, center_classifier=True)
        decided = np.argmax(h @ classifier + bias, axis=1)
        spread = np.linalg.svd(h[:n] - h[:n].mean(0), compute_uv=False) ** 2
        return {
            **{name: found[name][1] for name in _METRICS},
            "kappa_cka": kappa_cka(h[:n], outputs),
            "effective_dimension": effective_dimension(spread),
            "accuracy": np.mean(decided[:n] == digits.labels),
            "test_accuracy": np.mean(decided[n:] == digits.held_out),
        }

    @functools.cached_property
    def _seen(self) -> Any:
        """The function that gives the features of all digits; one object, so that one program serves all labels."""
        inputs = self.digits(LABELS[0]).inputs.astype("float32")
        return lambda network: network.features(inputs)

    @functools.cached_property
    def recorded(self) -> np.ndarray:
        """Steps at which the networks are measured."""
        return np.unique([0, *np.geomspace(1, self.steps, _RECORDS - 1).round().astype(int), self.steps])

    def digits(self, kind: str) -> _Digits:
        """Training digits, then held-out ones, and what the training digits are labelled with."""
        task, draw = digits(), np.random.default_rng([self.seed, 2])
        rows = draw.permutation(task.samples)[: 2 * self.samples]
        true = np.argmax(task.targets[rows], axis=1)
        labels, held_out = true[: self.samples].copy(), true[self.samples :]
        if kind == "scalar regression":
            # Of mean zero and variance one, if the digits are equally frequent.
            levels = (np.arange(10) - 4.5) / 8.25**0.5
            return _Digits(task.inputs[rows], levels[labels][:, None], labels, held_out, levels)
        share = {"true labels": 0.0, "10 % random labels": 0.1, "100 % random labels": 1.0}[kind]
        drawn = draw.permutation(self.samples)[: round(share * self.samples)]
        labels[drawn] = draw.integers(10, size=len(drawn))
        return _Digits(task.inputs[rows], np.eye(10)[labels], labels, held_out, None)


class _Digits(NamedTuple):
    inputs: np.ndarray
    targets: np.ndarray
    labels: np.ndarray
    held_out: np.ndarray
    levels: np.ndarray | None


def _named(network: str, labels: str) -> str:
    return f"{network}, {labels}"


def _last_weights(network: Any) -> Any:
    return network.classifier


def _last_bias(network: Any) -> Any:
    return network.classifier_bias

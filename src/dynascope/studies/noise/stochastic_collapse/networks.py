"""Networks trained on digits at several learning rates with true and noisy labels, and the claims about them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynascope.comparison import Claim, claim_on_mean
from dynascope.studies.noise.stochastic_collapse.growth_near_zero import growth_near_zero
from dynascope.studies.noise.stochastic_collapse.network_runs import NoisyDigits

__all__ = ["CollapseNetworks"]

_SHORTER = 30  # training time of the MLP over that of the convolutional network
_BEFORE = 4  # training time, in windows, before the growth of a neuron near zero is predicted
_FEWER = 0.01  # smallest decrease in the fraction of independent units that supports the claim
_BETTER = 0.5  # largest error of the prediction from all data over that of the prediction from one minibatch


@dataclasses.dataclass(frozen=True)
class CollapseNetworks:
    """Networks of both architectures, trained at each learning rate with true and with noisy labels.

    Attributes:
        networks: Architectures, "mlp" and "convolutional".
        samples: Number of training digits.
        units: Number of hidden neurons of the MLP; the convolutional network has a quarter as many channels.
        rates: Learning rates of the MLP; the convolutional network uses half of each.
        label_noise: Fraction of the labels redrawn at random at every step.
        batch_size: Number of digits per minibatch.
        weight_decay: Weight decay λ.
        time: Training time of the MLP (sum of learning rates); the convolutional network trains for a thirtieth of this
            time.
        later_time: Further training time at the smallest learning rate with true labels.
        window: Training time over which the growth of a neuron near zero is first predicted, then measured.
        starts: Number of networks per setting.
        seed: Seed of the data and of the initial weights.
    """

    networks: Sequence[str]
    samples: int
    units: int
    rates: Sequence[float]
    label_noise: float
    batch_size: int
    weight_decay: float
    time: float
    later_time: float
    window: float
    starts: int
    seed: int

    def measured(self) -> dict[str, Any]:
        """Train all networks and return axes and values by name."""
        axes = ("architecture", "run", "learning_rate", "start", "time")
        named = _named([self._of_kind(kind) for kind in self.networks])
        found = {name: (axes[: values.ndim], values) for name, values in named.items()}
        found["final_fraction"] = axes[:-1], named["independent_fraction"][..., -1]
        return found | (self._near_zero() if "mlp" in self.networks else {})

    def claims(self, values: Mapping[str, np.ndarray]) -> list[Claim]:
        """The claims about each architecture, with confidence intervals over initial weights."""
        claims = []
        for kind, left, right in zip(self.networks, values["final_fraction"], values["late_accuracy"], strict=True):
            statements: list[tuple[str, str, Any, dict[str, float]]] = [
                (
                    "larger rates",
                    "With noisy labels, fewer units are independent at the largest learning rate than at the smallest",
                    left[-1, -1] - left[-1, 0],
                    {"most": -_FEWER},
                ),
                (
                    "noisy labels",
                    "At the largest learning rate, fewer units are independent with noisy labels than with true labels",
                    left[-1, -1] - left[0, -1],
                    {"most": -_FEWER},
                ),
                (
                    "generalisation",
                    "With noisy labels, the accuracy is higher after training at the largest learning rate than at the "
                    "smallest",
                    right[-1, -1] - right[-1, 0],
                    {"least": 0.0},
                ),
            ]
            for name, text, runs, bounds in statements:
                claims.append(claim_on_mean(f"{kind}: {name}", f"{text} ({kind}).", runs, **bounds))
        if "mlp" in self.networks:
            measured, predicted, by_batch = (values[f"near_{name}"] for name in ("growth", "prediction", "by_batch"))
            errors = [np.sqrt(np.mean((each - measured) ** 2, axis=(0, 1))) for each in (predicted, by_batch)]
            claims += [
                claim_on_mean(
                    "mlp: growing neurons",
                    "With noisy labels, neurons near zero grow on average over the learning rates (mlp).",
                    measured[-1].mean(axis=0),
                    least=0.0,
                ),
                claim_on_mean(
                    "mlp: predicted growth",
                    "Hessians averaged over all data predict the growth near zero with at most half the error of "
                    "Hessians of one minibatch (log of the error ratio, mlp).",
                    np.log(errors[0] / errors[1]),
                    most=float(np.log(_BETTER)),
                ),
            ]
        return claims

    def _of_kind(self, kind: str) -> dict[str, np.ndarray]:
        slower = kind == "convolutional"
        trainings = self._trainings(kind, self.units // 4 if slower else self.units)
        rates = [rate / 2 for rate in self.rates] if slower else self.rates
        options = {"time": self.time / (_SHORTER if slower else 1), "later_time": self.later_time}
        return _named(
            [
                _named([trainings.collapse(rate, noise, later_rate=rates[0], **options) for rate in rates])
                for noise in self._noises
            ]
        )

    def _near_zero(self) -> dict[str, Any]:
        """The measured and predicted growth of neurons near zero."""
        trainings = self._trainings("mlp", self.units)
        times = {"time": _BEFORE * self.window, "window": self.window}
        found = np.array(
            [[growth_near_zero(trainings, rate, noise, **times) for rate in self.rates] for noise in self._noises]
        )
        axes, names = ("run", "learning_rate", "start"), ("near_growth", "near_prediction", "near_by_batch")
        return {name: (axes, found[:, :, place]) for place, name in enumerate(names)}

    def _trainings(self, kind: Any, units: int) -> NoisyDigits:
        shared = {name: getattr(self, name) for name in ("samples", "batch_size", "weight_decay", "starts", "seed")}
        return NoisyDigits(kind, units=units, **shared)

    @property
    def _noises(self) -> tuple[float, float]:
        return 0.0, self.label_noise


def _named(parts: Sequence[Mapping[str, Any]]) -> dict[str, np.ndarray]:
    """Stack arrays of the same name along a new first axis."""
    return {name: np.array([each[name] for each in parts]) for name in parts[0]}

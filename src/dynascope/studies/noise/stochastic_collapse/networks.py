"""Networks on digits at several rates, with true and with noisy labels: what is left of them, and what is claimed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynascope.comparison import Claim
from dynascope.studies.noise.stochastic_collapse.growth_near_zero import growth_near_zero
from dynascope.studies.noise.stochastic_collapse.network_runs import NoisyDigits

__all__ = ["CollapseNetworks"]

_FASTER = 30  # by which factor the convolutional network is trained for less time
_BEFORE = 4  # windows that pass before the growth of a neuron near zero is foretold
_FEWER = 0.01  # of the units, by which there are fewer of them if there are
_BETTER = 0.5  # of the error of a forecast by one batch, which that by all data has at most


@dataclasses.dataclass(frozen=True)
class CollapseNetworks:
    """Networks of both kinds, all trained at each rate with true labels and with noisy ones.

    Attributes:
        networks: Kinds of networks, of "mlp" and "convolutional".
        samples: Number of training digits.
        units: Neurons of the MLP; the convolutional network has a quarter as many channels.
        rates: Learning rates of the MLP; the convolutional network has half of them.
        label_noise: Share of the labels that are random in every step.
        batch_size: Digits in a step.
        weight_decay: λ.
        time: Sum of the learning rates of the MLP; the convolutional network has a thirtieth.
        later_time: The same afterwards, at the smallest rate with true labels.
        window: The same in which the growth of a neuron near zero is foretold, and in which it is then seen.
        starts: Number of networks of each setting.
        seed: Seed of the data and of the first weights.
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
        """By name the axes and the values, of every start."""
        axes = ("architecture", "run", "learning_rate", "start", "time")
        named = _named([self._of_kind(kind) for kind in self.networks])
        found = {name: (axes[: values.ndim], values) for name, values in named.items()}
        found["final_fraction"] = axes[:-1], named["independent_fraction"][..., -1]
        return found | (self._near_zero() if "mlp" in self.networks else {})

    def claims(self, values: Mapping[str, np.ndarray]) -> list[Claim]:
        """What is claimed of each kind of network, with intervals over starts."""
        claims = []
        for kind, left, right in zip(self.networks, values["final_fraction"], values["late_accuracy"], strict=True):
            said: list[tuple[str, str, Any, dict[str, float]]] = [
                (
                    "larger rates",
                    "Noisy labels leave fewer independent units at the largest rate than at the smallest",
                    left[-1, -1] - left[-1, 0],
                    {"most": -_FEWER},
                ),
                (
                    "noisy labels",
                    "At the largest rate noisy labels leave fewer independent units than true ones",
                    left[-1, -1] - left[0, -1],
                    {"most": -_FEWER},
                ),
                (
                    "generalisation",
                    "After the largest rate on noisy labels more is known of held-out digits than after the smallest",
                    right[-1, -1] - right[-1, 0],
                    {"least": 0.0},
                ),
            ]
            for name, text, runs, bounds in said:
                claims.append(Claim.of_runs(f"{kind}: {name}", f"{text} ({kind}).", runs, **bounds))
        if "mlp" in self.networks:
            grown, foretold, by_batch = (values[f"near_{name}"] for name in ("growth", "foretold", "by_batch"))
            errors = [np.sqrt(np.mean((each - grown) ** 2, axis=(0, 1))) for each in (foretold, by_batch)]
            claims += [
                Claim.of_runs(
                    "mlp: living neurons",
                    "With noisy labels neurons near zero grow, on average over the rates (mlp).",
                    grown[-1].mean(axis=0),
                    least=0.0,
                ),
                Claim.of_runs(
                    "mlp: foretold",
                    "Hessians of all data foretell that growth with at most half the error of those of one batch: the "
                    "logarithm of the ratio (mlp).",
                    np.log(errors[0] / errors[1]),
                    most=float(np.log(_BETTER)),
                ),
            ]
        return claims

    def _of_kind(self, kind: str) -> dict[str, np.ndarray]:
        slower = kind == "convolutional"
        trainings = self._trainings(kind, self.units // 4 if slower else self.units)
        rates = [rate / 2 for rate in self.rates] if slower else self.rates
        options = {"time": self.time / (_FASTER if slower else 1), "later_time": self.later_time}
        return _named(
            [
                _named([trainings.collapse(rate, noise, later_rate=rates[0], **options) for rate in rates])
                for noise in self._noises
            ]
        )

    def _near_zero(self) -> dict[str, Any]:
        """The growth of neurons near zero, seen and foretold."""
        trainings = self._trainings("mlp", self.units)
        times = {"time": _BEFORE * self.window, "window": self.window}
        found = np.array(
            [[growth_near_zero(trainings, rate, noise, **times) for rate in self.rates] for noise in self._noises]
        )
        axes, names = ("run", "learning_rate", "start"), ("near_growth", "near_foretold", "near_by_batch")
        return {name: (axes, found[:, :, place]) for place, name in enumerate(names)}

    def _trainings(self, kind: Any, units: int) -> NoisyDigits:
        shared = {name: getattr(self, name) for name in ("samples", "batch_size", "weight_decay", "starts", "seed")}
        return NoisyDigits(kind, units=units, **shared)

    @property
    def _noises(self) -> tuple[float, float]:
        return 0.0, self.label_noise


def _named(parts: Sequence[Mapping[str, Any]]) -> dict[str, np.ndarray]:
    """Arrays of the same names, one in front of the other."""
    return {name: np.array([each[name] for each in parts]) for name in parts[0]}

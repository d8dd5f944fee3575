"""Networks trained on images: forecast and measured displacement under continued SGD."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import Any, Literal

import equinox as eqx
import jax
import numpy as np

from dynascope.comparison import Claim
from dynascope.flows.progress import announce
from dynascope.networks import ResNet18
from dynascope.networks.normalised_convolutional import NormalisedConvolutional
from dynascope.probes.diffusion import fit_exponent
from dynascope.studies.noise.anomalous_diffusion.displacement import (
    noise_modes,
    squared_displacements,
    warmed_up,
)
from dynascope.tasks import Labelled
from dynascope.tasks.data.named_images import image_shape, named_images
from dynascope.theory import SGD
from dynascope.theory.noise import stationary_displacement
from dynascope.training.step_time import formatted_duration, seconds_of_step

__all__ = ["NETWORK_CLAIMS", "RestingNetworks"]

NETWORK_CLAIMS = ("network: forecast", "network: slow")
_RECORDS, _CHANNELS = 30, (4, 8)
_BEYOND = 4  # last recorded step over the last step of the window, to show where the forecast fails
_LOSS_FALL = 0.2  # largest relative fall of the loss in the second half of the warm-up
_ROUNDING = 1e-6  # rounding of a step number


@dataclasses.dataclass(frozen=True)
class RestingNetworks:
    """Image classifiers, trained by SGD until the loss is stationary and then further to measure weight displacement.

    Attributes:
        data: "digits", or the path to labelled images.
        network: "small" or "resnet18".
        samples: Number of images.
        random_labels: Fraction of random labels.
        width: Number of neurons in the hidden dense layer; for ResNet-18, number of channels in the first stage.
        learning_rate: η.
        momentum: β.
        weight_decay: λ.
        batch_size: S.
        starts: Number of networks.
        warm_up: Number of steps before the displacement is measured.
        legs: Number of consecutive time origins over which displacements are averaged.
        batches: Number of minibatches on which noise and curvature are measured.
        products: Number of matrix-vector products per minibatch in the measurement of the curvature.
        seed: Seed of the first network, its data and all minibatches.
    """

    data: str
    network: Literal["small", "resnet18"]
    samples: int
    random_labels: float
    width: int
    learning_rate: float
    momentum: float
    weight_decay: float
    batch_size: int
    starts: int
    warm_up: int
    legs: int
    batches: int
    products: int
    seed: int

    @property
    def window(self) -> tuple[int, int]:
        """The first and last step of the window in which the exponent is measured."""
        forgotten = (1 - self.momentum) / (2 * self.learning_rate * self.weight_decay)
        return math.ceil(1 / (1 - self.momentum) - _ROUNDING), math.floor(forgotten + _ROUNDING)

    @functools.cached_property
    def steps(self) -> np.ndarray:
        """The recorded steps, including steps beyond the window."""
        return np.unique(np.geomspace(1, _BEYOND * self.window[1], _RECORDS).round().astype(int))

    def measured(self) -> dict[str, Any]:
        """Train, forecast the displacement, and only then continue training.

        Returns:
            The axes and values of each quantity.
        """
        sgd = {name: getattr(self, name) for name in ("learning_rate", "momentum", "weight_decay", "batch_size")}
        training: Any = sgd | {"loss": "cross_entropy", "seed": self.seed}
        networks = [self.initial(number) for number in range(self.starts)]
        if self.network == "resnet18":
            announce(self.time_estimate(seconds_of_step(self.images, networks[0], self.batch_size)))
        resting, losses = warmed_up(self.images, networks, self.warm_up, **training)
        options = {name: getattr(self, name) for name in ("batch_size", "batches", "products")}
        forecast = np.stack(
            [
                stationary_displacement(np.maximum(each.curvature, 0), each.noise, self.steps, SGD(**sgd))
                for each in noise_modes(self.images, resting, **options, seed=self.seed + 1)
            ]
        )
        further = training | {"seed": self.seed + 1}
        seen = squared_displacements(self.images, resting, self.steps, legs=self.legs, **further)
        first, last = self.window
        fit, difference, predicted = (
            fit_exponent(self.steps, each, first=first, last=last) for each in (seen, seen / forecast, forecast)
        )
        late = fit_exponent(self.steps, seen, first=last, last=int(self.steps[-1]))
        inside = (self.steps >= first) & (self.steps <= last)
        log_ratio = np.log(seen.mean(axis=0) / forecast.mean(axis=0))[inside]
        return {
            "network_displacement": (("start", "step"), seen),
            "forecast_displacement": (("start", "step"), forecast),
            "network_exponent": ((), fit.exponent),
            "network_low": ((), fit.low),
            "network_high": ((), fit.high),
            "forecast_exponent": ((), predicted.exponent),
            "exponent_off": ((), difference.exponent),
            "off_low": ((), difference.low),
            "off_high": ((), difference.high),
            "late_exponent": ((), late.exponent),
            "forecast_ratio": ((), np.exp(log_ratio.mean())),
            "loss_change": ("start", losses[:, 1] / losses[:, 0] - 1),
            "loss": ("start", losses[:, 1]),
        }

    def time_estimate(self, seconds: float) -> str:
        """A sentence that states the expected run time, given the seconds per step of one network."""
        # A curvature-vector product on a minibatch needs two forward passes and costs four thirds of a step.
        forecast = 4 / 3 * self.batches**2 * self.products
        steps = self.starts * (self.warm_up + self.legs * int(self.steps[-1]) + forecast)
        duration = formatted_duration(seconds * steps)
        return f"The run will take about {duration} on this machine: {steps:.3g} steps of {seconds:.2g} seconds each."

    def claims(self, values: Mapping[str, Any], most: float) -> list[Claim]:
        """The claims that the exponent is within `most` of the forecast and below that of ordinary diffusion."""
        difference, exponent = (
            [float(values[name]) for name in names]
            for names in (("exponent_off", "off_low", "off_high"), ("network_exponent", "network_low", "network_high"))
        )
        falls, drifts = np.mean(values["loss_change"]) <= -_LOSS_FALL, values["late_exponent"] >= 1
        forecast, slow = NETWORK_CLAIMS
        claims = [
            Claim(
                forecast,
                f"The diffusion exponent of the networks is within {most:g} of the forecast.",
                *difference,
                least=-most,
                most=most,
            ),
            Claim(
                slow,
                "The diffusion exponent of the networks is below 1, the exponent of ordinary diffusion.",
                *exponent,
                most=1.0,
            ),
        ]
        still = f"the loss fell by more than {100 * _LOSS_FALL:.0f} % in the second half of the warm-up"
        # A displacement that grows faster than free diffusion shows that the network is still approaching a minimum.
        faster = "the weights move faster than under free diffusion, so they are not stationary"
        return [each.if_known(not falls, still).if_known(not drifts, faster) for each in claims]

    @functools.cached_property
    def images(self) -> Labelled:
        """The images, some with random labels."""
        found = named_images(self.data, self.samples, seed=self.seed)
        draw, labels = np.random.default_rng(self.seed), found.labels.copy()
        random = draw.random(len(labels)) < self.random_labels
        labels[random] = draw.integers(len(found.class_names), size=int(random.sum()))
        kind = np.float32 if self.network == "resnet18" else np.float64
        return Labelled(found.inputs.astype(kind), labels, found.class_names, name="images")

    def initial(self, number: int) -> ResNet18 | NormalisedConvolutional:
        """A network before training; ResNet-18 in single precision."""
        outputs, (height, width, colours) = len(self.images.class_names), image_shape(self.images)
        chosen = self.seed + number
        if self.network == "resnet18":
            network = ResNet18((height, width, colours), outputs, width=self.width, seed=chosen)
            return jax.tree.map(lambda leaf: leaf.astype(np.float32) if eqx.is_inexact_array(leaf) else leaf, network)
        options: Any = {"channels": _CHANNELS, "width": self.width, "colours": colours}
        return NormalisedConvolutional(height, outputs, seed=chosen, **options)

"""Networks on images that have come to rest: how far it is forecast that they wander, and how far they then do."""

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
from dynascope.studies.noise.anomalous_diffusion.displacement import noise_modes, seconds_of_step, settled, wandered
from dynascope.tasks import Labelled
from dynascope.tasks.data.named_images import image_shape, named_images
from dynascope.theory.noise import stationary_displacement

__all__ = ["NETWORK_CLAIMS", "RestingNetworks"]

NETWORK_CLAIMS = ("network: forecast", "network: slow")
_RECORDS, _CHANNELS = 30, (4, 8)
_BEYOND = 4  # times the window, to see where the forecast ends
_RESTING = 0.2  # of the loss, which may fall in the second half of the time to come to rest
_HOURS = 7200  # seconds from which on they are told in hours
_ROUNDING = 1e-6  # of a step


@dataclasses.dataclass(frozen=True)
class RestingNetworks:
    """Classifiers of images, some with random labels, trained by heavy ball until the loss rests, and then on.

    Attributes:
        data: "digits", or the path of labelled images.
        network: "small" or "resnet18".
        samples: Number of images.
        random_labels: Fraction of the labels that are drawn at random.
        width: Neurons of the hidden dense layer; of ResNet-18, channels of its first stage.
        learning_rate: η.
        momentum: β.
        weight_decay: λ.
        batch_size: S.
        starts: Number of networks.
        warm_up: Steps until they have come to rest.
        legs: Origins of displacements over which these are averaged.
        batches: Batches from which noise and curvature are measured.
        products: Products with the curvature for each of them.
        seed: Seed of the first network, of its data and of all batches.
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
        """The first and the last step for which the forecast is judged."""
        forgotten = (1 - self.momentum) / (2 * self.learning_rate * self.weight_decay)
        return math.ceil(1 / (1 - self.momentum) - _ROUNDING), math.floor(forgotten + _ROUNDING)

    @functools.cached_property
    def steps(self) -> np.ndarray:
        """The steps at which networks are looked at, beyond the window too."""
        return np.unique(np.geomspace(1, _BEYOND * self.window[1], _RECORDS).round().astype(int))

    def measured(self) -> dict[str, Any]:
        """Train them, forecast how far they go, and only then let them: by name the axes and the values."""
        sgd = {name: getattr(self, name) for name in ("learning_rate", "momentum", "weight_decay", "batch_size")}
        training: Any = sgd | {"loss": "cross_entropy", "seed": self.seed}
        networks = [self.first(number) for number in range(self.starts)]
        if self.network == "resnet18":
            announce(self.told_time(seconds_of_step(networks[0], self.images, self.batch_size)))
        resting, losses = settled(networks, self.images, self.warm_up, **training)
        asked = {name: getattr(self, name) for name in ("batch_size", "batches", "products")}
        forecast = np.stack(
            [
                stationary_displacement(np.maximum(each.curvature, 0), each.noise, self.steps, **sgd)
                for each in noise_modes(resting, self.images, **asked, seed=self.seed + 1)
            ]
        )
        further = training | {"seed": self.seed + 1}
        seen = wandered(resting, self.images, self.steps, legs=self.legs, **further)
        first, last = self.window
        fit, off, said = (
            fit_exponent(self.steps, each, first=first, last=last) for each in (seen, seen / forecast, forecast)
        )
        late = fit_exponent(self.steps, seen, first=last, last=int(self.steps[-1]))
        inside = (self.steps >= first) & (self.steps <= last)
        gone = np.log(seen.mean(axis=0) / forecast.mean(axis=0))[inside]
        return {
            "network_displacement": (("start", "step"), seen),
            "forecast_displacement": (("start", "step"), forecast),
            "network_exponent": ((), fit.exponent),
            "network_low": ((), fit.low),
            "network_high": ((), fit.high),
            "forecast_exponent": ((), said.exponent),
            "exponent_off": ((), off.exponent),
            "off_low": ((), off.low),
            "off_high": ((), off.high),
            "late_exponent": ((), late.exponent),
            "forecast_ratio": ((), np.exp(gone.mean())),
            "loss_change": ("start", losses[:, 1] / losses[:, 0] - 1),
            "loss": ("start", losses[:, 1]),
        }

    def told_time(self, seconds: float) -> str:
        """A sentence that says how long it takes where a step of a network takes so many seconds."""
        # A product with the curvature of a batch costs four thirds of a step, as it goes forth twice.
        forecast = 4 / 3 * self.batches**2 * self.products
        steps = self.starts * (self.warm_up + self.legs * int(self.steps[-1]) + forecast)
        told = (
            f"{seconds * steps / 60:.3g} minutes" if seconds * steps < _HOURS else f"{seconds * steps / 3600:.3g} hours"
        )
        return f"It takes about {told} here: {steps:.3g} steps of {seconds:.2g} seconds, as measured on one."

    def claims(self, values: Mapping[str, Any], most: float) -> list[Claim]:
        """That the exponent is within `most` of the forecast, and below that of ordinary diffusion."""
        off, own = (
            [float(values[name]) for name in names]
            for names in (("exponent_off", "off_low", "off_high"), ("network_exponent", "network_low", "network_high"))
        )
        falls, drifts = np.mean(values["loss_change"]) <= -_RESTING, values["late_exponent"] >= 1
        forecast, slow = NETWORK_CLAIMS
        said = f"Networks wander with the exponent that was forecast to {most:g}."
        claims = [
            Claim(forecast, said, *off, least=-most, most=most),
            Claim(slow, "Networks wander slower than by ordinary diffusion, of exponent 1.", *own, most=1.0),
        ]
        still = f"the loss still fell by more than {100 * _RESTING:.0f} % in the second half of the warm-up"
        # Displacement that grows faster than in a free walk means that the network still approaches a minimum.
        faster = "the networks still move faster than a free walk, so they have not come to rest"
        return [each.if_known(not falls, still).if_known(not drifts, faster) for each in claims]

    @functools.cached_property
    def images(self) -> Labelled:
        """Images, some of them with labels that are drawn at random."""
        found = named_images(self.data, self.samples, seed=self.seed)
        draw, labels = np.random.default_rng(self.seed), found.labels.copy()
        random = draw.random(len(labels)) < self.random_labels
        labels[random] = draw.integers(len(found.class_names), size=int(random.sum()))
        kind = np.float32 if self.network == "resnet18" else np.float64
        return Labelled(found.inputs.astype(kind), labels, found.class_names, name="images")

    def first(self, number: int) -> ResNet18 | NormalisedConvolutional:
        """One of them before training; ResNet-18 in single precision."""
        outputs, (height, width, colours) = len(self.images.class_names), image_shape(self.images)
        chosen = self.seed + number
        if self.network == "resnet18":
            network = ResNet18((height, width, colours), outputs, width=self.width, seed=chosen)
            return jax.tree.map(lambda leaf: leaf.astype(np.float32) if eqx.is_inexact_array(leaf) else leaf, network)
        options: Any = {"channels": _CHANNELS, "width": self.width, "colours": colours}
        return NormalisedConvolutional(height, outputs, seed=chosen, **options)

"""How far SGD wanders at the end of training: exponents from the spectrum of the curvature, forecast and measured."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import xarray as xr

from dynascope.comparison import Claim
from dynascope.errors import InputError
from dynascope.results import Comparison, name_all
from dynascope.studies import ClaimsStudy, Reference, Values, curve_tolerance
from dynascope.studies.fields import choice, count, fraction, number, numbers, positive, seed, text
from dynascope.studies.noise.anomalous_diffusion.networks import NETWORK_CLAIMS, RestingNetworks
from dynascope.studies.noise.anomalous_diffusion.page import FIGURES, MEANING
from dynascope.studies.noise.anomalous_diffusion.regression import DECADE, PowerLawRegression
from dynascope.tasks.data.named_images import image_shape
from dynascope.theory import papers
from dynascope.theory.noise import (
    anomalous_exponent,
    diffusion_window,
    displacement_exponent,
)

_DIGITS = 1797
_RATE = 0.01  # η of the modes that are summed
_CLOSE = 0.02  # of the slope of many modes to min(1, 1/p)
_OFF = 0.1  # what an exponent may be off: less than the sixth from p = 1.5 to 2, and from 2 to 3


class AnomalousDiffusion(ClaimsStudy):
    """Displacements E‖θ_k − θ_0‖² of SGD that has come to rest, and the exponent c of kᶜ, for spectra and for networks.

    Each mode of the curvature wanders as a random walk until its restoring force holds it. Where curvatures fall as
    l⁻ᵖ and noise is in proportion to them, the number of modes that are held grows as k^{1/p}, and c = min(1, 1/p). The
    exponent of `modes` modes, summed exactly in the window 1 ≪ τ ≪ dᵖ that `diffusion_window` states, is held to this
    as a check (`mode_exponent`). Simulated is SGD on regressions of `inputs` inputs of such a covariance, from weights
    drawn from the stationary law: judged is whether each exponent is within 0.1 of that of its modes, over a decade.

    Then networks are trained on images until they have come to rest, and their curvature and noise are measured from
    some batches. Before a further step is made, theory forecasts how far they will wander, without any parameter to be
    fitted; then they go on. Judged is whether the exponent that follows is within 0.1 of the forecast, and below that
    of ordinary diffusion, in the steps from 1/(1 − β), which momentum remembers, to half of (1 − β)/(ηλ), after which
    weight decay forgets. Noise is taken as constant and the loss as quadratic, so that this is for networks that rest:
    where the loss fell by more than a fifth in the last half of the warm-up (`loss_change`), or weights go faster than
    freely beyond the window (`late_exponent` above 1), nothing is judged of them. There real minima are less steep than
    their curvature says, and weights go farther than the forecast.

    With `data` as the path of images in IDX, CIFAR or folder form and `network` as "resnet18" it is the experiment of
    the source, for a GPU: a step of 20 colour images of 32 × 32 pixels at width 64 takes 7 · 10¹⁰ operations in single
    precision, a second or two on a core, and the forecast of a network as many as `batches`² · `products` · 4/3 steps.
    How long all will take is measured on one step and said before the first.
    """

    powers: list[float] = numbers([0.5, 1.5, 2.0, 3.0], "Powers p of the spectra l⁻ᵖ.", least=0.3, most=4.0)
    modes: int = count(100_000, "d, modes over which exponents are summed exactly.", least=10_000)
    inputs: int = count(400, "Inputs of the regressions that are simulated.", least=100, most=2000)
    runs: int = count(200, "Simulated runs of each spectrum.", least=10)
    data: str = text("digits", '"digits", or the path of labelled images.')
    network: Literal["small", "resnet18"] = choice("small", '"small" or "resnet18", the network that is trained.')
    samples: int = count(200, "Number of images; of digits at most 1797.", least=20)
    random_labels: float = fraction(0.1, "Fraction of the labels that are drawn at random, so that noise persists.")
    width: int = count(8, "Neurons of the hidden dense layer; of ResNet-18, channels of its first stage.")
    learning_rate: float = positive(0.01, "η of the networks.")
    momentum: float = number(0.9, "β of heavy ball.", least=0.0, most=0.99)
    weight_decay: float = positive(0.02, "λ of ½ λ‖θ‖².")
    batch_size: int = count(20, "S, images in a step, drawn with replacement.", least=5, most="samples")
    starts: int = count(8, "Number of networks.", least=3)
    warm_up: int = count(4000, "Steps until networks have come to rest.", least=100)
    legs: int = count(8, "Origins of displacements, one after the other, over which these are averaged.")
    batches: int = count(12, "Batches from which noise and curvature are measured.", least=4)
    products: int = count(16, "Products with the curvature for each of them.", least=4, most=200)
    seed: int = seed("Seed of the first network, of its data and of all batches.")

    reference = Reference.of(
        papers.LIMITING_DYNAMICS,
        "Long after the loss has come to rest weights go on to wander, as a power of the number of steps whose "
        "exponent the spectrum of the curvature sets.",
    )
    title = "Anomalous diffusion"
    question = "How far do weights wander once training has come to rest?"
    meaning = MEANING
    minutes = 1.1
    theory = "diffusion over a spectrum of curvatures"
    task = "regression, and labelled images"
    told = (
        "Regressions of {inputs} Gaussian inputs with variances l⁻ᵖ, for p of {powers}, with noisy targets.",
        "{samples} images ({data}), a fraction {random_labels:g} of them with random labels; cross-entropy.",
    )
    trains = "linear, and convolutional with batch normalisation ({network})"
    flow = "heavy ball with rate {learning_rate:g}, momentum {momentum:g}, decay {weight_decay:g}, {batch_size} a step"
    along = "spectrum"
    names = {
        "mode_exponent": ("exponent of diffusion, summed over modes", "1"),
        "sgd_exponent": ("exponent of diffusion of SGD", "1"),
        "sgd_low": ("low end of the interval of that exponent", "1"),
        "sgd_high": ("high end of the interval of that exponent", "1"),
        "squared_displacement": ("squared displacement of regressions", "1"),
        "network_displacement": ("squared displacement of networks", "1"),
        "forecast_displacement": ("squared displacement that was forecast", "1"),
        "network_exponent": ("exponent of diffusion of networks", "1"),
        "network_low": ("low end of the interval of the exponent of networks", "1"),
        "network_high": ("high end of the interval of the exponent of networks", "1"),
        "forecast_exponent": ("exponent of networks that was forecast", "1"),
        "exponent_off": ("exponent of networks less that forecast", "1"),
        "off_low": ("low end of the interval of what the forecast misses", "1"),
        "off_high": ("high end of the interval of what the forecast misses", "1"),
        "late_exponent": ("exponent of networks beyond the window", "1"),
        "forecast_ratio": ("squared displacement over that forecast", "1"),
        "loss_change": ("change of the loss in the second half of the warm-up", "1"),
        "window_step": ("optimiser step, over the first of a window", "1"),
        "spectrum": ("power p of a spectrum l⁻ᵖ", "1"),
    }
    labelled = {"spectrum": "powers", "window_step": DECADE, "step": "_steps"}
    tolerance = curve_tolerance(
        mode_exponent=(_CLOSE, "half of it is what the window leaves to the slope, and half to momentum and few steps")
    )
    checks = tuple(tolerance)
    tiny = {
        **{"powers": [2.0], "inputs": 100, "runs": 100, "weight_decay": 0.04, "starts": 3},
        **{"modes": 20_000, "warm_up": 1200, "legs": 3, "batches": 5, "products": 8},
    }
    figures = FIGURES

    def check(self) -> None:
        """A window between what momentum remembers and what decay forgets, and modes enough for one of each power."""
        begin, end = self._networks.window
        problem = f"(1 − β)/(2ηλ) is {end} and 1/(1 − β) {begin} steps, which leave no window"
        memory = f"warm_up is {self.warm_up}, and weight decay forgets the start in {2 * end} steps"
        self.require(self.warm_up >= 8 * end, "warm_up", f"choose at least {8 * end}", problem=memory)
        self.require(end >= 5 * begin, "weight_decay", "choose a smaller one, or less momentum", problem=problem)
        self.require(self.data != "digits" or self.samples <= _DIGITS, "samples", f"choose at most {_DIGITS} digits")
        for power, task in zip(self.powers, self._regressions, strict=True):
            try:
                diffusion_window(power=power, modes=self.modes, learning_rate=_RATE, tolerance=_CLOSE)
                _ = task.window
            except InputError as none:
                remedy = "choose powers that are further from one, or more inputs"
                raise InputError(str(none).partition(":")[0], argument="powers", value=power, remedy=remedy) from none

    @property
    def judged_claims(self) -> tuple[str, ...]:
        """The exponent of each spectrum, and the forecast of networks."""
        return (*(f"p = {power:g}" for power in self.powers), *NETWORK_CLAIMS)

    def trained(self) -> Values:
        """Simulate regressions; train networks, forecast how far they go, and only then let them."""
        height, width, _ = image_shape(self._networks.images)
        problem = f"images have {height} × {width} pixels, and the small network is for square ones"
        self.require(self.network == "resnet18" or height == width, "network", "choose resnet18", problem=problem)
        simulated = [each.simulated(self.runs) for each in self._regressions]
        fits = [task.fitted(each) for task, each in zip(self._regressions, simulated, strict=True)]
        exponents, low, high = np.transpose([each[:3] for each in fits])
        return {
            "mode_exponent": ("spectrum", [self._mode_exponent(power) for power in self.powers]),
            "sgd_exponent": ("spectrum", exponents),
            "sgd_low": ("spectrum", low),
            "sgd_high": ("spectrum", high),
            "squared_displacement": (("spectrum", "window_step"), [each.mean(axis=0) for each in simulated]),
            **self._networks.measured(),
        }

    def claimed(self, found: Mapping[str, Any]) -> Sequence[Claim]:
        """How far exponents are from theory, of each spectrum and of networks."""
        value = {name: each[1] for name, each in found.items()}
        expected = [each.exponent for each in self._regressions]
        claims = [
            Claim(
                f"p = {power:g}",
                f"SGD over the spectrum l⁻ᵖ with p = {power:g} has the exponent of its modes to {_OFF:g}.",
                *(float(value[name][place] - expected[place]) for name in ("sgd_exponent", "sgd_low", "sgd_high")),
                least=-_OFF,
                most=_OFF,
            )
            for place, power in enumerate(self.powers)
        ]
        return [*claims, *self._networks.claims(value, _OFF)]

    def exact(self) -> Values:
        """min(1, 1/p)."""
        return {"mode_exponent": ("spectrum", anomalous_exponent(self.powers))}

    def compare(self, observed: xr.Dataset, predicted: xr.Dataset) -> Comparison:
        """With what is said of the regressions and of the networks, whose exponents are judged by claims."""
        tree = super().compare(observed, predicted)
        tasks = self._regressions
        said = self.record(
            {
                "sgd_exponent": ("spectrum", [each.exponent for each in tasks]),
                "squared_displacement": (("spectrum", "window_step"), [each.squared_displacement for each in tasks]),
            }
        ).drop_attrs()
        forecast = observed["forecast_displacement"].drop_attrs()
        return dataclasses.replace(
            tree, predicted=name_all(predicted.merge(said).assign(network_displacement=forecast), self.names)
        )

    @functools.cached_property
    def _networks(self) -> RestingNetworks:
        return self.part(RestingNetworks)

    @property
    def _steps(self) -> np.ndarray:
        return self._networks.steps

    def _mode_exponent(self, power: float) -> float:
        """The exponent of many modes, summed exactly, in the window of theory."""
        window = diffusion_window(power=power, modes=self.modes, learning_rate=_RATE, tolerance=_CLOSE)
        curvature = np.arange(1.0, self.modes + 1) ** -power
        ends = {"first": window.first, "last": window.last}
        return displacement_exponent(curvature, curvature, **ends, learning_rate=_RATE)

    @functools.cached_property
    def _regressions(self) -> list[PowerLawRegression]:
        return [PowerLawRegression(power, self.inputs, self.seed) for power in self.powers]

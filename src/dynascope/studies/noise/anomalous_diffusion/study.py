"""Anomalous diffusion of SGD at the end of training, with exponents predicted from the curvature spectrum."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import xarray as xr
from annotated_types import Ge, Interval

from dynascope.comparison import Claim
from dynascope.results import Comparison, name_all
from dynascope.studies import ClaimsStudy, Reference, Values, curve_tolerance, parameter
from dynascope.studies.noise.anomalous_diffusion import page
from dynascope.studies.noise.anomalous_diffusion.experiment import Experiment
from dynascope.studies.noise.anomalous_diffusion.networks import NETWORK_CLAIMS
from dynascope.studies.noise.anomalous_diffusion.regression import DECADE
from dynascope.theory import papers
from dynascope.validation.bounded import Fraction, PositiveFloat, PositiveInt, Seed

_DIGITS = 1797
_CLOSE = 0.1  # tolerance of an exponent, below the difference 1/6 between p = 1.5 and 2 and between p = 2 and 3


class AnomalousDiffusion(ClaimsStudy):
    """Measures the exponent c of E‖θ_k − θ_0‖² ∝ kᶜ under stationary SGD, for regressions and networks.

    Along each eigenvector of the Hessian (mode), the weights diffuse freely until the restoring force confines them. If
    the curvatures decay as l⁻ᵖ and the noise is proportional to them, the number of confined modes grows as k^{1/p}, so
    c = min(1, 1/p). As a check (`mode_exponent`), the study compares this formula with an exact sum over d = `modes`
    modes. The comparison uses only steps in the window between the relaxation times of the steepest and the flattest
    mode (`diffusion_window`). The study then simulates SGD on linear regressions with `inputs` inputs, whose variances
    decay as l⁻ᵖ. The initial weights are drawn from the stationary distribution. For each spectrum, one claim states
    that the exponent measured over a decade of steps is within 0.1 of the exponent predicted for this finite number of
    modes.

    The study also trains networks on images until the loss is stationary, and measures curvature and gradient noise on
    a few minibatches. From these measurements alone, the theory forecasts the displacement during further training,
    without fitted parameters. Two claims state that the measured exponent is within 0.1 of the forecast and below 1,
    the exponent of ordinary diffusion. The exponent is measured in the window between 1/(1 − β) steps, the memory time
    of momentum, and (1 − β)/(2ηλ) steps, half the memory time of weight decay. The theory assumes that the weights have
    reached their stationary distribution, that the noise is constant, and that the loss is quadratic. The claims are
    undecided if the loss falls by more than a fifth in the second half of the warm-up (`loss_change`). They are also
    undecided if, beyond this window, the displacement grows faster than under free diffusion (`late_exponent` above 1).
    Beyond the window, the weights move so far that the loss grows more slowly than the curvature at the minimum
    suggests, and the displacement exceeds the forecast.

    To repeat the paper's experiment, pass the path to images in IDX, CIFAR or folder format as `data`, and "resnet18"
    as `network`. This experiment requires a GPU: a step on 20 colour images of 32 × 32 pixels at width 64 involves 7 ·
    10¹⁰ single-precision operations, which take one to two seconds on a CPU core. The forecast for a network costs as
    much as `batches`² · `products` · 4/3 training steps. The study first times one step and prints an estimate of the
    run time.
    """

    powers: list[Annotated[float, Interval(ge=0.3, le=4)]] = parameter(
        [0.5, 1.5, 2.0, 3.0], "Exponents p of the curvature spectra l⁻ᵖ."
    )
    modes: Annotated[int, Ge(10_000)] = parameter(100_000, "Number d of modes in the exact sum.")
    inputs: Annotated[int, Interval(ge=100, le=2000)] = parameter(400, "Number of inputs of the simulated regressions.")
    runs: Annotated[int, Ge(10)] = parameter(200, "Number of simulated runs per spectrum.")
    data: str = parameter("digits", '"digits", or the path to labelled images.')
    network: Literal["small", "resnet18"] = parameter("small", 'The network to train, "small" or "resnet18".')
    samples: Annotated[int, Ge(20)] = parameter(200, "Number of images; at most 1797 for the digits.")
    random_labels: Fraction = parameter(0.1, "Fraction of random labels, which keep the gradient noise from vanishing.")
    width: PositiveInt = parameter(
        8, "Number of neurons in the hidden dense layer; for ResNet-18, number of channels in the first stage."
    )
    learning_rate: PositiveFloat = parameter(0.01, "Learning rate η of the networks.")
    momentum: Annotated[float, Interval(ge=0, le=0.99)] = parameter(0.9, "Momentum β (heavy ball).")
    weight_decay: PositiveFloat = parameter(0.02, "Weight decay λ, which adds ½ λ‖θ‖² to the loss.")
    batch_size: Annotated[int, Ge(5)] = parameter(
        20, "Number S of images per minibatch, drawn with replacement.", most="samples"
    )
    starts: Annotated[int, Ge(3)] = parameter(8, "Number of networks, with different initial weights.")
    warm_up: Annotated[int, Ge(100)] = parameter(4000, "Number of steps before the displacement is measured.")
    legs: PositiveInt = parameter(8, "Number of consecutive time origins over which displacements are averaged.")
    batches: Annotated[int, Ge(4)] = parameter(12, "Number of minibatches on which noise and curvature are measured.")
    products: Annotated[int, Interval(ge=4, le=200)] = parameter(
        16, "Number of matrix-vector products per minibatch in the measurement of the curvature."
    )
    seed: Seed = parameter(0, "Seed of the first network, its data and all minibatches.")

    reference = Reference.of(
        papers.LIMITING_DYNAMICS,
        "Long after the loss has converged, the weights keep moving. Their squared displacement grows as a power of "
        "the number of steps, and the curvature spectrum determines the exponent.",
    )
    title = "Anomalous diffusion"
    question = "How far do the weights move after the loss has converged?"
    figures, meaning = page.figures, page.meaning
    equation = (
        r"E \left\| \theta_k - \theta_0 \right\|^2 \propto k^c, \quad c = \min(1, 1/p) \text{ for curvatures "
        r"} h_l \propto l^{-p}"
    )
    minutes = 1.1
    theory = "diffusion in a quadratic loss with a spectrum of curvatures"
    task = "regression, and labelled images"
    notes = (
        "Regressions on {inputs} Gaussian inputs with variances l⁻ᵖ and noisy targets, for p in {powers}.",
        "{samples} images ({data}), a fraction {random_labels:g} of which have random labels; cross-entropy loss.",
    )
    trains = "linear, and convolutional with batch normalisation ({network})"
    flow = (
        "SGD with learning rate {learning_rate:g}, momentum {momentum:g}, weight decay {weight_decay:g} and "
        "minibatches of {batch_size}"
    )
    along = "spectrum"
    names = {
        "mode_exponent": ("diffusion exponent, summed over modes", "1"),
        "sgd_exponent": ("diffusion exponent of SGD", "1"),
        "sgd_low": ("lower end of the confidence interval of the exponent of SGD", "1"),
        "sgd_high": ("upper end of the confidence interval of the exponent of SGD", "1"),
        "squared_displacement": ("squared displacement of regressions", "1"),
        "network_displacement": ("squared displacement of networks", "1"),
        "forecast_displacement": ("forecast squared displacement of networks", "1"),
        "network_exponent": ("diffusion exponent of networks", "1"),
        "network_low": ("lower end of the confidence interval of the exponent of networks", "1"),
        "network_high": ("upper end of the confidence interval of the exponent of networks", "1"),
        "forecast_exponent": ("forecast diffusion exponent of networks", "1"),
        "exponent_off": ("measured minus forecast exponent of networks", "1"),
        "off_low": ("lower end of the confidence interval of the difference from the forecast", "1"),
        "off_high": ("upper end of the confidence interval of the difference from the forecast", "1"),
        "late_exponent": ("diffusion exponent of networks beyond the window", "1"),
        "forecast_ratio": ("measured squared displacement relative to the forecast", "1"),
        "loss_change": ("relative change of the loss in the second half of the warm-up", "1"),
        "window_step": ("optimiser step, relative to the first step of the window", "1"),
        "spectrum": ("exponent p of the spectrum l⁻ᵖ", "1"),
    }
    labelled = {"spectrum": "powers", "window_step": DECADE, "step": "experiment.networks.steps"}
    tolerance = curve_tolerance(
        mode_exponent=(
            0.02,
            "the finite window and the finite number of steps each contribute up to half of the tolerance",
        )
    )
    checks = tuple(tolerance)
    tiny = {
        **{"powers": [2.0], "inputs": 100, "runs": 100, "weight_decay": 0.04, "starts": 3},
        **{"modes": 20_000, "warm_up": 1200, "legs": 3, "batches": 5, "products": 8},
    }

    def check(self) -> None:
        """Require a window between the memories of momentum and weight decay, and enough modes for each power."""
        begin, end = self.experiment.networks.window
        memory = f"warm_up is {self.warm_up}, but weight decay takes {2 * end} steps to forget the initial weights"
        self.require(self.warm_up >= 8 * end, "warm_up", f"choose at least {8 * end}", problem=memory)
        problem = f"(1 − β)/(2ηλ) is {end} steps and 1/(1 − β) is {begin} steps, which leaves no window between them"
        remedy = "choose a smaller weight decay, or less momentum"
        self.require(end >= 5 * begin, "weight_decay", remedy, problem=problem)
        self.require(self.data != "digits" or self.samples <= _DIGITS, "samples", f"choose at most {_DIGITS} digits")
        self.experiment.check_windows()

    @property
    def deciding_claims(self) -> tuple[str, ...]:
        """The names of the claims about each spectrum and about the networks."""
        return (*(f"p = {power:g}" for power in self.powers), *NETWORK_CLAIMS)

    @functools.cached_property
    def experiment(self) -> Experiment:
        """The regressions and the networks."""
        return Experiment(self)

    def trained(self) -> Values:
        """Simulate the regressions, train the networks, forecast their displacement, and continue training."""
        return self.experiment.trained()

    def exact(self) -> Values:
        """Evaluate the predicted exponents min(1, 1/p)."""
        return self.experiment.exact()

    def claimed(self, found: Mapping[str, Any]) -> Sequence[Claim]:
        """Evaluate the claims about the exponents, for each spectrum and for the networks."""
        value = {name: each[1] for name, each in found.items()}
        expected = [each.exponent for each in self.experiment.regressions]
        claims = [
            Claim(
                f"p = {power:g}",
                f"For the spectrum l⁻ᵖ with p = {power:g}, the exponent of SGD is within {_CLOSE:g} of theory.",
                *(float(value[name][place] - expected[place]) for name in ("sgd_exponent", "sgd_low", "sgd_high")),
                least=-_CLOSE,
                most=_CLOSE,
            )
            for place, power in enumerate(self.powers)
        ]
        return [*claims, *self.experiment.networks.claims(value, _CLOSE)]

    def compared(self, observed: xr.Dataset, predicted: xr.Dataset) -> Comparison:
        """Compare the records, and add the predictions tested by the claims so that the figures can show them."""
        result = super().compared(observed, predicted)
        predicted = predicted.merge(self.record(self.experiment.predicted_regressions()).drop_attrs())
        predicted = predicted.assign(network_displacement=observed["forecast_displacement"].drop_attrs())
        return dataclasses.replace(result, predicted=name_all(predicted, self.names))

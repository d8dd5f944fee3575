"""The grokking time and late test error of a diagonal network with weight decay are predictable without training."""

from __future__ import annotations

import functools
from typing import Annotated, Any

import numpy as np
import xarray as xr
from annotated_types import Ge

from dynascope.flows.gradient_flow import GradientFlow
from dynascope.prediction.observation import observe
from dynascope.studies import Reference, Study, Values, curve_tolerance, parameter
from dynascope.studies.grokking.grokking_diagonal import page
from dynascope.studies.grokking.grokking_diagonal.difference_of_squares import DifferenceOfSquares
from dynascope.studies.grokking.grokking_diagonal.sparse_linear import DecayedLoss, SparseLinear, sparse_linear
from dynascope.studies.grokking.grokking_diagonal.threshold_time import passage
from dynascope.theory.grokking import critical_point, fitting_time, grokking_delay, grokking_time, late_curve
from dynascope.validation.bounded import PositiveFloat, PositiveInt, Seed

_REMAINING = 0.01  # training error, relative to its initial value, at which the samples count as fitted


class GrokkingDiagonal(Study):
    """Trains f = x·(u ⊙ u − v ⊙ v) with weight decay from u = v = α on fewer samples than inputs.

    The targets depend on a few of the inputs. The network soon fits the samples, with an interpolant of nearly minimum
    ℓ2 norm. The network generalises much later, when weight decay has reduced the products u_i v_i of its weights and
    the interpolant has nearly minimum ℓ1 norm. The study compares two curves with the theory after all networks have
    fitted the samples: the population test error, relative to the mean square of the targets, and the mean of u_i v_i.
    The study also compares the time at which the test error falls below a threshold with the prediction ln(α²/b*)/(2λ)
    + τ, where b* and τ depend on the data alone. The `delay` between the training loss falling to one percent of its
    initial value and the test error falling below the threshold is recorded but does not affect the verdict.
    """

    scales: list[PositiveFloat] = parameter([1.0, 2.0, 4.0], "Scales α of the initial weights; the delay grows with α.")
    weight_decay: PositiveFloat = parameter(
        0.005,
        "Weight decay λ, which adds ½ λ(‖u‖² + ‖v‖²) to the loss; must be much smaller than the rates of fitting.",
    )
    samples: PositiveInt = parameter(30, "Number of training samples.")
    inputs: PositiveInt = parameter(60, "Number of inputs, greater than the number of samples.")
    relevant: PositiveInt = parameter(2, "Number of inputs on which the target depends.", most="inputs")
    threshold: PositiveFloat = parameter(0.1, "Relative test error below which the network counts as generalising.")
    times: Annotated[int, Ge(20)] = parameter(400, "Number of recorded times.")
    seed: Seed = parameter(0, "Seed of the data.")

    reference = Reference.of(
        "K. Lyu, J. Jin, Z. Li, S. S. Du, J. D. Lee, W. Hu, Dichotomy of early and late phase implicit biases can "
        "provably induce grokking (arXiv 2311.18817)",
        "A diagonal network with weight decay first learns the kernel interpolant (of minimum ℓ2 norm) and generalises "
        "(groks) only after a time of order log(scale)/decay. The late test error of the network can be computed from "
        "the data, without training.",
    )
    theory = "interpolants under weight decay"
    names = {
        "test_error": ("relative test error", "1"),
        "interpolant_error": ("test error of the interpolant", "1"),
        "weight_product": ("mean product of paired weights", "1"),
    }
    axes = ("scale", "time")
    task = "a sparse linear function"
    notes = (
        "The networks are trained on {samples} samples of a target that depends on {relevant} of {inputs} independent "
        "inputs.",
        "The weight decay is {weight_decay:g}. The test error is the population error, relative to the mean square of "
        "the targets.",
    )
    trains = "diagonal linear network, a difference of squares"
    flow = "gradient flow with weight decay"
    labelled = {"scale": "scales"}
    along = ("time", "scale")
    title = "Grokking of a diagonal network"
    question = "Can theory predict when a network generalises, long after it has fitted its samples?"
    figures, meaning = page.figures, page.meaning
    equation = r"t_{\text{grok}} = \frac{1}{2 \lambda} \ln \frac{\alpha^2}{b^*} + \tau"
    minutes = 0.2
    tolerance = curve_tolerance(
        test_error=(0.02, "the theory is accurate to leading order in the weight decay"),
        grokking_time=(
            0.03,
            "the theory is accurate to leading order in the weight decay, and times are interpolated between records",
        ),
        weight_product=(1e-5, "the law is exact, and the solver error is below 1e-8 per step"),
    )
    tiny = {"samples": 12, "inputs": 24, "relevant": 1, "times": 200}

    def trained(self) -> xr.Dataset:
        """Train by gradient flow from initial weights of every scale."""
        data, times = self._data, self._times
        run = observe(
            DecayedLoss(data.inputs, data.targets, np.array(self.weight_decay)),
            DifferenceOfSquares(self.inputs),
            method=GradientFlow(duration=times[-1], save=times),
            scale=self.scales,
            probes=[_measured],
        ).record
        coefficients = run["coefficients"].to_numpy()
        training = np.mean((coefficients @ data.inputs.T - data.targets) ** 2, axis=-1) / 2
        error = np.sum((coefficients - data.coefficients) ** 2, axis=-1) / np.sum(data.coefficients**2)
        delays = [
            grokking_delay(times, 1 - each / each[0], 1 - below, test_threshold=1 - self.threshold)
            for each, below in zip(training, error, strict=True)
        ]
        values = {
            "loss": training,
            "test_error": error,
            "weight_product": run["weight_product"],
            "grokking_time": ("scale", [passage(times, each, self.threshold) for each in error]),
            "delay": ("scale", [np.inf if each.delay is None else each.delay for each in delays]),
        }
        return self.record(values, delay_resolution=[each.resolution for each in delays])

    def exact(self) -> Values:
        """The predicted curves, from the time at which all networks have fitted the samples."""
        times = self._times[self._times >= self._fitted]
        curves = [late_curve(*self._data, times, scale=scale, weight_decay=self.weight_decay) for scale in self.scales]
        return {
            "test_error": [curve.test_error for curve in curves],
            "weight_product": [curve.products for curve in curves],
            "grokking_time": ("scale", self._grokking_times),
            "interpolant_error": [curve.interpolant_error for curve in curves],
            "lag": [curve.lag for curve in curves],
            "time": ("time", times),
        }

    def prediction_attributes(self) -> Values:
        """Properties of the data, and the time at which all networks have fitted the samples."""
        point = self._critical_point
        return {"critical_product": point.product, "grokking_lag": point.lag, "fitting_time": self._fitted}

    def check(self) -> None:
        """Require several interpolants, and networks that fit the samples before they generalise."""
        fewer = "choose fewer samples than inputs, so that there are several interpolants"
        self.require(self.samples < self.inputs, "samples", fewer, beside="inputs")
        problem = f"with weight_decay {self.weight_decay}, the network may not fit the samples before it generalises"
        remedy = "choose a smaller weight_decay, or larger scales"
        self.require(self._fitted < self._grokking_times.min(), "weight_decay", remedy, problem=problem)

    @functools.cached_property
    def _data(self) -> SparseLinear:
        return sparse_linear(self.samples, self.inputs, self.relevant, self.seed)

    @functools.cached_property
    def _critical_point(self) -> Any:
        point = critical_point(*self._data, threshold=self.threshold)
        problem = f"no interpolant between minimum ℓ2 and minimum ℓ1 norm has a test error of {self.threshold}"
        remedy = "choose another threshold, or fewer relevant inputs"
        self.require(point is not None, "threshold", remedy, problem=problem)
        return point

    @functools.cached_property
    def _grokking_times(self) -> np.ndarray:
        point, scales = self._critical_point, np.asarray(self.scales, float)
        return grokking_time(point.product, scale=scales, weight_decay=self.weight_decay, lag=point.lag)

    @functools.cached_property
    def _fitted(self) -> float:
        """The time at which all networks have fitted the samples; infinite if one never does."""
        options = {"weight_decay": self.weight_decay, "remaining": _REMAINING}
        found = [fitting_time(self._data.inputs, scale=scale, **options) for scale in self.scales]
        return max(np.inf if each is None else each for each in found)

    @functools.cached_property
    def _times(self) -> np.ndarray:
        """Recorded times, geometrically spaced from early in fitting to long after grokking."""
        first, last = 0.001 * self._fitted, self._grokking_times.max() + 1 / self.weight_decay
        return np.append(0.0, np.geomspace(first, last, self.times - 1))


def _measured(network: DifferenceOfSquares) -> dict[str, tuple[tuple[str, ...], Any]]:
    return {
        "coefficients": (("feature",), network.coefficients),
        "weight_product": ((), (network.u * network.v).mean()),
    }

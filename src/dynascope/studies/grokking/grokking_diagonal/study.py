"""When a diagonal network with weight decay groks, and its whole late test curve, are known before it is trained."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import xarray as xr

from dynascope.observation import observe
from dynascope.studies import Reference, Study, Values, curve_tolerance
from dynascope.studies.fields import count, numbers, positive, seed
from dynascope.studies.grokking.grokking_diagonal.difference_of_squares import DifferenceOfSquares
from dynascope.studies.grokking.grokking_diagonal.page import FIGURES, MEANING
from dynascope.studies.grokking.grokking_diagonal.sparse_linear import DecayedLoss, SparseLinear, sparse_linear
from dynascope.studies.grokking.grokking_diagonal.threshold_time import passage
from dynascope.theory.grokking import critical_point, fitting_time, grokking_delay, grokking_time, late_curve

_REMAINING = 0.01  # errors on the samples at which they count as fitted, as a fraction of the first


class GrokkingDiagonal(Study):
    """A network f = x·(u ⊙ u − v ⊙ v) with weight decay on fewer samples than inputs, from u = v = α.

    The labels depend on few of the inputs. The network fits them soon, with the interpolant of nearly least ℓ2 norm,
    and generalises much later, when decay has brought the products u_i v_i of its weights, and with them the
    interpolant, near least ℓ1 norm. Compared from the time on by which it has fitted are the relative test error over
    all Gaussian inputs, the mean product, and the time ln(α²/b*)/(2λ) + τ at which that error falls below a threshold,
    with b* and τ properties of the data alone. How long that is after the loss is a hundredth of the first (`delay`) is
    observed and not judged.
    """

    scales: list[float] = numbers([1.0, 2.0, 4.0], "Starts α; large ones make for a long delay.", above=0.0)
    weight_decay: float = positive(0.005, "λ of the penalty ½λ(‖u‖² + ‖v‖²), much smaller than the rates of fitting.")
    samples: int = count(30, "Number of training samples.")
    inputs: int = count(60, "Number of inputs, more than samples.")
    relevant: int = count(2, "How many inputs the target depends on.", most="inputs")
    threshold: float = positive(0.1, "Relative test error at which the network counts as generalising.")
    times: int = count(400, "Number of times at which both are recorded.", least=20)
    seed: int = seed("Seed of the data.")

    reference = Reference.of(
        "K. Lyu, J. Jin, Z. Li, S. S. Du, J. D. Lee, W. Hu, Dichotomy of early and late phase implicit biases can "
        "provably induce grokking (arXiv 2311.18817)",
        "A diagonal network with weight decay first fits with the kernel's interpolant and groks later, by "
        "log(scale)/decay, along a test curve that follows from the data without training.",
    )
    theory = "interpolants under weight decay"
    names = {
        "test_error": ("relative test error", "1"),
        "interpolant_error": ("test error of the interpolant", "1"),
        "weight_product": ("product of paired weights", "1"),
    }
    axes = ("scale", "time")
    task = "a sparse linear function"
    told = (
        "{samples} samples of {inputs} independent inputs, {relevant} of them relevant.",
        "Weight decay {weight_decay:g}; the test error is over all inputs, relative to the targets.",
    )
    trains = "diagonal linear, a difference of squares"
    flow = "gradient flow with weight decay"
    labelled = {"scale": "scales"}
    along = ("time", "scale")
    title = "Grokking of a diagonal network"
    question = "Can one know beforehand when a network will generalise, long after it has fitted?"
    meaning = MEANING
    figures = FIGURES
    minutes = 0.2
    tolerance = curve_tolerance(
        test_error=(0.02, "to leading order in the decay the network follows the interpolant with a lag"),
        grokking_time=(0.03, "what is left of the lag vanishes with the decay, and the passage is between two records"),
        weight_product=(1e-5, "the law is exact, and the solver keeps each step within 1e-8"),
    )
    tiny = {"samples": 12, "inputs": 24, "relevant": 1, "times": 200}

    def trained(self) -> xr.Dataset:
        """Train from every start by gradient flow."""
        data, times = self._data, self._times
        run = observe(
            DecayedLoss(data.inputs, data.targets, np.array(self.weight_decay)),
            DifferenceOfSquares(self.inputs),
            duration=times[-1],
            scale=self.scales,
            save=times,
            probes=[_measured],
        )
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
        """The late test curves of theory, from the time on by which all networks have fitted."""
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

    def said(self) -> Values:
        """What follows from the data alone."""
        point = self._critical_point
        return {"critical_product": point.product, "grokking_lag": point.lag, "fitting_time": self._fitted}

    def check(self) -> None:
        """There are many interpolants, and networks fit before they generalise."""
        fewer = "choose fewer samples than inputs, so that there are interpolants"
        self.require(self.samples < self.inputs, "samples", fewer, beside="inputs")
        problem = f"with weight_decay {self.weight_decay} the network may not have fitted before it generalises"
        remedy = "choose a smaller one, or larger scales"
        self.require(self._fitted < self._grokking_times.min(), "weight_decay", remedy, problem=problem)

    @functools.cached_property
    def _data(self) -> SparseLinear:
        return sparse_linear(self.samples, self.inputs, self.relevant, self.seed)

    @functools.cached_property
    def _critical_point(self) -> Any:
        point = critical_point(*self._data, threshold=self.threshold)
        problem = f"no interpolant on the way passes a test error of {self.threshold}"
        remedy = "choose another threshold, or fewer relevant inputs for the samples"
        self.require(point is not None, "threshold", remedy, problem=problem)
        return point

    @functools.cached_property
    def _grokking_times(self) -> np.ndarray:
        point, scales = self._critical_point, np.asarray(self.scales, float)
        return grokking_time(point.product, scale=scales, weight_decay=self.weight_decay, lag=point.lag)

    @functools.cached_property
    def _fitted(self) -> float:
        """The time by which all networks have fitted; infinite if one never has."""
        options = {"weight_decay": self.weight_decay, "remaining": _REMAINING}
        found = [fitting_time(self._data.inputs, scale=scale, **options) for scale in self.scales]
        return max(np.inf if each is None else each for each in found)

    @functools.cached_property
    def _times(self) -> np.ndarray:
        """From the first of fitting until long after grokking, at equal ratios."""
        first, last = 0.001 * self._fitted, self._grokking_times.max() + 1 / self.weight_decay
        return np.append(0.0, np.geomspace(first, last, self.times - 1))


def _measured(network: DifferenceOfSquares) -> dict[str, tuple[tuple[str, ...], Any]]:
    return {
        "coefficients": (("feature",), network.coefficients),
        "weight_product": ((), (network.u * network.v).mean()),
    }

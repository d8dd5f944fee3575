"""When a diagonal network with weight decay groks, and its whole late test curve, are known before it is trained."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from dynascope.studies.study import Reference, Study, curve_tolerance

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr

    from dynascope.theory.grokking import CriticalPoint

__all__ = ["GrokkingDiagonal"]

_REMAINING = 0.01  # errors on the samples at which they count as fitted, as a fraction of the first
_CURVE = (0.02, "to leading order in the decay the network follows the interpolant with a lag")
_TIME = (0.03, "what is left of the lag vanishes with the decay, and the passage is between two records")
_PRODUCT = (1e-5, "the law is exact, and the solver keeps each step within 1e-8")


@dataclasses.dataclass(frozen=True)
class GrokkingDiagonal(Study):
    """A network f = x·(u ⊙ u − v ⊙ v) with weight decay on fewer samples than inputs, from u = v = α.

    The labels depend on few of the inputs. The network fits them soon, with the interpolant of nearly least ℓ2 norm,
    and generalises much later, when decay has brought the products u_i v_i of its weights, and with them the
    interpolant, near least ℓ1 norm. Compared from the time on by which it has fitted are the relative test error over
    all Gaussian inputs, the mean product, and the time ln(α²/b*)/(2λ) + τ at which that error falls below a threshold,
    with b* and τ properties of the data alone. How long that is after the loss is a hundredth of the first (`delay`) is
    observed and not judged.

    Attributes:
        scales: Starts α; large ones make for a long delay.
        weight_decay: λ of the penalty ½λ(‖u‖² + ‖v‖²), much smaller than the rates of fitting.
        samples: Number of training samples.
        inputs: Number of inputs, more than samples.
        relevant: How many inputs the target depends on.
        threshold: Relative test error at which the network counts as generalising.
        times: Number of times at which both are recorded.
        seed: Seed of the data.
    """

    scales: list[float] = dataclasses.field(default_factory=lambda: [1.0, 2.0, 4.0])
    weight_decay: float = 0.005
    samples: int = 30
    inputs: int = 60
    relevant: int = 2
    threshold: float = 0.1
    times: int = 400
    seed: int = 0

    name: ClassVar[str] = "grokking-diagonal"
    reference: ClassVar[Reference] = Reference(
        paper="K. Lyu, J. Jin, Z. Li, S. S. Du, J. D. Lee, W. Hu, Dichotomy of early and late phase implicit biases "
        "can provably induce grokking",
        arxiv="2311.18817",
        claim="A diagonal network with weight decay first fits with the kernel's interpolant and groks later, by "
        "log(scale)/decay, along a test curve that follows from the data without training.",
    )
    along: ClassVar = ("time", "scale")
    minutes: ClassVar[float] = 0.2
    tolerance: ClassVar = curve_tolerance(test_error=_CURVE, grokking_time=_TIME, weight_product=_PRODUCT)
    tiny: ClassVar = {"samples": 12, "inputs": 24, "relevant": 1, "times": 200}

    def observe(self) -> xr.Dataset:
        """Train from every start by gradient flow."""
        import numpy as np

        from dynascope.flows import gradient_flow
        from dynascope.record import make_record
        from dynascope.theory.grokking import grokking_delay

        data, times = self._data, self._times
        network, loss = _modules()
        run = gradient_flow(
            network(np.ones(self.inputs), np.ones(self.inputs)),
            loss(data.inputs, data.targets, np.array(self.weight_decay)),
            duration=times[-1],
            scale=self.scales,
            save=times,
            statistics=_STATISTICS,
        )
        coefficients = run["coefficients"].to_numpy()
        training = np.mean((coefficients @ data.inputs.T - data.targets) ** 2, axis=-1) / 2
        error = np.sum((coefficients - data.coefficients) ** 2, axis=-1) / np.sum(data.coefficients**2)
        delays = [
            grokking_delay(times, 1 - each / each[0], 1 - below, test_threshold=1 - self.threshold)
            for each, below in zip(training, error, strict=True)
        ]
        return make_record(
            {
                "loss": (("scale", "time"), training),
                "test_error": (("scale", "time"), error),
                "weight_product": (("scale", "time"), run["weight_product"].to_numpy()),
                "grokking_time": (("scale",), [_passage(times, each, self.threshold) for each in error]),
                "delay": (("scale",), [np.inf if each.delay is None else each.delay for each in delays]),
            },
            {"scale": self.scales, "time": times},
            attributes={"delay_resolution": [each.resolution for each in delays], **self._about()},
        )

    def predict(self) -> xr.Dataset:
        """The late test curves of theory, from the time on by which all networks have fitted."""
        import numpy as np

        from dynascope.record import make_record
        from dynascope.theory.grokking import late_curve

        data, times = self._data, self._times[self._times >= self._fitted]
        curves = [
            late_curve(
                data.inputs,
                data.targets,
                np.eye(self.inputs),
                data.coefficients,
                times,
                scale=scale,
                weight_decay=self.weight_decay,
            )
            for scale in self.scales
        ]
        return make_record(
            {
                "test_error": (("scale", "time"), [curve.test_error for curve in curves]),
                "weight_product": (("scale", "time"), [curve.products for curve in curves]),
                "grokking_time": (("scale",), self._grokking_times),
                "interpolant_error": (("scale", "time"), [curve.interpolant_error for curve in curves]),
                "lag": (("scale", "time"), [curve.lag for curve in curves]),
            },
            {"scale": self.scales, "time": times},
            attributes={
                "theory": "interpolants under weight decay",
                "reference": self.reference.paper,
                "critical_product": self._critical_point.product,
                "grokking_lag": self._critical_point.lag,
                "fitting_time": self._fitted,
                **self._about(),
            },
        )

    @functools.cached_property
    def _data(self) -> _Data:
        import numpy as np

        from dynascope.arguments import require, require_positive, require_seed

        require_positive(weight_decay=self.weight_decay, samples=self.samples)
        require_seed(self.seed)
        require(
            self.samples < self.inputs,
            f"samples is {self.samples} and inputs {self.inputs}",
            argument="samples",
            value=self.samples,
            remedy="choose fewer samples than inputs, so that there are many interpolants",
        )
        require(
            0 < self.relevant <= self.inputs,
            f"relevant is {self.relevant} of {self.inputs} inputs",
            argument="relevant",
            value=self.relevant,
            remedy="choose a number from 1 to inputs",
        )
        draw = np.random.default_rng(self.seed)
        inputs = draw.normal(size=(self.samples, self.inputs))
        coefficients = np.zeros(self.inputs)
        coefficients[draw.permutation(self.inputs)[: self.relevant]] = draw.choice([-1.0, 1.0], self.relevant)
        coefficients /= np.sqrt(self.relevant)
        return _Data(inputs, inputs @ coefficients, coefficients)

    @functools.cached_property
    def _scales(self) -> np.ndarray:
        import numpy as np

        from dynascope.arguments import require, require_array

        scales = require_array("scales", self.scales, (None,))
        require(
            len(scales) > 0 and bool(np.all(scales > 0)) and len(set(self.scales)) == len(scales),
            f"scales is {self.scales}",
            argument="scales",
            value=self.scales,
            remedy="give one or more different positive numbers",
        )
        return scales

    @functools.cached_property
    def _critical_point(self) -> CriticalPoint:
        import numpy as np

        from dynascope.errors import InputError
        from dynascope.theory.grokking import critical_point

        data = self._data
        point = critical_point(
            data.inputs, data.targets, np.eye(self.inputs), data.coefficients, threshold=self.threshold
        )
        if point is None:
            raise InputError(
                f"no interpolant on the way passes a test error of {self.threshold}",
                argument="threshold",
                value=self.threshold,
                remedy="choose another threshold, or fewer relevant inputs for the samples",
            )
        return point

    @functools.cached_property
    def _grokking_times(self) -> np.ndarray:
        from dynascope.theory.grokking import grokking_time

        point = self._critical_point
        return grokking_time(point.product, scale=self._scales, weight_decay=self.weight_decay, lag=point.lag)

    @functools.cached_property
    def _fitted(self) -> float:
        """The time by which all networks have fitted, before they grok."""
        import numpy as np

        from dynascope.arguments import require
        from dynascope.theory.grokking import fitting_time

        found = [
            fitting_time(self._data.inputs, scale=scale, weight_decay=self.weight_decay, remaining=_REMAINING)
            for scale in self._scales
        ]
        fitted = max(np.inf if each is None else each for each in found)
        require(
            fitted < self._grokking_times.min(),
            f"with weight_decay {self.weight_decay} the network may not have fitted before it generalises",
            argument="weight_decay",
            value=self.weight_decay,
            remedy="choose a smaller one, or larger scales",
        )
        return fitted

    @functools.cached_property
    def _times(self) -> np.ndarray:
        """From the first of fitting until long after grokking, at equal ratios."""
        import numpy as np

        from dynascope.arguments import require

        require(
            self.times >= 20,
            f"times is {self.times}",
            argument="times",
            value=self.times,
            remedy="choose twenty or more",
        )
        first, last = 0.001 * self._fitted, self._grokking_times.max() + 1 / self.weight_decay
        return np.append(0.0, np.geomspace(first, last, self.times - 1))

    def _about(self) -> dict[str, Any]:
        return {
            "task": "a sparse linear function",
            "description": [
                f"{self.samples} samples of {self.inputs} independent inputs, {self.relevant} of them relevant.",
                f"Weight decay {self.weight_decay:g}; the test error is over all inputs, relative to the targets.",
            ],
            "network": "diagonal linear, a difference of squares",
            "scale": 1.0,
        }


class _Data(NamedTuple):
    inputs: np.ndarray
    targets: np.ndarray
    coefficients: np.ndarray


def _passage(times: np.ndarray, error: np.ndarray, threshold: float) -> float:
    """When the error falls below the threshold, at constant rate between two records; infinite if it does not."""
    import numpy as np

    below = error < threshold
    if not below.any():
        return np.inf
    after = max(int(np.argmax(below)), 1)
    part = np.log(error[after - 1] / threshold) / np.log(error[after - 1] / error[after])
    return float(times[after - 1] + part * (times[after] - times[after - 1]))


@functools.cache
def _modules() -> tuple[Any, Any]:
    """The network and what it descends, as modules of which there is one each, so that a compiled program is found."""
    import equinox as eqx
    import jax.numpy as jnp

    class DifferenceOfSquares(eqx.Module):
        """f(x) = x·(u ⊙ u − v ⊙ v)."""

        u: Any
        v: Any

        def __call__(self, x: Any) -> Any:
            return (x @ _coefficients(self))[..., None]

    class DecayedLoss(eqx.Module):
        """½E‖f(x) − y‖² + ½λ(‖u‖² + ‖v‖²)."""

        inputs: Any
        targets: Any
        weight_decay: Any

        def loss(self, network: Any) -> Any:
            missed = network(self.inputs)[:, 0] - self.targets
            size = jnp.sum(network.u**2) + jnp.sum(network.v**2)
            return (jnp.mean(missed**2) + self.weight_decay * size) / 2

        def attributes(self) -> dict[str, Any]:
            return {"task": "a sparse linear function"}

    return DifferenceOfSquares, DecayedLoss


def _coefficients(network: Any) -> Any:
    return network.u**2 - network.v**2


def _weight_product(network: Any) -> Any:
    return (network.u * network.v).mean()


_STATISTICS = {"coefficients": (_coefficients, ("feature",)), "weight_product": (_weight_product, ())}

"""Which parametrisations of wide networks learn features: exponents of training, measured and predicted."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from dynascope.studies.study import Reference, Study, curve_tolerance

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr

    from dynascope.studies.regimes.wide_networks import WideNetworks
    from dynascope.tasks import Task
    from dynascope.theory.regimes.phases import Parametrisation

__all__ = ["WidthPhases"]

_ZERO = 0.5  # a fitted exponent of smaller size counts as zero; those of the table are whole numbers
_COMPARED_INPUTS = 20  # digits on which tangent kernels are compared


class _Measured(NamedTuple):
    """What one ensemble did, an entry for each seed."""

    kernel_change: np.ndarray
    learning_speed: np.ndarray
    loss: np.ndarray


@dataclasses.dataclass(frozen=True)
class WidthPhases(Study):
    """Speed of learning and change of the tangent kernel against the scaling parameter κ, for table 1 of the paper.

    Trained are the five standard parametrisations, and those turned into the other phase by the multiplier of
    corollaries 2 and 3, at learning rates that do not scale: rates ~ κ^c, the same for both layers, multiply the speed
    by κ^c and change nothing else, so that the eight entries give the phases of all twenty of the table.

    On a line, each linear network is compared with its own closed form, and the exponents of the ensemble with the
    phase diagram. On handwritten digits, of which no closed form is known, two-layer ReLU networks are judged by
    whether their kernel stays, that is whether its relative change falls faster than κ^(−1/2); their exponents are
    recorded with their errors. Fitted are means over seeds, on double logarithmic axes; `_error` is the standard error.
    Starts on the line are stratified in the overlap of the layers, so that few are needed.

    Attributes:
        scaling_parameters: Values of κ: widths, and multipliers of the output for lazy training.
        fixed_width: Width where it does not grow, which is in lazy training.
        seeds: Number of linear networks for each parametrisation and κ.
        target: S, the slope of the target y = S·x on the line.
        digits_samples: Number of digits to train on.
        digits_seeds: Number of ReLU networks for each parametrisation and κ; zero leaves the digits out.
        seed: Seed of the first network, and of the choice of digits.
    """

    scaling_parameters: list[float] = dataclasses.field(default_factory=lambda: [64.0, 128.0, 256.0, 512.0])
    fixed_width: int = 64
    seeds: int = 16
    target: float = 1.5
    digits_samples: int = 100
    digits_seeds: int = 2
    seed: int = 0

    name: ClassVar[str] = "width-phases"
    reference: ClassVar[Reference] = Reference(
        paper="Y. Xu, L. Ziyin, When Does Feature Learning Happen? Perspective from an Analytically Solvable Model",
        arxiv="2401.07085",
        claim="Whether the tangent kernel of a wide or lazy network stays or changes in training, and how learning "
        "time scales, follow from the exponents of width, output multiplier, initial variances and learning rates.",
    )
    along: ClassVar = "architecture"
    minutes: ClassVar[float] = 1.5
    tolerance: ClassVar = curve_tolerance(
        **dict.fromkeys(
            ("log_kernel_change", "log_learning_speed"),
            (1e-4, "the closed form is exact; a small change keeps fewer digits of the solver's 1e-9 than a large one"),
        ),
        **dict.fromkeys(
            ("kernel_exponent", "speed_exponent"),
            (0.025, "corrections of order 1/κ at finite width, summed over the parametrisations"),
        ),
    )
    tiny: ClassVar = {"scaling_parameters": [64.0, 128.0, 256.0], "seeds": 4, "digits_seeds": 0}

    def observe(self) -> xr.Dataset:
        """Train linear networks on a line and ReLU networks on digits."""
        from dynascope.record import make_record

        names = list(self._parametrisations)
        line = {name: [self._train_on_line(name, kappa) for kappa in self._kappas()] for name in names}
        variables = self._curves(line) | self._exponents(line)
        variables["loss"] = (("scaling_parameter", "architecture"), _means(line, "loss"))
        kernel, speed = (variables[f"{each}_exponent"][1] for each in ("kernel", "speed"))
        variables["phase"] = (("architecture",), [_phase_name(*pair) for pair in zip(kernel, speed, strict=True)])
        variables["phase_at_stable_rates"] = (("architecture",), [_phase_name(each, 0.0) for each in kernel])
        if self.digits_seeds:
            digits = {name: [self._train_on_digits(name, kappa) for kappa in self._kappas()] for name in names}
            found = self._curves(digits) | self._exponents(digits)
            variables |= {f"digits_{name}": values for name, values in found.items()}
            keeps = [int(exponent < -_ZERO) for exponent in found["kernel_exponent"][1]]
            variables["digits_keeps_kernel"] = (("architecture",), keeps)
        return make_record(variables, self._coordinates(), attributes=self._about())

    def predict(self) -> xr.Dataset:
        """The closed form of each network on the line, and the exponents of the phase diagram."""
        from dynascope.record import make_record
        from dynascope.theory.regimes.phases import phase, stable_rates

        entries = self._parametrisations
        line = {name: [self._solved_on_line(name, kappa) for kappa in self._kappas()] for name in entries}
        phases = [phase(each) for each in entries.values()]
        variables = self._curves(line) | {
            "kernel_exponent": (("architecture",), [each.kernel_exponent for each in phases]),
            "speed_exponent": (("architecture",), [each.speed_exponent for each in phases]),
            "phase": (("architecture",), [each.name for each in phases]),
            "phase_at_stable_rates": (
                ("architecture",),
                [phase(stable_rates(each)).name for each in entries.values()],
            ),
        }
        about = {"theory": "phase diagram", "reference": self.reference.paper, **self._about()}
        if self.digits_seeds:
            keeps = [int(each.kernel_exponent < 0) for each in phases]
            variables["digits_keeps_kernel"] = (("architecture",), keeps)
            for quantity in ("digits_keeps_kernel", "digits_keeps_kernel_maximum"):
                about[f"{quantity}_tolerance"] = 0.0
                about[f"{quantity}_tolerance_reason"] = (
                    "the kernel stays or changes; exponents above -1/2 count as zero"
                )
        return make_record(variables, self._coordinates(), attributes=about)

    @functools.cached_property
    def _parametrisations(self) -> dict[str, Parametrisation]:
        """All entries of the table that differ in more than learning rates, the standard ones first."""
        from dynascope.theory.regimes.phases import phase_table

        table = phase_table()
        entries: dict[str, Parametrisation] = {}
        for row in ("default", "learning", "kernel"):
            for name, rows in table.items():
                entry = dataclasses.replace(rows[row], first_rate=0.0, second_rate=0.0)
                if entry not in entries.values():
                    entries[name if row == "default" else f"{name}, {row}"] = entry
        return entries

    def _drawn(self, name: str, kappa: float, inputs: int, outputs: int, activation: str, seed: int) -> Any:
        """A network and the rates of its layers."""
        from dynascope.networks import initial_network

        entry = self._parametrisations[name]
        width = 1.0 if entry.width else self.fixed_width
        return initial_network(entry, kappa, inputs, outputs, width=width, activation=activation, seed=self.seed + seed)

    def _ensemble(self, drawn: list[Any]) -> WideNetworks:
        from dynascope.studies.regimes.wide_networks import WideNetworks, padded

        # With silent neurons, one compiled program serves all widths.
        widest = 1 + max(self.fixed_width, *map(round, self._kappas()))
        return WideNetworks([padded(network, widest) for network, _ in drawn], drawn[0][1])

    @functools.cached_property
    def _line(self) -> Task:
        """Inputs a·n on the line along n = (0.6, 0.8), with E[a²] = 1, and targets S·a."""
        import numpy as np

        from dynascope.tasks import Task

        position = np.array([[1.0], [-1.0]])
        return Task(position * [0.6, 0.8], self.target * position, name="a line and digits")

    def _line_start(self, name: str, kappa: float) -> WideNetworks:
        """Gaussian starts, stratified: their overlaps Σ uᵢvᵢ are the quantiles of the normal distribution."""
        from statistics import NormalDist

        from dynascope.studies.regimes.wide_networks import stratified

        task = self._line
        entry = self._parametrisations[name]
        drawn = []
        for seed in range(self.seeds):
            network, rates = self._drawn(name, kappa, task.input_dimension, 1, "linear", seed)
            overlap = 0.0 if entry.zero_output else NormalDist().inv_cdf((seed + 0.5) / self.seeds)
            size = entry.at(kappa)
            sizes = size.first_variance**0.5, size.multiplier * size.second_variance**0.5
            drawn.append((stratified(network, task.inputs[0], *sizes, overlap), rates))
        return self._ensemble(drawn)

    def _solve(self, start: WideNetworks) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Three times, 0, two and ten over the mean speed 1/t_c, and the exact layers and residuals there."""
        import jax
        import numpy as np

        from dynascope.theory.line import line_data, time_scale, trajectory

        data = line_data(self._line.inputs, self._line.targets)
        known = {"first_rate": start.rates["first"], "second_rate": start.rates["second"]}
        first, second = start.layers()
        with jax.enable_x64(True):
            speeds = 1 / jax.device_get(time_scale(first, second[..., 0], data, **known).time)
            times = np.array([0.0, 2.0, 10.0]) / np.mean(speeds)
            path = jax.device_get(trajectory(first, second[..., 0], data, times, **known))
        return times, path.first[:, -1], path.second[:, -1, :, None], path.residual

    def _solved_on_line(self, name: str, kappa: float) -> _Measured:
        import numpy as np

        start = self._line_start(name, kappa)
        times, first, second, residual = self._solve(start)
        speed = np.log(np.abs(residual[:, 0] / residual[:, 1])) / times[1]
        change = start.kernel_change(first, second, self._line.inputs[:1])
        return _Measured(change, speed, residual[:, -1] ** 2 / 2)

    def _train_on_line(self, name: str, kappa: float) -> _Measured:
        import numpy as np

        from dynascope.flows import gradient_flow

        start = self._line_start(name, kappa)
        times, *_ = self._solve(start)
        run, trained = gradient_flow(
            start.networks,
            self._line,
            duration=float(times[-1]),
            save=times,
            learning_rate=start.rates,
            relative_tolerance=1e-9,
            return_networks=True,
        )
        loss = run["loss"].to_numpy()
        speed = np.log(loss[:, 0] / loss[:, 1]) / (2 * times[1])
        change = start.kernel_change(trained.first, trained.second, self._line.inputs[:1])
        return _Measured(change, speed, loss[:, -1])

    @functools.cached_property
    def _digits(self) -> Task:
        from dynascope.arguments import require
        from dynascope.tasks import digits

        every = digits()
        require(
            _COMPARED_INPUTS <= self.digits_samples <= every.samples - 2,
            f"digits_samples is {self.digits_samples}",
            argument="digits_samples",
            value=self.digits_samples,
            remedy=f"choose between {_COMPARED_INPUTS} and {every.samples - 2}",
        )
        chosen, _ = every.split(test_fraction=1 - self.digits_samples / every.samples, seed=self.seed)
        return chosen.centred()

    def _train_on_digits(self, name: str, kappa: float) -> _Measured:
        import numpy as np

        from dynascope.errors import DivergenceError
        from dynascope.flows import gradient_flow

        task = self._digits
        shape = task.input_dimension, task.output_dimension
        start = self._ensemble([self._drawn(name, kappa, *shape, "relu", seed) for seed in range(self.digits_seeds)])
        kernel = start.kernels(*start.layers(), task.inputs)
        slowest = np.sqrt(start.rates["first"] * start.rates["second"])
        rate = max(float(np.mean(np.trace(kernel, axis1=1, axis2=2))) / task.samples, slowest)
        run, trained = gradient_flow(
            start.networks,
            task,
            duration=1e5 / rate,
            save=2,
            learning_rate=start.rates,
            loss_target=task.target_power / 4,
            # Partners cancel each other's output, but not the errors of the solver.
            relative_tolerance=1e-10 if self._parametrisations[name].zero_output else 1e-6,
            return_networks=True,
        )
        if not np.all(run["stop_reason"] == "loss_target"):
            raise DivergenceError(
                f"{name} at {kappa:g} does not learn half of the digits",
                time=float(run["stop_time"].max()),
                remedy="choose larger scaling parameters",
            )
        change = start.kernel_change(trained.first, trained.second, task.inputs[:_COMPARED_INPUTS])
        return _Measured(change, 1 / run["stop_time"].to_numpy(), run["loss"].to_numpy()[:, -1])

    def _curves(self, found: dict[str, list[_Measured]]) -> dict[str, Any]:
        """Decimal logarithms of the means over seeds."""
        import numpy as np

        return {
            f"log_{name}": (("scaling_parameter", "architecture"), np.log10(_means(found, name)))
            for name in ("kernel_change", "learning_speed")
        }

    def _exponents(self, found: dict[str, list[_Measured]]) -> dict[str, Any]:
        variables = {}
        for quantity, field in (("kernel", "kernel_change"), ("speed", "learning_speed")):
            exponents, errors = zip(*(_fitted(self._kappas(), each) for each in _means(found, field).T), strict=True)
            variables[f"{quantity}_exponent"] = (("architecture",), list(exponents))
            variables[f"{quantity}_exponent_error"] = (("architecture",), list(errors))
        return variables

    def _kappas(self) -> list[float]:
        import numpy as np

        from dynascope.arguments import require, require_array, require_positive, require_seed

        require_positive(fixed_width=self.fixed_width, seeds=self.seeds)
        require_seed(self.seed)
        require(
            self.digits_seeds >= 0,
            f"digits_seeds is {self.digits_seeds}",
            argument="digits_seeds",
            value=self.digits_seeds,
            remedy="choose a number of networks, or zero to leave the digits out",
        )
        kappas = require_array("scaling_parameters", self.scaling_parameters, (None,))
        require(
            len(kappas) >= 3 and kappas[0] >= 16 and np.all(np.diff(kappas) > 0),
            f"scaling_parameters is {self.scaling_parameters}",
            argument="scaling_parameters",
            value=self.scaling_parameters,
            remedy="give three or more increasing numbers from sixteen",
        )
        require(
            np.isfinite(self.target) and self.target != 0,
            f"target is {self.target}",
            argument="target",
            value=self.target,
            remedy="choose a finite number other than zero, so that there is something to learn",
        )
        return kappas.tolist()

    def _coordinates(self) -> dict[str, Any]:
        return {"scaling_parameter": self._kappas(), "architecture": list(self._parametrisations)}

    def _about(self) -> dict[str, Any]:
        return {
            "task": self._line.name,
            "description": [
                f"Inputs on a line of unit second moment, and targets of slope {self.target:g}.",
                *(self._digits.description if self.digits_seeds else []),
            ],
            "network": "two-layer linear and ReLU",
            "scale": 1.0,
        }


def _means(found: dict[str, list[_Measured]], field: str) -> np.ndarray:
    """Means over seeds, shape (scaling parameters, parametrisations)."""
    import numpy as np

    return np.array([[np.mean(getattr(each, field)) for each in row] for row in found.values()]).T


def _fitted(kappas: list[float], values: np.ndarray) -> tuple[float, float]:
    """Slope of log(value) against log κ, and its standard error."""
    import numpy as np

    x, y = np.log(kappas), np.log(values)
    x, y = x - x.mean(), y - y.mean()
    slope = x @ y / (x @ x)
    return float(slope), float(np.sqrt(np.sum((y - slope * x) ** 2) / (len(x) - 2) / (x @ x)))


def _phase_name(kernel_exponent: float, speed_exponent: float) -> str:
    if abs(speed_exponent) > _ZERO:
        return "unstable" if speed_exponent > 0 else "frozen"
    return "kernel" if kernel_exponent < -_ZERO else "learning"

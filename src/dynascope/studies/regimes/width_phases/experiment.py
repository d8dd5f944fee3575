"""Training of wide two-layer networks on a line and on digits in all parametrisations, and exact solutions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dynascope.comparison import Claim, report_claims
from dynascope.flows import track
from dynascope.studies.power_fit import measured_exponents
from dynascope.studies.regimes.width_phases.networks import WideNetworks, drawn_networks
from dynascope.studies.regimes.width_phases.wide_run import WideRun, solved_on_line, trained_on_line, trained_to_half
from dynascope.tasks import Task, digits
from dynascope.theory.regimes.phases import ZERO, distinct_starts, phase, phase_of_exponents, stable_rates

if TYPE_CHECKING:
    from dynascope.studies.regimes.width_phases.study import WidthPhases

__all__ = ["Experiment"]

_COMPARED_INPUTS = 20  # digits on which NTKs are compared
_NARROW = 256  # narrower networks are padded to this width, so that programs are compiled once
_LARGEST_CORRECTION = (
    0.2  # of an exponent, about a quarter of the spacing of exponents; larger corrections hide the limit
)
_AXES = ("scaling_parameter", "architecture")


class Experiment:
    """Training and exact solution of the networks of one study.

    Attributes:
        study: The study, whose fields are the settings.
        parametrisations: The eight parametrisations by name.
        phases: The predicted phase of each parametrisation at constant learning rates.
    """

    def __init__(self, study: WidthPhases):
        self.study = study
        self.parametrisations = distinct_starts()
        self.phases = [phase(each) for each in self.parametrisations.values()]

    @functools.cached_property
    def line(self) -> Task:
        """Inputs a·n on the line along n = (0.6, 0.8), with E[a²] = 1, and targets S·a."""
        position = np.array([[1.0], [-1.0]])
        return Task(position * [0.6, 0.8], self.study.target * position, name=self.study.task)

    @functools.cached_property
    def digits(self) -> Task:
        """A random subset of the handwritten digits, centred."""
        every = digits()
        left_out = 1 - self.study.digits_samples / every.samples
        chosen, _ = every.split(test_fraction=left_out, seed=self.study.seed)
        return chosen.centred()

    def trained(self) -> dict[str, Any]:
        """Train linear networks on the line and, if requested, ReLU networks on digits."""
        line = self.on_line(trained_on_line)
        exponents = self.exponents(line)
        kernel, speed = (exponents[f"{each}_exponent"][1] for each in ("kernel", "speed"))
        phases = {
            "phase": [phase_of_exponents(*pair) for pair in zip(kernel, speed, strict=True)],
            "phase_at_stable_rates": [phase_of_exponents(each, 0.0) for each in kernel],
        }
        found = {
            **_curves(line),
            **exponents,
            "loss": (_AXES, line["loss"]),
            **phases,
            **report_claims([self.phase_claim(phases)]),
        }
        if self.study.digits_seeds:
            on_digits = self.means(self.trained_on_digits)
            measured = {**_curves(on_digits), **self.exponents(on_digits)}
            found |= {f"digits_{name}": values for name, values in measured.items()}
            found["digits_keeps_kernel"] = (measured["kernel_exponent"][1] < -ZERO).astype(int)
        return found

    def exact(self) -> dict[str, Any]:
        """Evaluate the closed form of each network on the line, and the exponents of the phase diagram."""
        given = f"{self.study.scaling_parameters} and target {self.study.target:g}"
        remedy = "choose larger values, or a target closer to one"
        for off in (np.abs(each).max() for _, each in self.corrections.values()):
            problem = f"for scaling_parameters {given}, an exponent differs from its limit by {off:.2g}"
            self.study.require(off <= _LARGEST_CORRECTION, "scaling_parameters", remedy, problem=problem)
        keeps = [int(each.kernel_exponent < 0) for each in self.phases]
        return {
            **_curves(self.solved),
            **{name: limits for name, (limits, _) in self.corrections.items()},
            **self.predicted_phases,
            **({"digits_keeps_kernel": keeps} if self.study.digits_seeds else {}),
        }

    @functools.cached_property
    def solved(self) -> dict[str, np.ndarray]:
        """Means over the exact solutions of all networks on the line."""
        return self.on_line(solved_on_line)

    @functools.cached_property
    def corrections(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """For each exponent, its limits, and the deviation of fits to the exact solution from these limits."""
        fitted = self.exponents(self.solved)
        names = ("kernel_exponent", "speed_exponent")
        limits = {name: np.array([getattr(each, name) for each in self.phases]) for name in names}
        return {name: (each, fitted[name][1] - each) for name, each in limits.items()}

    @property
    def predicted_phases(self) -> dict[str, list[str]]:
        """The phases of the diagram at constant and at stable learning rates."""
        stable = [phase(stable_rates(each)).name for each in self.parametrisations.values()]
        return {"phase": [each.name for each in self.phases], "phase_at_stable_rates": stable}

    def phase_claim(self, phases: Mapping[str, list[str]]) -> Claim:
        """The claim that every measured phase equals the predicted phase."""
        pairs = [
            pair
            for name, expected in self.predicted_phases.items()
            for pair in zip(phases[name], expected, strict=True)
        ]
        statement = "Each parametrisation is in the predicted phase, at constant and at stable learning rates."
        return Claim("phases", statement, sum(seen == expected for seen, expected in pairs), least=len(pairs))

    def trained_on_digits(self, name: str, kappa: float) -> WideRun:
        """Train the ReLU networks of a parametrisation at one κ until they have learned half of the digits."""
        start = self.start(name, kappa, self.digits, self.study.digits_seeds, activation="relu")
        # At zero output, the outputs of paired neurons cancel, but the solver errors do not.
        accuracy = 1e-10 if self.parametrisations[name].zero_output else 1e-6
        return trained_to_half(start, self.digits, _COMPARED_INPUTS, accuracy, name=f"{name} at {kappa:g}")

    def on_line(self, run: Callable[[WideNetworks, Task], WideRun]) -> dict[str, np.ndarray]:
        """Means over the runs of all linear networks on the line."""
        line, options = self.line, {"activation": "linear", "direction": self.line.inputs[0]}
        return self.means(lambda name, kappa: run(self.start(name, kappa, line, self.study.seeds, **options), line))

    def means(self, run: Callable[[str, float], WideRun]) -> dict[str, np.ndarray]:
        """Fields of the runs, averaged over seeds, shape (scaling parameters, parametrisations)."""
        kappas, names = self.study.scaling_parameters, self.parametrisations
        means = np.array([[np.mean(run(name, kappa), axis=1) for name in names] for kappa in track(kappas, "widths")])
        return dict(zip(WideRun._fields, np.moveaxis(means, -1, 0), strict=True))

    def exponents(self, means: Mapping[str, np.ndarray]) -> dict[str, tuple[Any, np.ndarray]]:
        """Fitted exponents of κ in the NTK change and in the learning speed."""
        sizes = np.asarray(self.study.scaling_parameters)
        return {
            **measured_exponents("kernel", sizes, means["kernel_change"].T),
            **measured_exponents("speed", sizes, means["learning_speed"].T),
        }

    def start(self, name: str, kappa: float, task: Task, members: int, **options: Any) -> WideNetworks:
        """Initial networks of a parametrisation at one κ, padded to a common shape."""
        fixed = self.study.fixed_width
        widest = 1 + max(_NARROW, fixed, *map(round, self.study.scaling_parameters))
        shape, seeds = (task.input_dimension, task.output_dimension), range(self.study.seed, self.study.seed + members)
        widths = {"fixed_width": fixed, "widest": widest}
        return drawn_networks(self.parametrisations[name], kappa, shape, seeds, **widths, **options)


def _curves(means: Mapping[str, np.ndarray]) -> dict[str, tuple[tuple[str, str], np.ndarray]]:
    """Decimal logarithms over κ and parametrisations."""
    return {f"log_{name}": (_AXES, np.log10(means[name])) for name in ("kernel_change", "learning_speed")}

"""Which parametrisations of wide networks learn features: exponents of training, measured and predicted."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from dynascope.comparison import Claim, report_claims
from dynascope.results import Chart, Comparison
from dynascope.studies import Reference, Study, Values, exact
from dynascope.studies.fields import count, number, numbers, seed
from dynascope.studies.power_fit import measured_exponents
from dynascope.studies.regimes.width_phases.experiment import WideRun, solved_on_line, trained_on_line, trained_to_half
from dynascope.studies.regimes.width_phases.networks import WideNetworks, drawn_networks
from dynascope.studies.regimes.width_phases.page import FIGURES, MEANING
from dynascope.studies.tolerances import limit_tolerances
from dynascope.tasks import Task, digits
from dynascope.theory import papers
from dynascope.theory.regimes.phases import (
    ZERO,
    Parametrisation,
    distinct_starts,
    phase,
    phase_of_exponents,
    stable_rates,
)

_COMPARED_INPUTS = 20  # digits on which tangent kernels are compared
_DIGITS = 1797  # of which two at least are left out
_DIGITS_FROM = 64  # κ, and the fixed width, from which on digits are learned and show a limit
_NARROW = 256  # networks up to this width are padded to one shape, for which programs are compiled once
_LIMIT = "what the exact fit at these κ differs from the limit, and 0.002 for the error of the solver in the curves"
_SOLVER = 0.002
_EXPONENTS = ("kernel_exponent", "speed_exponent")
_WORTH = 0.2  # a fit that is farther from its limit, by nearly a quarter of the step between exponents, tells nothing
_HALF_WAY = 0.25  # from −1/2: exponents so near are half way between those of a kernel that stays and one that changes
_KEEPS = "the kernel stays or changes; exponents above -1/2 count as zero"


class WidthPhases(Study):
    """Speed of learning and change of the tangent kernel against the scaling parameter κ, for table 1 of the paper.

    Trained are the five standard parametrisations, and those turned into the other phase by the multiplier of
    corollaries 2 and 3, at learning rates that do not scale: rates ~ κ^c, the same for both layers, multiply the speed
    by κ^c and change nothing else, so that the eight entries give the phases of all twenty of the table.

    On a line, each linear network is compared with its own closed form, and the exponents of the ensemble with the
    phase diagram, from which they may differ as the closed form does at these κ; every phase that follows from them
    must be that of the diagram. On handwritten digits, of which no closed form is known, two-layer ReLU networks are
    judged by whether their kernel stays, that is whether its relative change falls faster than κ^(−1/2), unless an
    exponent is within a quarter of that; exponents are recorded with their errors. Fitted are means over seeds, on
    double logarithmic axes; `_error` is the standard error. Starts on the line are stratified in the overlap of the
    layers, so that few are needed.
    """

    scaling_parameters: list[float] = numbers(
        [64.0, 128.0, 256.0, 512.0],
        "Values of κ: widths, and multipliers of the output for lazy training.",
        fewest=3,
        increasing=True,
        least=16.0,
    )
    fixed_width: int = count(64, "Width where it does not grow, which is in lazy training.")
    seeds: int = count(
        16, "Number of linear networks for each parametrisation and κ; a single one would start in the median.", least=2
    )
    target: float = number(1.5, "S, the slope of the target y = S·x on the line.", nonzero=True)
    digits_samples: int = count(100, "Number of digits to train on.", least=_COMPARED_INPUTS, most=_DIGITS - 2)
    digits_seeds: int = count(
        2,
        "Number of ReLU networks for each parametrisation and κ; zero leaves the digits out.",
        least=0,
        zero="none, the digits are left out",
    )
    seed: int = seed("Seed of the first network, and of the choice of digits.")

    reference = Reference.of(
        papers.ON_A_LINE,
        "Whether the tangent kernel of a wide or lazy network stays or changes in training, and how learning "
        "time scales, follow from the exponents of width, output multiplier, initial variances and learning rates.",
    )
    along = "architecture"
    title = "When wide networks learn features"
    question = "Do very wide networks still learn features, or only weigh those that they start with?"
    figures = FIGURES
    meaning = MEANING
    minutes = 1.0
    theory = "phase diagram"
    task = "a line and digits"
    told = ("Inputs on a line of unit second moment, and targets of slope {target:g}.",)
    trains = "two-layer linear and ReLU"
    flow = "gradient flow"
    axes = ("architecture",)
    labelled = {"scaling_parameter": "scaling_parameters", "architecture": lambda study: list(study._parametrisations)}
    names = {
        "digits_keeps_kernel": ("whether the kernel stays, on digits", "1"),
        "log_kernel_change": ("change of the kernel (its decimal logarithm)", "1"),
        "log_learning_speed": ("learning speed (its logarithm)", "1"),
        "speed_exponent": ("exponent of the learning speed in the width", "1"),
        "phase": ("phase", "1"),
        "phase_at_stable_rates": ("phase at stable learning rates", "1"),
    }
    tolerance = exact(
        *("log_kernel_change", "log_learning_speed"),
        error=1e-4,
        reason="the closed form is exact; a small change keeps fewer digits of the solver's 1e-9 than a large one",
    )
    judged_claims = ("phases",)
    tiny = {"scaling_parameters": [64.0, 128.0, 256.0], "seeds": 4, "digits_seeds": 0}

    def trained(self) -> Values:
        """Train linear networks on a line and ReLU networks on digits."""
        line = self._on_line(trained_on_line)
        exponents = self._exponents(line)
        kernel, speed = (exponents[f"{each}_exponent"][1] for each in ("kernel", "speed"))
        seen = {
            "phase": [phase_of_exponents(*pair) for pair in zip(kernel, speed, strict=True)],
            "phase_at_stable_rates": [phase_of_exponents(each, 0.0) for each in kernel],
        }
        variables = {
            **_curves(line),
            **exponents,
            "loss": (("scaling_parameter", "architecture"), line["loss"]),
            **seen,
            **report_claims([self._as_told(seen)]),
        }
        if self.digits_seeds:
            on_digits = self._means(self._trained_on_digits)
            found = {**_curves(on_digits), **self._exponents(on_digits)}
            variables |= {f"digits_{name}": values for name, values in found.items()}
            variables["digits_keeps_kernel"] = (found["kernel_exponent"][1] < -ZERO).astype(int)
        return variables

    def exact(self) -> Values:
        """The closed form of each network on the line, and the exponents of the phase diagram."""
        given, remedy = (
            f"{self.scaling_parameters} and target {self.target:g}",
            "choose larger ones, or a target nearer to one",
        )
        for off in (np.abs(each).max() for _, each in self._corrections.values()):
            problem = f"with scaling_parameters {given} an exponent differs from its limit by {off:.2g}"
            self.require(off <= _WORTH, "scaling_parameters", remedy, problem=problem)
        phases = [phase(each) for each in self._parametrisations.values()]
        keeps = [int(each.kernel_exponent < 0) for each in phases]
        return {
            **_curves(self._solved),
            **{name: limits for name, (limits, _) in self._corrections.items()},
            **self._told,
            **({"digits_keeps_kernel": keeps} if self.digits_seeds else {}),
        }

    def said(self) -> Values:
        """The tolerances of the exponents, and of digits if there are any."""
        said = limit_tolerances(self._corrections, _SOLVER, _LIMIT)
        for name in exact("digits_keeps_kernel") if self.digits_seeds else ():
            said |= {f"{name}_tolerance": 0.0, f"{name}_tolerance_reason": _KEEPS}
        return said

    def compare(self, observed: xr.Dataset, predicted: xr.Dataset) -> Comparison:
        """Judge everything; digits are but shown where exponents are half way between the phases and none is wrong."""
        if not self.digits_seeds:
            return super().compare(observed, predicted)
        half_way = np.abs(observed["digits_kernel_exponent"] + ZERO) < _HALF_WAY
        wrong = ~half_way & (observed["digits_keeps_kernel"] != predicted["digits_keeps_kernel"])
        unclear = bool(half_way.any() and not wrong.any())
        tree = super().compare(observed, predicted.drop_vars("digits_keeps_kernel") if unclear else predicted)
        return dataclasses.replace(tree, predicted=predicted)

    def charts(self) -> tuple[Chart, ...]:
        """Digits are drawn if there are any."""
        return self.figures if self.digits_seeds else self.figures[:-1]

    def check(self) -> None:
        """On digits, of which no theory says how far they are from their limit, networks are as wide as that takes."""
        for name, least in (("scaling_parameters", self.scaling_parameters[0]), ("fixed_width", self.fixed_width)):
            enough = self.digits_seeds == 0 or least >= _DIGITS_FROM
            self.require(enough, name, f"choose {_DIGITS_FROM} or more for digits, or leave them out (digits_seeds=0)")

    def about(self) -> Values:
        """Both tasks."""
        said = super().about()
        return {**said, "description": [*said["description"], *(self._digits.description if self.digits_seeds else ())]}

    def _means(self, run: Callable[[str, float], WideRun]) -> dict[str, np.ndarray]:
        """Means over seeds of what runs measure, shape (scaling parameters, parametrisations)."""
        kappas, names = self.scaling_parameters, self._parametrisations
        means = np.array([[np.mean(run(name, kappa), axis=1) for name in names] for kappa in kappas])
        return dict(zip(WideRun._fields, np.moveaxis(means, -1, 0), strict=True))

    def _exponents(self, means: Mapping[str, np.ndarray]) -> dict[str, tuple[Any, np.ndarray]]:
        sizes = np.asarray(self.scaling_parameters)
        return {
            **measured_exponents("kernel", sizes, means["kernel_change"].T),
            **measured_exponents("speed", sizes, means["learning_speed"].T),
        }

    @functools.cached_property
    def _solved(self) -> dict[str, np.ndarray]:
        return self._on_line(solved_on_line)

    @functools.cached_property
    def _corrections(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """The exponents of the diagram, and by how much fits to the exact solution differ from them."""
        found = self._exponents(self._solved)
        phases = [phase(each) for each in self._parametrisations.values()]
        limits = {name: np.array([getattr(each, name) for each in phases]) for name in _EXPONENTS}
        return {name: (each, found[name][1] - each) for name, each in limits.items()}

    @property
    def _told(self) -> dict[str, list[str]]:
        """The phases of the diagram, at rates that do not scale and at stable ones."""
        entries = self._parametrisations.values()
        stable = [phase(stable_rates(each)).name for each in entries]
        return {"phase": [phase(each).name for each in entries], "phase_at_stable_rates": stable}

    def _as_told(self, seen: Mapping[str, list[str]]) -> Claim:
        """Every phase that is seen is that of the diagram."""
        same = [one == other for name, told in self._told.items() for one, other in zip(seen[name], told, strict=True)]
        statement = "Each way to scale networks is in its phase of the diagram, at constant rates and at stable ones."
        return Claim("phases", statement, sum(same), least=len(same))

    @functools.cached_property
    def _parametrisations(self) -> dict[str, Parametrisation]:
        return distinct_starts()

    def _start(self, name: str, kappa: float, task: Task, members: int, **options: Any) -> WideNetworks:
        widest = 1 + max(_NARROW, self.fixed_width, *map(round, self.scaling_parameters))
        shape, seeds = (task.input_dimension, task.output_dimension), range(self.seed, self.seed + members)
        widths = {"fixed_width": self.fixed_width, "widest": widest}
        return drawn_networks(self._parametrisations[name], kappa, shape, seeds, **widths, **options)

    @functools.cached_property
    def _line(self) -> Task:
        """Inputs a·n on the line along n = (0.6, 0.8), with E[a²] = 1, and targets S·a."""
        position = np.array([[1.0], [-1.0]])
        return Task(position * [0.6, 0.8], self.target * position, name=self.task)

    def _on_line(self, run: Callable[[WideNetworks, Task], WideRun]) -> dict[str, np.ndarray]:
        line, seeds, options = self._line, self.seeds, {"activation": "linear", "direction": self._line.inputs[0]}
        return self._means(lambda name, kappa: run(self._start(name, kappa, line, seeds, **options), line))

    @functools.cached_property
    def _digits(self) -> Task:
        every = digits()
        chosen, _ = every.split(test_fraction=1 - self.digits_samples / every.samples, seed=self.seed)
        return chosen.centred()

    def _trained_on_digits(self, name: str, kappa: float) -> WideRun:
        start = self._start(name, kappa, self._digits, self.digits_seeds, activation="relu")
        # Partners cancel each other's output, but not the errors of the solver.
        accuracy = 1e-10 if self._parametrisations[name].zero_output else 1e-6
        return trained_to_half(start, self._digits, _COMPARED_INPUTS, accuracy, name=f"{name} at {kappa:g}")


def _curves(means: Mapping[str, np.ndarray]) -> dict[str, tuple[tuple[str, str], np.ndarray]]:
    """Decimal logarithms over κ and parametrisations."""
    axes = ("scaling_parameter", "architecture")
    return {f"log_{name}": (axes, np.log10(means[name])) for name in ("kernel_change", "learning_speed")}

"""Width phases: the parametrisation of a wide network decides whether it learns features."""

from __future__ import annotations

import dataclasses
import functools
from typing import Annotated

import numpy as np
import xarray as xr
from annotated_types import Ge, Interval

from dynascope.results import Comparison
from dynascope.studies import Reference, Study, Values, exact, parameter
from dynascope.studies.regimes.width_phases import page
from dynascope.studies.regimes.width_phases.experiment import Experiment
from dynascope.studies.tolerances import limit_tolerances
from dynascope.theory import papers
from dynascope.theory.regimes.phases import ZERO
from dynascope.validation.bounded import FiniteFloat, NonNegativeInt, PositiveInt, Seed

_FEWEST_DIGITS = 20  # on which NTKs are compared
_DIGITS = 1797  # in the data set, of which at least two stay out of training
_DIGITS_WIDTH = 64  # least κ and fixed width at which networks on digits show their limit
_LIMIT = "the exact exponents at these κ differ from the limit by as much; the solver's error in the curves adds 0.002"
_SOLVER = 0.002
_UNCLEAR = 0.25  # exponents this close to −1/2 lie halfway between a constant and a changing NTK
_KEEPS = "the NTK stays constant or changes; exponents above -1/2 count as zero"


class WidthPhases(Study):
    """Learning speed and NTK change against the scaling parameter κ, for table 1 of the paper.

    The study trains the five standard parametrisations, and those that the output multiplier of corollaries 2 and 3
    moves into the other phase, at learning rates that do not scale. Rates ~ κ^c, the same for both layers, multiply the
    speed by κ^c and change nothing else. The eight entries therefore give the phases of all twenty of the table.

    On a line, each linear network is compared with its closed form. The exponents of the ensemble are compared with the
    phase diagram, within the deviation that the closed form has at these κ. The claim is that every phase that follows
    from the exponents is that of the diagram. No closed form is known for two-layer ReLU networks on handwritten
    digits. They are judged by whether their NTK stays constant, which means that its relative change falls faster than
    κ^(−1/2), unless an exponent lies within 0.25 of −1/2. Exponents are fitted to means over seeds on double
    logarithmic axes; `_error` is the standard error. Initial weights on the line are stratified in the overlap of the
    layers, so that few networks are enough.
    """

    scaling_parameters: list[Annotated[float, Ge(16)]] = parameter(
        [64.0, 128.0, 256.0, 512.0],
        "Values of κ: widths, or output multipliers in lazy training.",
        fewest=3,
        increasing=True,
    )
    fixed_width: PositiveInt = parameter(64, "Width in lazy training, where it does not scale.")
    seeds: Annotated[int, Ge(2)] = parameter(16, "Number of linear networks for each parametrisation and κ.")
    target: FiniteFloat = parameter(1.5, "Slope S of the target y = S·x on the line; not zero, may be negative.")
    digits_samples: Annotated[int, Interval(ge=_FEWEST_DIGITS, le=_DIGITS - 2)] = parameter(
        100, "Number of training digits."
    )
    digits_seeds: NonNegativeInt = parameter(
        2,
        "Number of ReLU networks on digits for each parametrisation and κ; zero leaves the digits out.",
        zero="none, the digits are left out",
    )
    seed: Seed = parameter(0, "Seed of the first network and of the choice of digits.")

    reference = Reference.of(
        papers.ON_A_LINE,
        "Whether the NTK of a wide or lazy network stays constant or changes during training, and how learning time "
        "scales, follow from the exponents of width, output multiplier, initial variances and learning rates.",
    )
    along = "architecture"
    title = "When wide networks learn features"
    question = "Do very wide networks still learn features, or only reweight their initial ones?"
    figures, meaning = page.figures, page.meaning
    minutes = 1.0
    theory = "phase diagram"
    task = "a line and digits"
    notes = ("Inputs on the line have unit second moment, and targets have slope {target:g}.",)
    trains = "two-layer linear and ReLU"
    flow = "gradient flow"
    axes = ("architecture",)
    labelled = {
        "scaling_parameter": "scaling_parameters",
        "architecture": lambda study: list(study._experiment.parametrisations),
    }
    names = {
        "digits_keeps_kernel": ("whether the NTK stays constant, on digits", "1"),
        "log_kernel_change": ("change of the NTK (its decimal logarithm)", "1"),
        "log_learning_speed": ("learning speed (its decimal logarithm)", "1"),
        "kernel_exponent": ("exponent of the NTK change in κ", "1"),
        "speed_exponent": ("exponent of the learning speed in κ", "1"),
        "phase": ("phase", "1"),
        "phase_at_stable_rates": ("phase at stable learning rates", "1"),
    }
    tolerance = exact(
        *("log_kernel_change", "log_learning_speed"),
        error=1e-4,
        reason="the closed form is exact; the solver's error of 1e-9 is larger relative to a small NTK change",
    )
    judged_claims = ("phases",)
    tiny = {"scaling_parameters": [64.0, 128.0, 256.0], "seeds": 4, "digits_seeds": 0}

    def check(self) -> None:
        """Networks on digits are wide enough to show their limit, which theory does not quantify."""
        self.require(self.target, "target", "choose a finite number other than zero")
        for name, least in (("scaling_parameters", self.scaling_parameters[0]), ("fixed_width", self.fixed_width)):
            enough = self.digits_seeds == 0 or least >= _DIGITS_WIDTH
            remedy = f"choose {_DIGITS_WIDTH} or more for digits, or leave them out (digits_seeds=0)"
            self.require(enough, name, remedy)

    def trained(self) -> Values:
        """Train linear networks on a line and ReLU networks on digits."""
        return self._experiment.trained()

    def exact(self) -> Values:
        """Evaluate the closed form of each network on the line, and the exponents of the phase diagram."""
        return self._experiment.exact()

    def prediction_attributes(self) -> Values:
        """Tolerances of the exponents, and of the networks on digits if there are any."""
        said = limit_tolerances(self._experiment.corrections, _SOLVER, _LIMIT)
        for name in exact("digits_keeps_kernel") if self.digits_seeds else ():
            said |= {f"{name}_tolerance": 0.0, f"{name}_tolerance_reason": _KEEPS}
        return said

    def compared(self, observed: xr.Dataset, predicted: xr.Dataset) -> Comparison:
        """Compare both sides; digits are not judged if an exponent is halfway between phases and no other is wrong."""
        if not self.digits_seeds:
            return super().compared(observed, predicted)
        half_way = np.abs(observed["digits_kernel_exponent"] + ZERO) < _UNCLEAR
        wrong = ~half_way & (observed["digits_keeps_kernel"] != predicted["digits_keeps_kernel"])
        unclear = bool(half_way.any() and not wrong.any())
        tree = super().compared(observed, predicted.drop_vars("digits_keeps_kernel") if unclear else predicted)
        return dataclasses.replace(tree, predicted=predicted)

    def about(self) -> Values:
        """Both tasks and networks, or those on the line alone if there are no digits."""
        said = super().about()
        if not self.digits_seeds:
            return {**said, "task": "a line", "network": "two-layer linear"}
        return {**said, "description": [*said["description"], *self._experiment.digits.description]}

    @functools.cached_property
    def _experiment(self) -> Experiment:
        return Experiment(self)

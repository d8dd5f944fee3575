"""Width phases: the parametrisation of a wide network determines whether it learns features."""

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

_FEWEST_DIGITS = 20  # number of digits on which NTKs are compared
_DIGITS = 1797  # size of the data set; at least two digits are not used for training
_DIGITS_WIDTH = 64  # smallest κ and fixed width at which networks on digits are close to their limit
_LIMIT = "the exact exponents at these values of κ deviate from the limit by this amount; the solver error adds 0.002"
_SOLVER = 0.002
_UNCLEAR = 0.25  # exponents this close to −1/2 lie halfway between a constant and a changing NTK
_KEEPS = "the outcome is either yes or no; the NTK counts as changing if its exponent exceeds −1/2"


class WidthPhases(Study):
    """Measures how the learning speed and the NTK change scale with the width, for all standard parametrisations.

    The study covers the five standard parametrisations in table 1 of the paper. It also covers three variants with the
    output multiplier of corollaries 2 and 3, which moves a parametrisation into the other phase. The scaling parameter
    κ is the width or, in lazy training, the output multiplier. The learning rates are independent of κ. Learning rates
    proportional to κ^c in both layers only multiply the speed by κ^c, so these eight parametrisations determine the
    phases of all twenty entries in the table.

    On data along a line, each linear network is compared with its closed-form solution. The exponents of the ensemble
    are compared with the phase diagram; the tolerance is the deviation of the closed form from the diagram at these
    values of κ. The claim is that the measured exponents place every parametrisation in the predicted phase. No closed
    form is known for two-layer ReLU networks on handwritten digits. For these networks, the verdict depends only on
    whether the NTK stays constant, that is, whether its relative change decreases faster than κ^(−1/2). The digits do
    not count towards the verdict if an exponent is within 0.25 of −1/2. Exponents are fitted to means over seeds on
    log–log axes; variables whose names end in `_error` contain standard errors. On the line, the initial weights are
    stratified by the overlap between the layers, so a few networks suffice.
    """

    scaling_parameters: list[Annotated[float, Ge(16)]] = parameter(
        [64.0, 128.0, 256.0, 512.0],
        "Values of κ: widths, or output multipliers in lazy training.",
        fewest=3,
        increasing=True,
    )
    fixed_width: PositiveInt = parameter(64, "Width in lazy training, in which the width does not scale with κ.")
    seeds: Annotated[int, Ge(2)] = parameter(16, "Number of linear networks per parametrisation and κ.")
    target: FiniteFloat = parameter(
        1.5, "Slope S of the target y = S·x on the line. It must not be zero and may be negative."
    )
    digits_samples: Annotated[int, Interval(ge=_FEWEST_DIGITS, le=_DIGITS - 2)] = parameter(
        100, "Number of training digits."
    )
    digits_seeds: NonNegativeInt = parameter(
        2,
        "Number of ReLU networks on digits per parametrisation and κ; zero skips the digits.",
        zero="none, digits skipped",
    )
    seed: Seed = parameter(0, "Seed of the first network and of the choice of digits.")

    reference = Reference.of(
        papers.ON_A_LINE,
        "The scaling exponents of width, output multiplier, initial variances and learning rates determine whether the "
        "NTK of a wide or lazy network changes during training. They also determine how the learning time scales.",
    )
    along = "architecture"
    title = "When wide networks learn features"
    question = "Do very wide networks still learn features, or only reweight their initial ones?"
    figures, meaning = page.figures, page.meaning
    equation = (
        r"f(x) = \gamma \, x W u, \quad \gamma \sim \kappa^{c_\gamma}, \quad \sigma_w^2 \sim \kappa^{c_w}, "
        r"\quad \sigma_u^2 \sim \kappa^{c_u}, \quad d \sim \kappa^{c_d}"
    )
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
        "log_kernel_change": ("decimal logarithm of the NTK change", "1"),
        "log_learning_speed": ("decimal logarithm of the learning speed", "1"),
        "kernel_exponent": ("exponent of κ in the NTK change", "1"),
        "speed_exponent": ("exponent of κ in the learning speed", "1"),
        "phase": ("phase", "1"),
        "phase_at_stable_rates": ("phase at stable learning rates", "1"),
    }
    tolerance = exact(
        *("log_kernel_change", "log_learning_speed"),
        error=1e-4,
        reason="the closed form is exact, but the solver error relative to a small change in the NTK exceeds 1e-9",
    )
    deciding_claims = ("phases",)
    tiny = {"scaling_parameters": [64.0, 128.0, 256.0], "seeds": 4, "digits_seeds": 0}

    def check(self) -> None:
        """Check that the target is not zero, and that networks on digits are wide enough to show their limit."""
        self.require(self.target, "target", "choose a finite number other than zero")
        for name, least in (("scaling_parameters", self.scaling_parameters[0]), ("fixed_width", self.fixed_width)):
            enough = self.digits_seeds == 0 or least >= _DIGITS_WIDTH
            remedy = f"choose {_DIGITS_WIDTH} or more for digits, or skip the digits (digits_seeds=0)"
            self.require(enough, name, remedy)

    def trained(self) -> Values:
        """Train linear networks on a line and ReLU networks on digits."""
        return self._experiment.trained()

    def exact(self) -> Values:
        """Evaluate the closed form of each network on the line, and the exponents of the phase diagram."""
        return self._experiment.exact()

    def prediction_attributes(self) -> Values:
        """Tolerances of the exponents and, if they are trained, of the networks on digits."""
        attributes = limit_tolerances(self._experiment.corrections, _SOLVER, _LIMIT)
        for name in exact("digits_keeps_kernel") if self.digits_seeds else ():
            attributes |= {f"{name}_tolerance": 0.0, f"{name}_tolerance_reason": _KEEPS}
        return attributes

    def compared(self, observed: xr.Dataset, predicted: xr.Dataset) -> Comparison:
        """Compare the records, without digits if an exponent is halfway between phases and none is clearly wrong."""
        if not self.digits_seeds:
            return super().compared(observed, predicted)
        half_way = np.abs(observed["digits_kernel_exponent"] + ZERO) < _UNCLEAR
        wrong = ~half_way & (observed["digits_keeps_kernel"] != predicted["digits_keeps_kernel"])
        unclear = bool(half_way.any() and not wrong.any())
        tree = super().compared(observed, predicted.drop_vars("digits_keeps_kernel") if unclear else predicted)
        return dataclasses.replace(tree, predicted=predicted)

    def about(self) -> Values:
        """Names of the tasks and networks, without digits if no networks are trained on them."""
        attributes = super().about()
        if not self.digits_seeds:
            return {**attributes, "task": "a line", "network": "two-layer linear"}
        return {**attributes, "description": [*attributes["description"], *self._experiment.digits.description]}

    @functools.cached_property
    def _experiment(self) -> Experiment:
        return Experiment(self)

"""Gradient flow conserves a charge for every symmetry; the ε of a normalisation layer causes a predictable drift."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import xarray as xr
from annotated_types import Ge, Interval

from dynascope.comparison import Claim
from dynascope.results import Comparison
from dynascope.studies import ClaimsStudy, Reference, Values, curve_tolerance, parameter
from dynascope.studies.symmetry.conservation import page
from dynascope.studies.symmetry.conservation.experiment import EPSILON, Experiment
from dynascope.studies.symmetry.formulas import ZOO
from dynascope.theory import papers
from dynascope.validation.bounded import Seed

_CONSERVED = (
    1e-5,
    "for networks with kinks, the solver error is 1e-7 per step over about a hundred steps; otherwise it is far "
    "smaller",
)
_ROUNDING = 1e-8  # a hundred steps at the usual solver tolerance
_LARGEST_DIFFERENCE = 0.01  # tolerance of the drift due to ε, predicted by quadrature over the recorded times
_MOVED = 0.1  # smallest relative change of the weights for which conserved charges are informative


class Conservation(ClaimsStudy):
    """Measures the charges of several networks during gradient flow on data from a teacher network.

    The networks are a three-layer linear network; a ReLU network with two hidden layers and biases; two convolutional
    networks with batch normalisation, one with ε = 0 and one with ε > 0; and a transformer block with two heads,
    squared ReLU and RMS norms. The symmetries are found by analysing the computation graphs of the networks.

    Theory predicts that every charge θᵀGθ keeps its initial value. The charges are AᵀA − WWᵀ for consecutive linear
    layers x ↦ A W x, and ‖out‖² − ‖in‖² for the outgoing and incoming weights of a unit. For a channel with weights w
    that is followed by a normalisation layer, the charge is ‖w‖². The pair of queries and keys and the pair of values
    and outputs have matrix-valued charges. The charge ‖w‖² of a channel that is divided by √(v + ε), where v is its
    variance, is conserved only for ε = 0. For ε > 0, scaling the weights is equivalent to changing ε, so d‖w_c‖²/dt = 4
    ε ∂L/∂ε_c. The study subtracts the integral of this rate, the predicted drift, from the charge. One claim states
    that the predicted drift is within 1 percent of the measured drift.
    """

    networks: list[str] = parameter(
        list(ZOO), 'Networks to train; "epsilon" is the network with batch normalisation and ε > 0.', options=list(ZOO)
    )
    epsilon: Annotated[float, Interval(gt=0, le=1e-2)] = parameter(
        1e-5, 'ε of the batch normalisation in the network "epsilon".'
    )
    samples: Annotated[int, Ge(20)] = parameter(60, "Number of training samples.")
    duration: Annotated[float, Interval(ge=1, le=100)] = parameter(10.0, "Training time of gradient flow.")
    times: Annotated[int, Ge(200)] = parameter(400, "Number of times at which charges are recorded.")
    seed: Seed = parameter(0, "Seed of the networks and the data.")

    reference = Reference.of(
        papers.CONSERVATION,
        "Gradient flow conserves one quantity for each linear symmetry with a symmetric generator, whatever the data.",
    )
    theory = "conservation laws of gradient flow"
    task = "regression on a teacher of the same architecture"
    notes = ("{samples} Gaussian inputs; the targets are the outputs of a random network of the same architecture.",)
    trains = "networks of several architectures"
    flow = "gradient flow"
    axes = ("architecture", "time")
    along = "time"
    labelled = {
        "architecture": "networks",
        "time": "experiment.times",
        "charge": "experiment.charge_names",
        "neuron": lambda _: [1, 2, 3],
    }
    title = "Conserved quantities of training"
    question = "Which quantities does training conserve?"
    figures, meaning = page.figures, page.meaning
    names = {
        "moved": ("distance from the initial weights, relative to their norm", "1"),
        "drift": ("largest change in a charge, relative to the squared norm of the initial weights", "1"),
        "charges": ("drift-corrected charges", "1"),
        "epsilon_change": ("change of the squared norm of a channel", "1"),
        "epsilon_integral": ("predicted change of the squared norm of a channel", "1"),
    }
    equation = r"\frac{d}{dt} \, \theta^\top G \theta = -2 \, \theta^\top G \, \nabla L = 0"
    minutes = 0.6
    tolerance = curve_tolerance(charges=_CONSERVED)
    tiny = {"networks": ["deep linear", EPSILON], "times": 200}

    @property
    def deciding_claims(self) -> tuple[str, ...]:
        """The claims that apply to the chosen networks: exact conservation, and the drift due to ε."""
        return (*["exactly"] * bool(self.experiment.smooth_networks), *["epsilon"] * (EPSILON in self.networks))

    @functools.cached_property
    def experiment(self) -> Experiment:
        """The networks and their charges."""
        return Experiment(self)

    def trained(self) -> Values:
        """Train all networks and record their charges."""
        return self.experiment.trained()

    def exact(self) -> Values:
        """The initial values of the charges at all times."""
        return self.experiment.exact()

    def compared(self, observed: xr.Dataset, predicted: xr.Dataset) -> Comparison:
        """Compare the charges, and add the integral along the run to the figures as the predicted drift due to ε."""
        result = super().compared(observed, predicted)
        if "epsilon_integral" in observed:
            predicted = predicted.assign(epsilon_change=observed["epsilon_integral"])
            return dataclasses.replace(result, predicted=predicted)
        return result

    def claimed(self, found: Mapping[str, Any]) -> list[Claim]:
        """Evaluate the claims: weights move, smooth networks conserve charges, and ε causes the predicted drift."""
        moved = float(np.min([each[-1] for each in found["moved"]]))
        statement = "In every network, the weights move by at least 10 % of their initial norm."
        claims = [Claim("weights move", statement, moved, least=_MOVED)]
        if self.experiment.smooth_networks:
            drifts = [found["drift"][self.networks.index(name)] for name in self.experiment.smooth_networks]
            statement = (
                "In networks without kinks and without ε, charges change only by numerical errors (largest change, "
                "relative to the squared norm of the weights)."
            )
            claims.append(Claim("exactly", statement, float(np.max(drifts)), most=_ROUNDING))
        if EPSILON in self.networks:
            change, integral = (found[name][1] for name in ("epsilon_change", "epsilon_integral"))
            largest = np.abs(integral).max()
            difference = float(np.abs(change - integral).max() / largest)
            error = float(self.experiment.epsilon_solver_error / largest)
            low, high = max(0.0, difference - error), difference + error
            statement = "ε changes charges by the predicted amount (difference relative to the largest change)."
            claims.append(Claim("epsilon", statement, difference, low, high, most=_LARGEST_DIFFERENCE))
        return claims

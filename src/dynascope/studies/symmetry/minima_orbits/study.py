"""Minima of the loss are orbits of symmetries: flat along the orbit, but of varying sharpness."""

from __future__ import annotations

import functools
from typing import Annotated

from annotated_types import Ge, Interval

from dynascope.studies import Reference, Study, Values, curve_tolerance, parameter
from dynascope.studies.symmetry.minima_orbits import page
from dynascope.studies.symmetry.minima_orbits.experiment import FLAT_DIRECTIONS, Experiment
from dynascope.theory import papers
from dynascope.validation.bounded import PositiveFloat, PositiveInt, Seed

_LARGEST_BALANCE = 20  # balance relative to the weakest mode above which alignment takes thousands of time units
_COUNT = (0.0, "both numbers are integers, so they must agree exactly")
_CLOSED_FORM = (1e-6, "the closed form is exact, and training ends within a distance of 1e-8 of the minimum")
_IDENTITY = (1e-9, "the identity is exact, but rounding errors grow with the distance along the orbit")


class MinimaOrbits(Study):
    """Counts the flat directions of trained networks, and measures the sharpness of linear networks.

    Each small network is trained on a teacher with the same architecture, from initial weights near those of the
    teacher, until the loss vanishes up to rounding. The number of zero eigenvalues of the Hessian is compared with the
    dimension of the orbit of the symmetry group: n for n units that can be rescaled, and r² for r linear units that can
    be mixed. Two-layer linear networks with W₂ W₂ᵀ − W₁ᵀ W₁ = λ I learn a random map with singular values s₁ > s₂ > …
    from white inputs. For every λ, training ends on the same orbit, at a point determined by λ. The largest
    curvature at this point is √(4 s₁² + λ²). At the point (e^−τ W₁, e^τ W₂) of the orbit, the largest curvature is s
    e^(2τ) + r e^(−2τ), with s, r = √(s₁² + λ²/4) ± λ/2. The verdict rests on the number of flat directions and on this
    sharpness, both predicted without training. As checks, the loss and the norm of its gradient must follow their
    predictions along the orbits of random points.
    """

    networks: list[str] = parameter(
        list(FLAT_DIRECTIONS), "Networks whose flat directions are counted.", options=list(FLAT_DIRECTIONS)
    )
    samples: Annotated[int, Ge(50)] = parameter(100, "Number of training samples for each of these networks.")
    inputs: Annotated[int, Ge(2)] = parameter(4, "Number of inputs of the linear networks.")
    outputs: Annotated[int, Ge(2)] = parameter(3, "Number of outputs of the linear networks.")
    strongest: PositiveFloat = parameter(2.0, "Largest singular value s₁ of the map learned by the linear networks.")
    weakest: PositiveFloat = parameter(
        1.0, "Smallest singular value; the others are equally spaced in between.", most="strongest"
    )
    largest_balance: PositiveFloat = parameter(4.0, "Largest imbalance λ; the smallest is −λ.")
    balances: Annotated[int, Ge(2)] = parameter(5, "Number of equally spaced values of λ.")
    distance: Annotated[float, Interval(gt=0, le=2)] = parameter(
        0.8, "Largest distance |τ| by which the weights are moved along their orbit."
    )
    places: PositiveInt = parameter(8, "Number of values of τ on either side of zero.")
    seed: Seed = parameter(0, "Seed of the networks and the data.")

    reference = Reference.of(
        papers.NEURAL_MECHANICS,
        "Symmetries shape the loss landscape: its minima are orbits, flat along the symmetries only, and the conserved "
        "quantities at initialisation determine where on the orbit training ends.",
    )
    theory = "symmetries of the loss landscape"
    task = "a teacher of the same architecture, and a random map"
    notes = ("{samples} Gaussian inputs for each small network, and white inputs for the linear networks.",)
    trains = "small networks"
    flow = "gradient flow, followed by Gauss-Newton steps for the small networks"
    along = ("architecture", "along")
    symbols = {"balance": "λ"}
    labelled = {"architecture": "networks", "balance": "experiment.balances", "along": "experiment.places"}
    title = "Minima are orbits"
    question = "In which directions is a minimum flat, and how sharp is the minimum that training finds?"
    figures, meaning = page.figures, page.meaning
    names = {
        "flat_directions": ("number of flat directions of the minimum", "1"),
        "sharpness": ("largest curvature", "1"),
        "end_sharpness": ("largest curvature at the end of training", "1"),
        "least_curvature": ("smallest nonzero curvature, relative to the largest", "1"),
        "orbit_curvature": ("largest curvature along the orbit, relative to the largest", "1"),
        "path_loss": ("loss along an orbit", "1"),
        "path_gradient": ("norm of the gradient along an orbit", "1"),
        "along": ("position τ on the orbit", "1"),
        "loss": ("loss at the minimum", "1"),
    }
    equation = (
        r"L\left( e^{s X} \theta \right) = L(\theta) \quad \Rightarrow \quad \nabla^2 L \; X \theta = 0 "
        r"\text{ at a minimum}"
    )
    minutes = 0.7
    tolerance = curve_tolerance(
        flat_directions=_COUNT, sharpness=_CLOSED_FORM, path_loss=_IDENTITY, path_gradient=_IDENTITY
    )
    checks = ("path_loss", "path_loss_maximum", "path_gradient", "path_gradient_maximum")
    tiny = {"networks": ["linear 2-2-2", "ReLU"], "balances": 2, "places": 2}

    def check(self) -> None:
        """Require a network with a symmetry, and imbalances at which layers align in reasonable time."""
        self.require(any(FLAT_DIRECTIONS[each] for each in self.networks), "networks", "add a network other than tanh")
        slow = self.largest_balance > _LARGEST_BALANCE * self.weakest
        remedy = f"choose at most {_LARGEST_BALANCE} times the value of weakest"
        self.require(not slow, "largest_balance", remedy, beside="weakest")

    @functools.cached_property
    def experiment(self) -> Experiment:
        """The networks, their data and their orbits."""
        return Experiment(self)

    def trained(self) -> Values:
        """Train to a minimum, compute the curvatures, and move along the orbits."""
        return self.experiment.trained()

    def exact(self) -> Values:
        """The dimension of each orbit, the sharpness for each imbalance, and loss and gradient along the orbits."""
        return self.experiment.exact()

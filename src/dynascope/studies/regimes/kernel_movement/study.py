"""The relative scale of the layers decides how soon deep ReLU networks change their kernel."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Interval

from dynascope.comparison import Claim
from dynascope.studies import ClaimsStudy, Reference, Values, curve_tolerance, parameter
from dynascope.studies.regimes.kernel_movement import page
from dynascope.studies.regimes.kernel_movement.claims import DECIDING, movement_claims
from dynascope.studies.regimes.kernel_movement.experiment import FRACTIONS, MEASURED, NETWORKS, Experiment
from dynascope.theory import papers
from dynascope.validation.bounded import PositiveInt, Seed

_UPSTREAM = 2.0  # relative scale at which networks are clearly upstream; its inverse is clearly downstream


class KernelMovement(ClaimsStudy):
    """Tests whether deep ReLU networks change their kernel sooner if the first layer is small and the last one large.

    The initial weights of the first layer are divided by the relative scale α, and those of the last layer multiplied
    by it, which leaves the initial function unchanged. The first layer of upstream networks (α > 1) learns faster.
    Networks of several depths are trained by full-batch gradient descent on the outputs of a ReLU teacher, at a small
    output scale. The verdict rests on the NTK and the activation patterns: at equal loss, both must have changed more
    in upstream networks than at α = 1 and in downstream networks (α < 1), at every depth.

    Networks are compared at equal loss, because the unit of time has no common meaning: the curvature, and thus the
    stable learning rate, depends on α. Each run has the largest rate 2^(−k)/λ, k ≥ 2, at which no recorded loss exceeds
    the previous one, where λ is the largest eigenvalue of the initial NTK over the number of samples. The NTK is
    exact, and is computed on a subset of the training samples.

    The same networks are also trained with batch norm before every ReLU. There, the last layer is not rescaled, since
    the outputs do not depend on the scale of the first layer. The relative scale then is the effective learning rate of
    the first layer: weights divided by α at the rate η learn exactly like the original weights at the rate ηα². The
    results with batch norm are therefore reported but do not count. The equivalence is only checked, and so is the
    corresponding one without batch norm, in which the rate of the last layer is divided by α².

    A run with `seed=100`, which was not used while the study was written, supports all four claims.
    """

    inputs: Annotated[int, Ge(2)] = parameter(10, "Number of inputs.")
    samples: Annotated[int, Ge(10)] = parameter(100, "Number of training samples.")
    test_samples: Annotated[int, Ge(10)] = parameter(1000, "Number of test samples.")
    kernel_samples: Annotated[int, Ge(2)] = parameter(
        24, "Number of training samples on which the NTK is computed.", most="samples"
    )
    width: Annotated[int, Ge(8)] = parameter(48, "Number of neurons of each hidden layer.")
    depths: list[Annotated[int, Interval(ge=1, le=6)]] = parameter(
        [2, 3, 4], "Numbers of hidden layers.", increasing=True
    )
    teacher_width: PositiveInt = parameter(3, "Number of hidden neurons of the teacher.")
    relative_scales: list[Annotated[float, Interval(ge=0.1, le=10)]] = parameter(
        [0.25, 0.5, 1.0, 2.0, 4.0], "Relative scales α; one of them is 1.", fewest=3, increasing=True
    )
    output_scale: Annotated[float, Interval(ge=0.03, le=0.3)] = parameter(
        0.1, "Factor on the initial outputs, small enough for rich training."
    )
    seeds: Annotated[int, Ge(2)] = parameter(8, "Number of teachers, each with one network per scale and depth.")
    steps: Annotated[int, Ge(100)] = parameter(1000, "Number of steps of gradient descent.")
    seed: Seed = parameter(0, "Seed of all data, teachers and networks.")

    reference = Reference.of(
        papers.UNBALANCED,
        "In nonlinear networks, upstream initialisations, whose early layers learn faster, promote rapid feature "
        "learning.",
    )
    title = "Movement of the kernel of deep networks"
    question = "How does the relative scale of the layers decide how soon a deep ReLU network learns features?"
    figures, meaning = page.figures, page.meaning
    equation = r"W_1 \to W_1 / \alpha, \quad W_L \to \alpha W_L"
    minutes = 2.0
    theory = "equivalence of the relative scale and the rates of the layers"
    along = "relative_scale"
    axes = ("network", "relative_scale")
    task = "a ReLU teacher with {teacher_width} neurons"
    notes = ("{samples} Gaussian inputs in {inputs} dimensions.",)
    trains = "deep ReLU networks with {width} neurons per layer"
    flow = "gradient descent"
    convention = "loss = ½ E (f(x) − y)² (mean over samples); time = sum of the learning rates"
    deciding_claims = DECIDING
    symbols = {"relative_scale": "α", "depth": "hidden layers"}
    labelled = {
        **{"network": lambda _: NETWORKS, "depth": "depths", "relative_scale": "relative_scales"},
        "loss_fraction": lambda _: FRACTIONS,
        "layer": lambda study: tuple(range(1, study.depths[-1] + 1)),
    }
    names = {
        "network": ("network", "1"),
        "depth": ("number of hidden layers", "1"),
        "relative_scale": ("relative scale α", "1"),
        "loss_fraction": ("training loss over its initial value", "1"),
        "layer": ("hidden layer", "1"),
        "initial_loss": ("training loss before training", "1"),
        "hamming_distance": ("fraction of flipped activations", "1"),
        "parameter_distance": ("distance of the parameters", "1"),
        "elapsed": ("sum of the learning rates", "1"),
        "learning_rate": ("learning rate", "1"),
        "layer_hamming_distance": ("fraction of flipped activations", "1"),
        "twin_ratio": ("loss at matched rates over the loss at the relative scale", "1"),
        "mean_kernel_distance": ("kernel distance", "1"),
        "mean_time": ("sum of the learning rates", "1"),
        "mean_layer_hamming_distance": ("fraction of flipped activations", "1"),
        "tenth_kernel_distance": ("kernel distance", "1"),
        "tenth_hamming_distance": ("fraction of flipped activations", "1"),
        "tenth_parameter_distance": ("distance of the parameters", "1"),
        "tenth_test_loss": ("test loss", "1"),
    }
    tolerance = curve_tolerance(
        twin_ratio=(1e-6, "the equivalence is exact at every step, and rounding errors are below this limit")
    )
    checks = tuple(tolerance)
    tiny = {
        **{"samples": 60, "test_samples": 100, "kernel_samples": 12, "width": 24, "depths": [2], "steps": 800},
        **{"relative_scales": [0.25, 1.0, 4.0], "seeds": 4},
    }

    def check(self) -> None:
        """Require networks at the relative scale one, and networks that are clearly upstream and downstream."""
        self.require(1.0 in self.relative_scales, "relative_scales", "add the relative scale 1")
        wide = self.relative_scales[0] <= 1 / _UPSTREAM and self.relative_scales[-1] >= _UPSTREAM
        remedy = f"choose a smallest value of at most {1 / _UPSTREAM:g} and a largest value of at least {_UPSTREAM:g}"
        self.require(wide, "relative_scales", remedy)

    def trained(self) -> Values:
        """Train all networks and measure how far they moved."""
        found = self._experiment.trained()
        tenth = FRACTIONS.index(0.1)
        means = {name: np.asarray(found[name][1]).mean(axis=3) for name in MEASURED}
        cell = ("network", "depth", "relative_scale")
        layers = np.asarray(found["layer_hamming_distance"][1]).mean(axis=2)
        return {
            **{("elapsed" if name == "time" else name): each for name, each in found.items()},
            **{f"mean_{name}": ((*cell, "loss_fraction"), means[name]) for name in ("kernel_distance", "time")},
            **{f"tenth_{name}": (cell, means[name][..., tenth]) for name in MEASURED if name != "time"},
            "mean_layer_hamming_distance": (("network", "relative_scale", "layer"), layers),
        }

    def claimed(self, found: Mapping[str, Any]) -> Sequence[Claim]:
        """Evaluate the claims about networks at equal loss."""
        arrays = {name: np.asarray(each[1]) for name, each in found.items()}
        return movement_claims(arrays, self.relative_scales, FRACTIONS)

    def exact(self) -> Values:
        """Rescaled networks, and networks with matched rates of the layers, have equal losses at every step."""
        return {"twin_ratio": np.ones((len(NETWORKS), len(self.relative_scales)))}

    @functools.cached_property
    def _experiment(self) -> Experiment:
        return Experiment(self)

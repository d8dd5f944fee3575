"""The overall and the relative scale of the initial weights decide how a ReLU student learns from a teacher."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import xarray as xr
from annotated_types import Ge, Interval

from dynascope.comparison import Claim
from dynascope.results import Comparison
from dynascope.studies import ClaimsStudy, Reference, Values, curve_tolerance, parameter
from dynascope.studies.regimes.student_teacher import page
from dynascope.studies.regimes.student_teacher.claims import DECIDING, regime_claims
from dynascope.studies.regimes.student_teacher.experiment import Experiment, trained_together
from dynascope.theory import papers
from dynascope.validation.bounded import PositiveFloat, PositiveInt, Seed

_PUBLISHED = {"inputs": 100, "samples": 1000, "width": 50}
_SMALL, _LARGE, _IMBALANCE = 0.15, 1.5, 0.5  # scales at which the regimes are clearly different
_INTERMEDIATE = 0.45
_CORNERS = ("downstream, small", "upstream, small", "downstream, large", "upstream, large")


class StudentTeacher(ClaimsStudy):
    """Tests how the overall scale τ and the relative scale δ of a ReLU network's initial weights decide what it learns.

    Students with two layers learn the outputs of a small ReLU teacher. Each hidden neuron i starts with
    a_i² − ‖w_i‖² = δ and |a_i| ‖w_i‖ = τ², and pairs of neurons cancel, so that the initial outputs are zero. In
    upstream students (δ > 0), the first layer is smaller and learns faster than the second; in downstream students
    (δ < 0), it learns more slowly.

    The study measures how far training moves the NTK, the activation patterns and the parameters. The verdict rests on
    the order of these distances. At large τ, the kernel and the patterns change little for every δ (lazy). At small
    τ, upstream students change their patterns more than downstream students while their parameters move less (rapid
    rich). At intermediate τ, the kernel distance understates this effect and can even be smaller upstream, so the
    kernel distance alone does not identify the regime. Whether it is smaller upstream depends on the number of neurons
    and samples; this claim is reported but does not count. The conservation of δ is an identity of gradient flow, and
    is only checked.

    Students are trained by gradient flow in polar coordinates, as in `flows.polar_flow`. The tolerance of its steps is
    halved until the loss and the parameters of the fastest student no longer change.
    """

    inputs: Annotated[int, Ge(2)] = parameter(20, "Number of inputs.")
    samples: Annotated[int, Ge(10)] = parameter(200, "Number of training samples.")
    test_samples: Annotated[int, Ge(10)] = parameter(1000, "Number of test samples.")
    width: Annotated[int, Ge(4)] = parameter(20, "Number of hidden neurons of a student; even.")
    teacher_width: PositiveInt = parameter(3, "Number of hidden neurons of the teacher.")
    overall_scales: list[Annotated[float, Interval(ge=0.05, le=4)]] = parameter(
        [0.1, 0.21, 0.45, 0.95, 2.0], "Overall scales τ. With a single value, no claim is tested.", increasing=True
    )
    relative_scales: list[Annotated[float, Interval(ge=-4, le=4)]] = parameter(
        [-1.0, -0.5, 0.0, 0.5, 1.0], "Relative scales δ. With a single value, no claim is tested.", increasing=True
    )
    seeds: Annotated[int, Ge(2)] = parameter(4, "Number of teachers, each with one student per scale.")
    duration: PositiveFloat = parameter(
        2500.0, "Gradient-flow time; the default is the paper's million steps at an overall scale of 2."
    )
    times: Annotated[int, Ge(3)] = parameter(30, "Number of recorded times.")
    plane_width: Annotated[int, Ge(4)] = parameter(
        20, "Number of neurons of the students with two inputs; even. They have five samples per neuron."
    )
    seed: Seed = parameter(0, "Seed of all data, teachers and students.")
    paper: bool = parameter(
        False, "Whether to use the paper's 100 inputs, 1000 samples and width 50 instead, which takes hours."
    )

    reference = Reference.of(
        papers.UNBALANCED,
        "Small overall scales lead to feature learning. If, in addition, the first layer is smaller than the second, "
        "the activation patterns change rapidly while the parameters move little.",
    )
    title = "Student and teacher at different scales"
    question = "How do the overall and the relative scale of the initial weights decide what a ReLU network learns?"
    figures, meaning = page.figures, page.meaning
    equation = (
        r"f(x) = \sum_i a_i \max(w_i \cdot x, 0), \quad a_i^2 - \|w_i\|^2 = \delta, \quad |a_i| \, \|w_i\| = \tau^2"
    )
    minutes = 0.6
    theory = "conservation of the relative scale"
    along = "relative_scale"
    axes = ("overall_scale", "relative_scale", "seed")
    task = "a ReLU teacher with {teacher_width} neurons"
    notes = ("{samples} inputs on the unit sphere in {inputs} dimensions.",)
    trains = "two-layer ReLU with {width} neurons"
    flow = "gradient flow"
    convention = (
        "loss = E (f(x) − y)² (mean over samples, without ½); time = gradient-flow time of half this loss at rate 1"
    )
    deciding_claims = DECIDING
    symbols = {"overall_scale": "τ", "relative_scale": "δ"}
    labelled = {
        **{"overall_scale": "overall_scales", "relative_scale": "relative_scales", "time": "_times"},
        **{"corner": lambda _: _CORNERS, "plane_corner": lambda _: ("rich", "lazy")},
    }
    names = {
        "overall_scale": ("overall scale τ", "1"),
        "relative_scale": ("relative scale δ", "1"),
        "conserved_ratio": ("1 + smallest change of a² − ‖w‖² of a neuron over its initial a² + ‖w‖²", "1"),
        "largest_conserved_ratio": ("1 + largest change of a² − ‖w‖² of a neuron over its initial a² + ‖w‖²", "1"),
        "hamming_distance": ("fraction of flipped activations", "1"),
        "parameter_distance": ("distance of the parameters", "1"),
        "mean_loss": ("training loss", "1"),
        "mean_test_loss": ("test loss", "1"),
        "mean_kernel_distance": ("kernel distance", "1"),
        "mean_hamming_distance": ("fraction of flipped activations", "1"),
        "mean_parameter_distance": ("distance of the parameters", "1"),
        "corner_loss": ("training loss", "1"),
        "corner_test_loss": ("test loss", "1"),
        "corner_kernel_distance": ("kernel distance", "1"),
        "corner_hamming_distance": ("fraction of flipped activations", "1"),
        "corner_parameter_distance": ("distance of the parameters", "1"),
        "solver_tolerance": ("tolerance of a step", "1"),
        "target_power": ("mean squared target", "1"),
        "teacher_alignment": ("cosine with the closest teacher neuron", "1"),
        "plane_x": ("first coordinate of |a| w", "1"),
        "plane_y": ("second coordinate of |a| w", "1"),
    }
    tolerance = curve_tolerance(
        **dict.fromkeys(
            ("conserved_ratio", "largest_conserved_ratio"),
            (0.02, "gradient flow conserves the relative scale exactly, and the solver error is below this limit"),
        )
    )
    checks = tuple(tolerance)
    batched = ("overall_scales", "relative_scales", "seed")
    tiny = {
        **{"inputs": 10, "samples": 60, "width": 10, "test_samples": 100, "overall_scales": [0.1, 0.45, 2.0]},
        **{"relative_scales": [-1.0, 1.0], "times": 8, "duration": 1000.0, "plane_width": 10},
    }

    def check(self) -> None:
        """Require pairs of neurons, and, unless only one scale is measured, scales that reach all regimes."""
        for name in ("width", "plane_width"):
            self.require(getattr(self, name) % 2 == 0, name, "choose an even number")
        small, large = self.overall_scales[0] <= _SMALL, self.overall_scales[-1] >= _LARGE
        remedy = f"choose a smallest value of at most {_SMALL:g} and a largest value of at least {_LARGE:g}"
        enough = small and large and len(self.overall_scales) > 2
        self.require(len(self.overall_scales) == 1 or enough, "overall_scales", f"{remedy}, with one between them")
        both = self.relative_scales[0] <= -_IMBALANCE and self.relative_scales[-1] >= _IMBALANCE
        remedy = f"choose a smallest value of at most −{_IMBALANCE:g} and a largest value of at least {_IMBALANCE:g}"
        self.require(len(self.relative_scales) == 1 or both, "relative_scales", remedy)

    @functools.cached_property
    def setting(self) -> StudentTeacher:
        """This study, or the study with the paper's sizes if `paper` is set."""
        return dataclasses.replace(self, **_PUBLISHED, paper=False) if self.paper else self

    def parameters(self) -> dict[str, Any]:
        """The fields, with the paper's sizes if `paper` is set."""
        return dataclasses.asdict(self.setting) | {"paper": self.paper}

    def about(self) -> Values:
        """Attributes that describe the task and the network, with the paper's sizes if `paper` is set."""
        return self.setting.about() if self.paper else super().about()

    def trained(self) -> Values:
        """Train all students and measure the distances."""
        return trained_together([self._experiment])[0]

    @classmethod
    def trained_many(cls, studies: Sequence[StudentTeacher]) -> list[xr.Dataset]:
        """Train the students of studies with the same sizes in one program."""
        found = trained_together([study._experiment for study in studies])
        return [study.judged(each) for study, each in zip(studies, found, strict=True)]

    def claimed(self, found: Mapping[str, Any]) -> Sequence[Claim]:
        """Evaluate the claims about the order of the distances."""
        middle = int(np.argmin(np.abs(np.log(np.array(self.overall_scales) / _INTERMEDIATE))))
        claims = regime_claims({name: np.asarray(each[1]) for name, each in found.items()}, middle)
        several = min(len(self.overall_scales), len(self.relative_scales)) > 1
        return [each.if_known(several, "only one overall or relative scale was measured") for each in claims]

    def exact(self) -> Values:
        """One plus the change of the conserved relative scale, for every student, and the plane's teacher."""
        one = np.ones((len(self.overall_scales), len(self.relative_scales), self.seeds))
        return {"conserved_ratio": one, "largest_conserved_ratio": one, **self._experiment.rays()}

    def compared(self, observed: xr.Dataset, predicted: xr.Dataset) -> Comparison:
        """Compare the relative scales, and add the teacher to the figures."""
        result = super().compared(observed, predicted.drop_vars(["plane_x", "plane_y"], errors="ignore"))
        return dataclasses.replace(result, predicted=predicted)

    @property
    def _times(self) -> np.ndarray:
        return self._experiment.times

    @functools.cached_property
    def _experiment(self) -> Experiment:
        return Experiment(self.setting)

"""Training of the students at every overall and relative scale, and in the plane."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dynascope.flows.exact.polar_ensemble import PolarRun, polar_ensemble
from dynascope.studies.regimes.student_teacher.students import Setting, Weights, distances, setting, student

if TYPE_CHECKING:
    from dynascope.studies.regimes.student_teacher.study import StudentTeacher

__all__ = ["DISTANCES", "Experiment", "Student", "settled_tolerances", "trained_students", "trained_together"]

DISTANCES = ("kernel_distance", "hamming_distance", "parameter_distance")
_MEASURED = ("loss", "test_loss", *DISTANCES)
_COARSEST, _FINEST = 3e-4, 1e-5  # tolerances of a step
_STEPS = 2_000_000  # attempted, per student
_PLANE_SAMPLES = 5  # per neuron
_CLOSE = 0.01  # relative change of the loss, or change of the parameter distance, when the tolerance is halved
_FIRST_STEPS = 100  # of the paper, with the learning rate 0.005/τ², over which this change is measured
_CELL, _RUN = ("overall_scale", "relative_scale"), ("overall_scale", "relative_scale", "seed")


class Student(NamedTuple):
    """A student to train.

    Attributes:
        drawn: Its data and teacher.
        start: Its initial weights.
        times: Recorded times.
        tolerance: Error of a step of the flow.
    """

    drawn: Setting
    start: Weights
    times: np.ndarray
    tolerance: float


class Experiment:
    """The students of one study, and what is measured on them.

    Attributes:
        study: The study, whose fields are the settings.
    """

    def __init__(self, study: StudentTeacher):
        self.study = study

    def students(self, tolerance: float) -> list[Student]:
        """All students, over the overall scale, the relative scale and the seed."""
        study = self.study
        grid = itertools.product(study.overall_scales, study.relative_scales, range(study.seeds))
        return [self._student(self.drawn(seed), tau, delta, tolerance) for tau, delta, seed in grid]

    def plane_students(self, tolerance: float) -> list[Student]:
        """The students with two inputs, in the rich and in the lazy corner."""
        scales, relative = (self.study.overall_scales[0], self.study.overall_scales[-1]), self.study.relative_scales[-1]
        return [self._student(self.plane_setting, tau, relative, tolerance) for tau in scales]

    def _student(self, drawn: Setting, overall: float, relative: float, tolerance: float) -> Student:
        return Student(drawn, student(drawn.directions, drawn.signs, overall, relative), self.times, tolerance)

    def fastest(self, tolerance: float) -> Student:
        """The student whose flow requires the smallest tolerance, over the first hundred steps of the paper.

        Its first layer, at the smallest overall and the largest relative scale, is much smaller than its second layer
        and turns around quickly.
        """
        study, drawn = self.study, self.drawn(0)
        scale = study.overall_scales[0]
        start = student(drawn.directions, drawn.signs, scale, study.relative_scales[-1])
        return Student(drawn, start, 0.01 / scale**2 * np.array([0, 1, 3, 10, 30, _FIRST_STEPS]), tolerance)

    def measured(self, trained: Sequence[Weights], in_plane: Sequence[Weights], tolerance: float) -> dict[str, Any]:
        """Measure all students at the end and, in the four corners, during training."""
        study = self.study
        settings = [self.drawn(seed) for seed in range(study.seeds)]
        paths = [_measured(drawn, path) for drawn, path in zip(itertools.cycle(settings), trained, strict=False)]
        # Axes: overall scale, relative scale, seed, quantity, time.
        runs = np.reshape(paths, (len(study.overall_scales), len(study.relative_scales), study.seeds, *paths[0].shape))
        final = {name: runs[:, :, :, k, -1] for k, name in enumerate((*_MEASURED, "lowest", "highest"))}
        corners = runs[[0, 0, -1, -1], [0, -1, 0, -1]].mean(axis=1)
        ends = {"conserved_ratio": final["lowest"], "largest_conserved_ratio": final["highest"]}
        return {
            **{name: (_RUN, final[name]) for name in _MEASURED},
            **{f"mean_{name}": (_CELL, final[name].mean(axis=2)) for name in _MEASURED},
            **{f"corner_{name}": (("corner", "time"), corners[:, k]) for k, name in enumerate(_MEASURED)},
            **{name: (_RUN, values) for name, values in ends.items()},
            "solver_tolerance": ((), tolerance),
            "target_power": (("seed",), [float(each.task.target_power) for each in settings]),
            **self._plane(in_plane),
        }

    def _plane(self, paths: Sequence[Weights]) -> dict[str, Any]:
        """|a_i| w_i of the students with two inputs, and how well their neurons are aligned with the teacher."""
        axes = ("plane_corner", "neuron", "time")
        weighted = np.stack([np.swapaxes(np.abs(path.second)[..., None] * path.first, 0, 1) for path in paths])
        alignments = [_teacher_alignment(path, self.plane_setting.teacher) for path in paths]
        return {
            **{f"plane_{name}": (axes, weighted[..., k]) for k, name in enumerate("xy")},
            "teacher_alignment": (("plane_corner", "time"), alignments),
        }

    def rays(self) -> dict[str, Any]:
        """The lines from the origin to |a_i| w_i of each neuron of the teacher in the plane, once for each corner."""
        teacher = self.plane_setting.teacher
        ends = np.stack([0 * teacher.first, teacher.first])
        axes = ("ray_end", "plane_corner", "teacher")
        return {f"plane_{name}": (axes, np.stack([ends, ends], axis=1)[..., k]) for k, name in enumerate("xy")}

    @functools.cached_property
    def times(self) -> np.ndarray:
        """Recorded times: zero, and log-spaced times to the end."""
        study = self.study
        return np.concatenate([[0.0], np.geomspace(1e-5 * study.duration, study.duration, study.times - 1)])

    @functools.cache  # noqa: B019 -- an experiment lives as long as its study
    def drawn(self, seed: int) -> Setting:
        """The data, teacher and directions of a seed."""
        study = self.study
        sizes = {name: getattr(study, name) for name in ("inputs", "samples", "test_samples", "width", "teacher_width")}
        return setting([study.seed, 1, seed], **sizes)

    @functools.cached_property
    def plane_setting(self) -> Setting:
        """The data and the teacher with two inputs."""
        study, sizes = self.study, {"inputs": 2, "test_samples": 2, "spread": True}
        sizes |= {
            "samples": _PLANE_SAMPLES * study.plane_width,
            "width": study.plane_width,
            "teacher_width": study.teacher_width,
        }
        return setting([study.seed, 2], **sizes)


def trained_together(experiments: Sequence[Experiment]) -> list[dict[str, Any]]:
    """Train and measure the students of experiments that differ only in their scales and seeds, in one program."""
    tolerances = settled_tolerances(experiments)
    pairs = list(zip(experiments, tolerances, strict=True))
    groups = [each.students(tolerance) for each, tolerance in pairs]
    paths = iter(trained_students([each for group in groups for each in group]))
    planes = iter(trained_students([each for one, tolerance in pairs for each in one.plane_students(tolerance)]))
    return [
        each.measured(list(itertools.islice(paths, len(group))), [next(planes), next(planes)], tolerance)
        for (each, tolerance), group in zip(pairs, groups, strict=True)
    ]


def settled_tolerances(experiments: Sequence[Experiment]) -> list[float]:
    """The tolerance of a step for each experiment, halved until its fastest student no longer changes.

    A neuron whose input weights vanish stays at the kinks of its activation, where the NTK is undefined, so the kernel
    distance is not compared. If this neuron later grows in one of several directions, the flow is not unique, and the
    loss changes slightly with every tolerance.
    """
    tolerances = [_COARSEST] * len(experiments)
    before: dict[int, np.ndarray] = {}
    left = list(range(len(experiments)))
    while left:
        students = [experiments[place].fastest(tolerances[place]) for place in left]
        paths = [_measured(each.drawn, path) for each, path in zip(students, trained_students(students), strict=True)]
        unsettled = []
        for place, path in zip(left, paths, strict=True):
            loss, moved = path[_MEASURED.index("loss")], path[_MEASURED.index("parameter_distance")]
            changes = np.inf
            if place in before:
                changes = max(np.abs(loss / before[place][0] - 1).max(), np.abs(moved - before[place][1]).max())
            if changes > _CLOSE and tolerances[place] / 2 >= _FINEST:
                tolerances[place], before[place] = tolerances[place] / 2, np.array([loss, moved])
                unsettled.append(place)
        left = unsettled
    return tolerances


def trained_students(students: Sequence[Student]) -> list[Weights]:
    """Train students by gradient flow of ½ E(f − y)², and return their weights at the recorded times."""
    runs = [PolarRun(each.drawn.task, each.start.network(), each.times, each.tolerance) for each in students]
    rows = polar_ensemble(runs, max_steps=_STEPS)
    return [Weights(each[..., :-1], each[..., -1]) for each in rows]


def _measured(drawn: Setting, path: Weights) -> np.ndarray:
    """The losses, the distances, and the extremes over neurons of the conserved ratio, shape (7, times)."""
    steps = [Weights(*each) for each in zip(*path, strict=True)]
    losses = [np.mean((path.outputs(each.inputs) - each.targets[:, 0]) ** 2, axis=1) for each in drawn[:2]]
    moved = [distances(steps[0], each, drawn.task.inputs) for each in steps]
    squares = path.second**2, np.sum(path.first**2, axis=-1)
    imbalance = squares[0] - squares[1]
    conserved = 1 + (imbalance - imbalance[0]) / (squares[0][0] + squares[1][0])  # finite also for a zero imbalance
    by_time = [[each[name] for each in moved] for name in DISTANCES]
    return np.array([*losses, *by_time, conserved.min(axis=1), conserved.max(axis=1)])


def _teacher_alignment(path: Weights, teacher: Weights) -> np.ndarray:
    """Mean cosine between w_i and the closest teacher direction of the same output sign, weighted by |a_i| ‖w_i‖."""
    sizes = np.linalg.norm(path.first, axis=-1)
    cosines = (path.first / sizes[..., None]) @ teacher.first.T
    same = np.sign(path.second)[..., None] == teacher.second
    weights = np.abs(path.second) * sizes
    return np.sum(weights * np.where(same, cosines, -1.0).max(axis=-1), axis=-1) / np.sum(weights, axis=-1)

"""Training of the students at every overall and relative scale, and in the plane."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dynascope.flows import polar_flow, track
from dynascope.studies.regimes.student_teacher.students import Setting, Weights, distances, setting, student

if TYPE_CHECKING:
    from dynascope.studies.regimes.student_teacher.study import StudentTeacher

__all__ = ["DISTANCES", "Experiment", "trained_student"]

DISTANCES = ("kernel_distance", "hamming_distance", "parameter_distance")
_MEASURED = ("loss", "test_loss", *DISTANCES)
_COARSEST, _FINEST = 3e-4, 1e-5  # tolerances of a step
_STEPS = 2_000_000
_PLANE_SAMPLES = 5  # per neuron
_CLOSE = 0.01  # relative change of the loss, or change of the parameter distance, when the tolerance is halved
_FIRST_STEPS = 100  # of the paper, with the learning rate 0.005/τ², over which this change is measured
_CELL, _RUN = ("overall_scale", "relative_scale"), ("overall_scale", "relative_scale", "seed")
_STATISTICS = {
    "first": (lambda network: network.first.T, ("neuron", "feature")),
    "second": (lambda network: network.second[:, 0], ("neuron",)),
}


class Experiment:
    """The training runs of one study.

    Attributes:
        study: The study, whose fields are the settings.
    """

    def __init__(self, study: StudentTeacher):
        self.study = study

    def trained(self) -> dict[str, Any]:
        """Train all students, and measure them at the end and, in the four corners, during training."""
        study = self.study
        runs = np.array(
            [
                [[self.run(tau, delta, seed) for seed in range(study.seeds)] for delta in study.relative_scales]
                for tau in track(study.overall_scales, "overall scales")
            ]
        )
        # Axes: overall scale, relative scale, seed, quantity, time.
        final = {name: runs[:, :, :, k, -1] for k, name in enumerate((*_MEASURED, "lowest", "highest"))}
        corners = runs[[0, 0, -1, -1], [0, -1, 0, -1]].mean(axis=1)
        ends = {"conserved_ratio": final["lowest"], "largest_conserved_ratio": final["highest"]}
        return {
            **{name: (_RUN, final[name]) for name in _MEASURED},
            **{f"mean_{name}": (_CELL, final[name].mean(axis=2)) for name in _MEASURED},
            **{f"corner_{name}": (("corner", "time"), corners[:, k]) for k, name in enumerate(_MEASURED)},
            **{name: (_RUN, values) for name, values in ends.items()},
            "solver_tolerance": ((), self.tolerance),
            "target_power": (("seed",), [float(self.drawn(seed).task.target_power) for seed in range(study.seeds)]),
            **self.plane(),
        }

    def run(self, overall: float, relative: float, seed: int) -> np.ndarray:
        """Train one student; shape (7, times): the measured quantities, and the extremes of the conserved ratio."""
        drawn = self.drawn(seed)
        start = student(drawn.directions, drawn.signs, overall, relative)
        return _measured(drawn, trained_student(drawn, start, self.times, self.tolerance))

    @functools.cached_property
    def tolerance(self) -> float:
        """The tolerance of a step, halved until the fastest student no longer changes.

        The first layer of this student, at the smallest overall and the largest relative scale, is much smaller than
        its second layer and turns around quickly, so its flow requires the smallest tolerance. A neuron whose input
        weights vanish stays at the kinks of its activation, where the NTK is undefined, so the kernel distance is not
        compared. If this neuron later grows in one of several directions, the flow is not unique, and the loss changes
        slightly with every tolerance.
        """
        study, drawn = self.study, self.drawn(0)
        scale = study.overall_scales[0]
        start = student(drawn.directions, drawn.signs, scale, study.relative_scales[-1])
        times = 0.01 / scale**2 * np.array([0, 1, 3, 10, 30, _FIRST_STEPS])
        tolerance, before = _COARSEST, np.full((2, len(times)), np.inf)
        while True:
            loss, *_, moved = _measured(drawn, trained_student(drawn, start, times, tolerance))[[0, 2, 3, 4]]
            changes = loss / before[0] - 1, moved - before[1]
            if np.abs(changes).max() <= _CLOSE or tolerance / 2 < _FINEST:
                return tolerance
            tolerance, before = tolerance / 2, np.array([loss, moved])

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

    def plane(self) -> dict[str, Any]:
        """Train a student with two inputs in the rich and in the lazy corner, and record |a_i| w_i."""
        study, drawn = self.study, self.plane_setting
        paths, alignments = [], []
        for overall in (study.overall_scales[0], study.overall_scales[-1]):
            start = student(drawn.directions, drawn.signs, overall, study.relative_scales[-1])
            path = trained_student(drawn, start, self.times, self.tolerance)
            paths.append(np.swapaxes(np.abs(path.second)[..., None] * path.first, 0, 1))
            alignments.append(_teacher_alignment(path, drawn.teacher))
        axes = ("plane_corner", "neuron", "time")
        return {
            **{f"plane_{name}": (axes, np.stack(paths)[..., k]) for k, name in enumerate("xy")},
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


def trained_student(drawn: Setting, start: Weights, times: Sequence[float] | np.ndarray, tolerance: float) -> Weights:
    """Train a student by gradient flow of ½ E(f − y)², and return its weights at the given times."""
    options = {"scale": 1.0, "duration": float(times[-1]), "max_steps": _STEPS, "tolerance": tolerance}
    record = polar_flow(drawn.task, start.network(), save=np.asarray(times), statistics=_STATISTICS, **options)
    return Weights(record["first"].to_numpy(), record["second"].to_numpy())


def _measured(drawn: Setting, path: Weights) -> np.ndarray:
    """The losses, the distances, and the extremes over neurons of the conserved ratio, shape (7, times)."""
    steps = [Weights(*each) for each in zip(*path, strict=True)]
    losses = [np.mean((path.outputs(each.inputs) - each.targets[:, 0]) ** 2, axis=1) for each in drawn[:2]]
    moved = [distances(steps[0], each, drawn.task.inputs) for each in steps]
    squares = path.second**2, np.sum(path.first**2, axis=-1)
    conserved = (squares[0] - squares[1]) / (squares[0][0] + squares[1][0])
    by_time = [[each[name] for each in moved] for name in DISTANCES]
    return np.array([*losses, *by_time, conserved.min(axis=1), conserved.max(axis=1)])


def _teacher_alignment(path: Weights, teacher: Weights) -> np.ndarray:
    """Mean cosine between w_i and the closest teacher direction of the same output sign, weighted by |a_i| ‖w_i‖."""
    sizes = np.linalg.norm(path.first, axis=-1)
    cosines = (path.first / sizes[..., None]) @ teacher.first.T
    same = np.sign(path.second)[..., None] == teacher.second
    weights = np.abs(path.second) * sizes
    return np.sum(weights * np.where(same, cosines, -1.0).max(axis=-1), axis=-1) / np.sum(weights, axis=-1)

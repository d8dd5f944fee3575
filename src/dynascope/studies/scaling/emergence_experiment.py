"""Training on multitask sparse parity, shared by the studies of emergence."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from dynascope.studies.scaling.skill_reading import SkillReading
from dynascope.tasks import SparseParity
from dynascope.training import Descent, descend

__all__ = ["EmergenceExperiment"]


class EmergenceExperiment:
    """Trains networks on multitask sparse parity, or on one of its skills alone.

    Attributes:
        study: The study that defines the task and the training.
    """

    study: Any

    def __init__(self, study: Any):
        self.study = study

    @functools.cached_property
    def task(self) -> SparseParity:
        """All skills."""
        names = ("skills", "bits", "relevant_bits", "exponent", "target_scale")
        return SparseParity(**{name: getattr(self.study, name) for name in names})

    @property
    def one_skill(self) -> SparseParity:
        """The most frequent skill alone."""
        return dataclasses.replace(self.task, skills=1)

    def measure(
        self, networks: list[Any], task: Any, steps: Any, *names: str, seed: int = 0, **options: Any
    ) -> list[np.ndarray]:
        """Train networks by gradient descent and record quantities of every skill.

        Args:
            networks: Networks of equal shape.
            task: A parity or a training set. For a parity without batches, the exact population loss is used.
            steps: The recorded steps; training ends at the last one.
            *names: Quantities of `SkillReading`, or "loss".
            seed: Seed of the batches.
            **options: Further fields of `Descent`.

        Returns:
            One array per name, of shape (networks, steps, skills); "loss" has shape (networks, steps).
        """
        is_parity, batch_size = isinstance(task, SparseParity), self.study.batch_size
        parity = task if is_parity else self.task
        run = descend(
            task.expectation() if is_parity and not batch_size else task,
            networks,
            Descent(
                steps=int(steps[-1]),
                batches=batch_size or None,
                save=steps,
                statistics={name: (SkillReading(parity, name), ("skill",)) for name in names if name != "loss"},
                **{"learning_rate": self.study.learning_rate, **options},
            ),
            seed=seed,
        )
        return [run[name].to_numpy().astype(np.float64) for name in names]

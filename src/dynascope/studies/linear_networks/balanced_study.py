"""What studies of two-layer linear networks of several balances share."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dynascope.studies.curves_study import CurvesStudy
from dynascope.tasks import Task

__all__ = ["BALANCED", "BalancedStudy"]

BALANCED = (
    "C. C. J. Dominé, N. Anguita, A. M. Proca, L. Braun, D. Kunin, P. A. M. Mediano, A. M. Saxe, From Lazy to Rich: "
    "Exact Learning Dynamics in Deep Linear Networks"
)


class BalancedStudy(CurvesStudy):
    """A study of networks with W₂ W₂ᵀ − W₁ᵀ W₁ = λ I, whose curves run over λ and time."""

    theory: ClassVar[str] = "balanced two-layer linear networks"
    axes: ClassVar[tuple[str, ...]] = ("balance", "time")

    if TYPE_CHECKING:
        largest_balance: float
        balances: int

    def labels(self) -> Mapping[str, Any]:
        """Times and λ."""
        return {"time": self._times, "balance": self._balances}

    def about(self) -> Mapping[str, Any]:
        """The task."""
        return {"network": "linear", "scale": 1.0, **self._task.attributes()}

    @functools.cached_property
    def _task(self) -> Task:
        """The task whose training is recorded."""
        raise NotImplementedError

    @functools.cached_property
    def _balances(self) -> np.ndarray:
        return np.linspace(-self.largest_balance, self.largest_balance, self.balances)

    @functools.cached_property
    def _times(self) -> np.ndarray:
        raise NotImplementedError

"""A theory in the catalogue of `predict` and `which`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import xarray as xr

from dynascope.prediction.case import Case
from dynascope.prediction.theories.time_tolerance import Solved, time_error
from dynascope.theory.assumptions import Assumption
from dynascope.theory.domain import Domain

__all__ = ["Theory"]

_MOMENTS = 8  # copies of the second moment of the inputs during its decomposition
_NUMBER = 8  # bytes per number


def _of_moments(case: Case) -> float:
    """Return the bytes needed by a theory that uses only moments of the samples."""
    return 0.0 if case.samples is None else _NUMBER * _MOMENTS * float(case.task.input_dimension) ** 2


@dataclasses.dataclass(frozen=True)
class Theory:
    """A theory from which `predict` and `which` can choose.

    Attributes:
        name: The name of the theory.
        function: The function of `dynascope.theory`, or the algorithm, that computes the prediction.
        network: Description of the networks that the theory covers.
        gives: Description of the predictions.
        fits: Returns whether the theory covers the network and the task of a case.
        solve: Computes the record of predictions for a case.
        domain: The domain of validity of the function; None for an algorithm.
        assumes: The assumptions of the theory, in addition to the kind of network.
        assumes_too: Returns further assumptions that can be measured only for some cases.
        exact: Whether the theory is exact if its assumptions hold; otherwise it is the leading order of a limit.
        limit: Description of the limit.
        staircase: Whether the record is a staircase rather than a loss over time.
        operations: Approximate number of floating-point operations for many jumps.
        cost_factor: Factor by which the actual number of operations may differ from the approximate one.
        memory: Approximate memory in bytes, excluding the data.
        special: Whether the theory applies only to special data, which a more general theory also covers.
        beside: Further functions of `dynascope.theory` for the same cases.
        equation: The equation that the theory solves or states, as LaTeX.
        error: Returns the expected error as text, if it follows neither from exactness nor from the record.
    """

    name: str
    function: Callable[..., Any]
    network: str
    gives: str
    fits: Callable[[Case], bool]
    solve: Callable[[Case], xr.Dataset]
    domain: Domain | None
    assumes: tuple[Assumption, ...]
    exact: bool
    staircase: bool
    operations: Callable[[Case], float]
    cost_factor: float = 1.0
    memory: Callable[[Case], float] = _of_moments
    assumes_too: Callable[[Case], tuple[Assumption, ...]] = lambda case: ()
    special: bool = False
    limit: str = "small-scale limit"
    beside: tuple[Any, ...] = ()
    equation: str = ""
    error: Callable[[Case], str] | None = None

    def accuracy(self, case: Case) -> str:
        """Describe the expected error if all assumptions hold; empty if unknown."""
        if self.error is not None:
            return self.error(case)
        if self.exact:
            return "losses within 0.1 % of the initial loss"
        return time_error(self.solve.trust.time_error(case.scale)) if isinstance(self.solve, Solved) else ""

    @property
    def further(self) -> dict[str, str]:
        """Further results for the same cases, by function name."""
        room = "dynascope."
        return {
            f"{each.__module__.rpartition('.')[0].removeprefix(room)}.{each.__name__}": each.domain.gives
            for each in self.beside
        }

    @property
    def kind(self) -> str:
        """Either "exact" or a description of the limit."""
        return "exact" if self.exact else self.limit

    @classmethod
    def of(cls, name: str, function: Any, *, further: tuple[Assumption, ...] = (), **given: Any) -> Theory:
        """Create a theory from a function that states its domain; `further` are additional assumptions."""
        domain: Domain = function.domain
        words = {"network": domain.network, "gives": domain.gives}
        assumes = (*domain.assumes, *(each for each in further if each not in domain.assumes))
        return cls(
            name=name,
            function=function,
            domain=domain,
            assumes=assumes,
            exact=domain.exact,
            **{**words, **given},
        )

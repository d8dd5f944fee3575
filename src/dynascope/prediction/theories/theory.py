"""A theory as `predict` and `which` choose it: what it covers, and how it is asked about a case."""

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

_MOMENTS = 8  # matrices as large as the second moment of the inputs, while it is decomposed
_NUMBER = 8  # bytes


def _of_moments(case: Case) -> float:
    """Bytes of what a theory takes that sees samples by their moments only."""
    return 0.0 if case.samples is None else _NUMBER * _MOMENTS * float(case.task.input_dimension) ** 2


@dataclasses.dataclass(frozen=True)
class Theory:
    """A theory that can be chosen.

    Attributes:
        name: By which to ask for it.
        function: Of `dynascope.theory`, or the algorithm, that computes it.
        network: Which networks it is for, in words.
        gives: What it predicts, in words.
        fits: Whether the network and the task of a case are of that kind.
        solve: The record of a case.
        domain: What the function states of itself; None for an algorithm.
        assumes: What must hold beyond the kind of network.
        assumes_too: What else must hold of a case, where it can be measured on cases of some kinds only.
        exact: Whether it is exact where its assumptions hold, or the leading order of a limit.
        limit: Which one, in words.
        staircase: Whether its record is a staircase, or a loss over time.
        operations: About how many floating-point operations it takes, where there are many jumps.
        cost_factor: By how many times more or less than these it may take, where that depends on what is found.
        memory: About how many bytes it takes beside the data.
        special: Whether it is for special data, beside another theory that takes any.
        beside: Further functions for the same cases.
        equation: The equation that it solves or states, as LaTeX.
        error: How far it may be off, in words, where neither being exact nor what its record says tells.
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
    limit: str = "the limit of a small start"
    beside: tuple[Any, ...] = ()
    equation: str = ""
    error: Callable[[Case], str] | None = None

    def accuracy(self, case: Case) -> str:
        """How far it may be off where all that it assumes holds, in words; nothing if that is not known."""
        if self.error is not None:
            return self.error(case)
        if self.exact:
            return "losses to a thousandth"
        return time_error(self.solve.trust.time_error(case.scale)) if isinstance(self.solve, Solved) else ""

    @property
    def further(self) -> dict[str, str]:
        """What else is known of the same cases, by the name of the function that gives it."""
        room = "dynascope."
        return {
            f"{each.__module__.rpartition('.')[0].removeprefix(room)}.{each.__name__}": each.domain.gives
            for each in self.beside
        }

    @property
    def kind(self) -> str:
        """Whether it is exact, or of which limit, in words."""
        return "exact" if self.exact else self.limit

    @classmethod
    def of(cls, name: str, function: Any, *, further: tuple[Assumption, ...] = (), **given: Any) -> Theory:
        """One whose function states what it covers, and what `further` must hold."""
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

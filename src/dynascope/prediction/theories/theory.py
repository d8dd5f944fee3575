"""A theory as `predict` and `which` choose it: what it covers, and how it is asked about a case."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import xarray as xr

from dynascope.prediction.case import Case
from dynascope.theory.assumptions import Assumption
from dynascope.theory.domain import Domain

__all__ = ["Theory"]


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
        call: How to call the function oneself, given `task` and `network`.
        domain: What the function states of itself; None for an algorithm.
        assumes: What must hold beyond the kind of network.
        exact: Whether it is exact where its assumptions hold, or the leading order of a limit.
        limit: Which one, in words.
        staircase: Whether its record is a staircase, or a loss over time.
        operations: About how many floating-point operations it takes.
        special: Whether it is for special data, beside another theory that takes any.
        beside: Further functions for the same cases.
    """

    name: str
    function: Callable[..., Any]
    network: str
    gives: str
    fits: Callable[[Case], bool]
    solve: Callable[[Case], xr.Dataset]
    call: str
    domain: Domain | None
    assumes: tuple[Assumption, ...]
    exact: bool
    staircase: bool
    operations: Callable[[Case], float]
    special: bool = False
    limit: str = "the limit of a small start"
    beside: tuple[Callable[..., Any], ...] = ()

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

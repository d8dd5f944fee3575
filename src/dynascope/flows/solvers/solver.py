"""The solver of a gradient flow, with its tolerances."""

from __future__ import annotations

import dataclasses
from typing import Literal

from dynascope.validation import checked
from dynascope.validation.bounded_scalars import PositiveFloat, PositiveInt

__all__ = ["Solver", "SolverName"]

SolverName = Literal["automatic", "exact", "explicit", "stabilised", "stiff", "fastest"]


@checked
@dataclasses.dataclass(frozen=True)
class Solver:
    """How a gradient flow is integrated. The name alone, as in `solver="stiff"`, stands for `Solver("stiff")`.

    Attributes:
        name: "automatic": `observe` chooses what suits the network, and `gradient_flow` integrates the weights by
            "explicit".

            "exact": variables in which any initial scale keeps its digits, which `observe` has for two-layer and
            diagonal networks and for linear attention (see `flows.linear_flow`, `flows.polar_flow` and
            `flows.diagonal_flow`).

            The others integrate the weights. "explicit": Tsitouras, order 5. "stabilised": Runge–Kutta–Legendre, order
            2, for smooth activations; it is faster where time scales differ by 30 or more and an error of 1e-3 is
            accurate enough. "stiff": Kvaerno, order 5, implicit; it is faster for up to some hundred weights whose time
            scales differ by more than 1000. "fastest", for a single network: explicit or, up to 1500 weights, stiff,
            whichever gets farther in a second.
        relative_tolerance: Error of one step relative to each weight, by default 1e-8; for "stabilised", relative to
            the distance that the step moves, by default 1e-3. The default is at least 1000 units of rounding.
        absolute_tolerance: Error of one step that is allowed besides. By default the relative tolerance times the root
            mean square of the initial weights, so that the smallest initialisation is as accurate as any; for
            "stabilised", zero.
        max_steps: Number of steps after which the integration of a member fails; by default a million.

    Raises:
        InputError: An unknown name, or a number outside its domain.

    Example:
        >>> Solver("stiff", relative_tolerance=1e-5).max_steps is None
        True
        >>> Solver("explicit", relative_tolerance=0)
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: relative_tolerance is 0: choose a finite number above 0.
    """

    name: SolverName = "automatic"
    _: dataclasses.KW_ONLY
    relative_tolerance: PositiveFloat | None = None
    absolute_tolerance: PositiveFloat | None = None
    max_steps: PositiveInt | None = None

    @classmethod
    def of(cls, solver: SolverName | Solver) -> Solver:
        """The solver, or the one of this name."""
        return cls(solver) if isinstance(solver, str) else solver

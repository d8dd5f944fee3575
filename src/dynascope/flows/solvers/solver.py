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
    """A solver of gradient flows with its tolerances; `solver="stiff"` is short for `Solver("stiff")`.

    Attributes:
        name: "automatic": `observe` chooses a solver that suits the network, and `gradient_flow` uses "explicit".

            "exact": integrates variables that keep full precision at any initial scale. `observe` supports this solver
            for two-layer and diagonal networks and for linear attention (see `flows.linear_flow`, `flows.polar_flow`
            and `flows.diagonal_flow`).

            All other solvers integrate the weights. "explicit": Tsitouras, order 5. "stabilised": Runge–Kutta–Legendre,
            order 2, for smooth activations; it is faster if time scales differ by a factor of 30 or more and an error
            of 1e-3 is acceptable. "stiff": Kvaerno, order 5, implicit; it is faster for up to a few hundred weights
            whose time scales differ by more than a factor of 1000. "fastest", for a single network: "explicit" or, for
            up to 1500 weights, "stiff", depending on which is faster.
        relative_tolerance: Error of one step relative to each weight, by default 1e-8; for "stabilised", relative to
            the distance moved in the step, by default 1e-3. The default is at least 1000 times the machine precision.
        absolute_tolerance: Additional allowed error of one step. The default is the relative tolerance times the root
            mean square of the initial weights, so that the relative accuracy does not depend on the initial scale; for
            "stabilised", the default is zero.
        max_steps: Maximum number of steps of each member; by default one million.

    Raises:
        InputError: If the name is unknown, or if a number is outside its domain.

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
        """Return a solver unchanged, or make one from its name."""
        return cls(solver) if isinstance(solver, str) else solver

"""Check the memory that a theory needs, and announce long computations."""

from __future__ import annotations

from dynascope.flows.progress import announce
from dynascope.prediction.case import Case
from dynascope.prediction.theories.theory import Theory
from dynascope.validation import formatted_bytes, require_memory

__all__ = ["announce_needs", "require_fitting_memory"]

_PER_SECOND = 1e9  # operations on one core: benchmarks/theory_costs.py
_FACTOR = 3.0  # accuracy of that estimate
_LONG, _LARGE = 10.0, 1e9  # seconds and bytes above which needs are announced
_NOTED = 2e8  # bytes; Python and JAX take as much anyway
_UNITS = ((3600, "hours"), (60, "minutes"), (1, "seconds"))


def require_fitting_memory(theory: Theory, case: Case) -> None:
    """Raise `InputError` if a theory needs more memory than is available."""
    require_memory(
        theory.memory(case),
        f"the theory {theory.name} on these data",
        argument="task",
        remedy="use fewer inputs or fewer samples",
    )


def announce_needs(theory: Theory, case: Case) -> None:
    """Announce a long or large computation, after checking that it fits into memory.

    Args:
        theory: The theory.
        case: The data and the network.

    Raises:
        InputError: The theory needs more memory than available.
    """
    require_fitting_memory(theory, case)
    memory, operations = theory.memory(case), theory.operations(case)
    seconds = operations / _PER_SECOND
    if seconds >= _LONG or memory >= _LARGE:
        size, unit = next((size, unit) for size, unit in _UNITS if seconds >= size or size == 1)
        factor = max(_FACTOR, theory.cost_factor)
        needs = (
            f"The theory {theory.name} needs up to {operations:.1g} operations, about {seconds / size:.2g} {unit} on "
            f"one core (within a factor of {factor:.2g}; less for few jumps)"
        )
        announce(f"{needs}, and about {formatted_bytes(memory)} of memory." if memory >= _NOTED else f"{needs}.")

"""What a theory needs of a machine: refused where there is not as much, and told before it takes long."""

from __future__ import annotations

from dynascope.flows.progress import announce
from dynascope.prediction.case import Case
from dynascope.prediction.theories.theory import Theory
from dynascope.validation import require_memory, said_bytes

__all__ = ["announce_needs"]

_PER_SECOND = 1e9  # operations on one core: benchmarks/theory_costs.py
_FACTOR = 3.0  # by which that is off
_LONG, _LARGE = 10.0, 1e9  # seconds and bytes of which somebody wants to know
_NOTED = 2e8  # bytes, of which as much is taken by programs and by JAX
_UNITS = ((3600, "hours"), (60, "minutes"), (1, "seconds"))


def announce_needs(theory: Theory, case: Case) -> None:
    """Refuse what cannot fit into the memory, with the bytes, and tell whoever listens what takes long or much.

    Args:
        theory: By which to predict.
        case: The data and the network.

    Raises:
        InputError: It needs more memory than there is.
    """
    memory, operations = theory.memory(case), theory.operations(case)
    require_memory(
        memory,
        f"the theory {theory.name} on these data",
        argument="task",
        remedy="give fewer inputs, or fewer samples",
    )
    seconds = operations / _PER_SECOND
    if seconds >= _LONG or memory >= _LARGE:
        size, unit = next((size, unit) for size, unit in _UNITS if seconds >= size or size == 1)
        factor = max(_FACTOR, theory.cost_factor)
        told = (
            f"The theory {theory.name} takes up to {operations:.1g} operations here, some {seconds / size:.2g} {unit} "
            f"of one core (within a factor of {factor:.2g}; less for few jumps)"
        )
        announce(f"{told}, and about {said_bytes(memory)} of memory." if memory >= _NOTED else f"{told}.")

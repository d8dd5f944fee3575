"""Which of the rates that a network's symmetries allow its gradient flow has: those that keep all charges finite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from annotated_types import IsFinite
from jaxtyping import Float, Real
from numpy.typing import ArrayLike

from dynascope.theory.margins.max_margin import linprog
from dynascope.theory.margins.rates import covers_quasi_homogeneous
from dynascope.validation import require, require_shape
from dynascope.validation.bounded import FiniteNumbers, NonNegativeInt

__all__ = ["balanced_rates"]

_DIGITS = 8  # to which two elements have the same rates, whatever the solution
_STEEPEST = 1e6  # scale of the second programme: rates that differ by less than its inverse are taken for equal


@covers_quasi_homogeneous(gives="the rates at which parameters grow along the margin")
def balanced_rates(
    rates: IsFinite[Real[ArrayLike, " elements"]],
    generators: FiniteNumbers,
    *,
    discarded: Sequence[NonNegativeInt] = (),
) -> Float[np.ndarray, " elements"]:
    """The λ ≥ 0 among λ + Σ c_k s_k whose largest entries are least, then the next: max_{s > 0} λ = max_{s < 0} λ.

    Elements grow as θ_i ∝ exp(λ_i τ). Along a field s ⊙ θ that leaves the network as it is, gradient flow conserves
    Σ s_i θ_i², so that what grows fastest on either side of the charge does so at one rate; of a charge of one side
    nothing grows. These are the conditions for (λ_1 ≥ λ_2 ≥ …) to be least in lexicographic order: where the largest
    rates of the two sides differ, a step along s makes it less, and where no two differ every step raises one of the
    largest that it changes. The solution is unique. Weights of a product of k factors have 1/k each. A bias that the
    margin needs pulls the layer above it to its own rate: three layers with a second bias have 1/4, 1/4, 1/2.

    Args:
        rates: One λ that solves the Euler identity Σ λ_i θ_i ∂f/∂θ_i = f, with λ + Σ c_k s_k ≥ 0 for some c, shape
            (elements,).
        generators: s_k with Σ s_i θ_i ∂f/∂θ_i = 0, shape (generators, elements); none for unique rates.
        discarded: Numbers of elements whose share of the margin vanishes, so that they stay behind their rates and
            charges are balanced without them.

    Returns:
        λ, shape (elements,), in the units of the given rates.

    Raises:
        InputError: Shapes that do not fit, or charges that stay finite only with negative rates.

    References:
        Kunin, Yamamura, Ma, Ganguli, arXiv:2210.03820, whose choice among the rates this derives from the charges.

    Example:
        >>> print(balanced_rates([1, 1, 0], [[0, 1, -1]]))  # a x₁ + u v x₂
        [1.  0.5 0.5]
    """
    given, fields = np.asarray(rates), np.asarray(generators)
    fields = fields if fields.size else np.zeros((0, given.size))
    require_shape("generators", fields, (None, given.size))
    behind = np.zeros(given.size, bool)
    for each in discarded:
        require(
            each < given.size,
            f"discarded holds {each}",
            argument="discarded",
            value=each,
            remedy=f"give numbers of elements, below {given.size}",
        )
        behind[each] = True
    if given.size == 0 or not len(fields):
        _require_positive(given)
        return np.maximum(given, 0.0)
    # Rates and generators of ordinary size; powers of two round nothing.
    unit = 2.0 ** np.round(np.log2(np.abs(given).max(initial=0.0) or 1.0))
    sizes = np.abs(fields).max(axis=1)
    fields = fields[sizes > 0] / sizes[sizes > 0, None]
    columns = np.round(np.vstack([given / unit, fields, behind]), _DIGITS)
    _, first, which = np.unique(columns, axis=1, return_index=True, return_inverse=True)
    found = _least(given[first] / unit, fields[:, first], behind[first])
    return unit * found[which.ravel()]


def _least(rates: np.ndarray, fields: np.ndarray, behind: np.ndarray) -> np.ndarray:
    """The solution for elements that differ; those behind are settled last."""
    start, all_fields = rates, fields
    level, levels = np.full(rates.size, -1), []
    for group in (~behind, behind):
        while len(fields) and (free := group & (level < 0)).any():
            top, rates, tight = _lower(rates, fields, free)
            level[tight] = len(levels)
            levels.append(top)
            fields = _leaving(fields, level >= 0)
    settled = level >= 0
    # What is left of the programmes' tolerance goes: all of a level are equal, and those of the last one zero.
    ties = -np.eye(len(levels))[level[settled]].T[np.array(levels) > 0]
    unknowns = np.vstack([all_fields[:, settled], ties])
    shares = np.linalg.lstsq(unknowns.T, -start[settled], rcond=1e-10)[0][: len(all_fields)]
    answer = start + shares @ all_fields
    _require_positive(answer)
    return np.where(answer < 0.5 / _STEEPEST, 0.0, answer)


def _lower(rates: np.ndarray, fields: np.ndarray, free: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """The least top rate of the free elements, a solution that has it, and which of them have it in every solution."""
    many, count = len(fields), int(free.sum())
    # min t over (c, t ≥ 0): λ + cs ≤ t.
    above = np.column_stack([fields[:, free].T, -np.ones(count)])
    bounds: list[Any] = [(None, None)] * many
    top = float(_solved(np.append(np.zeros(many), 1.0), above, -rates[free], [*bounds, (0.0, None)])[-1])
    if top < 0.5 / _STEEPEST:
        return 0.0, rates, free
    # max Σδ over (c, z ≥ 1, δ ≤ 1): zλ + cs + δ ≤ zt; δ = 1 of each that can be lower in any solution.
    lower = np.column_stack([fields[:, free].T, rates[free] - top, np.eye(count)])
    goal = np.concatenate([np.zeros(many + 1), -np.ones(count)])
    found = _solved(goal, lower, np.full(count, 1e-9), [*bounds, (1.0, _STEEPEST), *[(0.0, 1.0)] * count])
    tight = np.zeros(rates.size, bool)
    tight[free] = found[many + 1 :] < 0.5
    return top, rates + found[:many] / found[many] @ fields, tight if tight.any() else free


def _solved(goal: np.ndarray, above: np.ndarray, most: np.ndarray, bounds: list[Any]) -> np.ndarray:
    found = linprog(goal, A_ub=above, b_ub=most, bounds=bounds, method="highs")
    require(
        found.status == 0,
        f"the rates cannot be balanced ({found.message})",
        argument="rates",
        remedy="give rates and generators of ordinary size",
    )
    return found.x


def _leaving(fields: np.ndarray, settled: np.ndarray) -> np.ndarray:
    """The combinations of the generators that leave the settled elements where they are."""
    left, values, _ = np.linalg.svd(fields[:, settled])
    rank = int((values > 1e-9).sum())
    return left[:, rank:].T @ fields


def _require_positive(rates: np.ndarray) -> None:
    lowest = float(rates.min(initial=0.0))
    require(
        lowest >= -1e-6 * max(1.0, float(np.abs(rates).max(initial=0.0))),
        f"a rate is {lowest:.3g}: the parameter vanishes as others grow, or their charges cannot stay finite",
        argument="rates",
        value=lowest,
        remedy="the network is not quasi-homogeneous: its rates must be positive or zero",
    )

"""Balanced growth rates, which gradient flow selects among all growth rates that the symmetries of a network allow."""

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

_DIGITS = 8  # decimal digits to which two elements with equal rates in every solution agree
_STEEPEST = 1e6  # scale of the second programme; rates that differ by less than its inverse count as equal


@covers_quasi_homogeneous(gives="the rates at which the parameters grow with the margin")
def balanced_rates(
    rates: IsFinite[Real[ArrayLike, " elements"]],
    generators: FiniteNumbers,
    *,
    discarded: Sequence[NonNegativeInt] = (),
) -> Float[np.ndarray, " elements"]:
    """Growth rates λ of the parameters under gradient flow, selected by the conserved charges.

        lexicographic minimum of the sorted entries λ_1 ≥ λ_2 ≥ … over all λ + Σ c_k s_k ≥ 0

    Late in training, the elements of the parameters grow as θ_i ∝ exp(λ_i τ) in a rescaled time τ. For a rescaling
    field s ⊙ θ that leaves the network unchanged, gradient flow conserves Σ s_i θ_i². Hence max_{s > 0} λ = max_{s < 0}
    λ: the fastest elements with s > 0 and with s < 0 have equal rates. If all s have one sign, no element with s ≠ 0
    grows. These conditions are equivalent to the lexicographic minimum. If the largest rates of the two signs differ, a
    step along s reduces the larger one. If they are equal for every s, any step raises one of the largest rates among
    the rates that it changes. The solution is unique. In a product of k factors, each factor has the rate 1/k. If the
    margin depends on a bias, the layer above has the same rate as the bias: in a network of three layers with a bias in
    the second layer, the layers have the rates 1/4, 1/4 and 1/2.

    Args:
        rates: One solution λ of the Euler identity Σ λ_i θ_i ∂f/∂θ_i = f, with λ + Σ c_k s_k ≥ 0 for some c, shape
            (elements,).
        generators: s_k with Σ s_i θ_i ∂f/∂θ_i = 0, shape (generators, elements); empty if the rates are unique.
        discarded: Indices of elements whose share of the margin vanishes. These elements grow more slowly than their
            rates imply, and the charges are balanced without them.

    Returns:
        λ, shape (elements,), in the units of the given rates.

    Raises:
        InputError: If the shapes do not match, or if no solution with nonnegative rates conserves the charges.

    References:
        Kunin, Yamamura, Ma, Ganguli, arXiv:2210.03820; the selection of the rates from the charges is derived here.

    Example:
        >>> print(balanced_rates([1, 1, 0], [[0, 1, -1]]))  # a x₁ + u v x₂
        [1.  0.5 0.5]
    """
    given, fields = np.asarray(rates), np.asarray(generators)
    fields = fields if fields.size else np.zeros((0, given.size))
    require_shape("generators", fields, (None, given.size))
    slow = np.zeros(given.size, bool)
    for each in discarded:
        require(
            each < given.size,
            f"discarded contains {each}",
            argument="discarded",
            value=each,
            remedy=f"give element indices below {given.size}",
        )
        slow[each] = True
    if given.size == 0 or not len(fields):
        _require_positive(given)
        return np.maximum(given, 0.0)
    # Rates and generators of order one, rescaled by powers of two without rounding.
    unit = 2.0 ** np.round(np.log2(np.abs(given).max(initial=0.0) or 1.0))
    sizes = np.abs(fields).max(axis=1)
    fields = fields[sizes > 0] / sizes[sizes > 0, None]
    columns = np.round(np.vstack([given / unit, fields, slow]), _DIGITS)
    _, first, which = np.unique(columns, axis=1, return_index=True, return_inverse=True)
    found = _lexicographic_minimum(given[first] / unit, fields[:, first], slow[first])
    return unit * found[which.ravel()]


def _lexicographic_minimum(rates: np.ndarray, fields: np.ndarray, slow: np.ndarray) -> np.ndarray:
    """Return the solution for distinct elements; discarded elements are determined last."""
    start, all_fields = rates, fields
    level, levels = np.full(rates.size, -1), []
    for group in (~slow, slow):
        while len(fields) and (free := group & (level < 0)).any():
            top, rates, fixed = _least_maximum(rates, fields, free)
            level[fixed] = len(levels)
            levels.append(top)
            fields = _fixing(fields, level >= 0)
    settled = level >= 0
    # Remove the tolerance of the programmes: all rates of a level are equal, and zero at the last level.
    ties = -np.eye(len(levels))[level[settled]].T[np.array(levels) > 0]
    unknowns = np.vstack([all_fields[:, settled], ties])
    shares = np.linalg.lstsq(unknowns.T, -start[settled], rcond=1e-10)[0][: len(all_fields)]
    solution = start + shares @ all_fields
    _require_positive(solution)
    return np.where(solution < 0.5 / _STEEPEST, 0.0, solution)


def _least_maximum(rates: np.ndarray, fields: np.ndarray, free: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the least maximum of the free rates, a solution, and the elements with this rate in every solution."""
    many, count = len(fields), int(free.sum())
    # min t over (c, t ≥ 0): λ + cs ≤ t.
    above = np.column_stack([fields[:, free].T, -np.ones(count)])
    bounds: list[Any] = [(None, None)] * many
    top = float(_solve(np.append(np.zeros(many), 1.0), above, -rates[free], [*bounds, (0.0, None)])[-1])
    if top < 0.5 / _STEEPEST:
        return 0.0, rates, free
    # max Σδ over (c, z ≥ 1, δ ≤ 1): zλ + cs + δ ≤ zt; δ = 1 for each rate that can be lower in some solution.
    lower = np.column_stack([fields[:, free].T, rates[free] - top, np.eye(count)])
    goal = np.concatenate([np.zeros(many + 1), -np.ones(count)])
    found = _solve(goal, lower, np.full(count, 1e-9), [*bounds, (1.0, _STEEPEST), *[(0.0, 1.0)] * count])
    fixed = np.zeros(rates.size, bool)
    fixed[free] = found[many + 1 :] < 0.5
    return top, rates + found[:many] / found[many] @ fields, fixed if fixed.any() else free


def _solve(goal: np.ndarray, above: np.ndarray, most: np.ndarray, bounds: list[Any]) -> np.ndarray:
    found = linprog(goal, A_ub=above, b_ub=most, bounds=bounds, method="highs")
    require(
        found.status == 0,
        f"the rates cannot be balanced ({found.message})",
        argument="rates",
        remedy="give rates and generators of order one",
    )
    return found.x


def _fixing(fields: np.ndarray, settled: np.ndarray) -> np.ndarray:
    """Return the combinations of the generators that leave the settled elements unchanged."""
    left, values, _ = np.linalg.svd(fields[:, settled])
    rank = int((values > 1e-9).sum())
    return left[:, rank:].T @ fields


def _require_positive(rates: np.ndarray) -> None:
    lowest = float(rates.min(initial=0.0))
    require(
        lowest >= -1e-6 * max(1.0, float(np.abs(rates).max(initial=0.0))),
        f"a rate is {lowest:.3g}, so its parameter would vanish while others grow, or charges would diverge",
        argument="rates",
        value=lowest,
        remedy="use a quasi-homogeneous network, whose rates are non-negative",
    )

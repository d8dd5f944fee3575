"""Asymmetric max-margin problem, which penalises only the parameters with the largest growth rate."""

from __future__ import annotations

import functools
import warnings
from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np
import scipy.optimize
from annotated_types import Ge, IsFinite
from jaxtyping import Float, Int, Real
from numpy.typing import ArrayLike

from dynascope.errors import InputError
from dynascope.results.named_tuples import short_repr
from dynascope.theory.domain import covers
from dynascope.validation import require, require_room, require_shape, require_whole_numbers

__all__ = ["Data", "Factors", "MaxMargin", "class_differences", "linprog", "max_margin"]

_FREE = 1e5  # scale of free weights relative to penalised ones, until the active constraints are known
_ACTIVE = 1e-9  # relative multipliers, and distances from a margin of one, that count as zero
_UNIQUE = 1e-6
_CALLER = 5  # stack level of the caller, past the decorators

# Of type `Any`, because type checkers take seconds to analyse the sources of SciPy.
linprog: Any = scipy.optimize.linprog

Data: TypeAlias = IsFinite[Real[ArrayLike, "samples inputs"]]
Factors: TypeAlias = Annotated[ArrayLike, Ge(1)]
_covers = functools.partial(covers, start="any", reference="arXiv:2210.03820")


class MaxMargin(NamedTuple):
    """Solution of a max-margin problem.

    Attributes:
        weights: β at which the smallest margin is one, shape (inputs,).
        value: P, the cost ½ Σ θ² of the parameters with the largest rate.
        multipliers: α ≥ 0 of the samples, zero for all but the support vectors, shape (samples,).
        rate: λ of the penalised parameters.
        discarded: Indices of inputs whose weights have a higher rate but are not needed for the margin, shape
            (discarded,).
        unique: Whether the solution is unique. If not, training converges to one of the solutions, but the problem does
            not determine which.
        euclidean_margin: 1/‖β‖, the norm of the smallest perturbation of the inputs that leads to a misclassified
            sample.
    """

    weights: Float[np.ndarray, " inputs"]
    value: float
    multipliers: Float[np.ndarray, " samples"]
    rate: float
    discarded: Int[np.ndarray, " discarded"]
    unique: bool
    euclidean_margin: float

    __repr__ = short_repr


@_covers(
    network="f = Σ β_j x_j, where each β_j is a single weight or a product of weights",
    data="separable",
    gives="the limit direction of training",
    exact=False,
)
def max_margin(data: Data, factors: Factors = 1) -> MaxMargin:
    """Asymmetric max-margin problem: the limit direction of gradient flow after separation.

        min ½ Σ θ² over the parameters of the largest rate, subject to z_i · β ≥ 1, with β_j a product of k_j parameters

    In a product of k factors, each factor has the rate λ = 1/k, and the total cost is ½ k |β_j|^(2/k). Only the
    products with the fewest factors are penalised; all others are free. If the penalised products have one factor, the
    problem is a quadratic program; if all inputs have one factor, it is the hard-margin support vector machine. If the
    penalised products have two factors, the problem is a linear program that minimises the ℓ1 norm. If the free inputs
    alone separate the data, the penalised inputs are discarded with a warning, and the parameters with the next lower
    rate are penalised. The direction of gradient flow converges to the solution as 1/q with the margin q, or as
    log(q)/q if `support_drift` is not zero.

    Args:
        data: z_i = y_i x_i with labels y = ±1, shape (samples, inputs), linearly separable: z_i · β > 0 for some β. For
            several classes, use `class_differences`.
        factors: Number of factors k_j ≥ 1 of each input, an integer or an array of shape (inputs,).

    Raises:
        InputError: If the shapes do not match, the data are not separable, or products of three or more factors are
            penalised, in which case the problem is not convex.

    Warns:
        UserWarning: If the parameters of the largest rate are discarded.

    References:
        Kunin, Yamamura, Ma, Ganguli, arXiv:2210.03820; solved by the least-distance programming
        of Lawson and Hanson.

    Example:
        >>> found = max_margin([[1.0, 0.2], [10.0, -1.0]], factors=[1, 2])  # f = a x₁ + u v x₂
        >>> print(found.weights.round(9), round(found.euclidean_margin, 12), found.unique)
        [0.4 3. ] 0.330409300228 True
        >>> print(max_margin([[1.0, 0.2], [10.0, -1.0]]).weights.round(12))
        [0.96153846 0.19230769]
    """
    z, counts = np.asarray(data), np.asarray(factors, float)
    inputs = z.shape[1]
    require(z.size > 0, f"data has shape {z.shape}", argument="data", value=z.shape, remedy="give at least one sample")
    require_shape("factors", counts, (inputs,) if counts.ndim else ())
    require_whole_numbers("factors", counts, least=1)
    counts = np.broadcast_to(counts, inputs)
    sizes = np.abs(z).max(axis=1)
    require(
        bool((sizes > 0).all()) and _separates(z),
        "data is not linearly separable without an intercept",
        argument="data",
        remedy="give data that a hyperplane through zero separates, or append a constant input as an intercept",
    )
    discarded = np.zeros(inputs, bool)
    while True:
        fewest = counts[~discarded].min()
        penalised, free = ~discarded & (counts == fewest), ~discarded & (counts > fewest)
        if not free.any() or not _separates(z[:, free]):
            break
        indices = np.flatnonzero(penalised).tolist()
        warnings.warn(
            f"max_margin: the inputs {indices} of rate 1/{fewest:g} are not needed for separation and are discarded",
            stacklevel=_CALLER,
        )
        discarded |= penalised
    single = int(penalised.sum()) == 1
    require(
        fewest <= 2 or single,
        f"products of {fewest:g} factors are penalised, so the problem is not convex",
        argument="factors",
        value=float(fewest),
        remedy="integrate the flow with flows.margin_flow, which may end in a local optimum",
    )
    a, b = z[:, penalised], z[:, free]
    # For a single product, every increasing cost has the same solution.
    top, rest, alpha = _quadratic(a, b) if fewest == 1 else _linear(a, b)
    weights = np.zeros(inputs)
    weights[penalised], weights[free] = top, rest
    with np.errstate(all="ignore"):
        cost = float(fewest / 2 * np.sum(np.abs(top) ** (2 / fewest)))
        margin = float(1 / np.linalg.norm(weights))
    return MaxMargin(
        weights,
        cost,
        alpha,
        1 / float(fewest),
        np.flatnonzero(discarded),
        _is_unique(a, b, top, rest, convex=bool(fewest == 1)),
        margin,
    )


@_covers(network="linear in its last layer", data="classes", gives="the data of the multiclass max-margin problem")
def class_differences(
    features: IsFinite[Real[ArrayLike, "samples features"]],
    labels: Annotated[Real[ArrayLike, " samples"], Ge(0)],
    classes: Annotated[int, Ge(2)],
) -> Float[np.ndarray, "pairs weights"]:
    """Data for the multiclass max-margin problem.

        (e_y − e_c) ⊗ h   for each sample and each class c ≠ y

    The margins are (w_y − w_c) · h = z · W.

    Args:
        features: h, shape (samples, features).
        labels: Integers y from 0 to classes − 1, shape (samples,).
        classes: K ≥ 2.

    Returns:
        z for `max_margin`, shape (samples (classes − 1), classes features); the weights of the solution are the rows of
        W, flattened.

    Raises:
        InputError: If the shapes do not match, or a label is not an integer from 0 to classes − 1.

    References:
        Crammer, Singer, Journal of Machine Learning Research 2 (2001); as used by Kunin et al., arXiv:2210.03820.

    Example:
        >>> class_differences([[2.0]], [1], 3).tolist()
        [[-2.0, 2.0, 0.0], [0.0, 2.0, -2.0]]
    """
    h, y = np.asarray(features), np.asarray(labels)
    require_shape("labels", y, (len(h),))
    require_whole_numbers("labels", y, most=classes - 1)
    require_room(len(h) * (classes - 1) * classes * h.shape[1] + classes**2, classes=classes)
    unit = np.eye(classes)
    rows = [
        np.kron(unit[label] - unit[other], row)
        for row, label in zip(h, y.astype(int), strict=True)
        for other in range(classes)
        if other != label
    ]
    return np.reshape(rows, (-1, classes * h.shape[1]))


def _separates(z: np.ndarray) -> bool:
    """Return whether z w ≥ 1 for some w, by maximising the smallest margin over bounded w."""
    scaled = z / np.maximum(np.abs(z).max(axis=1, keepdims=True), np.finfo(float).tiny)
    scaled /= np.maximum(np.abs(scaled).max(axis=0, keepdims=True), np.finfo(float).tiny)
    above = np.column_stack([-scaled, np.ones(len(z))])
    bounds = [(-1.0, 1.0)] * z.shape[1] + [(None, 1.0)]
    goal = np.append(np.zeros(z.shape[1]), -1.0)
    return -linprog(goal, A_ub=above, b_ub=np.zeros(len(z)), bounds=bounds, method="highs").fun > 1e-9


def _quadratic(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Minimise ½‖w‖² for aw + bv ≥ 1: first with almost free v to find the active constraints, then exactly."""
    rescaled = b / np.maximum(np.abs(b).max(axis=0, initial=0.0), np.finfo(float).tiny) * np.abs(a).max() * _FREE
    both = np.hstack([a, rescaled])
    unit = np.abs(both).max()
    system = np.vstack([both.T / unit, np.ones(len(a))])
    alpha, _ = scipy.optimize.nnls(system, np.append(np.zeros(both.shape[1]), 1.0), maxiter=100 * len(a) + 1000)
    active = alpha > _ACTIVE * alpha.max()
    for _ in range(len(a)):
        top, rest, multipliers = _with_active(a, b, active)
        margins = a @ top + b @ rest
        worst = int(np.argmin(margins))
        if margins[worst] < 1 - 1e-8 and not active[worst]:
            active[worst] = True
        elif (multipliers[active] < -_ACTIVE * np.abs(multipliers).max()).any():
            active[int(np.argmin(multipliers))] = False
        else:
            break
    slack = float(margins.min() - 1)
    if slack < -1e-6 or multipliers.min() < -1e-6 * np.abs(multipliers).max():
        raise InputError(
            f"the optimisation problem is ill-conditioned (a margin is violated by {slack:.1e})",
            argument="data",
            remedy="give inputs of similar size, and data with a larger margin",
        )
    return top, rest, np.maximum(multipliers, 0.0)


def _with_active(a: np.ndarray, b: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the solution with equality in the active constraints: w = aᵀα, bᵀα = 0, aw + bv = 1."""
    p, q = a[active], b[active]
    many, free = p.shape[0], q.shape[1]
    scale = np.abs(p).max()
    column_scale = np.maximum(np.abs(q).max(axis=0, initial=0.0), np.finfo(float).tiny)
    p, q = p / scale, q / column_scale
    system = np.block([[p @ p.T, q], [q.T, np.zeros((free, free))]])
    found = np.linalg.lstsq(system, np.append(np.ones(many), np.zeros(free)), rcond=1e-13)[0]
    alpha = np.zeros(len(a))
    alpha[active] = found[:many] / scale**2
    return a.T @ alpha, found[many:] / column_scale, alpha


def _linear(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Minimise ‖w‖₁ subject to aw + bv ≥ 1."""
    goal = np.concatenate([np.ones(2 * a.shape[1]), np.zeros(b.shape[1])])
    bounds = [(0.0, None)] * (2 * a.shape[1]) + [(None, None)] * b.shape[1]
    found = linprog(goal, A_ub=-np.hstack([a, -a, b]), b_ub=-np.ones(len(a)), bounds=bounds, method="highs")
    plus, minus, rest = np.split(found.x, [a.shape[1], 2 * a.shape[1]])
    return plus - minus, rest, -np.asarray(found.ineqlin.marginals)


def _is_unique(a: np.ndarray, b: np.ndarray, top: np.ndarray, rest: np.ndarray, *, convex: bool) -> bool:
    """Whether a random linear objective is constant on the set of solutions."""
    if convex and not b.shape[1]:
        return True
    goal = np.random.default_rng(0).normal(size=b.shape[1] if convex else 2 * a.shape[1] + b.shape[1])
    if convex:
        above, most = -b, a @ top - 1 + _ACTIVE
        bounds, at = [(None, None)] * b.shape[1], goal @ rest
    else:
        cost = np.concatenate([np.ones(2 * a.shape[1]), np.zeros(b.shape[1])])
        above = np.vstack([-np.hstack([a, -a, b]), cost])
        most = np.append(-np.ones(len(a)) + _ACTIVE, np.abs(top).sum() * (1 + _ACTIVE))
        bounds = [(0.0, None)] * (2 * a.shape[1]) + [(None, None)] * b.shape[1]
        at = goal @ np.concatenate([np.maximum(top, 0), np.maximum(-top, 0), rest])
    for sign in (1.0, -1.0):
        found = linprog(sign * goal, A_ub=above, b_ub=most, bounds=bounds, method="highs")
        size = 1 + np.abs(at)
        if found.status != 0 or abs(sign * found.fun - at) > _UNIQUE * size:
            return False
    return True

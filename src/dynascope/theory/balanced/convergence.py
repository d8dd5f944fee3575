"""Limit of the training of a λ-balanced network, with convergence rates, sharpness and largest stable learning rate."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from annotated_types import IsFinite
from jax.typing import ArrayLike
from jaxtyping import Float, Real

from dynascope.results.named_tuples import short_repr
from dynascope.theory.balanced.balance import STANDARDS, UNITS, Balance, TwoLayers, require_balanced
from dynascope.theory.balanced.propagation import drift_matrix
from dynascope.theory.balanced.solution import covers_balanced
from dynascope.theory.layer_rates import LayerRates
from dynascope.theory.units import in_units
from dynascope.validation import require_array

__all__ = ["BalancedLimit", "balanced_limit", "slowest_rate"]

_GIVES = {
    "first": "w^2",
    "product": "w a",
    "second": "a^2",
    "loss": "w^2 a^2",
    "decay_rates": "t^-1",
    "sharpness": "t^-1",
    "largest_stable_step": "t",
    "balance": {"value": "w a"},
}
_ABSENT = 1e-10  # component relative to the initial weights, below which a direction counts as missing


class BalancedLimit(NamedTuple):
    """Limit of a λ-balanced network as t → ∞, with its convergence rates, sharpness and largest stable learning rate.

    Attributes:
        first: W₁ W₁ᵀ, shape (d, d).
        product: W₁ W₂, shape (d, c).
        second: W₂ᵀ W₂, shape (c, c).
        loss: ½‖W₁W₂ − Σ‖².
        status: "converges" exponentially, to the best map that the rank of the network allows; "power law" if modes
            with zero target decay as 1/t; "saddle" if the initial weights lack a required direction; "static" if the
            initial weights are a fixed point.
        reachability: Smallest component of the initial weights along a learned direction, relative to the norm of the
            initial weights. Components below 1e-10 count as missing. In training, finite steps and rounding errors
            eventually excite a missing direction.
        decay_rates: Decay rates of the map's error near the limit, if the map is learned: the eigenvalues of the NTK in
            ascending order, shape (d·c,).
        sharpness: Largest eigenvalue of the Hessian, rescaled by the learning rates.
        largest_stable_step: 2/sharpness, the learning rate (as a factor on η₁ and η₂) above which gradient descent is
            unstable at the limit. With equal rates, it is 1/√(λ²/4 + s₁²) if the map is learned, where s₁ is the
            largest singular value of Σ.
        balance: λ and the deviation of the initial weights from λ-balance; the limit is exact if the deviation is zero.
    """

    first: Float[np.ndarray, "inputs inputs"]
    product: Float[np.ndarray, "inputs outputs"]
    second: Float[np.ndarray, "outputs outputs"]
    loss: float
    status: Literal["converges", "power law", "saddle", "static"]
    reachability: float
    decay_rates: Float[np.ndarray, " modes"]
    sharpness: float
    largest_stable_step: float
    balance: Balance

    __repr__ = short_repr


@covers_balanced(gives="the limit of training, its convergence rates, sharpness and largest stable step")
@in_units(*STANDARDS, **UNITS, gives=_GIVES, infinite=True)
def balanced_limit(
    first: IsFinite[Real[ArrayLike, "inputs width"]],
    second: IsFinite[Real[ArrayLike, "width outputs"]],
    target_map: IsFinite[Real[ArrayLike, "inputs outputs"]],
    *,
    rates: LayerRates = LayerRates(),
    approximate: bool = False,
) -> BalancedLimit:
    """Compute the limit of the solution `gram` as t → ∞, from any λ-balanced initial weights.

    P∞ = Σ 2 f vvᵀ

    F, P and Q are defined in `gram`. The sum is over eigenvectors v of F with eigenvalues f > 0. Starting with the
    largest f, it includes each direction that the columns of Q₀ = Q(0) still reach after the previous directions have
    been removed. For generic initial weights, these are the directions of the h largest f, and W₁W₂ is the best map of
    rank h. Initial weights that lack a required direction flow into a saddle. If λ = 0 and the initial W₁W₂ and Σ are
    square matrices of full rank, the flow ends in a saddle whenever their determinants differ in sign.

    Args:
        first: Initial W₁, shape (d, h).
        second: Initial W₂, shape (h, c).
        target_map: Σ = E[x yᵀ], shape (d, c), for inputs with E[x xᵀ] = I.
        rates: Learning rates η₁ and η₂ of the layers, two numbers.
        approximate: See `gram`.

    Raises:
        InputError: As for `gram`.

    References:
        Dominé et al., arXiv:2409.14623; the limit from initial weights that lack a direction, and the sharpness, are
        derived here.

    Example:
        >>> end = balanced_limit([[0.1], [0.0]], [[0.1]], [[2.0], [0.0]])
        >>> end.product[:, 0].round(3).tolist(), end.status, round(end.largest_stable_step, 3)
        ([2.0, 0.0], 'converges', 0.5)
        >>> balanced_limit([[0.1]], [[-0.1]], [[2.0]]).status
        'saddle'
    """
    first = require_array("first", first, (None, None))
    second = require_array("second", second, (first.shape[1], None))
    target = require_array("target_map", target_map, (first.shape[0], second.shape[1]))
    first_rate, second_rate = (require_array(f"rates.{name}", each, ()) for name, each in rates._asdict().items())
    layers: tuple[Any, Any] = (first, second)
    balance = require_balanced(TwoLayers(*layers, LayerRates(first_rate, second_rate)), approximate)
    drift = drift_matrix(target, balance.value, np)
    ratio = float(np.sqrt(first_rate / second_rate))
    inner, outer = first / np.sqrt(ratio), second * np.sqrt(ratio)
    factor, reachability, marginal = _limiting_factor(drift, np.concatenate([inner, outer.T]))
    inner, outer = factor[: len(first)], factor[len(first) :].T
    found = inner @ outer
    excess = float(np.sum((found - target) ** 2)) / 2
    width = first.shape[1]
    best = float(np.sum(np.linalg.svd(target, compute_uv=False)[width:] ** 2)) / 2
    power = max(float(np.sum(target**2)), float(np.sum(factor**2)) ** 2, 1e-300)
    moved = np.abs(inner @ inner.T * ratio - first @ first.T).max()
    moved = max(moved, np.abs(found - first @ second).max())
    if moved < _ABSENT * np.sqrt(power):
        status = "static"
    elif excess > best + _ABSENT * power:
        status = "saddle"
    else:
        status = "power law" if marginal else "converges"
    clock = float(np.sqrt(first_rate) * np.sqrt(second_rate))
    kernel = clock * np.add.outer(np.linalg.eigvalsh(inner @ inner.T), np.linalg.eigvalsh(outer.T @ outer)).ravel()
    sharpness = clock * _sharpness(inner, outer, target)
    return BalancedLimit(
        inner @ inner.T * ratio,
        found,
        outer.T @ outer / ratio,
        excess,
        status,
        reachability,
        np.sort(kernel),
        sharpness,
        2 / sharpness if sharpness > 0 else np.inf,
        balance,
    )


def slowest_rate(inputs: int, outputs: int, weakest: float, balances: np.ndarray) -> float:
    """Return the smallest convergence rate over all λ, for networks with h = min(d, c) hidden neurons.

    The rate is the gap between the eigenvalue ω of the weakest mode and the eigenvalue of the strongest unlearned
    direction.

    Args:
        inputs: Number of inputs d.
        outputs: Number of outputs c.
        weakest: Singular value of the weakest mode of the target map.
        balances: Balances λ of the networks.
    """
    omega = np.hypot(weakest, balances / 2)
    left_out = -omega if inputs == outputs else np.sign(outputs - inputs) * balances / 2
    return float(np.min(omega - left_out))


def _limiting_factor(drift: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, float, bool]:
    """Return a factor of P∞, the reachability, and whether a neutral direction (with eigenvalue zero) is present."""
    values, vectors = np.linalg.eigh(drift)
    values, vectors = values[::-1], vectors[:, ::-1]
    size = float(np.linalg.norm(start))
    free = np.eye(start.shape[1])  # combinations of hidden neurons that have not converged yet
    same = 1e-9 * max(float(np.abs(values).max(initial=0.0)), 1e-300)
    groups = np.split(np.arange(len(values)), np.flatnonzero(-np.diff(values) > same) + 1)
    columns, smallest, marginal = [], np.inf, False
    for group in groups:
        parts, sizes, turned = np.linalg.svd(vectors[:, group].T @ start @ free)
        present = int(np.sum(sizes > _ABSENT * size)) if size > 0 else 0
        value = float(values[group].mean())
        if value > same:
            columns.append(np.sqrt(2 * value) * vectors[:, group] @ parts[:, :present])
            required = sizes[: min(len(group), free.shape[1])]
            smallest = min(smallest, float(required.min(initial=np.inf)) / size if size > 0 else 0.0)
        elif value > -same:
            marginal = marginal or present > 0
        free = free @ turned[present:].T
    # The factor is padded to one column per hidden neuron.
    factor = np.concatenate(columns, axis=1) if columns else np.zeros((len(start), 0))
    missing = start.shape[1] - factor.shape[1]
    factor = np.pad(factor, ((0, 0), (0, max(missing, 0))))
    return factor, smallest if np.isfinite(smallest) else 1.0, marginal


def _sharpness(inner: np.ndarray, outer: np.ndarray, target: np.ndarray) -> float:
    """Return the largest eigenvalue of the Hessian of ½‖U₁U₂ − Σ‖² at a limit.

    Along (A, B) the loss has the curvature ‖A U₂ + U₁ B‖² + 2⟨U₁U₂ − Σ, A B⟩. At a limit, the residual is orthogonal to
    the learned directions. The hidden neurons are orthogonal to each other, with squared norms p in the first layer and
    q in the second. The Hessian therefore decomposes into blocks. Along the learned directions, the largest curvature
    is max p + max q. Along the other directions, each neuron contributes one block [[q, r], [r, p]] for each singular
    value r of the residual.
    """
    p, q = np.sum(inner**2, axis=0), np.sum(outer**2, axis=1)
    rest = np.linalg.norm(inner @ outer - target, 2)
    left_out = (p + q) / 2 + np.hypot((q - p) / 2, rest)
    return float(max(p.max() + q.max(), left_out.max()))

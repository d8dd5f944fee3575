"""The flow that discrete steps follow to second order: gradient flow on a modified loss, from a shifted start."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from dynascope.theory.assumptions import SMALL_STEPS
from dynascope.theory.domain import covers
from dynascope.theory.sgd import SGD, steps_of
from dynascope.validation import require, require_array
from dynascope.validation.bounded import FiniteNumbers, NonNegativeNumbers, PositiveNumbers

__all__ = ["convergence_orders", "modified_flow_ratio", "modified_loss", "shifted_start"]

_covers = functools.partial(covers, network="any", data="any", start="any", reference="arXiv:2012.04728")


@_covers(
    gives="the loss whose gradient flow follows steps of momentum to second order", exact=False, assumes=(SMALL_STEPS,)
)
def modified_loss(loss: Callable[..., Any], sgd: SGD) -> Callable[..., Any]:
    """L̃ = L/(1 − β) + η(1 + β)/(4(1 − β)³) ‖∇L‖², with λ/2 ‖θ‖² added to L first.

    The flow θ' = −∇L̃ is at the time ηk where k steps d ← β d − η ∇L, θ ← θ + d from d = 0 are, up to O(η²), where it
    starts at `shifted_start`; gradient flow on L/(1 − β) alone is off by O(η). That holds while `modified_flow_ratio`
    is far below one, and not at the edge of stability.

    Args:
        loss: L of the weights, which are arrays or a tree of them, and of whatever else; written with JAX.
        sgd: η, β and λ.

    Returns:
        L̃ of the same arguments, in the precision of the loss.

    Raises:
        InputError: A number out of range, a batch size, or a loss that cannot be called.

    References:
        Kunin, Sagastuy-Breña, Ganguli, Yamins, Tanaka, arXiv:2012.04728, section 5; with momentum by the ansatz of
        Kovachki, Stuart, arXiv:1906.04285.

    Example:
        >>> modified = modified_loss(jax.nn.logsumexp, SGD(0.4))
        >>> print(f"{jax.jit(modified)(np.zeros(4)):.4f}")  # ln 4 and a tenth of ‖(¼, ¼, ¼, ¼)‖²
        1.4113
    """
    rate, decay, beta = steps_of(sgd)
    share = rate * (1 + beta) / (4 * (1 - beta) ** 3)

    def decayed(weights: Any, *others: Any, **named: Any) -> Any:
        value = loss(weights, *others, **named)
        return value + decay / 2 * _squared(weights) if decay else value

    def modified(weights: Any, *others: Any, **named: Any) -> Any:
        value, gradient = jax.value_and_grad(decayed)(weights, *others, **named)
        return value / (1 - beta) + share * _squared(gradient)

    return modified


@_covers(gives="where the modified flow must start to follow steps of momentum", exact=False, assumes=(SMALL_STEPS,))
def shifted_start(start: FiniteNumbers, gradient: FiniteNumbers, sgd: SGD) -> Float[np.ndarray, "*shape"]:
    """θ_0 + ηβ/(1 − β)² (∇L(θ_0) + λ θ_0), where the flow on the modified loss starts that momentum from rest follows.

    Momentum takes 1/(1 − β) steps to reach its speed, and what it is behind by then is the shift. From θ_0 itself the
    modified flow is off by O(η).

    Args:
        start: θ_0, of any shape.
        gradient: ∇L(θ_0) without weight decay, in the same shape.
        sgd: η, β and λ.

    Returns:
        The start of the flow, of the shape of θ_0.

    Raises:
        InputError: A number out of range, a batch size, or shapes that do not fit.

    References:
        Kunin et al., arXiv:2012.04728, whose flow this completes.

    Example:
        >>> print(shifted_start([1.0, -0.8], [2.0, -1.0], SGD(0.01, momentum=0.5)))
        [ 1.04 -0.82]
    """
    weights = np.asarray(start)
    slope = require_array("gradient", gradient, weights.shape)
    rate, decay, beta = steps_of(sgd)
    with np.errstate(all="ignore"):
        return weights + rate * beta / (1 - beta) ** 2 * (slope + decay * weights)


@_covers(gives="how far steps are from where the modified flow says nothing")
def modified_flow_ratio(curvature: NonNegativeNumbers, sgd: SGD) -> Float[np.ndarray, "*shape"]:
    """η (‖H‖ + λ) / (1 − β)², which must be far below one for the modified flow to follow the steps.

    Args:
        curvature: ‖H‖ ≥ 0, the largest curvature of the loss without weight decay, of any shape.
        sgd: η, β and λ.

    Returns:
        The ratio, of the shape of the curvatures.

    Raises:
        InputError: A number out of range, or a batch size.

    References:
        Kunin et al., arXiv:2012.04728; Kovachki, Stuart, arXiv:1906.04285.

    Example:
        >>> print(modified_flow_ratio(5.0, SGD(0.01, momentum=0.5)).round(6))
        0.2
    """
    rate, decay, beta = steps_of(sgd)
    with np.errstate(all="ignore"):
        return np.asarray(rate / (1 - beta) ** 2 * (np.asarray(curvature) + decay))


@_covers(gives="the order in the learning rate with which an error vanishes")
def convergence_orders(learning_rates: PositiveNumbers, errors: PositiveNumbers) -> Float[np.ndarray, "pairs ..."]:
    """The order p of errors ∝ ηᵖ between neighbouring learning rates, ln(e_i/e_{i+1}) / ln(η_i/η_{i+1}).

    Args:
        learning_rates: η > 0, at least two, no two neighbours equal, shape (rates,).
        errors: e > 0 of each, at one time ηk of all of them, shape (rates, ...).

    Returns:
        p, shape (rates − 1, ...).

    Raises:
        InputError: A number out of range, or another number of errors.

    References:
        Kunin et al., arXiv:2012.04728, of whose flows these are the measure.

    Example:
        >>> print(convergence_orders([0.1, 0.05], [0.4, 0.1]))
        [2.]
    """
    rates = require_array("learning_rates", learning_rates, (None,))
    found = require_array("errors", errors, (len(rates),) + (None,) * max(0, np.ndim(errors) - 1))
    steps = np.diff(np.log(rates))
    require(
        len(steps) > 0 and bool(np.all(steps != 0)),
        "learning_rates has no two that differ, or neighbours that are equal",
        argument="learning_rates",
        value=rates.tolist(),
        remedy="give at least two, each another than the one before",
    )
    return np.diff(np.log(found), axis=0) / steps.reshape(-1, *(1,) * (found.ndim - 1))


def _squared(tree: Any) -> Any:
    """‖·‖² of a tree of arrays."""
    return sum(jax.numpy.sum(leaf**2) for leaf in jax.tree.leaves(tree))

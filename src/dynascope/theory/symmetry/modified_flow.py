"""Modified gradient flow: gradient flow on a modified loss that matches discrete steps to second order."""

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
    gives="the loss whose gradient flow matches heavy-ball steps to second order", exact=False, assumes=(SMALL_STEPS,)
)
def modified_loss(loss: Callable[..., Any], sgd: SGD) -> Callable[..., Any]:
    """Modified loss whose gradient flow matches heavy-ball steps to second order in the learning rate.

        L̃ = L/(1 − β) + η(1 + β)/(4(1 − β)³) ‖∇L‖²,   where L includes λ/2 ‖θ‖²

    At time ηk the flow θ' = −∇L̃ from `shifted_start` matches k steps d ← β d − η ∇L, θ ← θ + d from d = 0, with an
    error of O(η²). Gradient flow on L/(1 − β) alone has an error of O(η). The approximation requires
    `modified_flow_ratio` to be far below one; it fails at the edge of stability.

    Args:
        loss: L as a JAX function of the weights (an array or a tree of arrays) and any further arguments.
        sgd: η, β and λ.

    Returns:
        L̃, a function of the same arguments, in the precision of the loss.

    Raises:
        InputError: If a number is out of range, a batch size is given, or the loss is not callable.

    References:
        Kunin, Sagastuy-Breña, Ganguli, Yamins, Tanaka, arXiv:2012.04728, section 5; the form with
        momentum follows Kovachki, Stuart, arXiv:1906.04285.

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


@_covers(
    gives="the initial weights from which the modified flow matches heavy-ball steps",
    exact=False,
    assumes=(SMALL_STEPS,),
)
def shifted_start(start: FiniteNumbers, gradient: FiniteNumbers, sgd: SGD) -> Float[np.ndarray, "*shape"]:
    """Initial weights from which the flow on the modified loss matches heavy-ball steps from rest.

        θ_0 + ηβ/(1 − β)² (∇L(θ_0) + λ θ_0)

    The shift is the distance that the steps lose while momentum builds up during the first 1/(1 − β) steps. Without the
    shift, the modified flow has an error of O(η).

    Args:
        start: θ_0, any shape.
        gradient: ∇L(θ_0) without weight decay, in the same shape.
        sgd: η, β and λ.

    Returns:
        The shifted initial weights, with the shape of θ_0.

    Raises:
        InputError: If a number is out of range, a batch size is given, or the shapes do not match.

    References:
        Kunin et al., arXiv:2012.04728; the shift is derived here.

    Example:
        >>> print(shifted_start([1.0, -0.8], [2.0, -1.0], SGD(0.01, momentum=0.5)))
        [ 1.04 -0.82]
    """
    weights = np.asarray(start)
    slope = require_array("gradient", gradient, weights.shape)
    rate, decay, beta = steps_of(sgd)
    with np.errstate(all="ignore"):
        return weights + rate * beta / (1 - beta) ** 2 * (slope + decay * weights)


@_covers(gives="the ratio that must be small for the modified flow to be accurate")
def modified_flow_ratio(curvature: NonNegativeNumbers, sgd: SGD) -> Float[np.ndarray, "*shape"]:
    """Ratio that must be far below one for the modified flow to match the steps.

        η (‖H‖ + λ) / (1 − β)²

    Args:
        curvature: ‖H‖ ≥ 0, the largest curvature of the loss without weight decay, any shape.
        sgd: η, β and λ.

    Returns:
        The ratio, with the shape of the curvatures.

    Raises:
        InputError: If a number is out of range, or a batch size is given.

    References:
        Kunin et al., arXiv:2012.04728; Kovachki, Stuart, arXiv:1906.04285.

    Example:
        >>> print(modified_flow_ratio(5.0, SGD(0.01, momentum=0.5)).round(6))
        0.2
    """
    rate, decay, beta = steps_of(sgd)
    with np.errstate(all="ignore"):
        return np.asarray(rate / (1 - beta) ** 2 * (np.asarray(curvature) + decay))


@_covers(gives="the order in the learning rate at which an error vanishes")
def convergence_orders(learning_rates: PositiveNumbers, errors: PositiveNumbers) -> Float[np.ndarray, "pairs ..."]:
    """Convergence order p of errors e ∝ ηᵖ, estimated from each pair of neighbouring learning rates.

        p = ln(e_i/e_{i+1}) / ln(η_i/η_{i+1})

    Args:
        learning_rates: η > 0, at least two, with no equal neighbours, shape (rates,).
        errors: e > 0 for each learning rate, all at the same time ηk, shape (rates, ...).

    Returns:
        p, shape (rates − 1, ...).

    Raises:
        InputError: If a number is out of range, or the number of errors differs from the number of learning rates.

    References:
        Kunin et al., arXiv:2012.04728.

    Example:
        >>> print(convergence_orders([0.1, 0.05], [0.4, 0.1]))
        [2.]
    """
    rates = require_array("learning_rates", learning_rates, (None,))
    found = require_array("errors", errors, (len(rates),) + (None,) * max(0, np.ndim(errors) - 1))
    steps = np.diff(np.log(rates))
    require(
        len(steps) > 0 and bool(np.all(steps != 0)),
        "learning_rates has fewer than two values, or equal consecutive values",
        argument="learning_rates",
        value=rates.tolist(),
        remedy="give at least two learning rates, each different from the one before",
    )
    return np.diff(np.log(found), axis=0) / steps.reshape(-1, *(1,) * (found.ndim - 1))


def _squared(tree: Any) -> Any:
    """Squared norm of a tree of arrays."""
    return sum(jax.numpy.sum(leaf**2) for leaf in jax.tree.leaves(tree))

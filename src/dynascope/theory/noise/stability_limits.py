"""The largest curvatures at which training steps are stable: full batches, small batches, and Adam."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from annotated_types import Ge, Lt

from dynascope.theory.domain import covers
from dynascope.theory.sgd import SGD, Momentum, steps_of
from dynascope.validation.bounded import FiniteFloat, PositiveFloat

__all__ = ["batch_sharpness_limit", "preconditioned_sharpness_limit", "sharpness_limit"]


@covers(
    network="any, near a minimum",
    data="any, in full batches",
    start="any",
    gives="the largest curvature at which gradient descent with momentum is stable",
    reference="arXiv:2103.00065",
)
def sharpness_limit(sgd: SGD, *, nesterov: bool = False) -> float:
    """Largest curvature ρ at which gradient descent with momentum does not diverge along a mode.

        ρ + λ < 2(1 + β)/η,   or 2(1 + β)/(η(1 + 2β)) for Nesterov momentum

    The sharpness of a network trained with full batches tends to rise to this limit and to oscillate around it. With
    a dampening c of the momentum, pass η(1 − c) as the learning rate. The Nesterov step is that of PyTorch:
    v ← βv + g, θ ← θ − η(g + βv).

    Args:
        sgd: η, β, and λ of a coupled weight decay.
        nesterov: Whether the momentum is Nesterov's instead of the heavy ball.

    Returns:
        The limit of ρ without λ; not positive if the decay alone makes the steps diverge.

    Raises:
        InputError: If a number is out of range, or a batch size is given.

    References:
        Cohen, Kaur, Li, Kolter, Talwalkar, arXiv:2103.00065, section 2 and appendix B.

    Example:
        >>> [round(sharpness_limit(SGD(0.1, momentum=0.9), nesterov=each), 4) for each in (False, True)]
        [38.0, 13.5714]
    """
    rate, decay, beta = steps_of(sgd)
    with np.errstate(all="ignore"):
        return float(np.float64(2 * (1 + beta) / (1 + 2 * beta if nesterov else 1.0)) / rate - decay)


@covers(
    network="any",
    data="any, in small independent batches",
    start="any",
    gives="the batch sharpness at which small-batch SGD with momentum settles",
    reference="arXiv:2604.14108",
    exact=False,
)
def batch_sharpness_limit(learning_rate: PositiveFloat, momentum: Momentum = 0.0) -> float:
    """Batch sharpness E[gᵀHg]/E‖g‖² at which SGD with small batches and heavy-ball momentum becomes unstable.

        2(1 − β)/η

    g and H are the gradient and the Hessian of the loss of a batch. The noise of the batches dominates in this limit,
    and momentum amplifies the noise, so the limit falls with β. The limit of full batches, `sharpness_limit`, rises
    with β. For one mode whose curvature varies between batches, the second moment of the weights is stable iff
    ρ/(1 + β) + (b − ρ)/(1 − β) < 2/η, for the mean curvature ρ and b = E[ρ²]/ρ; both limits are special cases.

    Args:
        learning_rate: η > 0.
        momentum: β ≥ 0, below one.

    Raises:
        InputError: If a number is out of range.

    References:
        Andreyev, Ananthkumar, Walden, Poggio, Beneventano, arXiv:2604.14108; Andreyev, Beneventano, arXiv:2412.20553,
        without momentum.

    Example:
        >>> round(batch_sharpness_limit(0.1), 6), round(batch_sharpness_limit(0.1, momentum=0.9), 6)
        (20.0, 2.0)
    """
    with np.errstate(all="ignore"):
        return float(np.float64(2 * (1 - float(momentum))) / float(learning_rate))


@covers(
    network="any",
    data="any, in full or large batches",
    start="any",
    gives="the largest preconditioned curvature at which Adam is stable",
    reference="arXiv:2207.14484",
    exact=False,
)
def preconditioned_sharpness_limit(
    learning_rate: PositiveFloat, beta1: Annotated[FiniteFloat, Ge(0), Lt(1)] = 0.9
) -> float:
    """Largest curvature of the preconditioned loss at which Adam with a fixed preconditioner does not diverge.

        λ_max(P^(−½) H P^(−½)) < 2(1 + β₁)/((1 − β₁)η),   P = √v̂ + ε

    For β₁ = 0.9 the limit is 38/η. The preconditioned sharpness of full-batch Adam tends to rise to this limit and to
    stay there, because P adapts.

    Args:
        learning_rate: η > 0.
        beta1: β₁ ≥ 0, below one.

    Raises:
        InputError: If a number is out of range.

    References:
        Cohen, Ghorbani, Krishnan, Agarwal, Medapati, Badura, Suo, Cardoze, Nado, Dahl, Gilmer, arXiv:2207.14484.

    Example:
        >>> round(preconditioned_sharpness_limit(1e-3))
        38000
    """
    beta = float(beta1)
    with np.errstate(all="ignore"):
        return float(np.float64(2 * (1 + beta) / (1 - beta)) / float(learning_rate))

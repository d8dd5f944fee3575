"""Charge of a translation symmetry: a sum of weights that only weight decay changes."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import numpy as np
from annotated_types import Ge, Le, Lt
from jaxtyping import Float
from numpy.typing import ArrayLike

from dynascope.symmetry.step_rules import Rule
from dynascope.theory.domain import covers
from dynascope.theory.sgd import SGD
from dynascope.theory.symmetry.step_series import known_rule, per_step
from dynascope.validation import require, require_array, require_whole_numbers
from dynascope.validation.bounded import FiniteFloat, FiniteNumbers, NonNegativeNumbers, PositiveNumbers

__all__ = ["Dampening", "Momenta", "hyperparameters", "scheduled_translation", "translation_charge"]

Momenta: TypeAlias = Annotated[FiniteNumbers, Ge(0), Lt(1)]
Dampening: TypeAlias = Annotated[FiniteNumbers, Ge(0), Le(1)]

_NETWORK, _DATA = "any with a translation symmetry, such as softmax outputs", "any, in any batches"
_REFERENCE = "arXiv:2012.04728"


@covers(
    network=_NETWORK,
    data=_DATA,
    start="any",
    gives="the sum of the weights after any number of steps",
    reference=_REFERENCE,
)
def translation_charge(
    steps: NonNegativeNumbers,
    initial: FiniteNumbers,
    sgd: SGD,
    *,
    dampening: Annotated[FiniteFloat, Ge(0), Le(1)] = 0.0,
) -> Float[np.ndarray, "*steps *charge"]:
    """Sum s of the weights that a translation symmetry shifts, after n heavy-ball steps, exact at any learning rate.

        s_{k+1} = (1 + β − ηλ) s_k − β s_{k−1},   s_{−1} = s_0,   s = Σ_A θ for weights with ⟨∂L/∂θ, 1_A⟩ = 0

    With the larger root z of z² − (1 + β − ηλ) z + β, δ = 1 − z and R_n = (zⁿ − (β/z)ⁿ) / (z − β/z), the solution is

        s_n / s_0 = zⁿ + δ β/z R_n,

    and for complex roots z = √β exp(±iφ) it is β^(n/2) [cos nφ + (1 − β − ηλ)/2 sin nφ / (√β sin φ)]. The steps are d ←
    β d − η (∂L/∂θ + λ θ), θ ← θ + d. Both forms are accurate at a double root, for tiny ηλ and for any number of steps.

    Args:
        steps: Numbers of steps n ≥ 0, whole, any shape.
        initial: s_0, any shape.
        sgd: η, β and λ.
        dampening: PyTorch's dampening c, from zero to one, which multiplies gradients by 1 − c after the first step; it
            has no effect without momentum.

    Returns:
        The charges, with the step axes first.

    Raises:
        InputError: If a number is out of range, a batch size is given, or the numbers of steps are not whole.

    References:
        Kunin, Sagastuy-Breña, Ganguli, Yamins, Tanaka, arXiv:2012.04728, in discrete form.

    Example:
        >>> print(translation_charge([0, 50], 1.0, SGD(0.1, momentum=0.9, weight_decay=0.01)).round(9))
        [1.         0.64385662]
    """
    sgd.require_without_batches()
    counts = np.asarray(steps)
    require_whole_numbers("steps", counts)
    with np.errstate(all="ignore"):
        first = sgd.learning_rate * sgd.weight_decay
        later = first * (1 - dampening) if sgd.momentum > 0 else first
        share = _share(counts.ravel(), float(sgd.momentum), float(later), float(first))
        return np.asarray(np.multiply.outer(share.reshape(counts.shape), initial))


@covers(
    network=_NETWORK,
    data=_DATA,
    start="any",
    gives="the sum of the weights after every step of a schedule",
    reference=_REFERENCE,
)
def scheduled_translation(
    initial: FiniteNumbers,
    learning_rate: PositiveNumbers,
    *,
    optimizer: str = "heavy_ball",
    weight_decay: NonNegativeNumbers = 0.0,
    momentum: Momenta = 0.0,
    dampening: Dampening = 0.0,
) -> Float[np.ndarray, "steps ..."]:
    """Sum s of the weights that a translation symmetry shifts, after every step with varying hyperparameters.

    With PyTorch's momentum buffer v and m = Σ_A v, the law of each optimiser is

        heavy ball: m ← β m + (1 − c) λ s,  s ← s − η m,
        Nesterov:   m ← β m + λ s,  s ← s − η (λ s + β m),
        decoupled:  m ← β m,  s ← (1 − ηλ) s − η m.

    Args:
        initial: s_0, any shape.
        learning_rate: η > 0 of each step, shape (steps,).
        optimizer: "heavy_ball", which includes plain gradient descent, "nesterov" or "decoupled".
        weight_decay: λ ≥ 0, a number or one per step.
        momentum: β ≥ 0, below one, a number or one per step.
        dampening: c from zero to one, a number or one per step; as in PyTorch, it has no effect at the first step or
            without momentum.

    Returns:
        The charges before the first step and after each step, shape (steps + 1, ...).

    Raises:
        InputError: If a number is out of range, the arrays differ in length, or the charges obey no
            exact law under the optimiser.

    References:
        Kunin et al., arXiv:2012.04728, in discrete form.

    Example:
        >>> print(scheduled_translation(1.0, [0.1, 0.05], weight_decay=0.1))
        [1.      0.99    0.98505]
    """
    rule, start = known_rule(optimizer), np.asarray(initial)
    rates = require_array("learning_rate", learning_rate, (None,))
    decays, momenta, undamped = hyperparameters(len(rates), weight_decay, momentum, dampening, rule)
    path = np.empty((len(rates) + 1, *start.shape))
    path[0], buffer = start, np.zeros_like(start)
    with np.errstate(all="ignore"):
        for k, (rate, decay, beta, share) in enumerate(zip(rates, decays, momenta, undamped, strict=True)):
            charge, pull = path[k], decay * path[k]
            buffer = beta * buffer + (0.0 if rule == "decoupled" else share * pull)
            step = pull + beta * buffer if rule == "nesterov" else buffer
            path[k + 1] = charge - rate * (pull + step if rule == "decoupled" else step)
    return path


def hyperparameters(
    count: int, weight_decay: ArrayLike, momentum: ArrayLike, dampening: ArrayLike, optimizer: Rule
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """λ, β and 1 − c at each step; 1 − c is the fraction of the gradient that dampening retains."""
    decays = per_step("weight_decay", weight_decay, count)
    momenta = per_step("momentum", momentum, count)
    lost = per_step("dampening", dampening, count)
    require(
        optimizer != "nesterov" or not lost.any(),
        "dampening cannot be used with optimizer='nesterov'",
        argument="dampening",
        value=float(lost.max(initial=0.0)),
        remedy="set dampening to zero",
    )
    undamped = np.where((momenta > 0) & (np.arange(count) > 0), 1 - lost, 1.0)
    return decays, momenta, undamped


def _share(counts: np.ndarray, beta: float, later: float, first: float) -> np.ndarray:
    """s_n / s_0, where ηλ is `first` at the first step and `later` at all other steps."""
    root, total = np.sqrt(beta), 1 + beta - later
    # (1 + β − ηλ)² − 4β, factorised, because the difference cancels near a double root.
    discriminant = (((1 - beta) / (1 + root)) ** 2 - later) * ((1 + root) ** 2 - later)
    if discriminant < 0:
        spread = np.sqrt(-discriminant)
        angle = np.arctan2(spread, total)
        sine = np.sin(counts * angle) / spread * (1 - beta + later - 2 * first)
        return root**counts * (np.cos(counts * angle) + sine)
    spread = np.sqrt(discriminant)
    if total < 0:  # both roots are negative; the lower one has the larger modulus
        large = (total - spread) / 2
        lost = 1 - large
    else:
        lost = 2 * later / (1 - beta + later + spread)
        large = 1 - lost
    small = beta / large if large else 0.0
    power = np.exp(counts * np.log1p(-lost)) if 0 <= lost < 0.5 else large**counts
    return power + (lost * small - (first - later)) * _ratio(counts, power, large, small)


def _ratio(counts: np.ndarray, power: np.ndarray, large: float, small: float) -> np.ndarray:
    """(zⁿ − yⁿ)/(z − y) for the larger root z and the smaller root y, which have equal signs."""
    if large == 0:
        return np.where(counts == 1, 1.0, 0.0)
    log_ratio = np.log1p((small - large) / large)
    if np.isinf(log_ratio):  # the smaller root is negligible
        return np.where(counts > 0, power / large, 0.0)
    return power / large * (np.expm1(counts * log_ratio) / np.expm1(log_ratio) if log_ratio else counts)

"""Phase of a parametrisation: whether a two-layer network learns features in a scaling limit, and how fast."""

from __future__ import annotations

import dataclasses
import math
from typing import Literal, NamedTuple

from dynascope.errors import InputError
from dynascope.results.named_tuples import short_repr
from dynascope.theory.domain import covers
from dynascope.validation import checked, require
from dynascope.validation.bounded import FiniteFloat, NonNegativeFloat, PositiveFloat

__all__ = [
    "Hyperparameters",
    "Parametrisation",
    "Phase",
    "distinct_starts",
    "kernel_exponents",
    "learning_exponents",
    "phase",
    "phase_of_exponents",
    "phase_table",
    "stable_rates",
    "standard_parametrisations",
]

ZERO = 0.5  # a fitted exponent of smaller absolute value counts as zero; the exponents of the table are integers
_ROUNDING = 1e-9  # exponents that differ by less count as equal
_MODEL = {
    "network": "two-layer linear, f(x) = γ Σ uᵢ wᵢ·x, layer-wise rates, all powers of a scaling parameter",
    "data": "inputs on a line",
    "start": "independent Gaussian layers, or zero output",
    "reference": "arXiv:2401.07085",
    "exact": False,
}


class Hyperparameters(NamedTuple):
    """The hyperparameters of a parametrisation at one value of the scaling parameter.

    Attributes:
        width: d, the number of hidden neurons.
        multiplier: γ, the factor on the output.
        first_variance: σ_w², the variance of each initial weight of the first layer.
        second_variance: σ_u², the variance of each initial weight of the second layer.
        first_rate: η_w, the learning rate of the first layer.
        second_rate: η_u, the learning rate of the second layer.
    """

    width: int
    multiplier: float
    first_variance: float
    second_variance: float
    first_rate: float
    second_rate: float


@checked
@dataclasses.dataclass(frozen=True)
class Parametrisation:
    """Scaling exponents of the hyperparameters of a two-layer network for a scaling parameter κ → ∞.

    The network is f(x) = γ Σᵢ uᵢ σ(wᵢ·x). The input dimension, the data and the targets do not scale.

    Attributes:
        width: c_d ≥ 0, the exponent of the width d ~ κ^c_d; zero for a fixed width.
        multiplier: c_γ, the exponent of the factor γ ~ κ^c_γ on the output.
        first_variance: c_w, the exponent of the variance σ_w² ~ κ^c_w of the initial weights of the first layer.
        second_variance: c_u, the exponent of the variance σ_u² ~ κ^c_u of the initial weights of the second layer.
        first_rate: c_{η_w}, the exponent of the learning rate of the first layer.
        second_rate: c_{η_u}, the exponent of the learning rate of the second layer.
        zero_output: Whether the network is initially the zero function, because each neuron has a partner with the same
            wᵢ and the opposite uᵢ.

    Raises:
        InputError: If an exponent is not finite, or the exponent of the width is negative.

    Example:
        >>> Parametrisation(width=1.0, multiplier=-0.5).at(64.0)
        Hyperparameters(width=64, multiplier=0.125, first_variance=1.0, second_variance=1.0, first_rate=1.0,
        second_rate=1.0)
    """

    width: NonNegativeFloat = 0.0
    multiplier: FiniteFloat = 0.0
    first_variance: FiniteFloat = 0.0
    second_variance: FiniteFloat = 0.0
    first_rate: FiniteFloat = 0.0
    second_rate: FiniteFloat = 0.0
    zero_output: bool = False

    def at(self, scaling_parameter: PositiveFloat, *, width: PositiveFloat = 1.0) -> Hyperparameters:
        """Return the hyperparameters at a given κ; each is κ to the power of its exponent.

        Args:
            scaling_parameter: κ > 0.
            width: Prefactor of d = width · κ^c_d, which is rounded to an integer, or to an even integer if
                `zero_output` is set.
        """
        pairs = 2 if self.zero_output else 1
        grown = (self.multiplier, self.first_variance, self.second_variance, self.first_rate, self.second_rate)
        try:
            neurons = max(1, round(width * scaling_parameter**self.width / pairs)) * pairs
            return Hyperparameters(neurons, *(float(scaling_parameter**exponent) for exponent in grown))
        except OverflowError:
            raise InputError(
                f"scaling_parameter is {scaling_parameter:g}, so one of its powers overflows",
                argument="scaling_parameter",
                value=scaling_parameter,
                remedy="choose a value closer to 1",
            ) from None

    def _with_rates(self, exponent: float) -> Parametrisation:
        return dataclasses.replace(self, first_rate=_exact(exponent), second_rate=_exact(exponent))


class Phase(NamedTuple):
    """The phase of a parametrisation, and the exponents that determine it.

    Attributes:
        name: "kernel" or "learning" if learning takes a time of order one; "frozen" if this time diverges, "unstable"
            if it vanishes.
        target_exponent: T₁; the target contributes to the learning speed as κ^T₁.
        start_exponent: T₂; the initial weights contribute to the learning speed as κ^T₂.
        speed_exponent: Exponent of the learning speed 1/t_c, max(T₁, T₂).
        kernel_exponent: Exponent of the relative change of the tangent kernel during training; negative if the kernel
            is constant in the limit, zero if it changes by a factor of order one.
        equal_parts: Whether condition (29) of the paper holds, P/Q → 1: the growing and the shrinking parts of the
            initial weights become equally large.
        start_dominates: Whether condition (30) of the paper holds, T₁ < T₂: the initial weights dominate the learning
            speed.
    """

    name: Literal["kernel", "learning", "frozen", "unstable"]
    target_exponent: float
    start_exponent: float
    speed_exponent: float
    kernel_exponent: float
    equal_parts: bool
    start_dominates: bool

    __repr__ = short_repr


@covers(**_MODEL, gives="phase (kernel, learning, frozen, unstable); exponents of speed and of kernel change")
def phase(parametrisation: Parametrisation) -> Phase:
    """Determine the phase of a parametrisation: kernel, learning, frozen or unstable.

    For data on a line along the unit vector n, with target strength S, the learning speed 1/t_c obeys 1/t_c² ∝ η_u η_w
    γ² (S² + 4γ²PQ), with P, Q = ¼ Σ (c uᵢ ± vᵢ/c)², c⁴ = η_w/η_u, vᵢ = wᵢ·n. Hence 1/t_c ~ κ^max(T₁, T₂) with
    T₁ = c_γ + ½(c_{η_u} + c_{η_w}) and T₂ = 2c_γ + c_d + max(c_{η_w} + c_u, c_{η_u} + c_w). Training is stable if
    max(T₁, T₂) = 0. The network is then in the kernel phase if P/Q → 1 (29) and T₁ < T₂ (30), and otherwise in the
    learning phase. P/Q → 1 if the width grows, if c_{η_w} + c_u ≠ c_{η_u} + c_w, or if the initial output is zero,
    where P = Q.

    In the exact solution, the tangent kernel on the line changes by the factor √(S² + 4γ²PQ) / (γ(P + Q)). The factor
    differs from one by order κ^e, with e = T₁ − T₂ if T₁ ≥ T₂, and otherwise e = max(2(T₁ − T₂), −c_d − |Δ|),
    Δ = c_{η_w} + c_u − c_{η_u} − c_w. The second argument of the maximum is due to a nonzero initial output and is
    absent for zero output. In the kernel phase, e < 0.

    Args:
        parametrisation: The exponents.

    Returns:
        The phase and its exponents.

    References:
        Y. Xu, L. Ziyin, arXiv:2401.07085, equations 28 to 30 and theorem 2 (reconstructed). The exponent of the kernel
        change is derived here from theorem 1.

    Example:
        >>> found = phase(Parametrisation(width=1.0, multiplier=-0.5))
        >>> found.name, found.speed_exponent, found.kernel_exponent
        ('kernel', 0.0, -1.0)
    """
    p = parametrisation
    first, second = p.second_rate + p.first_variance, p.first_rate + p.second_variance
    from_target = p.multiplier + (p.first_rate + p.second_rate) / 2
    from_start = 2 * p.multiplier + p.width + max(first, second)
    speed = max(from_target, from_start)
    # Exponent at which P/Q approaches one; infinite if P = Q at initialisation.
    approach = math.inf if p.zero_output else p.width + abs(first - second)
    gap = _exact(from_target - from_start)
    kernel = gap if gap >= 0 else _exact(max(2 * gap, -approach))
    stable = "kernel" if kernel < 0 else "learning"
    name = stable if abs(speed) <= _ROUNDING else "unstable" if speed > 0 else "frozen"
    return Phase(name, from_target, from_start, _exact(speed), kernel, approach > _ROUNDING, gap < 0)


@covers(**_MODEL, gives="learning rates that make any initialisation stable")
def stable_rates(parametrisation: Parametrisation) -> Parametrisation:
    """Return the parametrisation with stable learning rates, equal for both layers.

    c_η = −max(c_γ, 2c_γ + c_d + max(c_u, c_w))

    Args:
        parametrisation: The exponents; the exponents of the learning rates are replaced.

    References:
        arXiv:2401.07085, corollary 1.

    Example:
        >>> phase(stable_rates(Parametrisation(width=1.0, multiplier=-1.0))).name
        'learning'
    """
    p = parametrisation
    return p._with_rates(-max(p.multiplier, 2 * p.multiplier - _critical_multiplier(p)))


@covers(**_MODEL, gives="multiplier and learning rates with which any initialisation learns features")
def learning_exponents(parametrisation: Parametrisation) -> Parametrisation:
    """Change the multiplier and learning rates of a parametrisation so that the network learns features.

    c_γ = −(c_d + max(c_u, c_w)), c_η = −c_γ for both layers

    Args:
        parametrisation: The exponents; only those of the width and the variances are kept.

    References:
        arXiv:2401.07085, corollary 2.

    Example:
        >>> turned = learning_exponents(standard_parametrisations()["Kaiming"])
        >>> turned.multiplier, turned.first_rate, phase(turned).name
        (-1.0, 1.0, 'learning')
    """
    multiplier = _critical_multiplier(parametrisation)
    return dataclasses.replace(parametrisation, multiplier=multiplier)._with_rates(-multiplier)


@covers(**_MODEL, gives="multiplier and learning rates with which any initialisation trains in the kernel phase")
def kernel_exponents(parametrisation: Parametrisation, *, multiplier: FiniteFloat | None = None) -> Parametrisation:
    """Change the multiplier and learning rates of a parametrisation so that the network is in the kernel phase.

    c_γ > −(c_d + max(c_u, c_w)), c_η = −2c_γ − c_d − max(c_u, c_w) for both layers

    Args:
        parametrisation: The exponents.
        multiplier: c_γ. By default, the value of the parametrisation if it is above the bound, and otherwise ½ above
            the bound.

    Raises:
        InputError: If the multiplier is not above the bound, or if P/Q → 1 (29) cannot hold, because the width is
            fixed, the variances have the same exponent, and the initial output is not zero.

    References:
        arXiv:2401.07085, corollary 3.

    Example:
        >>> turned = kernel_exponents(standard_parametrisations()["mean field"])
        >>> turned.multiplier, turned.first_rate, phase(turned).name
        (-0.5, 0.0, 'kernel')
    """
    p, bound = parametrisation, _critical_multiplier(parametrisation)
    require(
        p.zero_output or p.width + abs(p.first_variance - p.second_variance) > _ROUNDING,
        "parametrisation has a fixed width, equal variances and a nonzero initial output, so it has no kernel phase",
        argument="parametrisation",
        value=p.zero_output,
        remedy="set zero_output=True, let the width grow, or choose unequal variances",
    )
    if multiplier is None:
        multiplier = p.multiplier if p.multiplier > bound + _ROUNDING else bound + 0.5
    require(
        multiplier > bound + _ROUNDING,
        f"multiplier is {multiplier}",
        argument="multiplier",
        value=multiplier,
        remedy=f"choose a number above {bound:g}",
    )
    return dataclasses.replace(p, multiplier=multiplier)._with_rates(bound - 2 * multiplier)


def standard_parametrisations() -> dict[str, Parametrisation]:
    """Return the five common parametrisations, with learning rates that do not scale.

    The parametrisation for lazy training scales the output of a fixed-width network that is initially the zero
    function. The other parametrisations scale the width.

    References:
        arXiv:2401.07085, table 1.

    Example:
        >>> {name: phase(each).name for name, each in standard_parametrisations().items()}
        {'NTK': 'kernel', 'mean field': 'frozen', 'Xavier': 'learning', 'Kaiming': 'unstable', 'lazy': 'unstable'}
    """
    return {
        "NTK": Parametrisation(width=1.0, multiplier=-0.5),
        "mean field": Parametrisation(width=1.0, multiplier=-1.0),
        "Xavier": Parametrisation(width=1.0, first_variance=-1.0, second_variance=-1.0),
        "Kaiming": Parametrisation(width=1.0, second_variance=-1.0),
        "lazy": Parametrisation(multiplier=1.0, zero_output=True),
    }


def phase_table() -> dict[str, dict[str, Parametrisation]]:
    """Return each standard parametrisation ("default") and its variants "stable rates", "learning" and "kernel".

    References:
        arXiv:2401.07085, table 1, with its choice of the free multiplier for Xavier in the kernel phase.

    Example:
        >>> [phase(each).name for each in phase_table()["Kaiming"].values()]
        ['unstable', 'kernel', 'learning', 'kernel']
    """
    return {
        name: {
            "default": each,
            "stable rates": stable_rates(each),
            "learning": learning_exponents(each),
            "kernel": kernel_exponents(each, multiplier=1.0 if name == "Xavier" else None),
        }
        for name, each in standard_parametrisations().items()
    }


def distinct_starts() -> dict[str, Parametrisation]:
    """Return the entries of `phase_table` that remain distinct if their learning rates do not scale."""
    found: dict[str, Parametrisation] = {}
    for row in ("default", "learning", "kernel"):
        for name, rows in phase_table().items():
            entry = rows[row]._with_rates(0.0)
            if entry not in found.values():
                found[name if row == "default" else f"{name}, {row}"] = entry
    return found


def phase_of_exponents(kernel: float, speed: float) -> str:
    """Determine the phase from measured exponents of the kernel change and the learning speed."""
    if abs(speed) > ZERO:
        return "unstable" if speed > 0 else "frozen"
    return "kernel" if kernel < -ZERO else "learning"


def _critical_multiplier(p: Parametrisation) -> float:
    """Return −(c_d + max(c_u, c_w)), the exponent of γ at which T₁ = T₂ for equal rates."""
    return _exact(-(p.width + max(p.first_variance, p.second_variance)))


def _exact(exponent: float) -> float:
    """Return the exponent, or zero if it is zero up to rounding, and never a negative zero."""
    return 0.0 if abs(exponent) <= _ROUNDING else float(exponent)

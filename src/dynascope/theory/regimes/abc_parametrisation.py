"""abc-parametrisations: powers of the width that decide whether wide networks learn features (NTK, muP, standard)."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Literal, NamedTuple

from dynascope.errors import InputError
from dynascope.results.named_tuples import short_repr
from dynascope.theory.domain import covers
from dynascope.theory.regimes.phases import Parametrisation, phase_table
from dynascope.validation import checked, require
from dynascope.validation.bounded import FiniteFloat, PositiveInt

__all__ = [
    "ABCClass",
    "ABCParametrisation",
    "WidthFactors",
    "abc_class",
    "abc_of_two_layers",
    "abc_parametrisations",
]

_ROUNDING = 1e-9  # exponents that differ by less count as equal


class WidthFactors(NamedTuple):
    """The factors of an abc-parametrisation at one width, relative to the base width.

    Attributes:
        multipliers: n^(−a_l) for each layer, shape (hidden layers + 1,).
        deviations: n^(−b_l), the factor on the standard deviation of the initial weights of each layer.
        learning_rate: n^(−c), the factor on the learning rate.
    """

    multipliers: tuple[float, ...]
    deviations: tuple[float, ...]
    learning_rate: float


@checked
@dataclasses.dataclass(frozen=True)
class ABCParametrisation:
    """Width exponents of multipliers, initial weights and learning rate of a network with L hidden layers.

    The matrix of layer l is W_l = n^(−a_l) w_l for hidden width n. The trained weights w_l are initially Gaussian with
    variance n^(−2 b_l), and their learning rate under SGD is η n^(−c). The numbers of inputs and outputs do not scale.
    Layers 2 to L share their exponents. A shift (a_l, b_l, c) → (a_l + s, b_l − s, c − 2 s) of all layers changes no
    function during training.

    Attributes:
        first_multiplier: a₁.
        hidden_multiplier: a_l for 2 ≤ l ≤ L; not used if L = 1.
        last_multiplier: a_{L+1}.
        first_deviation: b₁.
        hidden_deviation: b_l for 2 ≤ l ≤ L; not used if L = 1.
        last_deviation: b_{L+1}.
        learning_rate: c.
        hidden_layers: L ≥ 1.

    Raises:
        InputError: If an exponent is not finite, or there is no hidden layer.

    References:
        G. Yang, E. J. Hu, Feature Learning in Infinite-Width Neural Networks, arXiv:2011.14522, section 3.

    Example:
        >>> abc_parametrisations()["NTK"].at(64)
        WidthFactors(multipliers=(1.0, 0.125, 0.125), deviations=(1.0, 1.0, 1.0), learning_rate=1.0)
    """

    first_multiplier: FiniteFloat = 0.0
    hidden_multiplier: FiniteFloat = 0.0
    last_multiplier: FiniteFloat = 0.0
    first_deviation: FiniteFloat = 0.0
    hidden_deviation: FiniteFloat = 0.0
    last_deviation: FiniteFloat = 0.0
    learning_rate: FiniteFloat = 0.0
    hidden_layers: PositiveInt = 2

    @property
    def multipliers(self) -> tuple[float, ...]:
        """a_l of each layer, shape (L + 1,)."""
        return (self.first_multiplier, *(self.hidden_multiplier,) * (self.hidden_layers - 1), self.last_multiplier)

    @property
    def deviations(self) -> tuple[float, ...]:
        """b_l of each layer, shape (L + 1,)."""
        return (self.first_deviation, *(self.hidden_deviation,) * (self.hidden_layers - 1), self.last_deviation)

    def at(self, width: PositiveInt, *, base_width: PositiveInt = 1) -> WidthFactors:
        """Return the factors at a width.

        Args:
            width: n ≥ 1.
            base_width: Width at which all factors are one, so that parametrisations coincide there.

        Raises:
            InputError: If a power of the width overflows.
        """
        ratio = width / base_width
        try:
            return WidthFactors(
                tuple(ratio**-a for a in self.multipliers),
                tuple(ratio**-b for b in self.deviations),
                ratio**-self.learning_rate,
            )
        except OverflowError:
            raise InputError(
                f"width is {width}, so one of its powers overflows",
                argument="width",
                value=width,
                remedy="choose a width closer to base_width, or exponents closer to zero",
            ) from None

    def shifted(self, shift: FiniteFloat) -> ABCParametrisation:
        """Return the parametrisation (a_l + s, b_l − s, c − 2 s), with the same function during training.

        Args:
            shift: s.
        """
        return ABCParametrisation(
            *(a + shift for a in (self.first_multiplier, self.hidden_multiplier, self.last_multiplier)),
            *(b - shift for b in (self.first_deviation, self.hidden_deviation, self.last_deviation)),
            learning_rate=self.learning_rate - 2 * shift,
            hidden_layers=self.hidden_layers,
        )


class ABCClass(NamedTuple):
    """The infinite-width limit of an abc-parametrisation, and the exponents that determine it.

    Attributes:
        name: "feature learning" or "kernel" for a stable and nontrivial limit; "trivial" if the function does not
            change; "unstable" if features or outputs diverge or vanish at initialisation or diverge in training.
        feature_exponent: Exponent −r of the change of the features, ‖Δh‖ ~ n^(−r); zero for feature learning.
        output_exponent: Exponent of the change of the output, zero for a stable and nontrivial limit.
        layer_exponents: Exponents of the changes of all layers in training, shape (hidden layers + 1,): −r_l of hidden
            layer l, with the minimum in r over the layers up to l, and the exponent of the output.
        violated: The violated conditions of stability.
    """

    name: Literal["feature learning", "kernel", "trivial", "unstable"]
    feature_exponent: float
    output_exponent: float
    layer_exponents: tuple[float, ...]
    violated: tuple[str, ...]

    __repr__ = short_repr


@covers(
    network="MLP of any depth, hidden layers of equal width n → ∞, smooth activation",
    data="any",
    start="Gaussian, trained by SGD for a number of steps that does not scale",
    gives="limit of an abc-parametrisation (feature learning, kernel, trivial, unstable)",
    reference="arXiv:2011.14522",
    exact=False,
)
def abc_class(parametrisation: ABCParametrisation) -> ABCClass:
    """Classify the infinite-width limit of an abc-parametrisation under SGD.

        r = min(a_{L+1} + b_{L+1}, 2a_{L+1} + c) + c − 1 + min_{l ≤ L}(2a_l + [l = 1])

    The limit is stable if a₁ + b₁ = 0, a_l + b_l = ½ for 2 ≤ l ≤ L, a_{L+1} + b_{L+1} ≥ ½, r ≥ 0, 2a_{L+1} + c ≥ 1 and
    a_{L+1} + b_{L+1} + r ≥ 1. It is nontrivial if one of the last two inequalities is an equality. A stable and
    nontrivial limit learns features if r = 0, and is a kernel limit if r > 0. Adam requires other exponents, which
    this function does not cover.

    Args:
        parametrisation: The exponents.

    Returns:
        The class and its exponents.

    References:
        arXiv:2011.14522, theorem 3.3, corollary 3.9 and their proofs.

    Example:
        >>> {name: abc_class(each).name for name, each in abc_parametrisations().items() if each.hidden_layers == 2}
        {'NTK': 'kernel', 'muP': 'feature learning', 'standard': 'unstable', 'standard, rate 1/n': 'kernel'}
    """
    p, c = parametrisation, parametrisation.learning_rate
    first, last = p.first_multiplier + p.first_deviation, p.last_multiplier + p.last_deviation
    terms = (2 * a + (layer == 0) for layer, a in enumerate(p.multipliers[:-1]))
    # The features of a layer change with the weights of all layers before it, of which the fastest dominates.
    exponents = [min(last, 2 * p.last_multiplier + c) + c - 1 + least for least in itertools.accumulate(terms, min)]
    r = exponents[-1]
    last_layer, hidden_layers = 2 * p.last_multiplier + c - 1, last + r - 1
    hidden = p.hidden_multiplier + p.hidden_deviation
    holds = {
        "the first hidden layer has order one: a₁ + b₁ = 0": abs(first) <= _ROUNDING,
        "the other hidden layers have order one: a_l + b_l = ½": p.hidden_layers == 1 or abs(hidden - 0.5) <= _ROUNDING,
        "the initial output is finite: a_{L+1} + b_{L+1} ≥ ½": last >= 0.5 - _ROUNDING,
        "the features stay finite: r ≥ 0": r >= -_ROUNDING,
        "the last layer changes the output by a finite amount: 2a_{L+1} + c ≥ 1": last_layer >= -_ROUNDING,
        "the features change the output by a finite amount: a_{L+1} + b_{L+1} + r ≥ 1": hidden_layers >= -_ROUNDING,
    }
    violated = tuple(condition for condition, satisfied in holds.items() if not satisfied)
    output = min(last_layer, hidden_layers)
    if violated:
        name = "unstable"
    elif output > _ROUNDING:
        name = "trivial"
    else:
        name = "kernel" if r > _ROUNDING else "feature learning"
    layers = (*(_exact(-each) for each in exponents), _exact(-output))
    return ABCClass(name, _exact(-r), _exact(-output), layers, violated)


@covers(
    network="two-layer, homogeneous activation of degree one, width n",
    data="any",
    start="Gaussian",
    gives="abc-parametrisation with the same function during training",
    reference="arXiv:2011.14522",
)
def abc_of_two_layers(parametrisation: Parametrisation) -> ABCParametrisation:
    """Return the abc-parametrisation that is equivalent to a two-layer parametrisation by width.

    A homogeneous activation of degree one allows moving a factor from the first to the second layer. The preactivations
    are brought to order one, so that a₁ + b₁ = 0:

        a₁ = ½ (c_w − c_{η_w}),  b₁ = −a₁,  a₂ = −c_γ − ½ (c_w + c_{η_u}),  b₂ = ½ (c_{η_u} − c_u),  c = 0.

    Args:
        parametrisation: The exponents, with c_d = 1, so that κ is the width.

    Raises:
        InputError: If the width does not grow as κ, or the network is initially the zero function.

    References:
        Derived here; arXiv:2401.07085, table 1, for the two-layer parametrisations.

    Example:
        >>> xavier = abc_of_two_layers(phase_table()["Xavier"]["learning"])
        >>> xavier.multipliers, xavier.deviations, xavier.learning_rate  # muP
        ((-0.5, 0.5), (0.5, 0.5), 0.0)
    """
    p = parametrisation
    require(
        abs(p.width - 1) <= _ROUNDING,
        f"parametrisation.width is {p.width:g}, but the exponents of an abc-parametrisation are powers of the width",
        argument="parametrisation.width",
        value=p.width,
        remedy="divide all exponents by the exponent of the width, so that it is 1",
    )
    require(
        not p.zero_output,
        "parametrisation.zero_output is set, but an abc-parametrisation draws all weights independently",
        argument="parametrisation.zero_output",
        value=p.zero_output,
        remedy="set zero_output=False",
    )
    first = (p.first_variance - p.first_rate) / 2
    last = -p.multiplier - (p.first_variance + p.second_rate) / 2
    return ABCParametrisation(
        first_multiplier=_exact(first),
        last_multiplier=_exact(last),
        first_deviation=_exact(-first),
        last_deviation=_exact((p.second_rate - p.second_variance) / 2),
        hidden_layers=1,
    )


def abc_parametrisations() -> dict[str, ABCParametrisation]:
    """Return the common abc-parametrisations by name.

    "NTK", "muP", "standard" (learning rate of order one) and "standard, rate 1/n" have two hidden layers. "mean field"
    has one hidden layer, as have the variants of the initialisations of Kaiming and Xavier: "+" has the multiplier and
    rate with which it learns features, and "−" those with which it is a kernel limit of a linear network.

    References:
        arXiv:2011.14522, table 1; arXiv:2401.07085, corollaries 2 and 3, for Kaiming and Xavier.

    Example:
        >>> found = abc_class(abc_parametrisations()["standard, rate 1/n"])
        >>> found.name, found.feature_exponent, found.layer_exponents
        ('kernel', -0.5, (-1.5, -0.5, 0.0))
    """
    table = phase_table()
    pairs = ((name, sign, row) for name in ("Kaiming", "Xavier") for sign, row in (("+", "learning"), ("−", "kernel")))
    return {
        "NTK": ABCParametrisation(0.0, 0.5, 0.5),
        "muP": ABCParametrisation(-0.5, 0.0, 0.5, 0.5, 0.5, 0.5),
        "standard": ABCParametrisation(0.0, 0.0, 0.0, 0.0, 0.5, 0.5),
        "standard, rate 1/n": ABCParametrisation(0.0, 0.0, 0.0, 0.0, 0.5, 0.5, 1.0),
        "mean field": ABCParametrisation(last_multiplier=1.0, learning_rate=-1.0, hidden_layers=1),
        **{f"{name}{sign}": abc_of_two_layers(table[name][row]) for name, sign, row in pairs},
    }


def _exact(exponent: float) -> float:
    """Return the exponent, or zero if it is zero up to rounding, and never a negative zero."""
    return 0.0 if abs(exponent) <= _ROUNDING else float(exponent)

"""How many charges gradient flow conserves, whatever the data and the loss: closed forms, by the parts of a network."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple

from annotated_types import MinLen

from dynascope.results.named_tuples import short_repr
from dynascope.theory.domain import covers
from dynascope.validation import require
from dynascope.validation.bounded import PositiveInt

__all__ = [
    "LawCount",
    "attention_laws",
    "homogeneous_laws",
    "normalization_laws",
    "softmax_laws",
    "two_layer_linear_laws",
]

_COUNT, _NOETHER = "arXiv:2307.00144", "arXiv:2012.04728"
_Normalization = Literal["batch", "layer", "rms"]
_covers = functools.partial(covers, data="any", start="any")


class LawCount(NamedTuple):
    """How many independent conservation laws there are.

    Attributes:
        bound: D − dim W, with W spanned by the gradients of the outputs at one point, which bounds the number.
        exact: D − dim Lie(W), with all their Lie brackets.
    """

    bound: int
    exact: int

    __repr__ = short_repr


@_covers(
    network="two-layer linear, any widths", gives="how many independent conservation laws there are", reference=_COUNT
)
def two_layer_linear_laws(outputs: PositiveInt, inputs: PositiveInt, width: PositiveInt) -> LawCount:
    """N = r(r + 1)/2 where n + m ≥ r, and s(2r + 1 − s)/2 with s = n + m else, of f(x) = U Vᵀ x, U (n, r), V (m, r).

    The bound is (n + m) r − q (n + m − q) with q = min(n, m, r), where the products U Vᵀ that are near make up
    q (n + m − q) dimensions.

    Args:
        outputs: n, at least one.
        inputs: m, at least one.
        width: r, at least one.

    Raises:
        InputError: A number that is no positive integer.

    References:
        Marcotte, Gribonval, Peyré, arXiv:2307.00144.

    Example:
        >>> two_layer_linear_laws(2, 1, 4)
        LawCount(bound=10, exact=9)
    """
    n, m, r = outputs, inputs, width
    both, rank = n + m, min(n, m, r)
    exact = r * (r + 1) // 2 if both >= r else both * (2 * r + 1 - both) // 2
    return LawCount(both * r - rank * (both - rank), exact)


@_covers(
    network="any of homogeneous units, such as ReLU",
    gives="how many conservation laws hidden neurons have",
    reference=_COUNT,
)
def homogeneous_laws(widths: Annotated[Sequence[PositiveInt], MinLen(1)]) -> int:
    """One law for each hidden unit of σ(cz) = c^κ σ(z), κ ‖a‖² − ‖w‖² − b² of the weights a out of it, w and b into it.

    Units of another kind, such as tanh, have none. Linear ones have more: `two_layer_linear_laws`.

    Args:
        widths: Number of neurons of each hidden layer, each at least one.

    Returns:
        The number of laws.

    Raises:
        InputError: A width that is no positive integer, or none.

    References:
        Marcotte, Gribonval, Peyré, arXiv:2307.00144; Kunin et al., arXiv:2012.04728.

    Example:
        >>> homogeneous_laws([100, 50])
        150
    """
    return sum(widths)


@_covers(
    network="any with softmax outputs", gives="how many conservation laws a softmax output has", reference=_NOETHER
)
def softmax_laws(fan_in: PositiveInt, *, bias: bool = True) -> int:
    """One law for each column of the last weights, its sum Σ_o W[o, i], and one for the sum of the biases.

    Args:
        fan_in: Number of neurons before the last layer, at least one.
        bias: Whether the last layer has one.

    Returns:
        The number of laws, fan-in + 1 with a bias.

    Raises:
        InputError: A number that is no positive integer.

    References:
        Kunin, Sagastuy-Breña, Ganguli, Yamins, Tanaka, arXiv:2012.04728, section 3.

    Example:
        >>> softmax_laws(4)
        5
    """
    return fan_in + bool(bias)


@_covers(
    network="any with normalization",
    gives="how many conservation laws the weights before a normalization have",
    reference=_NOETHER,
)
def normalization_laws(
    kind: _Normalization, channels: PositiveInt, fan_in: PositiveInt, *, bias: bool = True, gain: bool = False
) -> int:
    """Laws of weights W (channels, fan-in) and biases b before a normalization at ε = 0.

    Batch norm has one for each channel, ‖w_c‖², and one for its bias, which does not move at all. Layer norm has
    ‖W‖² + ‖b‖², the sum of each column of W, and the sum of b; RMS norm has the first alone. A gain γ and a shift that
    linear layers or homogeneous units read, with their weights a, add γ² + shift² − ‖a‖² for each channel.

    Args:
        kind: "batch", "layer" or "rms".
        channels: Number of channels that are normalized, at least one.
        fan_in: Number of inputs of each, at least one.
        bias: Whether the layer before has one.
        gain: Whether the normalization has a gain.

    Returns:
        The number of laws.

    Raises:
        InputError: A number that is no positive integer, or another kind.

    References:
        Kunin, Sagastuy-Breña, Ganguli, Yamins, Tanaka, arXiv:2012.04728, section 3.

    Example:
        >>> normalization_laws("batch", 3, 5), normalization_laws("layer", 3, 5), normalization_laws("rms", 3, 5)
        (6, 7, 1)
    """
    has = bool(bias)
    before = {"batch": channels * (1 + has), "layer": 1 + fan_in + has, "rms": 1}[kind]
    return before + channels * bool(gain)


@_covers(
    network="softmax attention, any number of heads", gives="how many conservation laws attention has", reference=_COUNT
)
def attention_laws(
    width: PositiveInt,
    head_width: PositiveInt,
    *,
    heads: PositiveInt = 1,
    key_value_heads: PositiveInt | None = None,
    value_width: PositiveInt | None = None,
    key_bias: bool = False,
    rotary: bool = False,
) -> int:
    """The laws Σ_h W_Q W_Qᵀ − W_K W_Kᵀ and W_V W_Vᵀ − Σ_h W_Oᵀ W_O of each head of keys and values, and b_K itself.

    Each is a symmetric matrix, d_k (d_k + 1)/2 laws, as in a two-layer linear network of as many inputs and outputs as
    the residual stream has. Rotary positions leave one law for each pair of coordinates of queries and keys. A bias of
    the keys cancels in the softmax, and so it does not move; with rotary positions it does.

    Args:
        width: Width d of the residual stream, at least one.
        head_width: Width d_k of queries and keys, at least one; even with rotary positions.
        heads: Number of heads, at least one.
        key_value_heads: Number of heads of keys and values, a divisor of the heads; as many as heads if not given.
        value_width: Width d_v of values, at least one; d_k if not given.
        key_bias: Whether keys have a bias.
        rotary: Whether queries and keys are turned by their positions.

    Returns:
        The number of laws.

    Raises:
        InputError: A number that is no positive integer, or that does not fit.

    References:
        Marcotte, Gribonval, Peyré, arXiv:2307.00144, whose count of linear layers it is.

    Example:
        >>> attention_laws(2, 2), attention_laws(768, 64, heads=12), attention_laws(768, 64, heads=12, rotary=True)
        (6, 49920, 25344)
    """
    shared = heads if key_value_heads is None else key_value_heads
    values = head_width if value_width is None else value_width
    require(
        heads % shared == 0,
        f"{heads} heads share {shared} heads of keys and values",
        argument="key_value_heads",
        value=shared,
        remedy="give a divisor of the heads",
    )
    require(
        not rotary or head_width % 2 == 0,
        f"head_width is {head_width}, and rotary positions turn pairs",
        argument="head_width",
        value=head_width,
        remedy="give an even number",
    )
    readers = width * (heads // shared)
    linear = two_layer_linear_laws(readers, width, head_width).exact
    scores = head_width // 2 if rotary else linear
    biases = head_width * (bool(key_bias) and not rotary)
    return shared * (scores + biases + two_layer_linear_laws(readers, width, values).exact)

"""How the layers of a network lie to each other and to the data."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple

from dynascope.probes.alignment.chain import check_chain
from dynascope.probes.alignment.vectors import largest, overlap, top_directions
from dynascope.results.named_tuples import short_repr
from dynascope.validation import array_namespace, require, require_axes, require_finite_values

__all__ = ["DataAlignment", "LayerAlignment", "data_alignment", "layer_alignment"]


class LayerAlignment(NamedTuple):
    """Alignment of each layer with the next, with `time` in front where the weights have it.

    Attributes:
        layer_alignment: |⟨v_ℓ, u_{ℓ+1}⟩| over `layer` 1 … L−1, zero where either layer vanishes.
        gap: The smaller 1 − s_2/s_1 of the two layers, likewise.
    """

    layer_alignment: Annotated[Any, "time layer"]
    gap: Annotated[Any, "time layer"]

    __repr__ = short_repr


class DataAlignment(NamedTuple):
    """Alignment of the outer layers with the data, a number or over `time` where the weights have it.

    Attributes:
        input_alignment: |⟨u_1(W_1), e⟩|, zero where the layer or the moment vanishes.
        target_alignment: |⟨v_1(W_L), o⟩|, likewise.
    """

    input_alignment: Annotated[Any, "time"]
    target_alignment: Annotated[Any, "time"]

    __repr__ = short_repr


def layer_alignment(weights: Sequence[Any]) -> LayerAlignment:
    """Cosine |⟨v_ℓ, u_{ℓ+1}⟩| between the strongest output direction of each layer and input direction of the next.

    With W_ℓ = Σ_k s_k u_k v_kᵀ acting as x @ W_ℓ, u_1 and v_1 are the top left and right singular vectors. Singular
    vectors have no sign, so the cosine is its absolute value, between zero and one. Where the two largest singular
    values of a layer are equal its top vectors are not unique and the alignment means nothing; the `gap` tells.

    Cost: a singular value decomposition of each matrix, about 10 a b min(a, b) operations for shape (a, b), and memory
    for 2 (a + b) min(a, b) numbers, at each time.

    Args:
        weights: W_1 … W_L, L ≥ 2, shapes (a_ℓ, a_{ℓ+1}), all with the same leading time axis or all without. All arrays
            are of one library: NumPy, JAX or PyTorch.

    Raises:
        InputError: Fewer than two layers, shapes that do not fit, or values that are not finite (not seen while JAX
            traces).

    References:
        Ji & Telgarsky, Gradient descent aligns the layers of deep linear networks, arXiv:1810.02032.

    Example:
        >>> import numpy as np
        >>> layers = [np.diag([1.0, 0.5]), np.array([[3.0], [4.0]])]
        >>> layer_alignment(layers)
        LayerAlignment(layer_alignment=[0.6], gap=[0.5])
    """
    xp = check_chain(weights, least=2)
    tops = [top_directions(each) for each in weights]
    pairs = list(itertools.pairwise(tops))
    cosines = [overlap(one[1], other[0]) for one, other in pairs]
    gaps = [xp.minimum(one[2], other[2]) for one, other in pairs]
    return LayerAlignment(xp.stack(cosines, axis=-1), xp.stack(gaps, axis=-1))


def data_alignment(
    weights: Sequence[Any], inputs: Any, targets: Any, *, direction: Literal["correlation", "data"] = "correlation"
) -> DataAlignment:
    """Cosines between the first layer and the inputs, and between the last layer and the targets.

    `input_alignment` = |⟨u_1(W_1), e⟩| and `target_alignment` = |⟨v_1(W_L), o⟩|, where e and o are the top left and
    right singular vectors of E[x yᵀ] ("correlation", what a linear network learns first), or the strongest directions
    of E[x xᵀ] and of E[y yᵀ] ("data"). Moments are about zero: centre the data for covariances.

    Cost: 2ndc operations, or 2n(d² + c²) for "data", and the decompositions of the two layers and of the moments, which
    `layer_alignment` states; memory for a copy of the data besides.

    Args:
        weights: W_1 … W_L, L ≥ 1, as for `layer_alignment`.
        inputs: x, shape (n, d), of the library of the weights.
        targets: y, shape (n, c).
        direction: "correlation" or "data".

    Raises:
        InputError: As `layer_alignment`, data that do not fit the weights, or an unknown direction.

    Example:
        >>> import numpy as np
        >>> x, y = np.eye(2), np.array([[3.0], [4.0]])
        >>> data_alignment([np.array([[1.0], [0.0]]), np.ones((1, 1))], x, y)
        DataAlignment(input_alignment=0.6, target_alignment=1)
    """
    check_chain(weights, least=1)
    array_namespace(weights[0], inputs, targets)
    expected = (weights[0].shape[-2], weights[-1].shape[-1])
    for name, values in (("inputs", inputs), ("targets", targets)):
        require_finite_values(name, values, floating=True)
        require_axes(name, values, 2)
    require(
        inputs.shape[0] == targets.shape[0],
        f"there are {inputs.shape[0]} inputs and {targets.shape[0]} targets",
        argument="targets",
        value=tuple(targets.shape),
        remedy="give inputs (n, d) and targets (n, c) of the same samples",
    )
    got = (inputs.shape[1], targets.shape[1])
    require(
        got == expected,
        f"the network maps {expected[0]} inputs to {expected[1]} outputs and the data {got[0]} to {got[1]}",
        argument="inputs",
        value=got,
        remedy="give the data that the network was trained on",
    )
    # Divided by their largest entries, as the square of a small number may vanish.
    x, y = inputs / largest(inputs, (0, 1)), targets / largest(targets, (0, 1))
    if direction == "correlation":
        input_direction, target_direction, _ = top_directions(x.T @ y)
    else:
        input_direction, target_direction = top_directions(x.T @ x)[0], top_directions(y.T @ y)[0]
    return DataAlignment(
        overlap(top_directions(weights[0])[0], input_direction),
        overlap(top_directions(weights[-1])[1], target_direction),
    )

"""Alignment of consecutive layers of a network, and of its outer layers with the data."""

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
    """Alignment of each layer with the next, with a leading `time` axis if the weights have one.

    Attributes:
        layer_alignment: |⟨v_ℓ, u_{ℓ+1}⟩| over `layer` 1 … L−1, for the top output direction v_ℓ of one layer and the
            top input direction u_{ℓ+1} of the next; zero if either layer vanishes.
        gap: The smaller relative gap 1 − s_2/s_1 of the two layers, over the same axis.
    """

    layer_alignment: Annotated[Any, "time layer"]
    gap: Annotated[Any, "time layer"]

    __repr__ = short_repr


class DataAlignment(NamedTuple):
    """Alignment of the outer layers with the data, as a scalar or over `time` if the weights have a time axis.

    Attributes:
        input_alignment: |⟨u_1(W_1), e⟩| for the top direction e of the inputs; zero if the layer or the moment
            vanishes.
        target_alignment: |⟨v_1(W_L), o⟩| for the top direction o of the targets; zero if the layer or the moment
            vanishes.
    """

    input_alignment: Annotated[Any, "time"]
    target_alignment: Annotated[Any, "time"]

    __repr__ = short_repr


def layer_alignment(weights: Sequence[Any]) -> LayerAlignment:
    """Compute the cosine between the top output direction of each layer and the top input direction of the next.

        |⟨v_ℓ, u_{ℓ+1}⟩|

    Layers compute x @ W_ℓ with W_ℓ = Σ_k s_k u_k v_kᵀ, so the top input and output directions are the top left and
    right singular vectors. The sign of a singular vector is arbitrary, so the absolute value of the cosine is returned.
    If the two largest singular values of a layer are equal, its top vectors are not unique and the alignment is
    meaningless; check the `gap`.

    Cost: one singular value decomposition per matrix and time, with about 10 a b min(a, b) operations and memory for 2
    (a + b) min(a, b) numbers for shape (a, b).

    Args:
        weights: W_1 … W_L, L ≥ 2, shapes (a_ℓ, a_{ℓ+1}), all with the same leading time axis or all without. All arrays
            must come from one library: NumPy, JAX or PyTorch.

    Raises:
        InputError: If there are fewer than two layers, shapes do not match, or values are not finite (not checked under
            JAX tracing).

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
    """Compute the cosines between the first layer and the inputs, and between the last layer and the targets.

    `input_alignment` = |⟨u_1(W_1), e⟩| and `target_alignment` = |⟨v_1(W_L), o⟩|. For "correlation", e and o are the top
    left and right singular vectors of E[x yᵀ], which a linear network learns first. For "data", they are the top
    eigenvectors of E[x xᵀ] and E[y yᵀ]. The moments are not centred; to use covariances, centre the data.

    Cost: 2ndc operations, or 2n(d² + c²) for "data", plus the decompositions of the two layers and the moments (see
    `layer_alignment`); memory for a copy of the data.

    Args:
        weights: W_1 … W_L, L ≥ 1, as for `layer_alignment`.
        inputs: x, shape (n, d), from the same library as the weights.
        targets: y, shape (n, c).
        direction: "correlation" or "data".

    Raises:
        InputError: As for `layer_alignment`, or if the data do not match the weights or the direction is unknown.

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
        f"inputs has length {inputs.shape[0]}, but targets has length {targets.shape[0]}",
        argument="targets",
        value=tuple(targets.shape),
        remedy="give inputs of shape (n, d) and targets of shape (n, c) for the same samples",
    )
    got = (inputs.shape[1], targets.shape[1])
    require(
        got == expected,
        f"the data have input and output dimensions {got}, but the network has dimensions {expected}",
        argument="inputs",
        value=got,
        remedy="give the data on which the network was trained",
    )
    # Divide by the largest entries, because squares of small numbers can underflow.
    x, y = inputs / largest(inputs, (0, 1)), targets / largest(targets, (0, 1))
    if direction == "correlation":
        input_direction, target_direction, _ = top_directions(x.T @ y)
    else:
        input_direction, target_direction = top_directions(x.T @ x)[0], top_directions(y.T @ y)[0]
    return DataAlignment(
        overlap(top_directions(weights[0])[0], input_direction),
        overlap(top_directions(weights[-1])[1], target_direction),
    )

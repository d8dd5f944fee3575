"""Utility of a single neuron aligned with an irreducible representation, on the composition of group elements."""

from __future__ import annotations

import math
from typing import Annotated, TypeAlias

import numpy as np
from annotated_types import Interval, IsFinite
from jaxtyping import Float
from numpy.typing import ArrayLike

from dynascope.groups.encodings import valid_encoding
from dynascope.groups.representations import Irrep, irreducible_representations
from dynascope.groups.tables import Group
from dynascope.theory.finite_answers import finite_answers
from dynascope.validation import require, require_shape

__all__ = ["Encoding", "SequenceLength", "composition_utility", "maximal_utility", "maximisers"]

Encoding: TypeAlias = IsFinite[Float[np.ndarray, " n"]]
SequenceLength: TypeAlias = Annotated[int, Interval(ge=2, le=20)]

# Fourier coefficients below this fraction of the size of the encoding are rounding errors.
_ROUND_OFF = 1e-9


@finite_answers()
def composition_utility(
    group: Group,
    encoding: Encoding,
    input_vectors: IsFinite[Float[np.ndarray, "k n"]],
    output_vector: IsFinite[Float[np.ndarray, " n"]],
) -> float:
    """Utility U = E⟨f, y⟩ of a neuron f = w (Σ_j u_j · x_{g_j})ᵏ for the target y = x_{g_1 ⋯ g_k}.

    With x̂(ρ) = Σ_g x[g] ρ(g), the mean over all nᵏ sequences is

        U = (k!/nᵏ⁺¹) Σ_ρ d_ρ Re tr[ŵ x̂† (û₁ x̂† û₂ x̂† ⋯ û_k x̂†)†].

    The contributions of different irreps are independent.

    Args:
        group: Group of n elements.
        encoding: Encoding x of the group elements, shape (n,), with zero mean; the element g is encoded as
            x_g[h] = x[g⁻¹ h].
        input_vectors: u, shape (k, n), with k from 2 to 20.
        output_vector: w, shape (n,).

    Raises:
        InputError: If the encoding is not n numbers with zero mean, k is not from 2 to 20, or the shapes do not match.

    Source: Sequential Group Composition (arXiv 2602.03655), the utility of a neuron.

    Example:
        >>> from dynascope.groups import cyclic
        >>> x = np.array([1.0, -1.0])
        >>> round(composition_utility(cyclic(2), x, np.array([[1.0, -1.0], [1.0, -1.0]]), np.array([1.0, -1.0])), 9)
        16.0
    """
    x, k = valid_encoding(group, encoding), len(input_vectors)
    require_shape("input_vectors", input_vectors, (None, group.order))
    require_shape("output_vector", output_vector, (group.order,))
    require(
        k in range(2, 21),
        f"input_vectors has length {k}",
        argument="input_vectors",
        value=k,
        remedy="give 2 to 20 rows, one per element of a sequence",
    )
    total = 0.0
    for irrep in irreducible_representations(group):
        seen = np.tensordot(x, irrep.matrices, axes=1).conj().T
        product = np.eye(irrep.dimension)
        for vector in input_vectors:
            product = product @ np.tensordot(vector, irrep.matrices, axes=1) @ seen
        read = np.tensordot(output_vector, irrep.matrices, axes=1) @ seen
        total += irrep.dimension * float(np.vdot(product, read).real)
    return math.factorial(k) / group.order ** (k + 1) * total


@finite_answers()
def maximal_utility(group: Group, encoding: Encoding, irrep: Irrep, sequence_length: SequenceLength) -> float:
    """Maximal utility of a unit-norm neuron whose Fourier components are restricted to one irrep (and its conjugate).

        U* = k! D^((1−k)/2) n^(−(k+1)/2) (k + 1)^(−(k+1)/2) ‖x̂(ρ)‖ᵏ⁺¹

    Here ‖·‖ is the operator norm and D the real dimension (d for irreps of the real kind, 2d for the complex and
    quaternionic kinds). The norm of a neuron includes all its weights, Σ_j ‖u_j‖² + ‖w‖² = 1. `maximisers` returns
    neurons that attain U*. A network learns the irreps in the order of U*, which depends on the dimensions and on k.

    Args:
        group: Group of n elements.
        encoding: Encoding x of the group elements, shape (n,), with zero mean.
        irrep: One of `irreducible_representations(group)`.
        sequence_length: Length k of the sequences, from 2 to 20.

    Raises:
        InputError: If the encoding is not n numbers with zero mean, or k is not an integer from 2 to 20.

    Source: Sequential Group Composition (arXiv 2602.03655), with the dimension D in place of d.

    Example:
        >>> from dynascope.groups import cyclic
        >>> group = cyclic(17)
        >>> x = 0.8 * np.cos(2 * np.pi * np.arange(17) / 17)
        >>> round(maximal_utility(group, x, irreducible_representations(group)[1], 2), 12)
        1.220917930326
    """
    x, k = valid_encoding(group, encoding), sequence_length
    norm = float(np.linalg.norm(np.tensordot(x, irrep.matrices, axes=1), 2))
    size = irrep.real_dimension ** (1 - k) * float(group.order * (k + 1)) ** -(k + 1)
    return math.factorial(k) * math.sqrt(size) * norm ** (k + 1)


@finite_answers()
def maximisers(
    group: Group,
    encoding: Encoding,
    irrep: Irrep,
    sequence_length: SequenceLength,
    *,
    direction: ArrayLike | None = None,
) -> tuple[Float[np.ndarray, "k n"], Float[np.ndarray, " n"]]:
    """Neuron of unit norm that attains the maximal utility of an irrep.

    Let σ be the largest singular value of x̂(ρ), with x̂ b = σ a. The Fourier coefficients of the neuron have rank one:
    û₁ ∝ c b†, û₂, …, û_k ∝ a b†, ŵ ∝ c b†, for any vector c.

    Args:
        group: Group of n elements.
        encoding: Encoding x of the group elements, shape (n,), with zero mean.
        irrep: One of `irreducible_representations(group)`.
        sequence_length: Length k of the sequences, from 2 to 20.
        direction: c, shape (d,), of any nonzero length; real for an irrep of the real kind. By default, a.

    Returns:
        (u, w) of shapes (k, n) and (n,). Each vector has norm 1/√(k + 1).

    Raises:
        InputError: If the encoding is not n numbers with zero mean or has no component in the irrep, k is not an
            integer from 2 to 20, or the direction is zero, has the wrong shape, or is complex for an irrep of the real
            kind.

    Source: Sequential Group Composition (arXiv 2602.03655).

    Example:
        >>> from dynascope.groups import dihedral
        >>> group, x = dihedral(3), np.array([5.0, -3.0, -1.0, 2.0, -2.0, -1.0])
        >>> irrep = irreducible_representations(group)[2]
        >>> u, w = maximisers(group, x, irrep, 3)
        >>> bool(np.isclose(composition_utility(group, x, u, w), maximal_utility(group, x, irrep, 3)))
        True
    """
    x, k = valid_encoding(group, encoding), sequence_length
    coefficient = np.tensordot(x, irrep.matrices, axes=1)
    real = irrep.kind == "real"
    # For the real kind, the imaginary parts are exactly zero, and real singular vectors make the neuron real.
    left, singular, right = np.linalg.svd(np.real(coefficient) if real else coefficient)
    require(
        singular[0] > _ROUND_OFF * np.abs(x).sum(),
        f"the encoding has no component in the irrep {irrep.name!r}",
        argument="irrep",
        value=irrep.name,
        remedy="choose an irrep with a nonzero Fourier coefficient",
    )
    a, b = left[:, 0], right[0].conj()
    c = a if direction is None else _direction(direction, irrep)
    outer = [np.outer(c, b.conj()), *[np.outer(a, b.conj())] * (k - 1), np.outer(c, b.conj())]
    vectors = np.real([np.einsum("gij,ij->g", irrep.matrices.conj(), each) for each in outer])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True) * math.sqrt(k + 1)
    return vectors[:-1], vectors[-1]


def _direction(direction: ArrayLike, irrep: Irrep) -> np.ndarray:
    c = np.asarray(direction)
    valid = c.dtype.kind in "iufc" and c.shape == (irrep.dimension,) and bool(np.isfinite(c).all()) and bool(c.any())
    require(
        valid and (irrep.kind != "real" or not np.iscomplexobj(c)),
        f"direction is {direction}",
        argument="direction",
        value=str(direction),
        remedy=f"give {irrep.dimension} {'real ' if irrep.kind == 'real' else ''}numbers that are not all zero",
    )
    return c

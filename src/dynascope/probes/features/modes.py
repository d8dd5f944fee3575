"""Eigenfeatures of a feature map, and the share of a function space that each of them covers."""

from __future__ import annotations

from typing import Any, NamedTuple

from dynascope.probes.features.samples import OutputFunction, Rows, centred, check_samples, finite_matrix, sample_rows
from dynascope.results.named_tuples import short_repr
from dynascope.validation import array_namespace, holds, require, require_axes, require_finite_values

__all__ = [
    "Eigenfeatures",
    "effective_dimension",
    "eigenfeatures",
    "kappa_cka",
    "mode_columns",
    "projection",
    "quality",
    "row_kappa",
]


class Eigenfeatures(NamedTuple):
    """The orthonormal functions e_k = Φ u_k/√ρ_k that diagonalise T = Σ ρ_k |e_k⟩⟨e_k|.

    Attributes:
        intensity: ρ_k ≥ 0 in descending order, shape (p,); zero beyond the rank.
        directions: u_k/√ρ_k as columns, shape (p, p), zero beyond the rank; e(x) = Φ(x) @ directions on any sample.
        values: e_k/√n on the given samples as orthonormal columns, shape (n, p); zero beyond the rank.
    """

    intensity: Any
    directions: Any
    values: Any

    __repr__ = short_repr


def eigenfeatures(features: Any) -> Eigenfeatures:
    """Compute the eigenfeatures of the operator T[f](x') = E_x[Φ(x)·Φ(x') f(x)] on samples.

    The singular value decomposition A diag(s) Uᵀ of the features on the samples yields ρ_k = s_k²/n and e_k = Φ
    u_k/√ρ_k, with ⟨e_k|e_l⟩ = δ_kl on the samples. Modes with s_k ≤ 10⁻¹² max(n, p) s_1 are omitted. If an intensity is
    degenerate, its eigenfeatures are an arbitrary basis of the eigenspace.

    Cost: about 6 n p² operations and memory for 2np + p² numbers; for n < p, 6 p n² operations.

    Args:
        features: Φ, the inputs of the last layer, shape (n, p), as a NumPy, JAX or PyTorch array.

    Raises:
        InputError: If the array is not of shape (n, p), or its values are not finite or all zero.

    References:
        Y. Nam, DPhil thesis (2024), algorithm 1, which omits the factor 1/n of ρ.

    Example:
        >>> import numpy as np
        >>> eigenfeatures(np.array([[1, 0], [1, 1], [0, 2], [-1, 1], [2, -1]])).intensity
        array([1.8, 1. ])
    """
    h, resolution = finite_matrix("features", features)
    return row_modes(h, h.shape[0], resolution)


def row_modes(h: Any, samples: int, resolution: float) -> Eigenfeatures:
    """Compute the eigenfeatures of features (m, p) whose inner products are divided by the number of samples."""
    xp, width = array_namespace(h), h.shape[1]
    left, s, right = xp.linalg.svd(h, full_matrices=False)
    require(
        holds(s[0] > 0),
        "the features are zero",
        argument="features",
        value=0.0,
        remedy="give features with non-zero values",
    )
    kept = s > max(1e-12 * max(samples, width), resolution) * s[0]
    s, left = xp.where(kept, s, xp.zeros_like(s)), left * xp.astype(kept, s.dtype)
    scales = xp.where(kept, samples**0.5 / xp.where(kept, s, xp.ones_like(s)), xp.zeros_like(s))
    more = width - s.shape[0]
    return Eigenfeatures(
        intensity=_padded(s**2 / samples, more),
        directions=_padded(right.T * scales, more),
        values=_padded(left, more),
    )


def quality(values: Any, functions: Any) -> Any:
    """Compute the share of the span of given functions that each mode covers.

        Q_k = ⟨e_k|P e_k⟩ / (⟨e_k|e_k⟩ dim)

    P is the orthogonal projector on span{g_1, …, g_C}, and dim is the dimension of that span; singular values of the
    functions below 10⁻¹⁰ of the largest count as zero. For orthonormal modes, Σ_k Q_k = 1 if and only if they span all
    the functions. Q_k is the quality if the functions are the targets, and the utilization if they are the outputs.

    Cost: 2 n p C + 6 n C² operations, and memory for np + nC numbers.

    Args:
        values: e_k(x) on samples, with any norm, shape (n, p), as a NumPy, JAX or PyTorch array.
        functions: g_i(x) on the same samples, shape (n, C), from the same library.

    Returns:
        Q, shape (p,).

    Raises:
        InputError: If shapes do not match, values are not finite, or the functions are all zero.

    References:
        Y. Nam, DPhil thesis (2024), eqs. 2.3–2.5, without the square printed in eq. 2.5.

    Example:
        >>> import numpy as np
        >>> quality(np.eye(3), np.array([[1.0, 2.0], [1.0, 2.0], [0.0, 0.0]])).round(3)
        array([0.5, 0.5, 0. ])
    """
    for name, each in {"values": values, "functions": functions}.items():
        require_axes(name, each, 2)
        require_finite_values(name, each)
    rows = sample_rows(values, functions, None, "logits")
    basis, dimension = projection(rows.outputs, rows.resolution)
    return covered(_unit_columns(rows.features), basis, dimension)


def effective_dimension(weights: Any, *, exclude_first: bool = False) -> Any:
    """Compute the effective number of positive weights from their entropy.

        D = exp(−Σ q ln q) with q = w/Σw and 0 ln 0 = 0

    D is between one and the number of non-zero weights.

    Cost: about 5 operations per weight and two copies of the array.

    Args:
        weights: Intensities or qualities, shape (..., p), as a NumPy, JAX or PyTorch array.
        exclude_first: Whether to return 1 + D(w_2, …, w_p), for intensities whose first mode is the constant function;
            the result is one if all other weights are zero.

    Raises:
        InputError: If weights are negative, not finite, or all zero.

    References:
        Y. Nam, DPhil thesis (2024), eqs. 1.16 and 2.6.

    Example:
        >>> import numpy as np
        >>> float(effective_dimension(np.ones(4))), float(effective_dimension(np.ones(2), exclude_first=True))
        (4.0, 2.0)
    """
    xp = array_namespace(weights)
    largest = xp.max(weights, axis=-1)
    require(
        holds(xp.all(xp.isfinite(weights)) & xp.all(weights >= 0) & xp.all(largest > 0)),
        "weights contains negative or non-finite values, or only zeros",
        argument="weights",
        value=tuple(weights.shape),
        remedy="give non-negative numbers, at least one of them positive",
    )
    first = 0.0
    if exclude_first:
        weights, first = weights[..., 1:], 1.0
    # Divide by the largest weight first, so that the sum does not overflow.
    unit = weights / largest[..., None]
    total = xp.sum(unit, axis=-1)
    q = unit / xp.where(total > 0, total, xp.ones_like(total))[..., None]
    entropy = -xp.sum(q * xp.log(xp.where(q > 0, q, xp.ones_like(q))), axis=-1)
    return first + xp.where(total > 0, xp.exp(entropy), xp.zeros_like(entropy))


def kappa_cka(features: Any, outputs: Any, *, output_function: OutputFunction = "logits") -> Any:
    """Compute the distance of the features from minimal features, κ = 1 − CKA(T, T_MP).

    κ is zero in the minimum-feature regime. T_MP = a₁|1⟩⟨1| + a₂P, with constants a₁ and a₂, contains only the features
    that the outputs require; P is the orthogonal projector on the span of the outputs. With orthonormal functions Z of
    that span, and centred columns Φ_c and Z_c,

        CKA = ‖Φ_cᵀZ_c‖_F² / (‖Φ_cᵀΦ_c‖_F ‖Z_cᵀZ_c‖_F),

    which equals the CKA of the n × n kernel matrices. White features with a linear readout have κ = 1 − √(C/p).

    Cost: n p² + 2 n p C operations and memory for 2np + p² numbers; for n < p, n² p operations and n² numbers.

    Args:
        features: Φ, shape (n, p), as a NumPy, JAX or PyTorch array.
        outputs: f̂, shape (n, C), from the same library.
        output_function: "logits" to use the outputs unchanged, "softmax" to use their softmax.

    Raises:
        InputError: If shapes do not match, values are not finite, features or outputs do not vary, or n ≤ C.

    References:
        Y. Nam, DPhil thesis (2024), definitions 1 and 2.

    Example:
        >>> import numpy as np
        >>> one_hot = np.repeat(np.eye(3), 4, axis=0)
        >>> round(float(kappa_cka(one_hot, one_hot @ np.array([[2.0, 1, 0], [0, 1, 1], [1, 0, 0]]))), 12)
        0.0
    """
    rows = sample_rows(features, outputs, None, output_function)
    check_samples(rows)
    basis, _ = projection(rows.outputs, rows.resolution)
    return row_kappa(rows, basis)


def row_kappa(rows: Rows, basis: Any) -> Any:
    """Compute κ of the features relative to the span of orthonormal columns."""
    xp = array_namespace(rows.features)
    h, z = centred(rows.features, rows), centred(basis, rows)
    # Rescale the features, because fourth powers of extreme values would overflow or underflow.
    h = h / xp.max(xp.abs(h))
    small = h if h.shape[0] >= h.shape[1] else h.T
    sizes = xp.linalg.matrix_norm(small.T @ small) * xp.linalg.matrix_norm(z.T @ z)
    kappa = 1 - xp.sum((h.T @ z) ** 2) / sizes
    return xp.maximum(kappa, xp.zeros_like(kappa))


def projection(functions: Any, resolution: float) -> tuple[Any, Any]:
    """Return orthonormal columns (m, C) of the span of the functions, zero beyond its dimension, and the dimension."""
    xp = array_namespace(functions)
    left, s, _ = xp.linalg.svd(functions, full_matrices=False)
    require(
        holds(s[0] > 0),
        "the functions are zero on every sample",
        argument="functions",
        value=0.0,
        remedy="give outputs and targets that are not zero",
    )
    kept = xp.astype(s > max(1e-10, resolution) * s[0], s.dtype)
    return left * kept, xp.sum(kept)


def covered(unit_columns: Any, basis: Any, dimension: Any) -> Any:
    """Compute Q of unit-norm modes, shape (p,)."""
    xp = array_namespace(unit_columns)
    return xp.sum((unit_columns.T @ basis) ** 2, axis=1) / dimension


def mode_columns(modes: Eigenfeatures, rows: Rows) -> Any:
    """Evaluate the modes on other samples, as unit-norm columns."""
    return _unit_columns(rows.features @ modes.directions)


def _unit_columns(columns: Any) -> Any:
    xp = array_namespace(columns)
    largest = xp.max(xp.abs(columns), axis=0)
    columns = columns / xp.where(largest > 0, largest, xp.ones_like(largest))
    norms = xp.sqrt(xp.sum(columns**2, axis=0))
    return columns / xp.where(norms > 0, norms, xp.ones_like(norms))


def _padded(columns: Any, more: int) -> Any:
    """Append zeros along the last axis."""
    if not more:
        return columns
    xp = array_namespace(columns)
    zeros = xp.broadcast_to(xp.zeros_like(columns[..., :1]), (*columns.shape[:-1], more))
    return xp.concat([columns, zeros], axis=-1)

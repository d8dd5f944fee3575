"""The Fourier transform on a finite group."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Complex, Float
from numpy.typing import ArrayLike

from dynascope.groups.representations import irreducible_representations
from dynascope.groups.tables import Group
from dynascope.validation import require, require_array

__all__ = ["fourier_transform", "inverse_fourier_transform"]

_ROUND_OFF = 1e-9


def fourier_transform(group: Group, values: ArrayLike) -> tuple[Complex[np.ndarray, "d d"], ...]:
    """The Fourier coefficients x̂(ρ) = Σ_g x[g] ρ(g) of a real function on the group.

    Parseval: Σ_g x[g]² = (1/n) Σ_ρ d_ρ ‖x̂(ρ)‖², with the Frobenius norm and every complex irrep counted. For a cyclic
    group these are the coefficients of `numpy.fft.fft`.

    Args:
        group: The group of n elements.
        values: x, shape (n,).

    Returns:
        One matrix (d, d) for each irrep, in the order of `irreducible_representations`.

    Raises:
        InputError: The values are not n finite real numbers.

    Source: P. Diaconis, Group representations in probability and statistics (1988), chapter 2C.

    Example:
        >>> from dynascope.groups import cyclic
        >>> [round(float(abs(each[0, 0])), 3) for each in fourier_transform(cyclic(3), [1.0, 2.0, 0.0])]
        [3.0, 1.732, 1.732]
    """
    x = require_array("values", values, (group.order,))
    return tuple(np.tensordot(x, irrep.matrices, axes=1) for irrep in irreducible_representations(group))


def inverse_fourier_transform(group: Group, coefficients: Sequence[ArrayLike]) -> Float[np.ndarray, " n"]:
    """The real function x[g] = (1/n) Σ_ρ d_ρ tr(ρ(g)† x̂(ρ)) with given Fourier coefficients.

    Args:
        group: The group of n elements.
        coefficients: One matrix (d, d) for each irrep, in the order of `irreducible_representations`.

    Returns:
        x, shape (n,).

    Raises:
        InputError: A coefficient is missing or has another shape, or the function is not real.

    Source: as `fourier_transform`.

    Example:
        >>> from dynascope.groups import dihedral
        >>> group = dihedral(3)
        >>> inverse_fourier_transform(group, fourier_transform(group, [0, 1, 2, 3, 4, 5])).round(9) + 0.0
        array([0., 1., 2., 3., 4., 5.])
    """
    irreps = irreducible_representations(group)
    matrices = [np.asarray(each, np.complex128) for each in coefficients]
    wanted, got = [irrep.matrices.shape[1:] for irrep in irreps], [each.shape for each in matrices]
    require(
        wanted == got,
        f"the coefficients have the shapes {got}",
        argument="coefficients",
        value=got,
        remedy=f"give one matrix for each irrep, of the shapes {wanted}",
    )
    # An irrep is a unitary matrix, so that tr(ρ† x̂) is the sum of conj(ρ) ⊙ x̂.
    values = sum(
        irrep.dimension * np.einsum("gij,ij->g", irrep.matrices.conj(), each)
        for irrep, each in zip(irreps, matrices, strict=True)
    )
    values = np.asarray(values) / group.order
    imaginary, size = float(np.abs(values.imag).max()), float(np.abs(values).max())
    require(
        np.isfinite(size) and imaginary <= _ROUND_OFF * size,
        f"the function with these coefficients has imaginary parts up to {imaginary:.3g}",
        argument="coefficients",
        value=imaginary,
        remedy="give a conjugate pair of irreps conjugate coefficients, and an irrep of the real kind a real one",
    )
    return values.real

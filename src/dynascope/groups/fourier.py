"""The Fourier transform on a finite group."""

from __future__ import annotations

import numpy as np
from jaxtyping import Complex
from numpy.typing import ArrayLike

from dynascope.groups.representations import irreducible_representations
from dynascope.groups.tables import Group
from dynascope.validation import require_array

__all__ = ["fourier_transform"]


def fourier_transform(group: Group, values: ArrayLike) -> tuple[Complex[np.ndarray, "d d"], ...]:
    """Compute the Fourier coefficients of a real function on a finite group.

        x̂(ρ) = Σ_g x[g] ρ(g)

    Parseval's identity is Σ_g x[g]² = (1/n) Σ_ρ d_ρ ‖x̂(ρ)‖², with the Frobenius norm and the sum over all complex
    irreps. For a cyclic group, the coefficients are those of `numpy.fft.fft`.

    Args:
        group: Group with n elements.
        values: Function values x, shape (n,).

    Returns:
        One matrix (d, d) per irrep, in the order of `irreducible_representations`.

    Raises:
        InputError: If the values are not n finite real numbers.

    Source: P. Diaconis, Group representations in probability and statistics (1988), chapter 2C.

    Example:
        >>> from dynascope.groups import cyclic
        >>> [round(float(abs(each[0, 0])), 3) for each in fourier_transform(cyclic(3), [1.0, 2.0, 0.0])]
        [3.0, 1.732, 1.732]
    """
    x = require_array("values", values, (group.order,))
    return tuple(np.tensordot(x, irrep.matrices, axes=1) for irrep in irreducible_representations(group))

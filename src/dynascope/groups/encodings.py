"""Encodings of group elements as vectors with a given Fourier transform."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, SupportsIndex

import numpy as np
from annotated_types import Ge
from jaxtyping import Float
from numpy.typing import ArrayLike

from dynascope.errors import InputError
from dynascope.groups.representations import Irrep, irreducible_representations
from dynascope.groups.tables import Group
from dynascope.validation import checked, require, require_array
from dynascope.validation.bounded_scalars import Seed

__all__ = ["encoding_from_fourier", "encoding_from_frequencies", "valid_encoding"]

_ROUND_OFF = 1e-9


@checked
def encoding_from_frequencies(
    p: Annotated[int, Ge(3)], amplitudes: Mapping[int, float], phases: Mapping[int, float] | None = None
) -> Float[np.ndarray, " p"]:
    """Encoding of the integers modulo p with given frequencies.

        x[j] = Σ_ξ A_ξ cos(2π ξ j/p + φ_ξ)

    The Fourier transform satisfies |x̂[ξ]| = A_ξ p/2, or A_ξ p |cos φ_ξ| at ξ = p/2.

    Args:
        p: The modulus, at least three.
        amplitudes: Amplitudes A_ξ by frequency ξ, an integer from 1 to p/2.
        phases: Phases φ_ξ in radians by frequency; zero by default.

    Returns:
        x, shape (p,), with mean zero.

    Raises:
        InputError: If the modulus is below three, if a frequency is out of range, if an amplitude or phase is not
            finite, or if a frequency has a phase but no amplitude.

    Example:
        >>> x = encoding_from_frequencies(17, {1: 0.8, 2: 0.52}, {1: 0.4})
        >>> np.abs(np.fft.fft(x))[:4].round(12) + 0.0
        array([0.  , 6.8 , 4.42, 0.  ])
    """
    phases = dict(phases or {})
    require(
        len(amplitudes) > 0,
        "amplitudes is empty",
        argument="amplitudes",
        value={},
        remedy="give at least one amplitude",
    )
    for frequency in (*amplitudes, *phases):
        argument = "amplitudes" if frequency in amplitudes else "phases"
        require(
            frequency in range(1, p // 2 + 1) and frequency in amplitudes,
            f"{argument} contains {frequency}, which is not a frequency of this encoding",
            argument=argument,
            value=frequency,
            remedy=f"choose integers from 1 to {p // 2} as frequencies, and give an amplitude for each phase",
        )
    strengths = require_array("amplitudes", list(amplitudes.values()), (None,))
    shifts = require_array("phases", [phases.get(frequency, 0.0) for frequency in amplitudes], (len(strengths),))
    angles = 2 * np.pi / p * np.outer(np.arange(p), list(amplitudes)) + shifts
    return np.cos(angles) @ strengths


@checked
def encoding_from_fourier(
    group: Group, amplitudes: Mapping[str | int, ArrayLike], *, seed: Seed | None = None
) -> Float[np.ndarray, " n"]:
    """Real encoding with mean zero and given Fourier coefficients x̂(ρ) = Σ_g x[g] ρ(g).

    Args:
        group: Group with n elements.
        amplitudes: For each irrep, by name or index in `irreducible_representations`, the singular values σ of x̂(ρ):
            one number for equal singular values, or d numbers. Give only one irrep of a conjugate pair. All other
            irreps have amplitude zero.
        seed: None sets x̂(ρ) = diag(σ); a seed sets x̂(ρ) = V diag(σ) with a random unitary matrix V (orthogonal for
            irreps of real kind).

    Returns:
        x, shape (n,).

    Raises:
        InputError: If no irrep is given; if an irrep is unknown, trivial or the conjugate of another; if the amplitudes
            of an irrep are neither a finite non-negative number nor d such numbers; or if the amplitudes of a
            quaternionic irrep differ.

    Source: the inverse Fourier transform on a finite group.

    Example:
        >>> from dynascope.groups import dihedral
        >>> x = encoding_from_fourier(dihedral(3), {"sign": 1.2, "2d": 2.2})
        >>> x.round(10)
        array([ 1.66666667, -0.53333333, -0.53333333, -0.2 , -0.2 , -0.2 ])
    """
    require(len(amplitudes) > 0, "amplitudes is empty", argument="amplitudes", remedy="give an irrep and its amplitude")
    irreps = irreducible_representations(group)
    noise = None if seed is None else np.random.default_rng(seed).normal(size=group.order)
    x = np.zeros(group.order)
    given: set[int] = set()
    for key, amplitude in amplitudes.items():
        irrep = _find(group, irreps, key)
        require(
            irrep.index not in given,
            f"the irrep {key!r} or its conjugate is given twice",
            argument="amplitudes",
            value=key,
            remedy="give one amplitude for a representation and its conjugate",
        )
        given |= {irrep.index, irrep.conjugate}
        coefficient = np.diag(_singular_values(irrep, amplitude)).astype(np.complex128)
        if noise is not None:
            # The unitary polar factor of a coefficient of a real function preserves reality.
            left, _, right = np.linalg.svd(np.tensordot(noise, irrep.matrices, axes=1))
            coefficient = left @ right @ coefficient
        traces = np.einsum("gij,ij->g", irrep.matrices.conj(), coefficient).real
        x += irrep.members * irrep.dimension / group.order * traces
    return x - x.mean()


def valid_encoding(group: Group, encoding: Any) -> Float[np.ndarray, " n"]:
    """Check that an encoding has one finite number per element, is not zero and has mean zero."""
    x = require_array("encoding", encoding, (group.order,))
    size = float(np.abs(x).max())
    mean = float(x.mean())
    require(
        size > 0,
        "the encoding is zero",
        argument="encoding",
        value=0.0,
        remedy="give an encoding with at least two different values",
    )
    require(
        abs(mean) <= _ROUND_OFF * size,
        f"the encoding has mean {mean:.6g}",
        argument="encoding",
        value=mean,
        remedy="subtract the mean (encoding - encoding.mean())",
    )
    return x


def _find(group: Group, irreps: tuple[Irrep, ...], key: str | int) -> Irrep:
    names = {irrep.name: irrep for irrep in irreps}
    if key in names:
        found = names[str(key)]
    elif isinstance(key, SupportsIndex) and 0 <= int(key) < len(irreps):
        found = irreps[int(key)]
    else:
        raise InputError(
            f"{group.name} has no irrep {key!r}",
            argument="amplitudes",
            value=key,
            remedy=f"choose from {', '.join(list(names)[1:])}, or an index from 1 to {len(irreps) - 1}",
        )
    require(
        not found.trivial,
        "amplitudes contains the trivial irrep",
        argument="amplitudes",
        value=key,
        remedy="omit this irrep, because an encoding has mean zero",
    )
    return found


def _singular_values(irrep: Irrep, amplitude: ArrayLike) -> np.ndarray:
    values = require_array("amplitudes", np.atleast_1d(np.asarray(amplitude)), (None,))
    require(
        len(values) in (1, irrep.dimension) and values.min() >= 0 and values.max() > 0,
        f"the amplitude of {irrep.name!r} is {amplitude}",
        argument="amplitudes",
        value=str(amplitude),
        remedy=f"give one positive number, or {irrep.dimension} non-negative numbers that are not all zero",
    )
    require(
        irrep.kind != "quaternionic" or np.ptp(values) == 0,
        f"the amplitudes of the quaternionic irrep {irrep.name!r} differ",
        argument="amplitudes",
        value=values.tolist(),
        remedy="give one number for all amplitudes of this irrep",
    )
    return np.broadcast_to(values, (irrep.dimension,))

"""Encodings: how the elements of a group are shown to a network, from the Fourier transform that they are to have."""

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
    """The encoding x[j] = Σ_ξ A_ξ cos(2π ξ j/p + φ_ξ), with |x̂[ξ]| = A_ξ p/2 (A_ξ p |cos φ_ξ| at ξ = p/2).

    Args:
        p: The modulus, at least three.
        amplitudes: A_ξ by frequency ξ, from 1 to p/2.
        phases: φ_ξ by frequency; zero where not given.

    Returns:
        x, shape (p,), of zero mean.

    Raises:
        InputError: A modulus below three, a frequency out of range, an amplitude or phase that is not finite, or a
            phase for a frequency that has no amplitude.

    Example:
        >>> x = encoding_from_frequencies(17, {1: 0.8, 2: 0.52}, {1: 0.4})
        >>> np.abs(np.fft.fft(x))[:4].round(12) + 0.0
        array([0.  , 6.8 , 4.42, 0.  ])
    """
    phases = dict(phases or {})
    require(len(amplitudes) > 0, "there is no frequency", argument="amplitudes", value={}, remedy="give at least one")
    for frequency in (*amplitudes, *phases):
        require(
            frequency in range(1, p // 2 + 1) and frequency in amplitudes,
            f"{frequency} is no frequency of this encoding",
            argument="amplitudes" if frequency in amplitudes else "phases",
            value=frequency,
            remedy=f"choose whole numbers from 1 to {p // 2}, the same in amplitudes and phases",
        )
    strengths = require_array("amplitudes", list(amplitudes.values()), (None,))
    shifts = require_array("phases", [phases.get(frequency, 0.0) for frequency in amplitudes], (len(strengths),))
    angles = 2 * np.pi / p * np.outer(np.arange(p), list(amplitudes)) + shifts
    return np.cos(angles) @ strengths


@checked
def encoding_from_fourier(
    group: Group, amplitudes: Mapping[str | int, ArrayLike], *, seed: Seed | None = None
) -> Float[np.ndarray, " n"]:
    """A real encoding of mean zero with chosen Fourier coefficients x̂(ρ) = Σ_g x[g] ρ(g).

    Args:
        group: The group of n elements.
        amplitudes: For each irrep, by name or index in `irreducible_representations`, the singular values σ of x̂(ρ):
            one number for all, or d of them. A conjugate pair is given once. Irreps that are not named get zero.
        seed: Without one x̂(ρ) = diag(σ); with one x̂(ρ) = V diag(σ), V a random unitary matrix (orthogonal for an irrep
            of the real kind).

    Returns:
        x, shape (n,).

    Raises:
        InputError: No irrep, an unknown or the trivial one is named, or both of a conjugate pair; an amplitude is not
            one or d finite numbers from zero; or the d numbers differ for an irrep of the quaternionic kind.

    Source: the inverse Fourier transform on a finite group.

    Example:
        >>> from dynascope.groups import dihedral
        >>> x = encoding_from_fourier(dihedral(3), {"sign": 1.2, "2d": 2.2})
        >>> x.round(10)
        array([ 1.66666667, -0.53333333, -0.53333333, -0.2 , -0.2 , -0.2 ])
    """
    require(
        len(amplitudes) > 0, "no amplitude is given", argument="amplitudes", remedy="name an irrep and its amplitude"
    )
    irreps = irreducible_representations(group)
    noise = None if seed is None else np.random.default_rng(seed).normal(size=group.order)
    x = np.zeros(group.order)
    given: set[int] = set()
    for key, amplitude in amplitudes.items():
        irrep = _find(group, irreps, key)
        require(
            irrep.index not in given,
            f"the irrep {key!r} is given twice",
            argument="amplitudes",
            value=key,
            remedy="give one amplitude for a representation and its conjugate",
        )
        given |= {irrep.index, irrep.conjugate}
        coefficient = np.diag(_singular_values(irrep, amplitude)).astype(np.complex128)
        if noise is not None:
            # The polar factor of a real function's coefficient is again that of a real function.
            left, _, right = np.linalg.svd(np.tensordot(noise, irrep.matrices, axes=1))
            coefficient = left @ right @ coefficient
        traces = np.einsum("gij,ij->g", irrep.matrices.conj(), coefficient).real
        x += irrep.members * irrep.dimension / group.order * traces
    return x - x.mean()


def valid_encoding(group: Group, encoding: Any) -> Float[np.ndarray, " n"]:
    """The encoding as an array, after checking that it has one finite number for each element, and mean zero."""
    x = require_array("encoding", encoding, (group.order,))
    size = float(np.abs(x).max())
    mean = float(x.mean())
    require(
        size > 0,
        "the encoding is zero",
        argument="encoding",
        value=0.0,
        remedy="give different numbers to different elements",
    )
    require(
        abs(mean) <= _ROUND_OFF * size,
        f"the encoding has the mean {mean:.6g}",
        argument="encoding",
        value=mean,
        remedy="subtract it (encoding - encoding.mean())",
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
        "the trivial irrep is given",
        argument="amplitudes",
        value=key,
        remedy="leave it out: an encoding has mean zero",
    )
    return found


def _singular_values(irrep: Irrep, amplitude: ArrayLike) -> np.ndarray:
    values = require_array("amplitudes", np.atleast_1d(np.asarray(amplitude)), (None,))
    require(
        len(values) in (1, irrep.dimension) and values.min() >= 0 and values.max() > 0,
        f"the amplitude of {irrep.name!r} is {amplitude}",
        argument="amplitudes",
        value=str(amplitude),
        remedy=f"give one positive number, or {irrep.dimension} that are not negative",
    )
    require(
        irrep.kind != "quaternionic" or np.ptp(values) == 0,
        f"the amplitudes of {irrep.name!r} differ, which is quaternionic",
        argument="amplitudes",
        value=values.tolist(),
        remedy="give it one number",
    )
    return np.broadcast_to(values, (irrep.dimension,))

"""Growth of the frequencies in small quadratic neurons on modular addition, with a frozen residual."""

from __future__ import annotations

import dataclasses
from typing import TypeAlias

import numpy as np
import scipy
from annotated_types import IsFinite
from jaxtyping import Bool, Complex, Float, Int, Real
from numpy.typing import ArrayLike

from dynascope.validation import require, require_shape

__all__ = ["Encoding", "Neurons", "Spectrum", "Starts"]

Encoding: TypeAlias = IsFinite[Real[ArrayLike, " p"]]
Neurons: TypeAlias = IsFinite[Real[ArrayLike, "neurons weights"]]

_ROUNDING = 1e-9  # relative size of a mean or a coefficient that counts as zero
_STEP, _MOST_STEPS, _ALIGNED = 0.1, 4000, 1e-7  # of the integration of the alignment


class Spectrum:
    """Fourier spectrum of an encoding x of the integers modulo p, with x_a[j] = x[(j − a) mod p].

    Attributes:
        p: The modulus.
        frequencies: 1, …, ⌊p/2⌋.
        coefficients: x̂[ξ] = Σ_j x[j] exp(−2πi jξ/p) at these frequencies; rounding errors are set to zero.
        active: Whether x̂[ξ] ≠ 0.
        multiplicity: 2, or 1 for ξ = p/2, which is its own conjugate.
        energies: Contribution E_ξ of each frequency to ‖x‖².
        maximal_utilities: U*_ξ, see `maximal_utilities`.

    Args:
        encoding: Encoding x of the integers modulo p, shape (p,), with zero mean.

    Raises:
        InputError: If the encoding is not a finite vector of at least three entries, is zero, or has a nonzero mean.
    """

    p: int
    frequencies: Int[np.ndarray, " frequencies"]
    coefficients: Complex[np.ndarray, " frequencies"]
    active: Bool[np.ndarray, " frequencies"]
    multiplicity: Float[np.ndarray, " frequencies"]
    energies: Float[np.ndarray, " frequencies"]
    maximal_utilities: Float[np.ndarray, " frequencies"]

    def __init__(self, encoding: ArrayLike):
        x = np.asarray(encoding)
        self.p = len(x)
        require(
            self.p >= 3,
            f"the encoding has length {self.p}",
            argument="encoding",
            value=self.p,
            remedy="give at least three entries",
        )
        require(np.any(x != 0), "the encoding is zero", argument="encoding", value=0.0, remedy="give nonzero entries")
        require(
            abs(x.sum()) <= _ROUNDING * np.abs(x).sum(),
            f"the encoding has mean {x.mean():.6g}",
            argument="encoding",
            value=float(x.mean()),
            remedy="subtract the mean",
        )
        spectrum = np.fft.rfft(x)[1:]
        sizes = np.abs(spectrum)
        self.frequencies = np.arange(1, self.p // 2 + 1)
        self.active = sizes > _ROUNDING * sizes.max()
        self.coefficients = np.where(self.active, spectrum, 0.0)
        self.multiplicity = np.where(2 * self.frequencies == self.p, 1.0, 2.0)
        self.energies = self.multiplicity * np.abs(self.coefficients) ** 2 / self.p
        # √(2/27), times √2 if the multiplicity is one.
        self.maximal_utilities = np.sqrt(4 / (27 * self.p**3 * self.multiplicity)) * np.abs(self.coefficients) ** 3
        self._strength = 2 * np.abs(self.coefficients) ** 2 / self.p**2

    def of(self, neurons: ArrayLike) -> Complex[np.ndarray, "neurons 3 frequencies"]:
        """Compute the Fourier coefficients z of u, v and w, from rows [u | v | w] of shape (neurons, 3p)."""
        rows = np.asarray(neurons)
        require_shape("neurons", rows, (None, 3 * self.p))
        return np.fft.rfft(rows.reshape(-1, 3, self.p))[..., 1:]

    def aligned(self, z: Complex[np.ndarray, "neurons 3 frequencies"]) -> Complex[np.ndarray, "neurons frequencies"]:
        """Compute T = conj(x̂) z_u z_v conj(z_w), which is positive for the phases of a maximiser."""
        return self.coefficients.conj() * z[:, 0] * z[:, 1] * z[:, 2].conj()

    def utility(self, z: Complex[np.ndarray, "neurons 3 frequencies"]) -> Float[np.ndarray, " neurons"]:
        """Compute the utilities U = E⟨f_i, y⟩."""
        return np.real(self.aligned(z)) @ (self.multiplicity * self._strength) / self.p

    def blow_up_times(
        self, z: Complex[np.ndarray, "neurons 3 frequencies"]
    ) -> Float[np.ndarray, "neurons frequencies"]:
        """Blow-up time of each frequency in each neuron under plain gradient flow with a frozen residual.

        The Fourier coefficients z of u, v, w at a frequency obey, with c = 2|x̂|²/p² and the coefficient x̂ of the
        encoding,

            z_u' = c x̂ conj(z_v) z_w,  z_v' = c x̂ conj(z_u) z_w,  z_w' = c conj(x̂) z_u z_v.

        The flow conserves the differences of |z_u|², |z_v|², |z_w|² and the imaginary part of T = conj(x̂) z_u z_v
        conj(z_w). Hence y = min |z|² obeys y'² = 4c² (|x̂|² Π_j (y + d_j) − (Im T)²), where d_j = |z_j|² − y are the
        conserved differences. The time to y = ∞ is Carlson's elliptic integral R_F of the distances to the roots of
        this cubic. If Re T < 0, y first decreases to the largest root. The time is infinite if the encoding or the
        neuron does not contain the frequency.

        If the initial weights are multiplied by α, the times are multiplied by 1/α. Each neuron learns the frequency
        with its earliest time, under both the plain and the normalised flow.

        References:
            Alternating Gradient Flows, arXiv:2506.06489, for the flow; its closed-form solution is derived here.
            Carlson, Numer. Algorithms 10 (1995) 13.

        Example:
            >>> x = np.cos(2 * np.pi * np.arange(5) / 5)
            >>> spectrum = Spectrum(x)
            >>> spectrum.blow_up_times(spectrum.of(np.concatenate([x, x, x])[None])).round(6)
            array([[0.32,  inf]])
        """
        powers = np.abs(z) ** 2
        largest = powers.max(axis=1)
        grows = self.active & (largest > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            aligned = self.aligned(z) / (np.abs(self.coefficients) * largest**1.5)
            integral = _time_to_infinity(
                np.where(grows[:, None], powers / largest[:, None], 1.0), np.where(grows, aligned, 0.0)
            )
            times = integral / (self._strength * np.abs(self.coefficients) * np.sqrt(largest))
        return np.where(grows, times, np.inf)

    def gain(
        self, rows: Float[np.ndarray, "neurons weights"], rates: Float[np.ndarray, " neurons"]
    ) -> Float[np.ndarray, " neurons"]:
        """Compute lim log‖θ(t)‖ − rate·t under θ' = ∇U(θ)/‖θ‖ from unit vectors; −∞ if the rate is zero."""
        z = self.of(rows)[..., self.active]
        share, drive = self.multiplicity[self.active] / self.p, (self._strength * self.coefficients)[self.active]
        # Frequencies outside the encoding are constant, but contribute to the norm.
        rest = np.maximum(1 - np.sum(share * np.abs(z) ** 2, axis=(1, 2)), 0.0)

        def norm(z: np.ndarray) -> np.ndarray:
            return np.sqrt(np.sum(share * np.abs(z) ** 2, axis=(1, 2)) + rest)[:, None, None]

        def velocity(z: np.ndarray) -> np.ndarray:
            u, v, w = z[:, 0], z[:, 1], z[:, 2]
            return np.stack([drive * v.conj() * w, drive * u.conj() * w, drive.conj() * u * v], axis=1) / norm(z)

        gain = np.where(rates > 0, 0.0, -np.inf)
        for _ in range(_MOST_STEPS):
            # The gradient is quadratic, so its Jacobian is at most 2 max |drive| ‖z‖.
            with np.errstate(divide="ignore"):
                h = _STEP / np.max(np.abs(drive) * np.linalg.norm(z, axis=1), axis=1)
            h = np.where(rates > 0, h, 0.0)
            step = h[:, None, None]
            first = velocity(z)
            second = velocity(z + step / 2 * first)
            third = velocity(z + step / 2 * second)
            z = z + step / 6 * (first + 2 * second + 2 * third + velocity(z + step * third))
            grown = norm(z)
            z, rest = z / grown, rest / grown[:, 0, 0] ** 2
            ahead = np.log(grown[:, 0, 0]) - rates * h
            gain += ahead
            if np.all(np.abs(ahead) <= _ALIGNED * rates * h):
                break
        return gain


@dataclasses.dataclass(frozen=True)
class Starts:
    """Frequencies that the initial neurons learn, and the growth of the neurons in the plain and the normalised flow.

    Attributes:
        norms: Initial norms ‖ϑ_i‖, shape (neurons,).
        blow_up: Blow-up times of the plain flow from unit scale, shape (neurons, frequencies).
        learned: Index of the frequency with the earliest time, −1 if none grows, shape (neurons,).
        gain: lim log‖θ_i(t)‖ − 3 U* t of the normalised flow from unit scale, shape (neurons,).
        phase_differences: s_u − s_v, shape (neurons, frequencies).
    """

    norms: np.ndarray
    blow_up: np.ndarray
    learned: np.ndarray
    gain: np.ndarray
    phase_differences: np.ndarray

    @classmethod
    def of(cls, spectrum: Spectrum, neurons: ArrayLike) -> Starts:
        """Compute the attributes from rows [u | v | w] of shape (neurons, 3p)."""
        rows = np.asarray(neurons)
        coefficients = spectrum.of(rows)
        norms = np.linalg.norm(rows, axis=1)
        smallest = float(norms.min(initial=np.inf))
        require(
            0 < smallest < np.inf,
            "all weights of a neuron are zero" if smallest == 0 else "there is no neuron",
            argument="neurons",
            value=smallest,
            remedy="give at least one neuron, and nonzero weights for every neuron",
        )
        blow_up = spectrum.blow_up_times(coefficients)
        learned = np.argmin(blow_up, axis=1)
        grows = np.isfinite(blow_up.min(axis=1))
        rates = np.where(grows, 3 * spectrum.maximal_utilities[learned], 0.0)
        gain = np.log(norms) + spectrum.gain(rows / norms[:, None], rates)
        turns = coefficients[:, 0] * coefficients[:, 1].conj()
        return cls(norms, blow_up, np.where(grows, learned, -1), gain, np.angle(turns))


def _time_to_infinity(powers: np.ndarray, aligned: np.ndarray) -> np.ndarray:
    """Half the time from y = min_j powers_j to y = ∞ under y' = ±√P(y), with P = Π_j (y + d_j) − (Im T)²."""
    lowest = powers.min(axis=1)
    gaps = np.moveaxis(powers - lowest[:, None], 1, -1)
    companion = np.zeros((*lowest.shape, 3, 3))
    companion[..., 1, 0] = companion[..., 2, 1] = 1.0
    a, b, c = np.moveaxis(gaps, -1, 0)
    companion[..., 2] = np.stack([np.imag(aligned) ** 2 - a * b * c, -(a * b + b * c + c * a), -(a + b + c)], axis=-1)
    # The other two roots are smaller or complex, with negative real parts.
    roots = np.sort_complex(np.linalg.eigvals(companion))
    turn = roots[..., 2].real
    others = roots[..., :2]
    # A quotient avoids cancellation near the turning point.
    distance = np.real(aligned) ** 2 / np.prod(lowest[..., None] - others, axis=-1).real
    distance = np.where(np.isfinite(distance), distance, 0.0)
    onward = scipy.special.elliprf(distance, *np.moveaxis(lowest[..., None] - others, -1, 0)).real
    from_turn = scipy.special.elliprf(0.0, *np.moveaxis(turn[..., None] - others, -1, 0)).real
    return np.where(np.real(aligned) < 0, 2 * from_turn - onward, onward)

"""Loss staircase of quadratic networks on modular addition, which learn one frequency after another."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float

from dynascope.results.clock import time_unit
from dynascope.results.staircase import Staircase
from dynascope.theory.assumptions import SMALL_START
from dynascope.theory.domain import covers
from dynascope.theory.finite_answers import finite_answers
from dynascope.theory.modular.growth import Encoding, Neurons, Spectrum, Starts
from dynascope.theory.modular.jumps import (
    HARMONIC,
    Jump,
    enough_neurons,
    jumps_in_the_normalised_flow,
    jumps_in_the_plain_flow,
    shortage,
)
from dynascope.theory.papers import ALTERNATING
from dynascope.validation import checked, require, require_known
from dynascope.validation.bounded import FiniteFloat, NonNegativeInt, OpenFraction

__all__ = [
    "addition_utility",
    "maximal_utilities",
    "maximiser",
    "modular_addition_staircase",
    "unexplained_fraction",
]

_NAMES = {
    "frequency_learned": ("frequency that is learned", "1"),
    "maximal_utility": ("maximal utility", "1"),
    "onset_time": ("time at which neurons start to grow", "gradient-flow time"),
    "earliest_onset": ("earliest time at which a neuron starts to grow", "gradient-flow time"),
    "neurons_learning": ("neurons that learn", "neurons"),
}
_NEARLY_EQUAL = 0.05  # relative difference of accelerated times below which jumps overlap at usual scales
_SMALL_START = 0.1  # larger neurons contribute to the function before the first plateau
_SAME_PHASE = 0.99  # length of the mean unit vector above which phases count as equal


@finite_answers()
def addition_utility(neurons: Neurons, encoding: Encoding) -> Float[np.ndarray, " neurons"]:
    """Utilities U = E⟨f_i(x; θ_i), y⟩ of neurons on addition modulo p, while the output of the network is zero.

    Averaged over all p² pairs, with the unnormalised Fourier transform x̂[k] = Σ_j x[j] exp(−2πi jk/p),

        U = 2/p³ Σ_{k≠0} |x̂[k]|² û[k] v̂[k] conj(ŵ[k] x̂[k]).

    The frequencies do not interact.

    Args:
        neurons: Rows [u | v | w] of f_i = w (u·x_a + v·x_b)², shape (neurons, 3p).
        encoding: Encoding x of the integers modulo p, shape (p,), with zero mean.

    Returns:
        U, shape (neurons,).

    Raises:
        InputError: If an array is not finite, the shapes do not match, p is below three, or the encoding is zero or has
            a nonzero mean.

    References:
        Alternating Gradient Flows, arXiv:2506.06489.

    Example:
        >>> x = np.cos(2 * np.pi * np.arange(5) / 5)
        >>> addition_utility(maximiser(x, 1)[None], x) - maximal_utilities(x)[0] < 1e-15
        array([ True])
    """
    spectrum = Spectrum(encoding)
    return spectrum.utility(spectrum.of(neurons))


@finite_answers()
def maximal_utilities(encoding: Encoding) -> Float[np.ndarray, " frequencies"]:
    """Maximal utility of a neuron with ‖θ‖ = 1 and a single frequency ξ, for ξ = 1, …, ⌊p/2⌋.

        U*_ξ = √(2/(27 p³)) |x̂[ξ]|³

    For ξ = p/2, which has no phase, the utility is √2 times larger. The utility is an average over all p² pairs. Some
    publications sum over the pairs and set ‖u‖ = ‖v‖ = ‖w‖ = 1; in this convention, the utility is 3√3 p² times larger.

    Args:
        encoding: Encoding x of the integers modulo p, shape (p,), with zero mean.

    Returns:
        U*_ξ, shape (⌊p/2⌋,).

    Raises:
        InputError: If the encoding is not finite, has fewer than three entries, is zero or has a nonzero mean.

    References:
        Alternating Gradient Flows, arXiv:2506.06489; the factor for p/2 is derived here.

    Example:
        >>> maximal_utilities(0.8 * np.cos(2 * np.pi * np.arange(17) / 17))[:2].round(6) + 0.0
        array([1.220918, 0.      ])
    """
    return Spectrum(encoding).maximal_utilities


@finite_answers()
def maximiser(
    encoding: Encoding, frequency: int, phases: tuple[FiniteFloat, FiniteFloat] = (0.0, 0.0)
) -> Float[np.ndarray, " weights"]:
    """Neuron [u | v | w] with ‖θ‖ = 1 and the maximal utility U*_ξ, for given phases.

        u[j] = √(2/(3p)) cos(2π ξ j/p + s_u),  and likewise v and w, with s_w = s_u + s_v − arg x̂[ξ]

    For ξ = p/2, the entries are ±1/√(3p), with signs determined by the signs of cos s_u and cos s_v.

    Args:
        encoding: Encoding x of the integers modulo p, shape (p,), with zero mean.
        frequency: ξ, from 1 to p/2, with x̂[ξ] ≠ 0.
        phases: (s_u, s_v), in radians.

    Returns:
        The neuron, shape (3p,).

    Raises:
        InputError: If the encoding is not finite, has fewer than three entries, is zero or has a nonzero mean, or if it
            does not contain the frequency.

    References:
        Alternating Gradient Flows, arXiv:2506.06489.

    Example:
        >>> maximiser([2.0, -1.0, -1.0], 1).round(4)[:3]
        array([ 0.4714, -0.2357, -0.2357])
    """
    spectrum = Spectrum(encoding)
    p = spectrum.p
    require(
        frequency in range(1, p // 2 + 1) and spectrum.active[frequency - 1],
        f"the encoding does not contain the frequency {frequency}",
        argument="frequency",
        value=frequency,
        remedy=f"choose one of {', '.join(map(str, spectrum.frequencies[spectrum.active]))}",
    )
    first, second = phases
    turn = np.angle(spectrum.coefficients[frequency - 1])
    if 2 * frequency == p:
        first, second = (0.0 if np.cos(phase) >= 0 else np.pi for phase in (first, second))
    shifts = np.array([first, second, first + second - turn])
    weights = np.cos(2 * np.pi * frequency / p * np.arange(p) + shifts[:, None]).ravel()
    return weights / np.linalg.norm(weights)


@checked
def unexplained_fraction(neurons: NonNegativeInt) -> float:
    """Smallest fraction of a frequency's loss that remains with a given number of neurons.

    The fraction is 1 for no neuron, 8/9 for one, 5/9 for two, 0.325635 for three, 1/6 for four, and 0 for five or more.
    For two to five neurons it is an infimum, which gradient flow approaches slowly as the weights grow but never
    attains. Six neurons attain zero: one complex product consists of three real products, and each real product takes
    two squares. The values hold for odd p ≥ 5 and ξ ≠ p/2. With too few neurons, this fraction remains on the last
    plateaus of `modular_addition_staircase`.

    Args:
        neurons: Number of neurons with this frequency, from 0.

    Raises:
        InputError: If the number is negative.

    Example:
        >>> [round(unexplained_fraction(neurons), 3) for neurons in range(7)]
        [1.0, 0.889, 0.556, 0.326, 0.167, 0.0, 0.0]
    """
    require_known(neurons=neurons)
    return (1.0, 8 / 9, 5 / 9, 0.325635, 1 / 6)[neurons] if neurons < 5 else 0.0


@covers(
    network="two-layer quadratic",
    data="modular addition, any encoding of zero mean",
    start="small, random directions",
    gives="times, levels and frequencies of all jumps",
    reference="arXiv:2506.06489",
    exact=False,
    assumes=(SMALL_START.costing("times have a relative error of up to 1/log(1/scale)"),),
)
def modular_addition_staircase(
    encoding: Encoding, *, scale: OpenFraction, neurons: Neurons | None = None, normalised: bool = True
) -> Staircase:
    """Predict the loss staircase (plateaus and jumps) of a quadratic network on addition modulo p from small weights.

    The two-layer network learns the frequencies one by one. After the frequencies in the set K are learned, the loss is
    ½ (‖x‖² − Σ_{ξ∈K} E_ξ), where E_ξ = 2|x̂[ξ]|²/p, or half of that for ξ = p/2.

    In the homogeneity-normalised flow, frequencies are learned in the order of U*_ξ (see `maximal_utilities`), at
    t/log(1/scale) → 1/(3 U*_ξ). Frequencies with equal utilities are learned together. If initial neurons are given,
    each neuron is integrated through its alignment with a frozen residual, and `times` are the times at which half of
    each drop is complete.

    In the plain flow, the times depend on the initial neurons at leading order. A neuron learns the frequency with its
    earliest blow-up time, unless this frequency is complete. The drop begins when the first neuron of the frequency has
    grown (`onset_time`). In this flow, `times` are the times at which the third neuron of a frequency has grown,
    because three neurons can explain more than half of the loss of a frequency.

    Args:
        encoding: Encoding x of the integers modulo p, shape (p,), with zero mean.
        scale: Factor α of the initial weights, between 0 and 1.
        neurons: Initial rows [u | v | w] at unit scale, shape (neurons, 3p). They are required for the plain flow. If
            they are not given for the normalised flow, `times` are log(1/scale) multiplied by the accelerated times
            (the limits of t/log(1/scale) for small scales).
        normalised: Whether to use the flow θ_i' = −‖θ_i‖⁻¹ ∇_i L instead of the plain gradient flow.

    Returns:
        A staircase with homogeneity degree 3. Its features, one value per jump, are `frequency_learned` (the first one,
        if several are learned together) and `maximal_utility`. With initial neurons, they also include `onset_time`,
        `earliest_onset` (a lower bound for all initial neurons of these norms) and `neurons_learning` (the number of
        neurons that learn the frequency).

    Raises:
        InputError: If an array is not finite, the shapes do not match, the encoding has fewer than three entries, is
            zero or has a nonzero mean, the scale is out of range, all weights of a neuron are zero, or neurons are
            missing for the plain flow.

    Assumptions: at least six neurons with generic phases per frequency. Levels are exact in the limit scale → 0.

    References:
        Alternating Gradient Flows, arXiv:2506.06489; the levels, the factor for p/2, the number of neurons per
        frequency and the times from given initial neurons are derived here.

    Example:
        >>> angles = 2 * np.pi * np.arange(17) / 17
        >>> steps = modular_addition_staircase(0.8 * np.cos(angles) + 0.52 * np.cos(2 * angles), scale=1e-6)
        >>> steps.accelerated_times.round(6), steps.levels.round(6) + 0.0
        (array([0.273019, 0.994151]), array([3.8692, 1.1492, 0.    ]))
    """
    spectrum = Spectrum(encoding)
    unit = time_unit(scale, degree=3, normalised=normalised)
    starts = None if neurons is None else Starts.of(spectrum, neurons)
    if normalised:
        jumps = jumps_in_the_normalised_flow(spectrum, starts, unit)
    else:
        require(
            starts is not None,
            "the times of the plain flow depend on the initial neurons, but neurons is not given",
            argument="neurons",
            value=None,
            remedy="give the initial neurons, or choose the normalised flow",
        )
        assert starts is not None
        jumps = jumps_in_the_plain_flow(spectrum, starts, unit)
    drops = np.array([spectrum.energies[jump.frequencies - 1].sum() / 2 for jump in jumps])
    first = np.array([jump.frequencies[0] for jump in jumps])
    utilities = spectrum.maximal_utilities[first - 1]
    features = {"frequency_learned": (("jump",), first), "maximal_utility": (("jump",), utilities)}
    if starts is not None:
        largest = np.log(starts.norms.max())
        bound = (unit - largest if normalised else unit * np.exp(-largest)) / (3 * utilities)
        features |= {
            "onset_time": (("jump",), np.array([jump.onset for jump in jumps])),
            "earliest_onset": (("jump",), np.maximum(bound, 0.0)),
            "neurons_learning": (("jump",), np.array([jump.neurons for jump in jumps])),
        }
    return Staircase(
        accelerated_times=np.array([jump.accelerated for jump in jumps]),
        times=np.array([jump.time for jump in jumps]),
        levels=np.maximum(spectrum.energies.sum() / 2 - np.append(0.0, np.cumsum(drops)), 0.0),
        learned=tuple(_phrase(jump.frequencies) for jump in jumps),
        slow=tuple(jump.slow for jump in jumps),
        features=features,
        names=_NAMES,
        theory="alternating gradient flow, modular addition",
        reference=ALTERNATING,
        warnings=tuple(_warnings(spectrum, jumps, starts, scale)),
        degree=3,
        normalised=normalised,
    )


def _phrase(frequencies: Sequence[int] | np.ndarray) -> str:
    return f"{'frequency' if len(frequencies) == 1 else 'frequencies'} {', '.join(map(str, frequencies))}"


def _warnings(spectrum: Spectrum, jumps: list[Jump], starts: Starts | None, scale: float) -> Iterator[str]:
    p = spectrum.p
    for jump in jumps:
        if jump.slow.startswith(HARMONIC):
            yield f"The jump of {_phrase(jump.frequencies)} may come earlier than predicted: {jump.slow}."
    for before, after in itertools.pairwise(jumps):
        names = f"{_phrase(before.frequencies)} and {_phrase(after.frequencies)}"
        if after.accelerated <= (1 + _NEARLY_EQUAL) * before.accelerated:
            yield f"The jumps of {names} overlap unless the scale is very small."
        elif after.time <= before.time:
            yield f"The jumps of {names} are out of order at this scale: the initial neurons favour the weaker one."
    if starts is None:
        return
    for frequency in map(int, spectrum.frequencies[spectrum.active]):
        phases = starts.phase_differences[starts.learned == frequency - 1, frequency - 1]
        learning = [jump.neurons for jump in jumps if frequency in jump.frequencies]
        few = shortage(spectrum, frequency, *(learning or [0]))
        if few:
            needed = enough_neurons(p, frequency)
            yield (
                f"{few.capitalize()}, which requires {needed}, so the frequency may be learned late, in part or not at "
                "all."
            )
        # The phases of p/2 are 0 or π.
        if len(phases) > 1 and 2 * frequency != p and abs(np.exp(1j * phases).mean()) > _SAME_PHASE:
            yield f"All neurons of frequency {frequency} have the same phase difference, so they cannot learn it."
    largest = scale * starts.norms.max()
    if largest > _SMALL_START:
        yield (
            f"The initial weights are not small (the largest neuron has norm {largest:.2g}), so the times are"
            " approximate."
        )

"""Quadratic networks on modular addition: one frequency of the encoding after the other."""

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
    too_few,
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
    "maximal_utility": ("greatest utility", "1"),
    "onset_time": ("time at which neurons start to grow", "gradient-flow time"),
    "earliest_onset": ("earliest time at which a neuron starts to grow", "gradient-flow time"),
    "neurons_learning": ("neurons that learn", "neurons"),
}
_NEARLY_EQUAL = 0.05  # relative difference of accelerated times below which jumps overlap at usual scales
_SMALL_START = 0.1  # neurons above this norm shape the function before any plateau
_SAME_PHASE = 0.99  # length of the mean of unit vectors that all but agree


@finite_answers()
def addition_utility(neurons: Neurons, encoding: Encoding) -> Float[np.ndarray, " neurons"]:
    """U = E⟨f_i(x; θ_i), y⟩ of neurons before anything is learned, on addition modulo p.

    Averaged over all p² pairs, with the unnormalised Fourier transform x̂[k] = Σ_j x[j] exp(−2πi jk/p),

        U = 2/p³ Σ_{k≠0} |x̂[k]|² û[k] v̂[k] conj(ŵ[k] x̂[k]),

    so that the frequencies do not interact.

    Args:
        neurons: Rows [u | v | w] of f_i = w (u·x_a + v·x_b)², shape (neurons, 3p).
        encoding: x, shape (p,), of zero mean.

    Returns:
        U, shape (neurons,).

    Raises:
        InputError: Arrays that are not finite or do not fit, p below three, or an encoding that is zero or has a mean.

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
    """U*_ξ, the largest utility of a neuron with ‖θ‖ = 1 that has the frequency ξ only, for ξ = 1, …, ⌊p/2⌋.

    U*_ξ = √(2/(27 p³)) |x̂[ξ]|³, and √2 times as much for ξ = p/2, which needs no phase. The average is over pairs; for
    the sum over pairs and ‖u‖ = ‖v‖ = ‖w‖ = 1, as sometimes printed, multiply by 3√3 p².

    Args:
        encoding: x, shape (p,), of zero mean.

    Returns:
        U*_ξ, shape (⌊p/2⌋,).

    Raises:
        InputError: As `addition_utility`.

    References:
        Alternating Gradient Flows, arXiv:2506.06489; the weight of p/2 is ours.

    Example:
        >>> maximal_utilities(0.8 * np.cos(2 * np.pi * np.arange(17) / 17))[:2].round(6) + 0.0
        array([1.220918, 0.      ])
    """
    return Spectrum(encoding).maximal_utilities


@finite_answers()
def maximiser(
    encoding: Encoding, frequency: int, phases: tuple[FiniteFloat, FiniteFloat] = (0.0, 0.0)
) -> Float[np.ndarray, " weights"]:
    """A neuron [u | v | w] with ‖θ‖ = 1 and the utility U*_ξ; there is one for each pair of phases.

    u[j] = √(2/(3p)) cos(2π ξ j/p + s_u), likewise v and w, with s_w = s_u + s_v − arg x̂[ξ]. For ξ = p/2 the entries are
    ±1/√(3p), with signs from those of cos s_u and cos s_v.

    Args:
        encoding: x, shape (p,), of zero mean.
        frequency: ξ, from 1 to p/2, with x̂[ξ] ≠ 0.
        phases: (s_u, s_v), in radians.

    Returns:
        The neuron, shape (3p,).

    Raises:
        InputError: As `addition_utility`, or a frequency that the encoding does not contain.

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
    """The smallest share of a frequency's part of the loss that the given number of neurons leaves unexplained.

    0: 1, 1: 8/9, 2: 5/9, 3: 0.325635, 4: 1/6, 5 and more: 0. For two to five neurons the value is an infimum that is
    approached with growing weights and never attained, so that gradient flow creeps towards it; six attain zero, as
    three real products (one complex product) of two squares each. For odd p ≥ 5 and ξ ≠ p/2.
    What it leaves is on the last plateaus of `modular_addition_staircase`.

    Args:
        neurons: Number of neurons with that frequency.

    Raises:
        InputError: The number is negative.

    Example:
        >>> [round(unexplained_fraction(neurons), 3) for neurons in range(7)]
        [1.0, 0.889, 0.556, 0.326, 0.167, 0.0, 0.0]
    """
    require_known(neurons=neurons)
    return (1.0, 8 / 9, 5 / 9, 0.325635, 1 / 6)[neurons] if neurons < 5 else 0.0


@covers(
    network="two-layer quadratic",
    data="modular addition, any encoding without mean",
    start="small, random directions",
    gives="times, levels and frequencies of all jumps",
    reference="arXiv:2506.06489",
    exact=False,
    assumes=(SMALL_START.costing("times are off by up to 1/log(1/scale) of them"),),
)
def modular_addition_staircase(
    encoding: Encoding, *, scale: OpenFraction, neurons: Neurons | None = None, normalised: bool = True
) -> Staircase:
    """Predict the staircase of a two-layer quadratic network on addition modulo p from small initialisation.

    Frequencies are learned one by one. When those of the set K are learned, the loss is ½ (‖x‖² − Σ_{ξ∈K} E_ξ) with
    E_ξ = 2|x̂[ξ]|²/p, and half of that for ξ = p/2. In the homogeneity-normalised flow they come in the order of U*_ξ
    (see `maximal_utilities`), at t/log(1/scale) → 1/(3 U*_ξ); equal ones come together. In the plain flow times depend
    on the start at leading order: a neuron takes the frequency whose `blow_up_times` is earliest, unless it is learned
    already, and the frequency's drop begins (`onset_time`) with the first neuron that takes it.

    With initial neurons, `times` is when the third neuron of a frequency has grown, the first three being able to
    explain more than half of it: each neuron is followed through its alignment, the rest of the network being frozen.

    Args:
        encoding: x, shape (p,), of zero mean.
        scale: α < 1, the factor on the initial neurons.
        neurons: Initial rows [u | v | w] at scale one, shape (neurons, 3p). Without them `times` is accelerated times
            multiplied by log(1/scale); the plain flow needs them.
        normalised: Whether the flow is θ_i' = −‖θ_i‖⁻¹ ∇_i L, or the plain gradient flow.

    Returns:
        The staircase, of degree 3. Its features over jumps are `frequency_learned` (the first, where several come
        together), `maximal_utility`, and, with initial neurons, `onset_time`, `earliest_onset` (a bound that no start
        of neurons of these norms can beat) and `neurons_learning` (how many neurons take the frequency).

    Raises:
        InputError: As `addition_utility`, a scale not below one, a neuron without weights, or no neurons for the plain
            flow.

    Assumptions: six or more neurons with generic phases in each frequency; levels are exact as the scale goes to zero.

    References:
        Alternating Gradient Flows, arXiv:2506.06489; the levels, the weight of p/2, the neurons that a frequency needs
        and the times from the actual start are ours, checked against direct integration.

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
            "the times of the plain flow depend on the initial neurons and none are given",
            argument="neurons",
            value=None,
            remedy="give them, or ask for the normalised flow",
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
            yield f"The jumps of {names} are out of order at this scale: the start favours the weaker one."
    if starts is None:
        return
    for frequency in map(int, spectrum.frequencies[spectrum.active]):
        phases = starts.phase_differences[starts.takes == frequency - 1, frequency - 1]
        learning = [jump.neurons for jump in jumps if frequency in jump.frequencies]
        few = too_few(spectrum, frequency, *(learning or [0]))
        if few:
            needed = enough_neurons(p, frequency)
            yield f"A{few[1:]}, which needs {needed}: it may be learned late, in part, or not at all."
        # Phases of p/2 are 0 or π.
        if len(phases) > 1 and 2 * frequency != p and abs(np.exp(1j * phases).mean()) > _SAME_PHASE:
            yield f"All neurons of frequency {frequency} have the same phase difference, and so cannot learn it."
    largest = scale * starts.norms.max()
    if largest > _SMALL_START:
        yield f"The start is not small (the largest neuron has norm {largest:.2g}), so the times are rough."

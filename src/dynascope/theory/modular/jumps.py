"""The jumps of quadratic networks on modular addition: which frequencies, by how many neurons, and when."""

from __future__ import annotations

import dataclasses

import numpy as np

from dynascope.theory.modular.growth import Spectrum, Starts

__all__ = ["HARMONIC", "Jump", "enough_neurons", "jumps_in_the_normalised_flow", "jumps_in_the_plain_flow", "too_few"]

HARMONIC = "neurons acquire it that have a third of it, frequency"
_EQUAL = 1e-9  # relative difference of utilities that are equal up to rounding
_TOGETHER = 0.05  # relative difference of the times at which the neurons of a frequency arrive together


@dataclasses.dataclass(frozen=True)
class Jump:
    """One jump of the staircase.

    Attributes:
        frequencies: What is learned.
        accelerated: Limit of t/T(α) as the scale α goes to zero.
        time: When half of the drop is done, at the given scale.
        onset: When the first neuron has grown.
        neurons: How many neurons take the frequency; the fewest, where several frequencies come together.
        slow: Why the times are uncertain; empty where they are not.
    """

    frequencies: np.ndarray
    accelerated: float
    time: float
    onset: float
    neurons: int
    slow: str = ""


def enough_neurons(p: int, frequency: int) -> int:
    """Neurons that learn a frequency completely: two squares for each real product."""
    return 2 if 2 * frequency == p else 6


def too_few(spectrum: Spectrum, frequency: int, neurons: int) -> str:
    """That too few neurons take a frequency; empty where they suffice."""
    if neurons >= enough_neurons(spectrum.p, frequency):
        return ""
    count = {0: "no neuron takes", 1: "only one neuron takes"}.get(neurons, f"only {neurons} neurons take")
    return f"at the start {count} frequency {frequency}"


def jumps_in_the_normalised_flow(spectrum: Spectrum, starts: Starts | None, unit: float) -> list[Jump]:
    """In the order of U*, frequencies with equal ones together; the unit of time is T(α) = log(1/α)."""
    maxima = spectrum.maximal_utilities
    groups: list[list[int]] = []
    for k in map(int, np.argsort(-maxima, kind="stable")[: spectrum.active.sum()]):
        if groups and maxima[k] > (1 - _EQUAL) * maxima[groups[-1][0]]:
            groups[-1].append(k)
        else:
            groups.append([k])
    jumps = []
    for group in groups:
        accelerated = float(1 / (3 * maxima[group[0]]))
        begun, half, neurons, slow = [0.0], [0.0], 0, ""
        if starts is not None:
            gains = [starts.gain[starts.takes == k] for k in group]
            neurons = min(map(len, gains))
            # A frequency without neurons does not delay the others.
            begun = [gain.max() for gain in gains if len(gain)] or begun
            half = [_half_grown(spectrum, k, gain) for k, gain in zip(group, gains, strict=True) if len(gain)] or half
            slow = next(filter(None, (too_few(spectrum, k + 1, len(g)) for k, g in zip(group, gains, strict=True))), "")
        time, onset = (accelerated * max(unit - gain, 0.0) for gain in (min(half), max(begun)))
        jumps.append(Jump(spectrum.frequencies[group], accelerated, time, onset, neurons, slow))
    return _marked(spectrum.p, jumps)


def _half_grown(spectrum: Spectrum, k: int, gains: np.ndarray) -> float:
    """The gain of a neuron that would alone be as far as all together are when half of the frequency's loss is gone.

    The share s that is learned obeys s' = 9 U* s (1 − s), from s = U*/E Σ_i exp(3 g_i) α³. Half of the loss (1 − s)² is
    gone at s/(1 − s) = √2 − 1.
    """
    needed = (np.sqrt(2) - 1) * spectrum.energies[k] / spectrum.maximal_utilities[k]
    return float(np.logaddexp.reduce(3 * gains) - np.log(needed)) / 3


def jumps_in_the_plain_flow(spectrum: Spectrum, starts: Starts, unit: float) -> list[Jump]:
    """In the order in which neurons arrive, each at the first frequency that is not complete; the unit is 1/α."""
    p, arrivals, free = spectrum.p, {}, np.ones(len(starts.norms), bool)
    for place in np.argsort(starts.blow_up, axis=None, kind="stable"):
        i, k = map(int, np.unravel_index(place, starts.blow_up.shape))
        time, taken = float(starts.blow_up[i, k]), arrivals.get(k, [])
        if np.isfinite(time) and free[i] and len(taken) < enough_neurons(p, k + 1):
            arrivals[k] = [*taken, time]
            free[i] = False
    jumps = []
    for k, times in arrivals.items():
        # Two neurons leave 5/9 unexplained, three less than a half.
        half = times[min(enough_neurons(p, k + 1) // 2, len(times)) - 1]
        slow = too_few(spectrum, k + 1, len(times))
        if not slow and times[-1] > (1 + _TOGETHER) * times[0]:
            slow = "its neurons arrive one by one, and each changes when the others do"
        jumps.append(Jump(spectrum.frequencies[[k]], half, half * unit, times[0] * unit, len(times), slow))
    return _marked(p, sorted(jumps, key=lambda jump: jump.time))


def _marked(p: int, jumps: list[Jump]) -> list[Jump]:
    """The jumps, with those marked slow whose frequency is three times one that is learned before."""
    known: list[int] = []
    marked = []
    for jump in jumps:
        sources = [source for source in known if {3 * source % p, -3 * source % p} & set(map(int, jump.frequencies))]
        slow = f"{HARMONIC} {sources[0]}, which is learned before" if sources else jump.slow
        marked.append(dataclasses.replace(jump, slow=slow))
        known += map(int, jump.frequencies)
    return marked

"""Jumps of quadratic networks on modular addition: frequencies, numbers of neurons and times."""

from __future__ import annotations

import dataclasses

import numpy as np

from dynascope.theory.modular.growth import Spectrum, Starts

__all__ = ["HARMONIC", "Jump", "enough_neurons", "jumps_in_the_normalised_flow", "jumps_in_the_plain_flow", "shortage"]

HARMONIC = "its frequency is three times frequency"
_EQUAL = 1e-9  # relative difference below which utilities count as equal
_TOGETHER = 0.05  # relative difference of times below which the neurons of a frequency arrive together


@dataclasses.dataclass(frozen=True)
class Jump:
    """One jump of the staircase.

    Attributes:
        frequencies: Learned frequencies.
        accelerated: Limit of t/T(α) as the scale α goes to zero.
        time: Time at which half of the drop is complete, at the given scale.
        onset: Time at which the first neuron has grown.
        neurons: Number of neurons that learn the frequency; the smallest number if several are learned together.
        slow: Reason why the times are uncertain; empty if they are not.
    """

    frequencies: np.ndarray
    accelerated: float
    time: float
    onset: float
    neurons: int
    slow: str = ""


def enough_neurons(p: int, frequency: int) -> int:
    """Number of neurons required to learn a frequency completely; each real product requires two squares."""
    return 2 if 2 * frequency == p else 6


def shortage(spectrum: Spectrum, frequency: int, neurons: int) -> str:
    """Return a warning if too few neurons learn a frequency; empty if there are enough."""
    if neurons >= enough_neurons(spectrum.p, frequency):
        return ""
    count = {0: "no neuron learns", 1: "only one neuron learns"}.get(neurons, f"only {neurons} neurons learn")
    return f"{count} frequency {frequency}"


def jumps_in_the_normalised_flow(spectrum: Spectrum, starts: Starts | None, unit: float) -> list[Jump]:
    """Return the jumps in the order of U*, one for each distinct utility; the unit of time is T(α) = log(1/α)."""
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
            gains = [starts.gain[starts.learned == k] for k in group]
            neurons = min(map(len, gains))
            # A frequency without neurons does not delay the others.
            begun = [gain.max() for gain in gains if len(gain)] or begun
            each = list(zip(group, gains, strict=True))
            half = [_half_loss_gain(spectrum, k, gain) for k, gain in each if len(gain)] or half
            slow = next(filter(None, (shortage(spectrum, k + 1, len(gain)) for k, gain in each)), "")
        time, onset = (accelerated * max(unit - gain, 0.0) for gain in (min(half), max(begun)))
        jumps.append(Jump(spectrum.frequencies[group], accelerated, time, onset, neurons, slow))
    return _mark_harmonics(spectrum.p, jumps)


def _half_loss_gain(spectrum: Spectrum, k: int, gains: np.ndarray) -> float:
    """Return the gain of a single neuron that halves a frequency's loss at the same time as all given neurons together.

    The learned fraction s obeys s' = 9 U* s (1 − s), from s = U*/E Σ_i exp(3 g_i) α³. The loss (1 − s)² is halved at
    s/(1 − s) = √2 − 1.
    """
    needed = (np.sqrt(2) - 1) * spectrum.energies[k] / spectrum.maximal_utilities[k]
    return float(np.logaddexp.reduce(3 * gains) - np.log(needed)) / 3


def jumps_in_the_plain_flow(spectrum: Spectrum, starts: Starts, unit: float) -> list[Jump]:
    """Return the jumps if each neuron learns its earliest incomplete frequency; the unit of time is 1/α."""
    p, arrivals, free = spectrum.p, {}, np.ones(len(starts.norms), bool)
    for place in np.argsort(starts.blow_up, axis=None, kind="stable"):
        i, k = map(int, np.unravel_index(place, starts.blow_up.shape))
        time, taken = float(starts.blow_up[i, k]), arrivals.get(k, [])
        if np.isfinite(time) and free[i] and len(taken) < enough_neurons(p, k + 1):
            arrivals[k] = [*taken, time]
            free[i] = False
    jumps = []
    for k, times in arrivals.items():
        # Two neurons leave 5/9 of the loss unexplained, three less than half.
        half = times[min(enough_neurons(p, k + 1) // 2, len(times)) - 1]
        slow = shortage(spectrum, k + 1, len(times))
        if not slow and times[-1] > (1 + _TOGETHER) * times[0]:
            slow = "its neurons arrive one by one, and each arrival changes the others"
        jumps.append(Jump(spectrum.frequencies[[k]], half, half * unit, times[0] * unit, len(times), slow))
    return _mark_harmonics(p, sorted(jumps, key=lambda jump: jump.time))


def _mark_harmonics(p: int, jumps: list[Jump]) -> list[Jump]:
    """Mark jumps slow if their frequency is three times a frequency that is learned earlier."""
    known: list[int] = []
    marked = []
    for jump in jumps:
        sources = [source for source in known if {3 * source % p, -3 * source % p} & set(map(int, jump.frequencies))]
        slow = f"{HARMONIC} {sources[0]}, whose neurons also acquire it" if sources else jump.slow
        marked.append(dataclasses.replace(jump, slow=slow))
        known += map(int, jump.frequencies)
    return marked

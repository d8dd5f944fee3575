from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dynascope.errors import InputError
from dynascope.probes.diffusion import fit_exponent

STEPS = np.unique(np.geomspace(10, 1000, 12).round().astype(int))


@given(exponent=st.floats(0.1, 2.0), factor=st.sampled_from([1e-300, 0.3, 100.0, 1e300]), runs=st.integers(1, 5))
def test_a_power_is_found_exactly(exponent, factor, runs):
    values = factor * np.tile(STEPS.astype(float) ** exponent, (runs, 1))
    fit = fit_exponent(STEPS, values, first=10, last=1000)
    assert fit.exponent == pytest.approx(exponent, abs=1e-9)
    assert abs(fit.bend) < 1e-9
    assert fit.points == len(STEPS)
    if runs == 1:
        assert (fit.low, fit.high) == (-np.inf, np.inf)
    else:
        assert fit.low == pytest.approx(fit.high)


@pytest.mark.parametrize(("dimensions", "runs", "confidence"), [(1, 5, 0.95), (3, 8, 0.95), (20, 16, 0.8)])
def test_intervals_have_the_coverage_that_they_state(dimensions, runs, confidence):
    draw, trials = np.random.default_rng(0), 400
    moves = np.sqrt(np.diff(STEPS, prepend=0))[:, None]
    hits = 0
    for _ in range(trials):
        paths = np.cumsum(draw.normal(size=(runs, len(STEPS), dimensions)) * moves, axis=1)
        fit = fit_exponent(STEPS, np.sum(paths**2, axis=2), first=10, last=1000, confidence=confidence)
        hits += fit.low < 1 < fit.high
    # 2 % is what its docstring leaves open; the rest is chance, at one in a thousand.
    low, high = stats.binom.ppf([5e-4, 1 - 5e-4], trials, [confidence - 0.02, confidence + 0.015])
    assert low <= hits <= high


def test_intervals_cover_the_exponent_of_a_few_modes_that_are_held():
    """Modes of a spectrum l⁻², at rest, whose displacements at all steps of the window go together."""
    draw, trials, runs = np.random.default_rng(1), 400, 20
    held, wide = 0.05 * np.arange(1.0, 31) ** -2, np.full(30, 1.0)
    expected = np.polyfit(np.log(STEPS), np.log([np.sum(2 * wide * (1 - np.exp(-held * k))) for k in STEPS]), 1)[0]
    hits = 0
    for _ in range(trials):
        first = now = draw.normal(size=(runs, 30)) * np.sqrt(wide)
        seen = []
        for since in np.diff(STEPS, prepend=0):
            kept = np.exp(-held * since)
            now = kept * now + np.sqrt(wide * (1 - kept**2)) * draw.normal(size=now.shape)
            seen.append(np.sum((now - first) ** 2, axis=1))
        fit = fit_exponent(STEPS, np.stack(seen, axis=1), first=10, last=1000)
        hits += fit.low < expected < fit.high
    low, high = stats.binom.ppf([5e-4, 1 - 5e-4], trials, [0.93, 0.965])
    assert low <= hits <= high


def test_the_bend_tells_what_is_no_power():
    curved = STEPS / (1 + STEPS / 100)
    assert fit_exponent(STEPS, np.tile(curved, (3, 1)), first=10, last=1000).bend < -0.3


@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"steps": STEPS[:-1]}, "steps"),
        ({"first": 900}, "first"),
        ({"last": 10}, "last"),
        ({"confidence": 1.0}, "confidence"),
        ({"squared_displacements": np.zeros((3, len(STEPS)))}, "squared_displacements"),
    ],
)
def test_bad_input_is_refused_by_name(changes, argument):
    usual = {"steps": STEPS, "squared_displacements": np.ones((3, len(STEPS))), "first": 10, "last": 1000}
    with pytest.raises(InputError) as caught:
        fit_exponent(**usual | changes)
    assert caught.value.argument == argument

"""Curves that a power law does not describe, wholly or at some points: warnings, and none where it does."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from dynascope.theory.scaling_laws import MisfitWarning, OutlierWarning, fit

X = np.geomspace(10, 1e4, 25)
LAW = 2 * X**-0.4 + 0.05
KINDS = (OutlierWarning, MisfitWarning)
BENT = {
    "waves": LAW * np.exp(0.05 * np.sin(np.log(X))),
    "late start": 2 * (X + 30) ** -0.4 + 0.05,
    "growing exponent": LAW * np.exp(-0.02 * np.log(X / 100) ** 2),
}


def noisy(losses, seed, runs=1):
    return losses * np.exp(0.01 * np.random.default_rng(seed).normal(size=(runs, len(losses))))


def diagnosed(losses, resource=X, **options: Any):
    """The fit, the warnings of broken points, and those of a misfit."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        found = fit(losses, resource, **options)
    return found, *([str(each.message) for each in heard if each.category is kind] for kind in KINDS)


@pytest.mark.parametrize("floor", [None, 0.05])
@pytest.mark.parametrize("runs", [1, 3])
@pytest.mark.parametrize("broken", [(0,), (0, 1), (12,), (24,)], ids=str)
def test_broken_points_are_named(broken, runs, floor):
    named = bent = 0
    for seed in range(8):
        losses = noisy(LAW, seed, runs)
        losses[:, broken] *= 1.2
        found, sentences, misfits = diagnosed(losses, floor=floor, window=(10, 1e4))
        if found.suspects == broken:
            named += 1
            assert ", ".join(map(str, broken)) in sentences[0]
            assert ", ".join(map(str, broken)) in repr(found)
            bent += bool(misfits)
    assert named >= 7
    # The other points are of the law, and one in a hundred fits fails by chance.
    assert bent <= 1


def test_the_warning_gives_the_exponent_without_the_broken_points():
    losses = noisy(LAW, 0)[0]
    losses[0] *= 1.2
    _, (sentence,), _ = diagnosed(losses)
    sound = fit(losses[1:], X[1:]).exponent
    assert f"{sound:.3g}" in sentence
    assert "0.436" in sentence


def test_positions_count_the_points_that_are_not_fitted():
    x = np.geomspace(10, 1e4, 241)
    losses = noisy(2 * x**-0.4 + 0.05, 0)[0]
    losses[120:124] *= 1.3  # one of which is fitted
    found, (sentence,), _ = diagnosed(losses, x, window=(30, 1e4))
    assert found.points < 70
    (suspect,) = found.suspects
    assert suspect in range(120, 124)
    assert "1 of 241" in sentence
    assert f"point {suspect}" in sentence


@pytest.mark.parametrize("floor", [None, 0.05])
@pytest.mark.parametrize("name", BENT)
@pytest.mark.parametrize("runs", [1, 5])
def test_losses_of_another_law_are_a_misfit(name, runs, floor):
    misfits = 0
    for seed in range(8):
        found, sentences, heard = diagnosed(noisy(BENT[name], seed, runs), floor=floor, window=(10, 1e4))
        assert not sentences
        assert found.misfit_p_value is not None
        assert bool(heard) == (found.misfit_p_value < 0.01)
        misfits += bool(heard)
    assert misfits >= 7


@pytest.mark.parametrize("floor", [None, 0.05])
@pytest.mark.parametrize(("runs", "points"), [(1, 6), (1, 8), (1, 25), (3, 25)])
def test_noisy_losses_of_the_law_are_rarely_warned_of(points, runs, floor):
    x, false = np.geomspace(10, 1e4, points), 0
    for seed in range(40):
        _, outliers, misfits = diagnosed(noisy(2 * x**-0.4 + 0.05, seed, runs), x, floor=floor)
        false += bool(outliers or misfits)
    # One in a hundred is, by chance.
    assert false <= 2


@pytest.mark.parametrize("options", [{}, {"floor": 0.05}, {"floor": 0.05, "window": (10, 1e4)}])
@pytest.mark.parametrize("losses", [LAW, LAW.astype(np.float32), np.round(LAW, 4), LAW * (1 + 0.01 / X)], ids=range(4))
def test_losses_without_noise_are_not_warned_of(losses, options: dict[str, Any]):
    found, outliers, misfits = diagnosed(losses, **options)
    assert not outliers
    assert not misfits
    assert found.misfit_p_value == 1.0


def test_few_points_are_not_tested():
    x = np.geomspace(10, 1e4, 5)
    losses = 2 * x**-0.4 * np.array([1, 1, 1.2, 1, 1])
    found, outliers, misfits = diagnosed(losses, x, floor=0.0, window=(10, 1e4))
    assert (found.suspects, found.misfit_p_value, outliers, misfits) == ((), None, [], [])


def test_broken_points_stay_part_of_the_fit():
    losses = noisy(LAW, 0)[0]
    losses[0] *= 1.2
    found, sentences, _ = diagnosed(losses)
    assert sentences
    # As before these points were warned of.
    assert found.exponent == pytest.approx(0.4356275249961125, rel=1e-6)
    np.testing.assert_allclose(found.exponent_interval, (0.4099312482897369, 0.4617011557116101), rtol=1e-4)
    np.testing.assert_allclose(found.floor_interval, (0.05133438138113843, 0.07078491660246429), rtol=1e-4)
    straight, sentences, _ = diagnosed(losses, floor=0.05, window=(10, 1e4))
    assert sentences
    np.testing.assert_allclose(straight.exponent_interval, (0.39747411641960423, 0.4133828906949201), rtol=1e-6)

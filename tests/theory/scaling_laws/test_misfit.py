from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.theory.scaling_laws import JointLaw, MisfitWarning, fit
from dynascope.theory.scaling_laws.misfit import misfit_p_value, require_one_law
from dynascope.theory.scaling_laws.unknown_floor import RaisedPowerLaw, fit_above_floor

X = np.linspace(np.log(10), np.log(1e4), 25)
LAW = RaisedPowerLaw(np.log(2), 0.4, 0.05)
TILTS = np.stack([np.ones_like(X), X - X.mean()])
SURFACE = JointLaw(1.7, 400.0, 0.34, 410.0, 0.28).loss(np.geomspace(1e6, 1e9, 9)[:, None], np.geomspace(1e8, 1e11, 9))


def drawn(seed, runs, bend=0.0):
    draw = np.random.default_rng(seed)
    noise = 0.01 * draw.normal(size=(runs, len(X))) + 0.02 * draw.normal(size=(runs, 2)) @ TILTS * (runs > 1)
    curves = np.exp(LAW.logarithm(X) + noise + bend * np.sin(X))
    return curves, fit_above_floor(X, np.log(curves.mean(axis=0)))


@pytest.mark.parametrize("runs", [1, 4, 8])
def test_runs_of_a_power_law_do_not_drift_and_bent_ones_do(runs):
    values = np.array([misfit_p_value(X, *drawn(seed, runs)) for seed in range(100)], float)
    # One in a hundred is below 0.01 by chance: more than four are with a probability of 0.3 %.
    assert np.sum(values < 0.01) <= 4
    assert 0.3 < np.mean(values) < 0.8
    bent = np.array([misfit_p_value(X, *drawn(seed, runs, bend=0.05)) for seed in range(10)], float)
    assert np.all(bent < 0.01)


def test_runs_that_agree_on_another_law_drift():
    curve = np.exp(LAW.logarithm(X) + 0.05 * np.sin(X))
    runs = curve * np.array([[1.0], [1.1], [0.9]])
    with pytest.warns(MisfitWarning, match="too narrow"):
        fit(runs, np.exp(X))


def test_a_surface_is_no_set_of_runs():
    draw, x = np.random.default_rng(0), np.geomspace(1e8, 1e11, 9)
    noisy = SURFACE * np.exp(0.01 * draw.normal(size=(9, 9)))
    for losses in (noisy, noisy[draw.permutation(9)], noisy[:3], noisy.T):
        with pytest.raises(InputError, match="fit_joint") as refusal:
            fit(losses, x)
        assert refusal.value.argument == "losses"


@pytest.mark.parametrize("runs", [2, 3, 5, 16])
def test_runs_that_differ_by_their_seeds_are_no_surface(runs):
    refused = 0
    for seed in range(100):
        draw = np.random.default_rng(seed)
        curves = np.exp(LAW.logarithm(X) + 0.02 * draw.normal(size=(runs, len(X))) + 0.2 * draw.normal(size=(runs, 1)))
        try:
            require_one_law(curves)
        except InputError:
            refused += 1
    # Five runs are in order once in sixty times.
    assert refused <= (6 if runs == 5 else 0)


def test_runs_in_order_that_hardly_differ_are_no_surface():
    require_one_law(np.exp(LAW.logarithm(X)) * np.linspace(1, 1.1, 8)[:, None])

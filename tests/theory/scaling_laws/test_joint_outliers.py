"""Broken runs: found and named wherever they are, and never found where the runs are sound."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.theory.scaling_laws import JointLaw, OutlierWarning, fit_joint

LAW = JointLaw(1.82, 482.0, 0.348, 2085.0, 0.366)
N, D = (each.ravel() for each in np.meshgrid(np.geomspace(1e6, 1e9, 6), np.geomspace(1e8, 1e11, 6), indexing="ij"))


def isoflops(draw):
    """Nine curves of equal compute, and five runs with less data than any of them."""
    compute = np.repeat(np.geomspace(6e18, 3e21, 9), 26)
    n = 0.2 * (compute / 6) ** 0.49 * np.tile(np.geomspace(0.15, 6, 26), 9) * np.exp(0.1 * draw.normal(size=234))
    d = compute / 6 / n
    edge = 10 ** draw.uniform(9.3, 9.85, 5)
    return np.append(n[d > 8e8], edge), np.append(d[d > 8e8], 1.5e18 / edge)


def heard(n, d, losses):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        return fit_joint(n, d, losses), [str(each.message) for each in found if each.category is OutlierWarning]


@pytest.mark.parametrize(("low", "high"), [(1.07, 1.28), (0.72, 0.93), (10.0, 1000.0)], ids=["high", "low", "diverged"])
def test_broken_runs_at_the_edge_are_named_and_move_nothing(low, high):
    held = 0
    for seed in range(6):
        draw = np.random.default_rng(seed)
        n, d = isoflops(draw)
        losses = LAW.loss(n, d) * np.exp(0.004 * draw.normal(size=n.size))
        losses[-5:] *= draw.uniform(low, high, 5)
        found, (sentence,) = heard(n, d, losses)
        assert found.outliers == tuple(range(n.size - 5, n.size))
        assert ", ".join(map(str, found.outliers)) in sentence
        assert sentence in repr(found)
        sound, none = heard(n[:-5], d[:-5], losses[:-5])
        assert not none
        assert found.law == sound.law
        ends = found.data_exponent_interval
        assert ends == sound.data_exponent_interval
        held += ends[0] <= LAW.data_exponent <= ends[1]
    assert held >= 5


@pytest.mark.parametrize("scatter", ["alike", "small models noisier", "little data noisier"])
def test_sound_runs_are_not_named(scatter):
    wider = {"alike": 0 * N + 1, "small models noisier": (N / 1e9) ** -0.2, "little data noisier": (D / 1e11) ** -0.2}
    named = 0
    for seed in range(12):
        noise = 0.005 * wider[scatter] * np.random.default_rng(seed).normal(size=N.size)
        named += bool(heard(N, D, LAW.loss(N, D) * np.exp(noise))[1])
    assert named == 0


@pytest.mark.parametrize("points", [8, 10, 12, 15])
def test_few_sound_runs_are_not_named(points):
    named = 0
    for seed in range(12):
        draw = np.random.default_rng(seed)
        n, d = 10 ** draw.uniform(6, 9, points), 10 ** draw.uniform(8, 11, points)
        named += bool(heard(n, d, LAW.loss(n, d) * np.exp(0.01 * draw.normal(size=points)))[1])
    assert named <= 1


def test_broken_runs_of_a_table_without_noise_are_named_by_row_and_column():
    losses = LAW.loss(N, D).reshape(6, 6)
    losses[2, 3] *= 1.001
    losses[5, 0] *= 1e3
    found, (sentence,) = heard(N.reshape(6, 6), D.reshape(6, 6), losses)
    assert found.outliers == (15, 30)
    assert "(2, 3), (5, 0)" in sentence
    np.testing.assert_allclose(found.law[2::2], LAW[2::2], rtol=1e-4)


def test_a_run_on_which_a_term_rests_alone_is_kept():
    # All other runs have the two larger amounts of data: they predict nothing for the third.
    n = np.append(np.tile(np.geomspace(1e6, 1e9, 6), 2), 1e7)
    d = np.append(np.repeat([1e10, 1e11], 6), 1e8)
    losses = LAW.loss(n, d) * np.exp(0.002 * np.random.default_rng(0).normal(size=13))
    losses[-1] *= 1.3
    assert heard(n, d, losses)[0].outliers == ()


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 35), st.floats(0.1, 3), st.sampled_from([-1, 1]), *[st.integers(-12, 12)] * 3)
def test_units_do_not_change_what_is_named(place, size, sign, of_n, of_d, of_loss):
    losses = LAW.loss(N, D) * np.exp(0.004 * np.random.default_rng(0).normal(size=N.size))
    losses[place] *= np.exp(sign * size)
    found, _ = heard(N, D, losses)
    other, _ = heard(10.0**of_n * N, 10.0**of_d * D, 10.0**of_loss * losses)
    assert found.outliers == other.outliers == (place,)
    np.testing.assert_allclose(other.data_exponent_interval, found.data_exponent_interval, rtol=1e-3)
    assert other.misfit_p_value == pytest.approx(found.misfit_p_value, rel=1e-2)

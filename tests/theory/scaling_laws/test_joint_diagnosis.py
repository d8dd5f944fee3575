"""Losses that the joint law does not describe: a warning, and none where it does."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from dynascope.theory.scaling_laws import JointLaw, MisfitWarning, fit_joint

LAW = JointLaw(1.69, 406.4, 0.34, 410.7, 0.28)
N, D = np.geomspace(1e6, 1e9, 6)[:, None], np.geomspace(1e8, 1e11, 6)
KAPLAN = ((8.8e13 / N) ** (0.076 / 0.095) + 5.4e13 / D) ** 0.095


def p_value(n, d, losses):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = fit_joint(n, d, losses)
    assert found.misfit_p_value is not None
    return found.misfit_p_value


@pytest.mark.parametrize("scatter", [0.0, 0.001, 0.01])
def test_losses_of_kaplans_form_are_warned_of(scatter):
    losses = KAPLAN * np.exp(scatter * np.random.default_rng(0).normal(size=KAPLAN.shape))
    with pytest.warns(MisfitWarning, match="too narrow"):
        found = fit_joint(N, D, losses)
    assert found.outliers == ()
    assert found.misfit_p_value is not None
    assert found.misfit_p_value < 1e-5


def test_p_values_of_losses_of_the_law_are_those_of_chance():
    scatter = np.array([0.002, 0.01, 0.03])
    values = [
        p_value(N, D, LAW.loss(N, D) * np.exp(scatter[seed % 3] * np.random.default_rng(seed).normal(size=(6, 6))))
        for seed in range(45)
    ]
    assert min(values) > 1e-3
    assert 0.3 < np.mean(values) < 0.7


@pytest.mark.parametrize("noise", ["small models noisier", "little data noisier", "long tails"])
def test_neither_noisier_small_runs_nor_long_tails_are_a_misfit(noise):
    wider = {"small models noisier": (N / 1e9) ** -0.2, "little data noisier": (D / 1e11) ** -0.2, "long tails": 1.0}
    values = []
    for seed in range(15):
        draw = np.random.default_rng(seed)
        normal = draw.standard_t(3, size=(6, 6)) if noise == "long tails" else draw.normal(size=(6, 6))
        values.append(p_value(N, D, LAW.loss(N, D) * np.exp(0.004 * wider[noise] * normal)))
    assert np.sum(np.array(values) < 0.01) <= 1


def test_broken_runs_are_no_misfit():
    losses = LAW.loss(N, D) * np.exp(0.005 * np.random.default_rng(2).normal(size=(6, 6)))
    losses[[0, 5, 3], [0, 0, 5]] *= [1.3, 1.2, 0.8]
    assert p_value(N, D, losses) > 0.01


@pytest.mark.parametrize("digits", [2, 3, 16])
def test_rounded_losses_are_no_misfit(digits):
    assert p_value(N, D, np.round(LAW.loss(N, D), digits)) > 0.01
    assert p_value(N, D, LAW.loss(N, D).astype(np.float32)) > 0.01


def test_too_few_runs_to_test_the_law_are_reported():
    n, d = np.array([1.0, 1, 1, 10, 10, 10, 100, 100]), np.array([1.0, 10, 100, 1, 10, 100, 1, 10])
    losses = JointLaw(1.0, 1.0, 0.5, 1.0, 0.5).loss(n, d) * np.exp(0.01 * np.random.default_rng(0).normal(size=8))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = fit_joint(n, d, losses)
    assert found.misfit_p_value is None

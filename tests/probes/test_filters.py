"""Scores of first-layer filters against exact spectra, other fits, and golden numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import least_squares

from dynascope.errors import InputError
from dynascope.probes.filters import (
    filter_scores,
    gabor_fit,
    roughness,
    spectral_concentration,
    white_noise_scores,
)

Y, X = np.mgrid[-4:5, -4:5].astype(float)


def det(shape, a):
    return np.sin(a * np.arange(1, np.prod(shape) + 1)).reshape(shape)


def wave(side, q_x, q_y, phase=0.0):
    y, x = np.mgrid[:side, :side]
    return np.cos(2 * np.pi * (q_x * x + q_y * y) / side + phase)


def gabor(x, y, wide, high, frequency, theta, phase):
    along, across = (
        ((X - x) * np.cos(theta) + (Y - y) * np.sin(theta)),
        (Y - y) * np.cos(theta) - (X - x) * np.sin(theta),
    )
    return np.exp(-((along / wide) ** 2 + (across / high) ** 2) / 2) * np.cos(2 * np.pi * frequency * along + phase)


@pytest.mark.parametrize(
    ("filters", "concentration", "rough"),
    [
        (wave(9, 2, 0), 0.8418204090602177, 1.6527036446661394),
        (det((9, 9), 1.7), 0.5123076870949793, 5.945199842290475),
    ],
)
def test_golden_numbers_of_the_spectrum(filters, concentration, rough):
    np.testing.assert_allclose(spectral_concentration(filters[None]), concentration, rtol=1e-14)
    np.testing.assert_allclose(roughness(filters[None]), rough, rtol=1e-14)


@given(st.integers(3, 12), st.integers(0, 11), st.integers(0, 11), st.floats(0.1, 1.4), st.floats(-1e3, 1e3))
def test_a_plane_wave_has_the_roughness_and_the_concentration_in_closed_form(side, q_x, q_y, phase, offset):
    if q_x % side == 0 and q_y % side == 0:
        return
    filters = (wave(side, q_x, q_y, phase) + offset)[None]
    rough = 4 - 2 * np.cos(2 * np.pi * q_x / side) - 2 * np.cos(2 * np.pi * q_y / side)
    single = 2 * q_x % side == 0 and 2 * q_y % side == 0
    np.testing.assert_allclose(roughness(filters), rough, rtol=1e-7)
    expected = 1 - (0 if single else np.log(2) / np.log(side**2 - 1))
    np.testing.assert_allclose(spectral_concentration(filters), expected, atol=1e-6)


@pytest.mark.parametrize("side", [7, 8, 9])
def test_white_noise_has_the_average_scores_in_closed_form(side):
    noise, expected = np.random.default_rng(3).normal(size=(4000, side, side)), white_noise_scores(side, draws=10)
    for measure, value in ((spectral_concentration, expected.concentration), (roughness, expected.roughness)):
        found = measure(noise)
        assert abs(found.mean() - value) < 4 * found.std() / 4000**0.5


@settings(max_examples=20, deadline=None)
@given(
    st.floats(-2, 2), st.floats(-2, 2), st.floats(0.8, 3), st.floats(0.8, 3), st.floats(0.05, 0.45), st.floats(0, 3.1)
)
def test_a_gabor_function_is_fitted(x, y, wide, high, frequency, theta):
    filters = gabor(x, y, wide, high, frequency, theta, 0.4)
    # The mean of a filter is subtracted, but not that of the fitted function.
    lost = filters.size * filters.mean() ** 2 / np.sum((filters - filters.mean()) ** 2)
    assert gabor_fit(filters[None])[0] > min(0.98, 1 - lost - 1e-3)


def test_the_fit_is_at_least_as_close_as_that_of_scipy():
    filters = np.random.default_rng(0).normal(size=(4, 9, 9))
    found = gabor_fit(filters)
    for each, value in zip(filters, found, strict=True):
        unit = (each - each.mean()) / np.linalg.norm(each - each.mean())

        def residual(p, unit=unit):
            return (p[0] * gabor(*p[1:]) - unit).ravel()

        low = [-np.inf, -4, -4, 0.5, 0.5, 0, -np.inf, -np.inf]
        high = [np.inf, 4, 4, np.inf, np.inf, 0.5, np.inf, np.inf]
        starts = [[0.3, 0, 0, 2, 2, 0.2, theta, 0] for theta in np.arange(4) * np.pi / 4]
        other = max(1 - 2 * least_squares(residual, start, bounds=(low, high)).cost for start in starts)
        assert other - 1e-3 < value < 0.5


def test_white_noise_is_fitted_by_about_a_fifth():
    assert 0.17 < white_noise_scores(9, draws=40).gabor < 0.29


def test_scores_of_constant_filters_are_nan_and_those_of_others_are_not():
    filters = np.stack([np.full((9, 9), 0.1), wave(9, 2, 0), np.zeros((9, 9))])
    for scores in filter_scores(filters):
        np.testing.assert_array_equal(np.isnan(scores), [True, False, True])


def test_filters_that_are_all_constant_are_rejected():
    for measure in (gabor_fit, filter_scores, spectral_concentration, roughness):
        with pytest.raises(InputError, match="constant"):
            measure(np.full((2, 9, 9), 0.3))


def test_colour_is_replaced_by_its_first_principal_component():
    filters = np.random.default_rng(0).normal(size=(3, 9, 9))
    coloured = filters[..., None] * np.array([0.2, -0.5, 0.7])
    coloured = coloured + 1e-9 * np.random.default_rng(1).normal(size=coloured.shape)
    for one, other in zip(filter_scores(filters), filter_scores(coloured), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("factor", [1e-200, 1e200, -3.0])
def test_scores_do_not_depend_on_the_scale(factor):
    filters = det((2, 9, 9), 1.7)
    for measure in (spectral_concentration, roughness):
        np.testing.assert_allclose(measure(factor * filters), measure(filters), rtol=1e-10)


@pytest.mark.parametrize("measure", [gabor_fit, filter_scores])
def test_kernels_below_seven_pixels_are_rejected(measure):
    with pytest.raises(InputError, match="6 × 6") as caught:
        measure(det((2, 6, 6), 1.7))
    assert caught.value.argument == "filters"


@pytest.mark.parametrize("shape", [(9, 9), (2, 9, 8), (0, 9, 9), (1, 2, 9, 9, 3)])
def test_other_shapes_are_rejected(shape):
    for measure in (gabor_fit, filter_scores, spectral_concentration, roughness):
        with pytest.raises(InputError) as caught:
            measure(np.ones(shape))
        assert caught.value.argument == "filters"
    with pytest.raises(InputError) as caught:
        white_noise_scores(6)
    assert caught.value.argument == "side"

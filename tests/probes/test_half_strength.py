from __future__ import annotations

import numpy as np
import pytest

from dynascope.probes.half_strength import first_half, first_passages, spread_of_halves


def test_half_strength_of_a_logistic_curve_is_found_from_few_records():
    steps = np.array([0, 40, 80])
    assert first_half(steps, 1 / (1 + np.exp(-(steps - 55) / 5))) == pytest.approx(55)


def test_half_strength_is_passed_between_two_records_or_never():
    steps = np.array([0, 10, 20, 30])
    assert first_half(steps, np.array([0.0, 0.2, 0.6, 0.4])) == pytest.approx(10 + 10 * np.log(4) / np.log(6))
    assert first_half(steps, np.array([0.0, 0.1, 0.2, 0.3])) == np.inf
    np.testing.assert_allclose(spread_of_halves(np.array([[1.0, 2.0], [3.0, np.inf]])), [np.sqrt(2), np.inf])


def test_a_level_is_first_passed_between_records_on_a_smooth_curve_or_never():
    times = np.linspace(0, 10, 200)
    curves = np.stack([np.exp(times - 4), 3 + np.sin(times), np.full(200, 0.5)], axis=1)
    found = first_passages(times, curves, 3.5)
    # The second one passes the level again; splines through two hundred points are that good.
    assert found == pytest.approx([4 + np.log(3.5), np.pi / 6, np.inf], abs=1e-6)

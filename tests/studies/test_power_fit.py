from __future__ import annotations

import numpy as np
import pytest

from dynascope.studies.power_fit import fitted_exponent, measured_exponents

SIZES = np.array([8.0, 16.0, 32.0, 64.0])


def test_a_power_is_fitted_with_its_standard_error():
    assert fitted_exponent(SIZES, 3 * SIZES**-1.5) == pytest.approx((-1.5, 0.0), abs=1e-7)
    draw = np.random.default_rng(0)
    fits = np.array([fitted_exponent(SIZES, SIZES**2 * np.exp(draw.normal(size=4))) for _ in range(2000)])
    # A mean of two thousand; the spread of fits is what their errors say, within a few percent.
    assert fits[:, 0].mean() == pytest.approx(2.0, abs=4 * fits[:, 0].std() / np.sqrt(len(fits)))
    assert np.mean(fits[:, 1] ** 2) == pytest.approx(fits[:, 0].var(), rel=0.15)


def test_every_architecture_has_its_exponent():
    found = measured_exponents("kernel", SIZES, np.stack([SIZES**-1.0, SIZES**2.0]))
    assert found["kernel_exponent"][1] == pytest.approx([-1.0, 2.0])
    assert found["kernel_exponent_error"][1] == pytest.approx([0.0, 0.0], abs=1e-7)

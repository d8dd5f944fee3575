from __future__ import annotations

import jax
import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies.noise.anomalous_diffusion.regression import PowerLawRegression

TASK = PowerLawRegression(3.0, 40)


@pytest.mark.slow
def test_simulations_have_the_displacements_and_the_exponent_of_their_modes():
    with jax.enable_x64(True):
        found = TASK.simulated(60)
    # 60 runs with some five modes: 8 %, and three times that.
    np.testing.assert_allclose(found.mean(axis=0), TASK.squared_displacement, rtol=0.25)
    fit = TASK.fitted(found)
    assert fit.low - 0.05 < TASK.exponent < fit.high + 0.05
    assert TASK.exponent == pytest.approx(1 / 3, abs=0.1)


def test_too_few_modes_have_no_window():
    with pytest.raises(InputError, match=r"modes is 20 and power is 0\.5"):
        _ = PowerLawRegression(0.5, 20).window

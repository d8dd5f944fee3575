from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from dynascope.theory.noise import ecd_quadratic_loss


def test_two_parameters_have_a_pareto_law():
    # For d = 2, the surface of an energy shell does not depend on F, so the density is (F − F₀)^(−η).
    values = np.array([0.0, 0.1, 1.0, 30.0])
    law = ecd_quadratic_loss(2, eta=6.0, target_loss=-0.5, values=values)
    np.testing.assert_allclose(law.cumulative, 1 - (1 + values / 0.5) ** -5.0, atol=1e-14)


def test_golden_numbers():
    law = ecd_quadratic_loss(2, eta=6.0, target_loss=-0.5)
    np.testing.assert_allclose((law.median, law.mean), (0.074349177, 0.125), atol=5e-10)


@pytest.mark.parametrize("dimension", [3, 7])
def test_the_law_is_the_integral_of_the_density_of_the_parameters(dimension):
    eta, target = 2.5, -0.3

    def mass(power: float, stop: float) -> float:
        # Over the radius r of the parameters in coordinates with F = r²/2.
        return quad(lambda r: r ** (dimension - 1 + power) * (r**2 / 2 - target) ** (-eta * dimension / 2), 0, stop)[0]

    law = ecd_quadratic_loss(dimension, eta=eta, target_loss=target, values=0.4)
    assert law.cumulative == pytest.approx(mass(0, np.sqrt(0.8)) / mass(0, np.inf), rel=1e-6)
    assert law.mean == pytest.approx(mass(2, np.inf) / 2 / mass(0, np.inf), rel=1e-6)


@given(st.integers(2, 40), st.floats(1.1, 50), st.floats(0.01, 10))
def test_half_of_the_losses_are_below_the_median_and_losses_scale_with_the_target(dimension, eta, depth):
    law = ecd_quadratic_loss(dimension, eta=eta, target_loss=-depth)
    assert ecd_quadratic_loss(dimension, eta=eta, target_loss=-depth, values=law.median).cumulative == pytest.approx(
        0.5
    )
    assert law.median == pytest.approx(depth * ecd_quadratic_loss(dimension, eta=eta, target_loss=-1.0).median)


def test_the_mean_is_infinite_if_the_density_decays_slowly():
    assert ecd_quadratic_loss(2, eta=2.0, target_loss=-1.0).mean == np.inf

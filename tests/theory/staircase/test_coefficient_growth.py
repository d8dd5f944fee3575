from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from dynascope.theory.staircase.coefficient_growth import growth_of_powers, growth_of_products


def sizes(integral, scale, depth):
    """β as a function of G, from the exact solution."""
    if depth is None:
        return scale**2 / 2 * np.sinh(2 * integral)
    if depth == 2:
        return 2 * scale**2 * np.sinh(4 * integral)
    start, shift = scale ** (2 - depth), depth * (depth - 2) * integral
    return (start - shift) ** (-depth / (depth - 2)) - (start + shift) ** (-depth / (depth - 2))


CASES = [(None, 1e-6), (2, 1e-6), (3, 1e-3), (4, 1e-2), (6, 0.05)]


def growth_of(depth, scale):
    return growth_of_products(scale) if depth is None else growth_of_powers(scale, depth)


@pytest.mark.parametrize(("depth", "scale"), CASES)
@pytest.mark.parametrize("size", [0.1, 1.0, 4.0])
def test_a_coefficient_has_its_size_where_it_is_said_to_be_reached(depth, scale, size):
    growth = growth_of(depth, scale)
    # Only the weight that shrinks, of the order of a power of the scale, is left out.
    assert sizes(growth.threshold + growth.reached(size), scale, depth) == pytest.approx(size, rel=1e-6)


@pytest.mark.parametrize(("depth", "scale"), CASES)
def test_the_loss_has_fallen_by_half_when_it_is_said_to(depth, scale):
    # One input with E x² = 0.5 and E xy = m, whose coefficient ends at β* = 2m.
    growth, multiplier = growth_of(depth, scale), 0.8
    final = 2 * multiplier
    grown = (growth.threshold + growth.reached(final)) / multiplier
    expected = grown + growth.half_loss(final, multiplier)

    def velocity(_, integral):
        return multiplier - 0.5 * sizes(integral, scale, depth)

    def half(_, integral):
        return (1 - sizes(integral[0], scale, depth) / final) ** 2 - 0.5

    # Until half of the threshold the coefficient is negligible.
    start = 0.5 * growth.threshold
    times = solve_ivp(velocity, (0, grown), [start], "Radau", rtol=1e-10, atol=1e-11 * start, events=half).t_events
    assert times[0][0] + start / multiplier == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(("depth", "scale"), CASES)
def test_an_inactive_coefficient_is_small_by_the_e_folds_that_are_told(depth, scale):
    growth = growth_of(depth, scale)
    inside = 0.3
    told = float(growth.e_folds(inside))
    size = float(sizes((1 - inside) * growth.threshold, scale, depth))
    # To leading order: up to the constant of order one in front, or the other weight.
    assert -np.log(size) == pytest.approx(told, abs=np.log(4) + 0.5)


@pytest.mark.parametrize(("depth", "scale"), CASES)
def test_a_coefficient_relaxes_at_its_rate(depth, scale):
    growth = growth_of(depth, scale)
    there = growth.threshold + growth.reached(0.7)
    step = 1e-6
    slope = (sizes(there + step, scale, depth) - sizes(there - step, scale, depth)) / (2 * step)
    # β' = (dβ/dG) m, with an integral that has twelve digits to spare for the difference.
    assert slope == pytest.approx(float(growth.rate(0.7)), rel=1e-4)

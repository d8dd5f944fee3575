from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory.scaling_laws import fit
from dynascope.theory.scaling_laws.unknown_floor import RaisedPowerLaw, fit_above_floor, refit_above_floor

X = np.log(np.geomspace(10, 1e5, 25))


@settings(max_examples=12, deadline=None)
@given(st.floats(-3, 3), st.floats(0.1, 1.5), st.floats(0.0, 2.0))
def test_a_law_without_noise_is_found(level, exponent, floor):
    law = RaisedPowerLaw(level, exponent, floor)
    found = fit_above_floor(X, law.logarithm(X))
    # Least squares of numbers with rounding 1e-16; over four decades little tells a small exponent from a floor.
    np.testing.assert_allclose(found.logarithm(X), law.logarithm(X), rtol=0, atol=1e-7)
    assert found.exponent == pytest.approx(exponent, rel=1e-3)


def test_the_units_of_loss_and_resource_do_not_matter():
    law = RaisedPowerLaw(0.5, 0.4, 0.2)
    noisy = law.logarithm(X) + 0.01 * np.random.default_rng(0).normal(size=len(X))
    one, other = fit_above_floor(X, noisy), fit_above_floor(X + np.log(1000), noisy + np.log(1e-6))
    # The minimum is flat: a sum of squares that is known to 1e-14 tells where it is to about 1e-6.
    assert other.exponent == pytest.approx(one.exponent, rel=1e-5)
    assert other.floor == pytest.approx(1e-6 * one.floor, rel=1e-5)
    assert other.level == pytest.approx(one.level + np.log(1e-6) + one.exponent * np.log(1000), rel=1e-4)


def test_refitting_starts_near_and_ends_where_a_search_over_all_starts_ends():
    law = RaisedPowerLaw(1.0, 0.5, 0.1)
    curves = law.logarithm(X) + 0.02 * np.random.default_rng(1).normal(size=(5, len(X)))
    for curve, found in zip(curves, refit_above_floor(X, curves, np.tile(law, (5, 1)))[0], strict=True):
        # The same minimum, as flat as above.
        assert found == pytest.approx(np.array(fit_above_floor(X, curve)), rel=1e-5)


def test_a_law_without_floor_has_none_and_a_known_floor_has_no_interval():
    resource = np.exp(X)
    found = fit(3 * resource**-0.3, resource)
    # Without noise the minimum is sharp, up to rounding.
    assert found.floor == pytest.approx(0.0, abs=1e-8)
    assert found.exponent == pytest.approx(0.3, rel=1e-6)
    given_floor = fit(3 * resource**-0.3 + 0.5, resource, floor=0.5)
    assert (given_floor.floor, given_floor.floor_interval) == (0.5, (0.5, 0.5))


def test_a_missing_loss_is_part_of_the_law():
    resource = np.exp(X)
    found = fit(2 * resource**-0.4 + 0.3 - 0.01, resource, missing=0.01)
    assert (found.exponent, found.floor) == pytest.approx((0.4, 0.3), rel=1e-6)


def test_a_window_leaves_out_what_is_not_in_the_law():
    resource = np.exp(X)
    losses = np.where(resource < 100, 0.3, 2 * resource**-0.4) + 0.1
    with pytest.warns(UserWarning, match="drift|do not determine"):
        assert abs(fit(losses, resource).exponent - 0.4) > 0.01
    assert fit(losses, resource, window=(100, 1e5)).exponent == pytest.approx(0.4, rel=1e-6)


@pytest.mark.parametrize(
    ("losses", "points"),
    [
        (np.linspace(1.0, 2.0, 10), "does not decrease"),
        (np.array([1.0, 1.5, 2.0, 2.5, 0.99]), "does not decrease"),
        (np.exp(-np.geomspace(3, 300, 9)), "more steeply than a power law"),
        (np.array([1.0, 0.9, 0.8, 0.7]), r"too few points \(4\)"),
        (np.array([1.0, 0.5, 0.0, 0.0, 0.0, 0.0]), "the loss reaches 0 in the window"),
        (np.array([1.0, *[0.0999, 0.1, 0.1001] * 4]), "more steeply than a power law"),
        (np.array([1.0, 0.5, *[0.095, 0.1, 0.105] * 4]), "at its floor"),
    ],
)
def test_losses_that_tell_no_floor_are_refused(losses, points):
    with pytest.raises(InputError, match=points) as refusal:
        fit(losses, np.geomspace(1, 1e4, len(losses)))
    assert refusal.value.argument == "losses"

from __future__ import annotations

import re

import numpy as np

from dynascope.theory.staircase.coefficient_growth import growth_of_powers, growth_of_products
from dynascope.theory.staircase.saddle_path import successive_saddles
from dynascope.theory.staircase.saddle_times import jump_phrases, slow_reasons, times_at_scale

X = np.array([[1, -0.75, -0.15, -0.43], [0.85, 0.94, -0.97, -0.96], [-0.99, 0.96, 0.7, -0.15]])
Y = np.array([-0.39, -1.15, 1.98])
PATH = successive_saddles(X, Y)
NAMES = ["a", "b", "c", "d"]


def test_phrases_name_what_is_learned_and_dropped():
    found = [re.findall(r"\b[abcd]\b", each) for each in jump_phrases(PATH, NAMES)]
    assert found == [["a"], ["c"], ["b", "a"], ["d"]]


def test_times_tend_to_the_limit_in_units_of_the_threshold():
    for growth in (growth_of_products(1e-300), growth_of_powers(1e-7, 3), growth_of_powers(1e-4, 4)):
        # The offset of a time is of order ten on this path.
        np.testing.assert_allclose(times_at_scale(X, Y, PATH, growth), PATH.times * growth.threshold, rtol=0, atol=12)


def test_times_of_one_input_are_those_of_its_logistic():
    # β' = 2β (3 − β) from β = scale²/4·e^(2·3t): the loss is at half when β = (1 − 1/√2)·3.
    x, y, scale = np.array([[1.0], [-1.0]]), np.array([3.0, -3.0]), 1e-9
    expected = (np.log(4 * 3 / scale**2) + np.log(np.sqrt(2) - 1)) / 6
    found = times_at_scale(x, y, successive_saddles(x, y), growth_of_products(scale))
    np.testing.assert_allclose(found, [expected], rtol=1e-12)


def test_jumps_are_slow_until_the_scale_is_small_and_sooner_at_depth():
    assert [bool(reason) for reason in slow_reasons(X, PATH, growth_of_products(1e-6), NAMES)] == [
        False,
        True,
        True,
        False,
    ]
    for growth in (growth_of_products(1e-12), growth_of_powers(1e-2, 3), growth_of_powers(1e-2, 4)):
        assert not any(slow_reasons(X, PATH, growth, NAMES))


def test_reasons_say_which_plateau_and_why():
    reasons = slow_reasons(X, PATH, growth_of_powers(0.5, 3), NAMES)
    assert any("relaxation times" in reason for reason in reasons)
    assert any("boundary" in reason for reason in reasons)

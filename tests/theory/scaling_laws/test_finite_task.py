from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.theory.scaling_laws import missing_loss, parameter_law, time_window


def test_window_in_its_units():
    low, high = time_window(0.5, 1000, target_scale=2.0, initial_strength=0.02, learning_rate=0.1)
    growth = 2 * 0.1 * 2 / np.sum(np.arange(1.0, 1001) ** -1.5)
    np.testing.assert_allclose([low, high], [10 * np.log(99) / growth, 0.05 * 1000**1.5 / growth])


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
def test_a_window_of_targets_and_rates_of_any_size(scale):
    one = time_window(0.5, 1000, target_scale=2.0, initial_strength=0.02, learning_rate=0.1)
    sizes = {"target_scale": 2 * scale, "initial_strength": 0.02 * scale}
    np.testing.assert_allclose(time_window(0.5, 1000, learning_rate=0.1 / scale, **sizes), one)
    np.testing.assert_allclose(np.multiply(scale, time_window(0.5, 1000, learning_rate=0.1, **sizes)), one)


def test_missing_loss_is_that_of_the_skills_beyond_the_last():
    # A half of the last skill, and the normalisation of a finite task.
    found, law = missing_loss(0.6, 10_000, target_scale=3.0), parameter_law(10_000, 0.6, target_scale=3.0)
    np.testing.assert_allclose(found, law, rtol=0.01)


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("skills", lambda: time_window(0.6, 50, target_scale=1.0, initial_strength=0.01)),
        ("skills", lambda: time_window(0.6, 0, target_scale=1.0, initial_strength=0.01)),
        ("initial_strength", lambda: time_window(0.6, 50, target_scale=1.0, initial_strength=0.6)),
        ("exponent", lambda: time_window(1e5, 50_000, target_scale=1.0, initial_strength=0.01)),
        ("skills", lambda: time_window(0.6, 1e300, target_scale=1.0, initial_strength=0.01)),
        ("exponent", lambda: missing_loss(0.0, 50, target_scale=1.0)),
        ("skills", lambda: missing_loss(0.6, -2, target_scale=1.0)),
    ],
)
def test_bad_input_is_refused_by_name(argument, call):
    with pytest.raises(InputError) as refusal:
        call()
    assert argument in refusal.value.argument.split(", ")

from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.theory.deep_modes import saddle_escape_time, time_to_strength


@pytest.mark.slow
@pytest.mark.parametrize("depth", [2, 3])
def test_escape_time_is_the_leading_order(depth):
    starts = np.array([1e-6, 1e-12, 1e-18])
    half = time_to_strength(1.0, 2.0, starts, depth=depth)
    error = np.asarray(half / saddle_escape_time(2.0, starts, depth=depth) - 1)
    assert np.all(np.diff(np.abs(error)) <= 1e-12)
    # What is left out is of order one over a time of 1e4 or, for two layers, exactly nothing at s = σ/2.
    assert abs(error[-1]) < 1e-4
    np.testing.assert_allclose(
        saddle_escape_time(-2.0, -starts, depth=depth), saddle_escape_time(2.0, starts, depth=depth)
    )


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("depth", lambda: saddle_escape_time(1.0, 0.1, depth=1)),
        ("initial_strength", lambda: saddle_escape_time(1.0, -0.1, depth=3)),
        ("initial_strength", lambda: saddle_escape_time(0.0, 0.1, depth=3)),
    ],
)
def test_bad_input_is_refused_by_name(argument, call):
    with pytest.raises(InputError) as refusal:
        call()
    assert refusal.value.argument == argument

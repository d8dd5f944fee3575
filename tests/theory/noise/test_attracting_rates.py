from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory.noise import attracting_learning_rates, collapse_exponent


def test_the_golden_critical_rate():
    # symmetry_sgd 5.2; between 2/3 and 1 + 2/3 · … the exponent is of |(1 + 3η)(1 − η)|.
    found = attracting_learning_rates([-3.0, 1.0])
    # The upper end solves (1 + 3η)(η − 1) = 1.
    np.testing.assert_allclose(found, [[2 / 3, (2 + np.sqrt(28)) / 6]], rtol=1e-14)


def test_a_minimum_attracts_from_zero_up_to_where_steps_diverge():
    np.testing.assert_allclose(attracting_learning_rates([2.0]), [[0.0, 1.0]], rtol=1e-14)


def test_where_no_batch_curves_upward_noise_never_attracts():
    assert attracting_learning_rates([-1.0, 0.0]).shape == (0, 2)
    assert attracting_learning_rates([-1.0, 2.0], probabilities=[1.0, 0.0]).shape == (0, 2)


@given(h=st.lists(st.floats(-5, 5).filter(lambda x: abs(x) > 0.05), min_size=1, max_size=6))
def test_the_sign_of_the_exponent_is_as_the_intervals_say(h):
    intervals = attracting_learning_rates(h)
    rates = np.concatenate([np.linspace(0.003, 5, 50), intervals.mean(axis=1)])
    for rate in rates[np.all(np.abs(rates - intervals.reshape(-1, 1)) > 1e-6, axis=0)]:
        inside = bool(np.any((intervals[:, 0] < rate) & (rate < intervals[:, 1])))
        exponent = collapse_exponent(h, learning_rate=rate)
        assert abs(exponent) < 1e-9 or (exponent < 0) == inside


def test_bad_probabilities_are_refused():
    with pytest.raises(InputError) as caught:
        attracting_learning_rates([1.0, 2.0], probabilities=[0.5, 0.1])
    assert caught.value.argument == "probabilities"

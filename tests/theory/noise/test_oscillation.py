from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory import SGD
from dynascope.theory.noise import oscillation


@given(h=st.floats(0, 40), momentum=st.floats(0.0, 0.99))
def test_phase_and_decay_are_those_of_the_eigenvalues(h, momentum):
    rate = 0.1
    found = oscillation(h, SGD(rate, momentum=momentum))
    values = np.linalg.eigvals(np.array([[1 - rate * h, rate * momentum], [-h, momentum]]))
    largest = values[np.argmax(np.abs(values))]
    # Eigenvalues that nearly meet are known to half of the digits.
    assert found.decay == pytest.approx(abs(largest), abs=1e-6)
    if abs(rate * h - (1 - np.sqrt(momentum)) ** 2) > 1e-6 and abs(rate * h - (1 + np.sqrt(momentum)) ** 2) > 1e-6:
        assert found.angle == pytest.approx(abs(np.angle(largest)), abs=1e-6)


def test_thresholds_are_where_it_begins():
    sgd = SGD(0.05, momentum=0.9)
    found = oscillation(0.0, sgd)
    assert not oscillation(found.least * (1 - 1e-6), sgd).oscillates
    assert oscillation(found.least * (1 + 1e-6), sgd).oscillates
    assert not oscillation(found.continuous_least * (1 - 1e-6), sgd).continuous
    assert oscillation(found.continuous_least * (1 + 1e-6), sgd).continuous
    assert found.least == pytest.approx((1 - np.sqrt(0.9)) ** 2 / 0.05)
    # They agree up to a factor 1 + O(1 − β).
    assert found.least == pytest.approx(found.continuous_least, rel=0.06)


def test_a_simulated_mode_swings_as_told():
    a, v, path = 1.0, 0.0, []
    for _ in range(200):
        v = 0.9 * v - 2.0 * a
        a = a + 0.05 * v
        path.append(a)
    turns = np.count_nonzero(np.diff(np.sign(path)))
    assert turns == pytest.approx(200 * oscillation(2.0, SGD(0.05, momentum=0.9)).angle / np.pi, abs=1)


@pytest.mark.parametrize(
    ("changes", "argument"), [({"curvature": -1.0}, "curvature"), ({"sgd": SGD(0.1, batch_size=2)}, "batch_size")]
)
def test_bad_input_is_refused_by_name(changes, argument):
    with pytest.raises(InputError) as caught:
        oscillation(**{"curvature": 1.0, "sgd": SGD(0.1)} | changes)
    assert caught.value.argument == argument

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from dynascope.errors import InputError
from dynascope.theory.margins import discarded_share, max_margin


def test_golden_value():
    assert discarded_share(4 + np.exp(8) / 4) == pytest.approx(0.005338746845, abs=1e-12)


def test_it_is_that_of_the_integrated_flow():
    found = solve_ivp(lambda _, x: [1.0, x[2], x[1]], (0, 3), [0.2, 0.4, 0.4], rtol=1e-11, atol=1e-13)
    a, u, v = found.y
    np.testing.assert_allclose(discarded_share(a + u * v, weight=0.2, factor=0.4), a / (a + u * v), rtol=1e-9)


def test_the_problem_discards_the_block():
    with pytest.warns(UserWarning, match="discarded"):
        assert max_margin([[1.0, 1.0]], [1, 2]).discarded.tolist() == [0]
    late = np.array([1e20, 1e200])
    # a = S = ½ log(q/u₀²) up to what a itself takes of q.
    np.testing.assert_allclose(discarded_share(late), np.log(late / 0.25) / 2 / late, rtol=1e-12)


@given(margin=st.floats(0.5, 1e6), weight=st.floats(0.0, 0.2), factor=st.floats(0.01, 0.5))
def test_the_margin_is_that_of_the_share(margin, weight, factor):
    a = float(discarded_share(margin, weight=weight, factor=factor)) * margin
    assert a + factor**2 * np.exp(2 * (a - weight)) == pytest.approx(margin, rel=1e-8)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: discarded_share(0.1), "margin"),
        (lambda: discarded_share(1.0, factor=0.0), "factor"),
        (lambda: discarded_share(1.0, weight=np.inf), "weight"),
    ],
)
def test_bad_input_is_refused_by_name(call, argument):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.argument == argument

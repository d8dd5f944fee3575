from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from dynascope.errors import InputError
from dynascope.theory.interventions import weight_mirror_stability

POSITIVE = st.floats(0.05, 3)


@given(gain=POSITIVE, decay=POSITIVE, weight_decay=POSITIVE)
def test_the_growth_rate_is_the_largest_eigenvalue(gain, decay, weight_decay):
    found = weight_mirror_stability(gain, decay=decay, weight_decay=weight_decay)
    eigenvalues = np.linalg.eigvals([[-weight_decay, 1], [gain, -decay]])
    assert float(found.growth_rate) == pytest.approx(eigenvalues.real.max(), abs=1e-9)
    assert found.unstable == (gain > decay * weight_decay)


@pytest.mark.parametrize("gain", [0.4, 2.0, 50.0])
def test_the_null_term_bounds_the_weights_for_every_gain(gain):
    beta, mu, gamma = 0.8, 0.6, 0.3

    def flow(_, state):
        w, b = state
        return [b - mu * w, gain * w - beta * b - gamma * b * w**2]

    end = solve_ivp(flow, (0, 400), [0.01, 0.02], rtol=1e-10, atol=1e-12, method="LSODA").y[:, -1]
    found = weight_mirror_stability(gain, decay=beta, weight_decay=mu, null=gamma)
    np.testing.assert_allclose(end, [found.weight, found.backward], atol=1e-6 * (1 + gain))


def test_without_the_null_term_an_unstable_pair_is_unbounded():
    found = weight_mirror_stability(1.0, decay=0.5, weight_decay=0.5)
    assert found.unstable
    assert np.isinf(found.weight)


def test_a_negative_gain_is_rejected_by_name():
    with pytest.raises(InputError) as caught:
        weight_mirror_stability(-1.0, decay=1.0, weight_decay=1.0)
    assert caught.value.argument == "gain"

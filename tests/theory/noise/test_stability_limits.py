from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.theory import SGD
from dynascope.theory.noise import batch_sharpness_limit, preconditioned_sharpness_limit, sharpness_limit

RATE = 0.1


def growth(matrix):
    """The factor by which the fastest growing part of a linear recursion grows per step."""
    return np.abs(np.linalg.eigvals(np.array(matrix))).max()


@given(momentum=st.floats(0.0, 0.99), decay=st.floats(0.0, 1.0), nesterov=st.booleans())
def test_steps_diverge_exactly_above_the_limit(momentum, decay, nesterov):
    limit = sharpness_limit(SGD(RATE, momentum=momentum, weight_decay=decay), nesterov=nesterov)

    def of(curvature):
        h = curvature + decay
        # (θ, v) ← v = βv + hθ, and θ ← θ − ηv, or θ ← θ − η(hθ + βv)
        ahead = [1 - RATE * h * (1 + momentum), -RATE * momentum**2] if nesterov else [1 - RATE * h, -RATE * momentum]
        return growth([ahead, [h, momentum]])

    assert of(limit * 0.999) < 1 < of(limit * 1.001)


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
def test_the_limit_of_dampened_momentum_is_that_of_a_smaller_rate(momentum):
    c, limit = 0.3, sharpness_limit(SGD(RATE * 0.7, momentum=momentum))
    for factor in (0.99, 1.01):
        weight, buffer = 1.0, 0.0
        for _ in range(2000):
            buffer = momentum * buffer + (1 - c) * limit * factor * weight
            weight -= RATE * buffer
        assert (abs(weight) > 1) is (factor > 1)


def second_moments(values, shares, momentum):
    """The recursion of E[θ²], E[θd] and E[d²] for batches whose curvature takes the values with these shares."""
    total = np.zeros((3, 3))
    for h, share in zip(values, shares, strict=True):
        (a, b), (c, d) = (1 - RATE * h, momentum), (-RATE * h, momentum)  # θ' = aθ + bd, d' = cθ + dd
        total += share * np.array([[a * a, 2 * a * b, b * b], [a * c, a * d + b * c, b * d], [c * c, 2 * c * d, d * d]])
    return total


@given(momentum=st.floats(0.0, 0.95))
def test_batches_with_rare_curvature_are_stable_below_the_limit(momentum):
    limit = batch_sharpness_limit(RATE, momentum)
    rare = 1e-6  # The batch sharpness E[h³]/E[h²] of a curvature that few batches have is this curvature.
    for factor in (0.99, 1.01):
        moments = second_moments([factor * limit, 0.0], [rare, 1 - rare], momentum)
        assert (growth(moments) > 1) == (factor > 1)


@given(momentum=st.floats(0.0, 0.95), share=st.floats(0.05, 1.0))
def test_between_the_limits_the_second_moment_is_stable_up_to_the_stated_sum(momentum, share):
    # The curvature h with a probability has ρ = share h and b = h, so the bound on h is linear.
    largest = 2 / RATE / (share / (1 + momentum) + (1 - share) / (1 - momentum))
    for factor in (0.999, 1.001):
        moments = second_moments([factor * largest, 0.0], [share, 1 - share], momentum)
        assert (growth(moments) > 1) == (factor > 1)
    assert batch_sharpness_limit(RATE, momentum) <= largest * 1.0001
    assert largest <= sharpness_limit(SGD(RATE, momentum=momentum)) * 1.0001


@given(beta1=st.floats(0.0, 0.99))
def test_adam_with_a_fixed_preconditioner_diverges_above_the_limit(beta1):
    limit = preconditioned_sharpness_limit(RATE, beta1)

    def of(h):  # (θ, m) ← m = β₁m + (1 − β₁)hθ, θ ← θ − ηm
        return growth([[1 - RATE * (1 - beta1) * h, -RATE * beta1], [(1 - beta1) * h, beta1]])

    assert of(limit * 0.999) < 1 < of(limit * 1.001)

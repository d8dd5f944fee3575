from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from dynascope.theory.attention.dormant_heads import activations

RATES = np.array([1.0, 0.49, 0.16])
GAINS = np.array([1.155, 0.84, 0.525])


def drawn(seed, heads=5, modes=3):
    draw = np.random.default_rng(seed)
    v, k, q = draw.normal(size=heads), draw.normal(size=(heads, modes)), draw.normal(size=(heads, modes))
    return {"v": v, "k": k, "q": q}


def followed(heads, scale=0.0):
    return activations(**heads, rates=RATES, gains=GAINS, scale=scale)


def blow_up_by_integration(v, k, q, rates):
    """The time at which one head is infinite, in its own clock, from the three equations as they stand."""

    def velocity(_, state):
        v, k, q = state[1], state[2:5], state[5:]
        return np.concatenate([[1.0, rates @ (k * q)], v * rates * q, v * rates * k]) / np.linalg.norm(state[1:])

    def large(_, state):
        return np.linalg.norm(state[1:]) - 1e8

    large.terminal = True
    start = np.concatenate([[0.0, v], k, q])
    return solve_ivp(velocity, (0.0, 1e4), start, method="DOP853", rtol=1e-9, atol=1e-9, events=large).y[0, -1]


@pytest.mark.parametrize("seed", range(3))
def test_the_first_blow_up_is_that_of_the_full_equations(seed):
    heads = drawn(seed)
    each = [blow_up_by_integration(heads["v"][h], heads["k"][h], heads["q"][h], RATES) for h in range(5)]
    first = followed(heads)[0]
    assert first.heads == (int(np.argmin(each)),)
    # The comparison stops at norm 1e8, and asks its solver for nine digits.
    np.testing.assert_allclose(first.blow_up, min(each), rtol=1e-6)


def test_an_aligned_head_blows_up_at_the_lower_bound():
    one = np.array([[2.0, 0.0, 0.0]])
    only = followed({"v": np.array([2.0]), "k": one, "q": one})
    # v = k = q = a with a' = m a² is infinite at 1/(m a); the clock ends at 1e-12 of it.
    assert [only[0].mode, len(only)] == [0, 1]
    np.testing.assert_allclose(only[0].blow_up, 0.5, rtol=1e-10)


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_no_head_blows_up_before_an_aligned_one_of_its_norm_would(seed):
    heads = drawn(seed)
    norm = np.sqrt(heads["v"] ** 2 + np.sum(heads["k"] ** 2 + heads["q"] ** 2, axis=1)).max()
    assert followed(heads)[0].blow_up >= np.sqrt(3) / (norm * RATES[0]) * (1 - 1e-9)


@pytest.mark.slow
@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 10_000), factor=st.floats(0.01, 100))
def test_times_are_inverse_to_the_size_of_the_heads(seed, factor):
    heads = drawn(seed)
    scaled = {name: factor * part for name, part in heads.items()}
    one, other = followed(heads), followed(scaled)
    assert [a.heads for a in one] == [a.heads for a in other]
    np.testing.assert_allclose([factor * a.blow_up for a in other], [a.blow_up for a in one], rtol=1e-8)


@pytest.mark.slow
@settings(max_examples=2, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_symmetries_of_a_head_leave_its_times(seed):
    heads = drawn(seed)
    times = [a.blow_up for a in followed(heads)]
    for v, k, q in ((-1, -1, 1), (-1, 1, -1), (1, -1, -1)):
        mirrored = {"v": v * heads["v"], "k": k * heads["k"], "q": q * heads["q"]}
        np.testing.assert_allclose([a.blow_up for a in followed(mirrored)], times, rtol=1e-8)
    swapped = {"v": heads["v"], "k": heads["q"], "q": heads["k"]}
    np.testing.assert_allclose([a.blow_up for a in followed(swapped)], times, rtol=1e-8)


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10_000), heads=st.integers(1, 6))
def test_modes_are_learned_in_order_by_different_heads_at_increasing_times(seed, heads):
    found = followed(drawn(seed, heads))
    assert [a.mode for a in found] == list(range(min(heads, 3)))
    assert len({a.heads for a in found}) == len(found)
    assert np.all(np.diff([a.blow_up for a in found]) > 0)
    np.testing.assert_array_equal(np.abs([a.direction for a in found]), np.eye(3)[: len(found)])


def test_a_head_without_weight_on_the_first_mode_learns_the_second():
    one = np.array([[0.0, 1.0, 0.0]])
    only = followed({"v": np.array([1.0]), "k": one, "q": one})
    assert only[0].mode == 1
    np.testing.assert_allclose(only[0].blow_up, 1 / RATES[1], rtol=1e-10)


def test_equal_heads_learn_together():
    heads = drawn(0, heads=1)
    both = {name: np.concatenate([part, part]) for name, part in heads.items()}
    found = followed(both)
    assert [a.heads for a in found] == [(0, 1)]
    np.testing.assert_allclose(found[0].blow_up, followed(heads)[0].blow_up, rtol=1e-10)


def test_heads_that_rest_learn_nothing():
    resting = {"v": np.zeros(2), "k": np.eye(3)[:2], "q": np.eye(3)[1:]}
    assert followed(resting) == []
    shrinking = {"v": np.zeros(1), "k": np.zeros((1, 3)), "q": np.zeros((1, 3))}
    assert followed(shrinking) == []


def test_degenerate_modes_are_learned_in_orthogonal_directions_of_the_heads():
    heads = drawn(3)
    found = activations(**heads, rates=np.full(3, 0.25), gains=np.full(3, 0.7), scale=0.0)
    directions = np.array([a.direction for a in found])
    np.testing.assert_allclose(directions @ directions.T, np.eye(3), atol=1e-12)
    assert [a.degenerate for a in found] == [True, True, False]
    # Equal rates make every rotation of the modes the same problem.
    turn, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))
    turned = {"v": heads["v"], "k": heads["k"] @ turn, "q": heads["q"] @ turn}
    again = activations(**turned, rates=np.full(3, 0.25), gains=np.full(3, 0.7), scale=0.0)
    np.testing.assert_allclose([a.blow_up for a in again], [a.blow_up for a in found], rtol=1e-8)
    for one, other in zip(directions @ turn, (a.direction for a in again), strict=True):
        np.testing.assert_allclose(abs(one @ other), 1.0, rtol=1e-6)


def test_at_a_scale_the_first_jump_is_earlier_by_what_the_drop_takes_off():
    heads, scale = drawn(1), 1e-3
    (limit, *_), (actual, *_) = followed(heads), followed(heads, scale)
    assert actual.blow_up == limit.blow_up
    # 1.2535 = 1/y − ∫₀^y z/(1 − z³) dz at y³ = 1 − √½.
    early = (limit.blow_up - actual.half_learned) / scale
    np.testing.assert_allclose(early, 1.2535 * GAINS[0] ** (1 / 3) / RATES[0], rtol=1e-4)


def test_one_mode_is_half_learned_when_its_own_equation_says_so():
    scale, gain, rate = 1e-2, GAINS[0], RATES[0]
    one = np.array([[1.0, 0.0, 0.0]])
    predicted = followed({"v": np.array([1.0]), "k": one, "q": one}, scale)[0].half_learned / scale
    half = ((1 - np.sqrt(0.5)) / gain) ** (1 / 3)

    def reached(_, a):
        return a[0] - half

    solution = solve_ivp(
        lambda _, a: rate * a**2 * (1 - gain * a**3), (0, 1000), [scale], rtol=1e-10, atol=1e-14, events=reached
    )
    # The prediction leaves out terms of order scale² in t.
    np.testing.assert_allclose(predicted, solution.t_events[0][0], atol=1e-3)

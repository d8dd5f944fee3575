from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory.noise import permutation_set, sign_set

UNITS, INPUTS, OUTPUTS = 4, 3, 2
SETS = {
    "sign": sign_set([1, 3], units=UNITS, weights=INPUTS + OUTPUTS, activation=np.tanh),
    "permutation": permutation_set([[0, 2, 3]], units=UNITS, weights=INPUTS + OUTPUTS),
}


def gradient(rows, x, y):
    """Of the squared loss of a tanh network, by hand."""
    w, a = rows[:, :INPUTS], rows[:, INPUTS:]
    h = np.tanh(x @ w.T)
    residual = (h @ a - y) / len(x)
    return np.concatenate([((residual @ a.T) * (1 - h**2)).T @ x, h.T @ residual], axis=1)


@pytest.mark.parametrize("kind", SETS)
def test_steps_never_leave_the_set(kind):
    random, kept = np.random.default_rng(0), SETS[kind]
    rows = kept.projected(random.normal(size=(UNITS, INPUTS + OUTPUTS)))
    moved = np.zeros_like(rows)
    for _ in range(20):
        x, y = random.normal(size=(5, INPUTS)), random.normal(size=(5, OUTPUTS))
        moved = 0.9 * moved - 0.1 * (gradient(rows, x, y) + 0.01 * rows)
        rows = rows + moved
    # Sums over samples may be made in another order for each unit.
    assert kept.distance(rows) < 1e-12


def test_dimensions_are_those_of_the_units_that_are_left():
    assert SETS["sign"].dimension == 2 * (INPUTS + OUTPUTS)
    assert SETS["permutation"].dimension == 2 * (INPUTS + OUTPUTS)
    for kept in SETS.values():
        assert kept.normal.shape == (UNITS * (INPUTS + OUTPUTS) - kept.dimension, UNITS * (INPUTS + OUTPUTS))
        np.testing.assert_allclose(kept.normal @ kept.normal.T, np.eye(len(kept.normal)), atol=1e-15)


def test_two_units_are_exchanged_by_the_reflection():
    rows = np.random.default_rng(1).normal(size=(3, 2))
    np.testing.assert_allclose(permutation_set([[0, 2]], units=3, weights=2).reflected(rows), rows[[2, 1, 0]])
    np.testing.assert_allclose(sign_set([1], units=3, weights=2).reflected(rows), rows * [[1], [-1], [1]])


@given(seed=st.integers(0, 10**6), kind=st.sampled_from(sorted(SETS)))
def test_the_projection_is_the_nearest_point(seed, kind):
    kept = SETS[kind]
    rows, other = np.random.default_rng(seed).normal(size=(2, UNITS, INPUTS + OUTPUTS))
    nearest = kept.projected(rows)
    assert kept.distance(nearest) < 1e-13
    assert np.linalg.norm(rows - nearest) == pytest.approx(kept.distance(rows), rel=1e-12)
    assert np.linalg.norm(rows - kept.projected(other)) >= kept.distance(rows) - 1e-12
    np.testing.assert_allclose(kept.reflected(kept.reflected(rows)), rows, atol=1e-13)


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: sign_set([0], units=2, weights=2, activation=sigmoid), "activation"),
        (lambda: sign_set([2], units=2, weights=2), "vanishing"),
        (lambda: sign_set([], units=2, weights=2), "vanishing"),
        (lambda: permutation_set([[0, 1], [1, 2]], units=3, weights=2), "clusters"),
        (lambda: permutation_set([[0]], units=3, weights=2), "clusters"),
        (lambda: permutation_set([], units=3, weights=2), "clusters"),
        (lambda: sign_set([0], units=10**6, weights=2), "units"),
        (lambda: permutation_set([[0, 1]], units=3, weights=10**6), "weights"),
        (lambda: SETS["sign"].distance(np.ones((2, 2))), "units"),
    ],
)
def test_bad_input_is_refused_by_name(call, argument):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.argument == argument

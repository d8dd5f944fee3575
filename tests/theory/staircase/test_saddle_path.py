from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory.staircase import saddle_path
from dynascope.theory.staircase.saddle_path import successive_saddles

X = np.array([[1, -0.75, -0.15, -0.43], [0.85, 0.94, -0.97, -0.96], [-0.99, 0.96, 0.7, -0.15]])
Y = np.array([-0.39, -1.15, 1.98])
INTEGRALS = [
    [0, 0, 0, 0],
    [-1, 0.334254890765, 0.769300117198, 0.292905009466],
    [-1, 0.335351902264, 1, 0.121456703168],
    [-1, 1, 1, -0.391523259292],
    [-0.456610233587, 1, 1, -1],
]


def random_data(seed, samples, inputs, correlation=0.5, noise=0.5):
    draw = np.random.default_rng(seed)
    distance = np.abs(np.subtract.outer(np.arange(inputs), np.arange(inputs)))
    covariance = np.where(distance == 0, 1.0, correlation**distance)
    x = draw.normal(size=(samples, inputs)) @ np.linalg.cholesky(covariance).T
    return x, x[:, : min(4, inputs)].sum(axis=1) + noise * draw.normal(size=samples)


def solved_afresh(x, y):
    """The path with the constrained least squares of every saddle solved on its own."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(saddle_path._ActiveSet, "_exchange", lambda *_: False)
        return successive_saddles(x, y)


def test_golden_path():
    path = successive_saddles(X, Y)
    np.testing.assert_allclose(path.times, [0.90152357484148, 2.26711189270040, 4.70381533762842, 12.71530677967437])
    levels = [0.89916666666667, 0.21626950035768, 0.11543425308171, 0.02130584129321, 0.0]
    np.testing.assert_allclose(path.levels, levels, rtol=0, atol=1e-13)
    np.testing.assert_allclose(path.integrals, INTEGRALS, rtol=0, atol=1e-11)
    assert path.ties == ()


@pytest.mark.parametrize(("samples", "inputs"), [(40, 12), (12, 40), (20, 20), (6, 3)])
@pytest.mark.parametrize("seed", range(3))
def test_updates_from_jump_to_jump_give_what_solving_afresh_gives(samples, inputs, seed):
    x, y = random_data(seed, samples, inputs)
    path, reference = successive_saddles(x, y), solved_afresh(x, y)
    # Multipliers of the order of the round-off of the largest set the later times of an ill-conditioned path.
    np.testing.assert_allclose(path.times, reference.times, rtol=1e-7)
    np.testing.assert_allclose(path.maps, reference.maps, rtol=0, atol=1e-9)
    np.testing.assert_allclose(path.levels, reference.levels, rtol=0, atol=1e-12)
    np.testing.assert_allclose(path.integrals, reference.integrals, rtol=0, atol=1e-7)


@pytest.mark.parametrize("closeness", [1e-3, 1e-6, 1e-9, 0.0])
def test_inputs_that_nearly_are_copies_keep_the_path_optimal(closeness):
    draw = np.random.default_rng(0)
    x = draw.normal(size=(30, 4))
    x = np.column_stack([x, x[:, 0] + closeness * draw.normal(size=30)])
    y = x[:, :4] @ [1.0, 0.5, -0.5, 0.2] + 0.3 * draw.normal(size=30)
    path = successive_saddles(x, y)
    multipliers = (y - path.maps @ x.T) @ x
    largest = np.abs(x.T @ y).max()
    # Active inputs are solved for, up to round-off, and the others are not pushed out of their bounds.
    assert np.all(np.abs(multipliers[path.maps != 0]) < 1e-7 * largest)
    assert np.all((multipliers * np.sign(path.integrals))[np.abs(path.integrals) == 1] < 1e-7 * largest)
    assert np.all(path.maps * path.integrals >= 0)
    assert np.all(np.diff(path.levels) < 1e-12)


@given(st.integers(0, 10**6), st.integers(2, 25), st.integers(1, 15))
def test_the_last_saddle_cannot_be_improved(seed, samples, inputs):
    x, y = random_data(seed, samples, inputs)
    path = successive_saddles(x, y)
    best = np.linalg.lstsq(x, y, rcond=None)[0]
    lowest = np.sum((y - x @ best) ** 2) / (2 * samples)
    # Multipliers below 1e-10 of the largest are taken for zero.
    assert path.levels[-1] <= lowest + 1e-9 * path.levels[0]
    assert len(path.times) + 1 == len(path.levels) == len(path.maps) == len(path.integrals)


def test_data_that_are_large_or_small_take_the_same_path():
    x, y = random_data(3, 12, 8)
    path, other = successive_saddles(x, y), successive_saddles(1e-90 * x, 1e120 * y)
    np.testing.assert_allclose(other.times * 1e30, path.times, rtol=1e-9)
    np.testing.assert_allclose(other.maps, 1e210 * path.maps, rtol=1e-7, atol=1e203)


def test_targets_without_correlation_are_named():
    with pytest.raises(InputError) as caught:
        successive_saddles(X, np.zeros(3))
    assert caught.value.argument == "targets"


def test_a_path_without_end_is_refused(monkeypatch):
    # A step that forgets what it has learned repeats the first jump for ever.
    def forget(active, *_):
        active.beta[:] = 0.0

    monkeypatch.setattr(saddle_path._ActiveSet, "enter", forget)
    with pytest.raises(InputError, match="did not end") as caught:
        successive_saddles(X, Y)
    assert caught.value.argument == "inputs"

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from symmetry.zoo import A1, attention, attention_loss, wave

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.symmetry import discover
from dynascope.theory.symmetry import (
    attention_defect,
    attention_generators,
    biased_attention_defect,
    biased_charge_parts,
    biased_charge_rate,
)

TOKENS = wave(np.sin, 0.8, 4, 3)
_gradient = jit(jax.grad(attention_loss))


def gradient(p):
    with jax.enable_x64(True):
        return {name: np.asarray(leaf) for name, leaf in _gradient(p).items()}


def defects(p):
    """E and F of a head."""
    g = gradient(p)
    return (
        attention_defect(p["Q"], p["K"], g["Q"], g["K"]),
        attention_defect(p["V"], p["O"].T, g["V"], g["O"].T),
    )


def test_the_defects_of_a_biased_head_are_the_golden_ones():
    queries, values = defects(A1)
    np.testing.assert_allclose(
        queries, [[0.049488211009, -0.024744105504], [-0.218939950797, 0.109469975399]], rtol=0, atol=1e-12
    )
    np.testing.assert_allclose(
        values, [[-0.044001680369, -0.039601512332], [-0.058751810382, -0.052876629344]], rtol=0, atol=1e-12
    )


def test_without_biases_both_defects_vanish():
    for defect in defects(A1 | {"bQ": np.zeros(2), "bV": np.zeros(2)}):
        np.testing.assert_allclose(defect, 0, atol=1e-15)


@given(seed=st.integers(0, 10**6))
def test_the_defect_of_any_head_is_the_matrix_of_rank_one(seed):
    random = np.random.default_rng(seed)
    p = {name: random.normal(size=leaf.shape) for name, leaf in A1.items()}
    g, (queries, values) = gradient(p), defects(p)
    for found, name in ((queries, "bQ"), (values, "bV")):
        np.testing.assert_allclose(found, biased_attention_defect(p[name], g[name]), rtol=0, atol=1e-11)
        np.testing.assert_allclose(biased_charge_rate(p[name], g[name]), -(found + found.T), rtol=0, atol=1e-11)


def test_the_gradient_of_the_bias_is_that_of_the_score_vector():
    """W_K p, with p the derivative along an offset of W_Kᵀ b_Q, which adds the same vector to all keys' scores."""

    def loss(offset):
        scores = (TOKENS @ A1["Q"].T + A1["bQ"]) @ (TOKENS @ A1["K"].T).T + TOKENS @ offset
        weights = jax.nn.softmax(jnp.where(np.tri(4, dtype=bool), scores / np.sqrt(2), -jnp.inf))
        error = weights @ (TOKENS @ A1["V"].T + A1["bV"]) @ A1["O"].T - wave(np.cos, 0.5, 4, 3)
        return 0.5 * jnp.mean(jnp.sum(error**2, -1))

    with jax.enable_x64(True):
        p = np.asarray(jax.grad(loss)(jnp.zeros(3)))
    np.testing.assert_allclose(biased_attention_defect(A1["bQ"], A1["K"] @ p), defects(A1)[0], rtol=0, atol=1e-12)


def under_flow(trained, time=4.0):
    """Weights before and after gradient flow, and the integral of the predicted rate of the charge of the scores."""
    names = [name for name in A1 if name in trained]
    sizes = np.cumsum([A1[name].size for name in names])[:-1]

    def weights(flat):
        parts = np.split(flat, sizes)
        return A1 | {name: part.reshape(A1[name].shape) for name, part in zip(names, parts, strict=True)}

    def velocity(_, state):
        p = weights(state[:-4])
        g = gradient(p)
        down = np.concatenate([-g[name].ravel() for name in names])
        return np.concatenate([down, biased_charge_rate(p["bQ"], g["bQ"]).ravel()])

    start = np.concatenate([*(A1[name].ravel() for name in names), np.zeros(4)])
    end = solve_ivp(velocity, (0, time), start, rtol=1e-11, atol=1e-12).y[:, -1]
    return weights(end[:-4]), end[-4:].reshape(2, 2)


def charge(p):
    return p["Q"] @ p["Q"].T - p["K"] @ p["K"].T


def test_gradient_flow_moves_the_charge_at_the_predicted_rate_and_only_inside():
    after, predicted = under_flow("QKVO")
    drift = charge(after) - charge(A1)
    np.testing.assert_allclose(drift, predicted, rtol=0, atol=1e-9)
    parts = biased_charge_parts(drift, A1["bQ"])
    assert np.abs(parts.outside).max() < 1e-9 < 1e-3 < np.abs(parts.inside).max()
    assert np.abs(parts.mixed).max() > 1e-3


def test_a_learned_bias_beside_a_constant_one_keeps_the_charge_of_their_sum():
    constant = np.array([0.2, 0.7])
    names = ("Q", "K", "V", "O", "bQ")  # bQ is the sum, whose gradient is that of the learned bias
    after, _ = under_flow(names)
    with_bias = [charge(p) + np.outer(p["bQ"], p["bQ"]) for p in (A1, after)]
    np.testing.assert_allclose(*with_bias, rtol=0, atol=1e-9)
    assert np.abs(charge(after) - charge(A1)).max() > 1e-3
    learned = [p["bQ"] - constant for p in (A1, after)]
    alone = [charge(p) + np.outer(b, b) for p, b in zip((A1, after), learned, strict=True)]
    assert np.abs(alone[1] - alone[0]).max() > 1e-3
    # Appended as a column, the sum leaves no defect.
    g = gradient(after)
    queries, keys = np.column_stack([after["Q"], after["bQ"]]), np.column_stack([after["K"], np.zeros(2)])
    slopes = np.column_stack([g["Q"], g["bQ"]]), np.column_stack([g["K"], np.zeros(2)])
    np.testing.assert_allclose(attention_defect(queries, keys, *slopes), 0, atol=1e-14)


def scores(p, given):
    tokens, bias = given if isinstance(given, tuple) else (given, A1["bQ"])
    full = A1 | {"Q": p["Q"], "K": p["K"], "bQ": bias + p.get("bQ", 0.0), "bV": np.zeros(2)}
    return attention(full, tokens)


def without_bias(p, tokens):
    return scores(p, (tokens, np.zeros(2)))


PAIR = {"Q": A1["Q"], "K": A1["K"]}
RUNS = {
    "none": (without_bias, PAIR, TOKENS, attention_generators(2)),
    "fixed": (scores, PAIR, TOKENS, attention_generators(2, 1)),
    "resampled": (scores, PAIR, (TOKENS, A1["bQ"]), attention_generators(2, 100)),
    "learned and fixed": (scores, PAIR | {"bQ": np.ones(2)}, TOKENS, attention_generators(2, 1, learned=True)),
    "learned and resampled": (
        scores,
        PAIR | {"bQ": np.ones(2)},
        (TOKENS, A1["bQ"]),
        attention_generators(2, 100, learned=True),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_gradients_have_as_many_null_directions_as_generators_are_counted(name):
    *given, counted = RUNS[name]
    found = discover(*given, levels=0)
    assert (found.affine, found.charges) == (counted.total, counted.symmetric)
    if not name.startswith("learned"):  # rotations about the origin only
        assert found.rotations == counted.skew


def test_the_published_counts():
    assert attention_generators(2, 1) == (2, 1, 0)
    assert attention_generators(2, 1, learned=True)[:2] == (4, 3)
    assert attention_generators(2, 50) == attention_generators(2, 50, learned=True) == (0, 0, 0)


@given(width=st.integers(1, 5), draws=st.integers(0, 7), learned=st.booleans(), seed=st.integers(0, 10**6))
def test_counts_are_dimensions_of_null_spaces(width, draws, learned, seed):
    biases = np.random.default_rng(seed).normal(size=(draws, width))
    biases = biases[1:] - biases[:1] if learned else biases
    units = np.eye(width**2).reshape(-1, width, width)
    spaces = units, units + units.transpose(0, 2, 1), units - units.transpose(0, 2, 1)
    dimensions = []
    for space in spaces:
        images = np.einsum("aij,ri->arj", space, biases).reshape(width**2, -1)
        rank = np.linalg.matrix_rank
        both = rank(np.concatenate([images, space.reshape(width**2, -1)], 1), tol=1e-9)
        dimensions.append(both - (rank(images, tol=1e-9) if images.size else 0))
    assert tuple(dimensions) == attention_generators(width, draws, learned=learned)


@given(
    width=st.integers(1, 5),
    draws=st.integers(1, 6),
    seed=st.integers(0, 10**6),
    size=st.sampled_from([1e-160, 1, 1e160]),
)
def test_parts_add_up_and_are_orthogonal(width, draws, seed, size):
    random = np.random.default_rng(seed)
    matrix = random.normal(size=(width, width))
    matrix, biases = matrix + matrix.T, size * random.normal(size=(draws, width))
    parts = biased_charge_parts(matrix, biases)
    np.testing.assert_allclose(sum(parts), matrix, rtol=0, atol=1e-12)
    np.testing.assert_allclose(parts.outside @ (biases / size).T, 0, atol=1e-10)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert abs(np.vdot(parts[one], parts[other])) < 1e-10


def test_a_bias_of_zero_breaks_nothing():
    parts = biased_charge_parts(np.eye(2), np.zeros(2))
    np.testing.assert_array_equal(parts.outside, np.eye(2))
    assert not biased_attention_defect(np.zeros(2), np.ones(2)).any()


@pytest.mark.parametrize(
    ("function", "arguments", "argument"),
    [
        (attention_defect, (np.ones((2, 3)), np.ones((3, 3)), np.ones((2, 3)), np.ones((3, 3))), "second"),
        (attention_defect, (np.ones((2, 3)), np.ones((2, 3)), np.ones((3, 2)), np.ones((2, 3))), "first_gradient"),
        (biased_attention_defect, (np.ones(2), np.ones(3)), "bias_gradient"),
        (biased_charge_rate, (np.ones((2, 2)), np.ones(2)), "bias"),
        (biased_charge_parts, (np.array([[0, 1.0], [0, 0]]), np.ones(2)), "charge"),
        (biased_charge_parts, (np.eye(2), np.ones(3)), "charge"),
        (attention_generators, (0,), "head_width"),
        (attention_generators, (2, -1), "draws"),
    ],
)
def test_bad_input_is_refused_by_name(function, arguments, argument):
    with pytest.raises(InputError) as caught:
        function(*arguments)
    assert caught.value.argument == argument

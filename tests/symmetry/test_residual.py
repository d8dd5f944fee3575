"""Symmetries of attention with biases that are not learned."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from symmetry.zoo import A1, attention, wave

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.symmetry import charges, check_identities, cross_check, discover, find_symmetries, orbit_directions
from dynascope.tasks import Task
from dynascope.theory.symmetry import attention_generators
from dynascope.training import Descent, charge_statistics, descend

TOKENS = wave(np.sin, 0.8, 4, 3)
PAIR = {name: A1[name] for name in "QK"}
WEIGHTS = {name: A1[name] for name in "QKVO"}
LEARNED = PAIR | {"bl": np.array([0.1, 0.4])}


def of_scores(p, x, bias=0.0):
    return attention(A1 | p | {"bQ": bias + p.get("bl", 0.0), "bV": np.zeros(2)}, x)


def fixed(p, x):
    return of_scores(p, x, A1["bQ"])


def resampled(p, x):
    return of_scores(p, *x)


def biased(p, x):
    return attention(p | {"bQ": A1["bQ"], "bV": A1["bV"]}, x)


CASES = {
    "no bias": (of_scores, PAIR, TOKENS, attention_generators(2)),
    "fixed": (fixed, PAIR, TOKENS, attention_generators(2, 1)),
    "compiled": (jit(fixed), PAIR, TOKENS, attention_generators(2, 1)),
    "resampled": (resampled, PAIR, (TOKENS, A1["bQ"]), attention_generators(2, 50)),
    "learned and fixed": (fixed, LEARNED, TOKENS, attention_generators(2, 1, learned=True)),
    "learned and resampled": (resampled, LEARNED, (TOKENS, A1["bQ"]), attention_generators(2, 50, learned=True)),
}


@pytest.mark.parametrize("name", CASES)
def test_as_many_charges_are_found_as_theory_and_gradients_count(name):
    *given, counted = CASES[name]
    found = find_symmetries(*given)
    assert found.size == counted.symmetric
    assert found.size == discover(*given, levels=0).charges
    assert not found.broken


def test_the_charge_that_a_fixed_bias_leaves_lies_orthogonal_to_it():
    found = find_symmetries(biased, WEIGHTS, TOKENS)
    assert [each.group for each in found.symmetries] == ["GL(1) in GL(2), orthogonal to constants"] * 2
    for charge, one, other, bias in zip(
        found.symmetries, ("Q", "V"), (A1["K"], A1["O"].T), (A1["bQ"], A1["bV"]), strict=True
    ):
        across = np.array([-bias[1], bias[0]]) / np.linalg.norm(bias)
        difference = other @ other.T - A1[one] @ A1[one].T
        np.testing.assert_allclose(charges(WEIGHTS, [charge]), [across @ difference @ across], rtol=1e-9)
    assert len(set(found.names)) == found.size == 2
    np.testing.assert_array_equal([len(line.split("  ")) > 2 for line in found.table.splitlines()], True)


def test_a_residual_charge_agrees_with_that_of_gradients():
    found = find_symmetries(fixed, PAIR, TOKENS)
    assert cross_check(found, discover(fixed, PAIR, TOKENS, levels=0), PAIR).agrees


def headed(p, x, bias):
    """Heads of three coordinates each, which share a bias of queries."""
    q, k, v = (jnp.reshape(x @ p[name], (len(x), 2, 3)) for name in "QKV")
    scores = jnp.einsum("ihc,jhc->hij", q + bias, k)
    return jnp.einsum("hij,jhc->ihc", jax.nn.softmax(scores), v).reshape(len(x), -1) @ p["O"]


RANDOM = np.random.default_rng(0)
HEADS = {name: RANDOM.normal(size=(5, 6)) / 2 for name in "QKV"} | {"O": RANDOM.normal(size=(6, 5))}
WIDE = RANDOM.normal(size=(7, 5))


def test_each_head_keeps_the_complement_of_a_shared_bias():
    found = find_symmetries(lambda p, x: headed(p, x, np.array([0.5, 0.4, -0.2])), HEADS, WIDE)
    assert [(each.group, each.size) for each in found.symmetries if each.paths == ("['Q']", "['K']")] == [
        ("GL(2) in GL(3) for each of 2, orthogonal to constants", 6)
    ]
    assert found.size == 2 * attention_generators(3, 1).symmetric + 2 * attention_generators(3).symmetric


def test_a_bias_with_zeros_is_counted_once():
    found = find_symmetries(lambda p, x: headed(p, x, np.array([0.5, 0.0, 0.0])), HEADS, WIDE)
    assert len(found.names) == found.size == 2 * 3 + 2 * 6


def test_a_bias_of_one_head_leaves_the_other_whole():
    bias = np.array([[0.5, 0.4, -0.2], [0.0, 0.0, 0.0]])
    found = find_symmetries(lambda p, x: headed(p, x, bias), HEADS, WIDE)
    assert len(found.names) == found.size == 3 + 6 + 2 * 6


def test_a_constant_array_that_is_made_in_the_program_is_found():
    found = find_symmetries(lambda p, x: of_scores(p, x, jnp.full(2, 0.3) + 0.1 * jnp.arange(2)), PAIR, TOKENS)
    assert found.size == 1


def test_a_single_number_is_a_constant_along_the_diagonal():
    found = find_symmetries(lambda p, x: of_scores(p, x, 0.5), PAIR, TOKENS)
    (charge,) = found.symmetries
    np.testing.assert_allclose(np.abs(charge.basis.ravel()), [0.5**0.5] * 2, rtol=1e-9)
    np.testing.assert_allclose(charge.basis.sum(), 0, atol=1e-9)


def flow(apply, params, time):
    """The parameters after gradient flow of a squared loss."""
    leaves, structure = jax.tree.flatten(params)
    cuts = np.cumsum([leaf.size for leaf in leaves])[:-1]

    def tree(flat):
        parts = np.split(np.asarray(flat), cuts)
        return jax.tree.unflatten(structure, [p.reshape(e.shape) for p, e in zip(parts, leaves, strict=True)])

    slope = jit(jax.grad(lambda p: jnp.sum((apply(p, TOKENS) - wave(np.cos, 0.5, 4, 3)) ** 2) / 8))

    def velocity(_, flat):
        return -np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(slope(tree(flat)))])

    with jax.enable_x64(True):
        start = np.concatenate([leaf.ravel() for leaf in leaves])
        return tree(solve_ivp(velocity, (0, time), start, rtol=1e-11, atol=1e-12).y[:, -1])


def test_gradient_flow_conserves_the_charges_beside_constants():
    found = find_symmetries(biased, WEIGHTS, TOKENS).symmetries
    after = flow(biased, WEIGHTS, 4.0)
    np.testing.assert_allclose(charges(after, found), charges(WEIGHTS, found), rtol=0, atol=1e-9)
    # Without the restriction, the charge of the scores changes.
    before, later = (p["Q"] @ p["Q"].T - p["K"] @ p["K"].T for p in (WEIGHTS, after))
    assert np.abs(later - before).max() > 1e-2


def test_gradient_flow_conserves_the_charge_of_a_learned_bias_plus_a_constant():
    (found,) = find_symmetries(fixed, LEARNED, TOKENS).affine
    np.testing.assert_allclose(found.constants["['bl']"], A1["bQ"], rtol=0, atol=1e-10)
    after = flow(fixed, LEARNED, 4.0)
    np.testing.assert_allclose(found.values(after), found.values(LEARNED), rtol=0, atol=1e-9)
    assert np.abs(charges(after, [found.charge]) - charges(LEARNED, [found.charge])).max() > 1e-3


@given(seed=st.integers(0, 10**6))
def test_a_learned_bias_compensates_for_a_constant_one(seed):
    (found,) = find_symmetries(fixed, LEARNED, TOKENS).affine
    element = np.eye(2)[None] + 0.3 * np.random.default_rng(seed).normal(size=(1, 2, 2))
    moved = found.transformed(LEARNED, element)
    expected = np.linalg.inv(element[0]).T @ (LEARNED["bl"] + A1["bQ"]) - A1["bQ"]
    np.testing.assert_allclose(moved["bl"], expected, rtol=1e-8, atol=1e-9)
    with jax.enable_x64(True):
        np.testing.assert_allclose(fixed(moved, TOKENS), fixed(LEARNED, TOKENS), rtol=0, atol=1e-8)


def test_the_methods_of_a_residual_charge_agree_with_dense_matrices():
    bias, name = np.array([0.5, 0.4, -0.2]), ("['Q']", "['K']")
    found = find_symmetries(lambda p, x: headed(p, x, bias), HEADS, WIDE)
    (charge,) = (each for each in found.symmetries if each.paths == name)
    random = np.random.default_rng(1)
    other = {key: random.normal(size=leaf.shape) for key, leaf in HEADS.items()}
    rows = {key: leaf.T.reshape(2, 3, 5) for key, leaf in HEADS.items() if key in "QK"}
    rows_of_other = {key: leaf.T.reshape(2, 3, 5) for key, leaf in other.items() if key in "QK"}
    basis = charge.basis
    np.testing.assert_allclose(np.einsum("bik,i->bk", basis, bias), 0, atol=1e-12)

    def restricted(one, two, sign):
        whole = one["K"] @ two["K"].swapaxes(1, 2) + sign * one["Q"] @ two["Q"].swapaxes(1, 2)
        return basis.swapaxes(1, 2) @ (whole + whole.swapaxes(1, 2)) @ basis / 2

    upper = np.triu_indices(2)
    expected = restricted(rows, rows_of_other, -1)[:, *upper].ravel()
    np.testing.assert_allclose(charge.form(HEADS, other), expected, rtol=0, atol=1e-12)
    form, size = charge.form_and_size(HEADS)
    np.testing.assert_allclose(form, restricted(rows, rows, -1)[:, *upper].ravel(), rtol=0, atol=1e-12)
    diagonal = restricted(rows, rows, 1)
    both = [(diagonal[:, i, i] + diagonal[:, j, j]) / 2 for i, j in zip(*upper, strict=True)]
    np.testing.assert_allclose(size, np.stack(both, 1).ravel(), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(charge.size_form(HEADS), size)
    assert np.all(np.abs(form) <= size)
    # The velocity is the derivative of the transformation.
    weights, step = random.normal(size=(2, 2, 2)), 1e-6
    ahead, back = (charge.transformed(HEADS, np.eye(2) + s * step * weights) for s in (1, -1))
    along = charge.direction(HEADS, weights)
    for key in HEADS:
        np.testing.assert_allclose((ahead[key] - back[key]) / (2 * step), along[key], rtol=0, atol=1e-8)
    with jax.enable_x64(True):
        moved = charge.transformed(HEADS, np.eye(2) + 0.2 * weights)
        np.testing.assert_allclose(headed(moved, WIDE, bias), headed(HEADS, WIDE, bias), rtol=0, atol=1e-10)


def test_residual_symmetries_pass_the_identities_of_a_loss():
    found = find_symmetries(biased, WEIGHTS, TOKENS).symmetries
    checks = check_identities(lambda p: jnp.sum(jnp.tanh(biased(p, TOKENS)) ** 2), WEIGHTS, found)
    assert all(each.holds for each in checks)
    assert orbit_directions(WEIGHTS, found).shape == (2, 24)


def test_constants_that_break_no_matrix_symmetry_add_nothing():
    params = {"W": RANDOM.normal(size=(3, 4)), "a": RANDOM.normal(size=(4, 2))}
    found = find_symmetries(lambda p, x: jax.nn.relu(x @ p["W"] + np.ones(4)) @ p["a"], params, WIDE[:, :3])
    assert (found.size, found.affine) == (0, ())
    shifted = find_symmetries(lambda p, x: jax.nn.relu(x @ p["W"]) @ p["a"] + np.ones(2), params, WIDE[:, :3])
    assert (shifted.size, shifted.affine) == (4, ())


def test_a_frozen_matrix_beside_a_trained_one_is_a_constant_too():
    frozen = RANDOM.normal(size=(1, 4))
    params = {"W": RANDOM.normal(size=(1, 4)), "a": RANDOM.normal(size=(4, 1))}
    found = find_symmetries(lambda p, x: x @ (p["W"] + frozen) @ p["a"], params, WIDE[:, :1])
    (affine,) = found.affine
    np.testing.assert_allclose(affine.constants["['W']"], frozen, rtol=0, atol=1e-9)


class LinearWithConstant(eqx.Module):
    first: np.ndarray
    second: np.ndarray

    def __call__(self, x):
        return (x @ self.first + np.array([0.5, 0.4, -0.2])) @ self.second


def test_the_laws_of_training_hold_for_residual_charges():
    network = LinearWithConstant(RANDOM.normal(size=(2, 3)), RANDOM.normal(size=(3, 2)))
    task = Task(np.eye(2), np.array([[1.0, 0.5], [-2.0, 1.0]]))
    found = find_symmetries(lambda weights, x: weights(x), network, WIDE[:, :2])
    assert [each.group for each in found.symmetries] == ["GL(2) in GL(3), orthogonal to constants"]
    law = charge_statistics(found.symmetries, momentum=0.9, weight_decay=0.01)
    optimizer = optax.chain(optax.add_decayed_weights(0.01), optax.sgd(0.05, momentum=0.9))
    run = descend(task, network, Descent(lambda _: optimizer, steps=40, learning_rate=0.05, statistics=law))
    residual = np.abs(run["measured_charge"] - run["predicted_charge"])
    assert run["measured_charge"].shape[1] == 3
    assert bool((residual <= run["charge_bound"]).all())
    assert np.abs(run["measured_charge"][-1] - run["measured_charge"][0]).max() > 1e-2


def test_loops_are_evaluated_unchanged():
    """A constant inside a loop stays, so only the symmetry of the last layers is found."""
    params = {"W": RANDOM.normal(size=(2, 3, 3)), "u": RANDOM.normal(size=(3, 2)), "v": RANDOM.normal(size=(2, 3))}

    def apply(p, x):
        hidden, _ = jax.lax.scan(lambda h, w: (jnp.tanh(h @ w + np.ones(3)), None), x, p["W"])
        return (hidden @ p["u"] + np.array([0.3, -0.1])) @ p["v"]

    assert [each.group for each in find_symmetries(apply, params, WIDE[:, :3]).symmetries] == [
        "GL(1) in GL(2), orthogonal to constants"
    ]


@pytest.mark.parametrize("method", ["direction", "transformed"])
def test_elements_of_another_shape_are_refused(method):
    found = find_symmetries(fixed, PAIR, TOKENS).symmetries[0]
    with pytest.raises(InputError, match="shape"):
        getattr(found, method)(PAIR, np.ones((1, 2, 2)))

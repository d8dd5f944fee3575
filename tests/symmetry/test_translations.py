from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from symmetry.zoo import normed

from dynascope.symmetry import find_symmetries
from dynascope.symmetry.translations import translations

X = np.ones((5, 3))


def found(apply, *shapes, x=X):
    params = [np.ones(shape) for shape in shapes]
    program = jax.make_jaxpr(lambda p, x: apply(x, *p))(params, x)
    return {each.parts[0].path: each.parts[0].labels for each in translations(program, [*"wbcd"[: len(params)]])}


@pytest.mark.parametrize(
    "normalised",
    [
        jax.nn.log_softmax,
        jax.nn.softmax,
        lambda z: z - jax.scipy.special.logsumexp(z, axis=-1, keepdims=True),
        lambda z: z - z.max(-1, keepdims=True),
        lambda z: normed(z, 1e-5, 1),
        lambda z: z - z[:, :1],
    ],
)
def test_a_shift_of_all_outputs_is_unseen_by_what_normalises_them(normalised):
    labels = found(lambda x, w, b: normalised(x @ w + b), (3, 4), (4,))
    np.testing.assert_array_equal(labels["w"], [[0], [1], [2]])
    np.testing.assert_array_equal(labels["b"], [0])


@pytest.mark.parametrize(
    "seeing",
    [
        lambda z: z,
        jax.nn.relu,
        lambda z: jax.nn.softmax(2 * z) + z,
        lambda z: z - 0.5 * z.max(-1, keepdims=True),
        lambda z: jax.nn.softmax(z, axis=0) + jnp.tanh(z),
        lambda z: jax.nn.softmax(z * jnp.arange(4)),
    ],
)
def test_a_shift_that_something_sees_is_none(seeing):
    assert found(lambda x, w: seeing(x @ w), (3, 4)) == {}


def test_a_bias_before_a_norm_over_the_batch_is_unseen_element_by_element():
    labels = found(lambda x, w, b: normed(x @ w + b, 1e-5, 0), (3, 4), (4,))
    assert set(labels) == {"b"}
    np.testing.assert_array_equal(labels["b"], np.arange(4))


def test_groups_are_shifted_one_by_one():
    labels = found(lambda x, w: normed((x @ w).reshape(5, 2, 3), 0.0, 2), (3, 6))
    np.testing.assert_array_equal(labels["w"], np.repeat(np.arange(6).reshape(3, 2), 3, axis=1))


@pytest.mark.parametrize(
    "parts",
    [
        lambda z: jnp.split(z, 3, axis=-1),
        lambda z: z.reshape(5, 3, 2).transpose(1, 0, 2),
        lambda z: jnp.unstack(z.reshape(5, 3, 2), axis=1),
        lambda z: z.reshape(5, 1, 3, 2).transpose(2, 0, 1, 3).reshape(3, 5, 2),
    ],
)
def test_the_part_of_a_fused_bias_that_is_of_the_keys_is_unseen(parts):
    def apply(x, w, b):
        q, k, v = parts(x @ w + b)
        return jax.nn.softmax(jnp.where(np.tri(5, dtype=bool), q @ k.T, -jnp.inf)) @ v

    labels = found(apply, (3, 6), (6,))
    np.testing.assert_array_equal(labels["b"], [-1, -1, 0, 1, -1, -1])
    assert set(labels) == {"b"}


def test_what_is_compared_with_infinity_does_not_see_a_shift():
    def apply(x, w):
        z = x @ w
        return jnp.where((z == -jnp.inf).all(-1, keepdims=True), 0.0, jax.nn.softmax(z))

    assert set(found(apply, (3, 4))) == {"w"}
    assert found(lambda x, w: jnp.where(x @ w > 0, 1.0, jax.nn.softmax(x @ w)), (3, 4)) == {}


def test_a_part_that_is_no_whole_row_of_what_a_reshape_makes_is_seen():
    # Units 1 and 2 are the last of the first row and the first of the second.
    labels = found(lambda x, w, b: jnp.tanh((x @ w + b).reshape(5, 2, 2)[:, 1]) * (x @ w + b)[:, 1:3], (3, 4), (4,))
    assert labels == {}


def test_a_shift_of_a_residual_stream_is_unseen_where_all_that_reads_it_is_normed():
    def apply(tokens, embedding, down, gain):
        stream = embedding[tokens]
        stream = stream + jax.nn.relu(normed(stream, 0.0, 1) * gain) @ down
        return normed(stream, 0.0, 1)

    labels = found(apply, (7, 4), (4, 4), (4,), x=np.array([0, 3, 1]))
    assert {path: each.shape for path, each in labels.items()} == {"w": (7, 1), "b": (4, 1)}


def test_a_parameter_that_is_not_read_is_left_to_those_who_name_it():
    assert found(lambda x, w, b: x @ w, (3, 4), (4,)) == {}


def test_shifts_that_undo_each_other_are_found_however_many_pairs_there_are():
    count = 29  # of 406 pairs
    params = {"w": np.ones((3, 4)), "b": [np.ones(4) for _ in range(count)], "other": [np.ones(4) for _ in range(3)]}

    def apply(p, x):
        return jnp.tanh(x @ p["w"] + sum(p["b"])) + p["other"][0] - p["other"][1] * jnp.exp(p["other"][2])

    found = find_symmetries(apply, params, X).symmetries
    assert [each.kind for each in found] == ["translation"] * (count - 1)
    # Each charge is of its own: the dimension of the shifts that the sum does not see, element by element.
    moved = {part.path for each in found for part in each.parts}
    assert len(moved) == count
    assert all("['b']" in path for path in moved)
    assert sum(each.size for each in found) == 4 * (count - 1)
    assert all(sorted(part.factor for part in each.parts) == [-1.0, 1.0] for each in found)


@pytest.mark.parametrize("looped", [True, False])
def test_two_biases_of_the_gates_undo_each_other_but_not_those_of_the_candidate(looped):
    units = 3
    draw = np.random.default_rng(0)
    shapes = {"input": (3 * units, 2), "state": (3 * units, units), "first": (3 * units,), "second": (3 * units,)}
    params = {name: draw.normal(size=shape) for name, shape in shapes.items()}

    def gated(p, state, x):
        reset, update, new = jnp.split(p["input"] @ x + p["first"], 3)
        # The state of the first step has no axis of samples, and its parts are cut before they are broadcast.
        own_reset, own_update, own_new = jnp.split(p["state"] @ state + p["second"], 3)
        share = jax.nn.sigmoid(update + own_update)
        candidate = jnp.tanh(new + jax.nn.sigmoid(reset + own_reset) * own_new)
        return (1 - share) * candidate + share * state

    def apply(p, inputs):
        state = jnp.zeros(units)
        if looped:
            return jax.lax.scan(lambda state, x: (gated(p, state, x), None), state, inputs)[0]
        for x in inputs:
            state = gated(p, state, x)
        return state

    def of_all(p, inputs):
        return jax.vmap(lambda one: apply(p, one))(inputs)

    found = find_symmetries(of_all, params, draw.normal(size=(5, 4, 2))).symmetries
    labels = [np.stack([part.labels for part in each.parts]) for each in found]
    assert [each.paths for each in found] == [("['first']", "['second']")] * 2
    assert sorted(np.flatnonzero(each[0] >= 0).tolist() for each in labels) == [[0, 1, 2], [3, 4, 5]]
    assert all((each[0] == each[1]).all() for each in labels)

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from symmetry.zoo import A1, BATCH, N1, NETWORKS, attention, hidden, structure_of, wave

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.symmetry import Charge, Part, charges, find_symmetries

DIGITS = 5e-14  # the ledger gives 13 of them


def found(apply, params, inputs, kind):
    return [each for each in find_symmetries(apply, params, inputs).symmetries if each.kind == kind]


def test_charges_of_neurons_are_those_of_the_ledger():
    (neurons,) = found(hidden, N1, BATCH, "rescale")
    expected = [-1.7877563803886, -0.8592755447880, -0.1605307280172, -1.8328770216567]
    np.testing.assert_allclose(neurons.form(N1, N1), expected, atol=2 * DIGITS)


def test_charges_of_a_softmax_are_those_of_the_ledger():
    def probabilities(p, x):
        return jax.nn.log_softmax(hidden(p, x))

    columns, bias = found(probabilities, N1, BATCH, "translation")
    expected = [0.4108141688399, 0.4074907812495, 0.0957864943664, -0.2884071018019]
    np.testing.assert_allclose(columns.form(N1, N1), expected, atol=DIGITS)
    np.testing.assert_allclose(bias.form(N1, N1), [1.9011275718441], atol=DIGITS)


def test_matrices_of_linear_layers_are_those_of_the_ledger():
    weights = [wave(np.sin, 0.5, 2, 3), wave(np.cos, 1.3, 2, 2)]
    (matrix,) = found(lambda p, x: x @ p[0].T @ p[1].T, weights, wave(np.sin, 0.9, 6, 3), "matrix")
    expected = [-1.334385180043, -1.649631978177, -0.251139367438]
    np.testing.assert_allclose(matrix.form(weights, weights), expected, atol=1e-12)


def test_matrices_of_attention_are_those_of_the_ledger_where_what_is_read_last_is_positive():
    head = {name: A1[name] for name in "QKVO"}
    scores, values = found(attention, head, wave(np.sin, 0.8, 4, 3), "matrix")
    signs = [part.factor for part in scores.parts if part.path == "['Q']"]
    expected = np.array([0.669049132101, 1.256736357248, 0.448595457415])
    np.testing.assert_allclose(scores.form(head, head), signs[0] * expected, atol=1e-12)
    expected = np.array([0.097820733533, -1.200590559642, -1.110393803681])
    np.testing.assert_allclose(values.form(head, head), -expected, atol=1e-12)


def dense(charge, params):
    """G of each charge as a matrix over all parameters, by differences of a quadratic form on the unit vectors."""
    flat, back = ravel_pytree(params)
    trees = [jax.tree.map(np.asarray, back(row)) for row in np.eye(len(flat))]
    return np.array([[charge.form(one, other) for other in trees] for one in trees])


def test_the_form_is_bilinear_and_symmetric_in_the_generator():
    with jax.enable_x64(True):
        params = NETWORKS["one head"].params
        random = np.random.default_rng(1)
        other = jax.tree.map(lambda each: random.normal(size=each.shape), params)
        for charge in structure_of("one head").symmetries:
            generator = dense(charge, params)
            np.testing.assert_array_equal(generator, generator.transpose(1, 0, 2))
            one, two = (np.asarray(ravel_pytree(each)[0]) for each in (params, other))
            expected = np.einsum("i,ijc,j->c", one, generator, two)
            np.testing.assert_allclose(charge.form(params, other), expected, atol=1e-13)


def test_a_compiled_function_gives_the_same_in_the_precision_of_its_arrays():
    symmetries = structure_of("one head").symmetries
    params = NETWORKS["one head"].params
    narrow = jax.tree.map(jnp.asarray, params)
    compiled = jit(lambda each: charges(each, symmetries))(narrow)
    assert compiled.dtype == jnp.float32
    # Sums of four products of order one.
    np.testing.assert_allclose(compiled, charges(params, symmetries), atol=1e-5)


@pytest.mark.parametrize("name", ["ReLU into softmax", "one head with biases", "embedding", "batch norm"])
def test_the_derivative_of_a_charge_is_the_direction_it_generates(name):
    params = NETWORKS[name].params
    random = np.random.default_rng(2)
    other = jax.tree.map(lambda each: random.normal(size=each.shape), params)
    for charge in structure_of(name).symmetries:
        if charge.kind == "matrix":
            weights = random.normal(size=(charge.units // charge.block, charge.block, charge.block))
            weights += weights.transpose(0, 2, 1)
            rows, columns = np.triu_indices(charge.block)
            weight = (weights * (2 - np.eye(charge.block)))[:, rows, columns].ravel()
        else:
            weights = weight = random.normal(size=charge.units)
        along = charge.direction(params, weights)
        product = sum(np.vdot(a, b) for a, b in zip(jax.tree.leaves(along), jax.tree.leaves(other), strict=True))
        expected = weight @ charge.form(other, params)
        np.testing.assert_allclose(product, expected, rtol=1e-12)


def test_a_small_transformation_moves_along_the_direction():
    params = NETWORKS["one head with biases"].params
    step = 1e-6
    for charge in structure_of("one head with biases").symmetries:
        if charge.kind == "matrix":
            weights = np.random.default_rng(3).normal(size=(1, 2, 2))
            element = np.eye(2) + step * weights
        else:
            weights = np.ones(charge.units)
            element = step * weights + (charge.kind != "translation")
        moved, along = charge.transformed(params, element), charge.direction(params, weights)
        for path in params:
            # The second order is left.
            np.testing.assert_allclose(moved[path] - params[path], step * along[path], atol=100 * step**2)


SCATTERED = {
    "blocks of columns": (np.arange(6)[None], 6, 3),
    "blocks of rows": (np.arange(4)[:, None], 4, 2),
    "one block of columns": (np.arange(6)[None], 6, 6),
    "part of the columns": (np.array([[-1, 0, 1, 2, 3, -1]]), 4, 2),
    "columns out of order": (np.array([[3, -1, 1, 0, 2, -1]]), 4, 4),
    "units of two rows": (np.array([0, 1, 1, 0])[:, None], 2, 2),
}


@pytest.mark.parametrize("name", SCATTERED)
def test_matrices_of_units_wherever_they_lie_are_products_of_their_elements(name):
    labels, units, block = SCATTERED[name]
    one, other = np.random.default_rng(4).normal(size=(2, 4, 6))
    everywhere = np.broadcast_to(labels, one.shape)
    rows = [[each[everywhere == unit] for unit in range(units)] for each in (one, other)]
    expected = [
        (np.vdot(rows[0][a], rows[1][b]) + np.vdot(rows[0][b], rows[1][a])) / 2
        for start in range(0, units, block)
        for a in range(start, start + block)
        for b in range(a, start + block)
    ]
    charge = Charge("matrix", (Part("[0]", labels, 1.0),), units, block)
    np.testing.assert_allclose(charge.form([one], [other]), expected, rtol=1e-12)
    with jax.enable_x64(True):
        np.testing.assert_allclose(jit(charge.form)([one], [other]), expected, rtol=1e-12)


@pytest.mark.parametrize("kind", ["translation", "scale", "rescale", "matrix"])
def test_sizes_beside_charges_add_up_absolute_values(kind):
    one, other = np.random.default_rng(5).normal(size=(2, 3, 3))
    columns, rows = np.arange(3)[None], np.arange(3)[:, None]
    sign = -1.0 if kind in ("rescale", "matrix") else 1.0
    charge = Charge(kind, (Part("[0]", columns, sign), Part("[1]", rows, 2.0)), 3, 3 if kind == "matrix" else 1)
    if kind == "translation":
        expected = np.abs(one).sum(0) + 2 * np.abs(other).sum(1)
    else:
        expected = (one**2).sum(0) + 2 * (other**2).sum(1)
    if kind == "matrix":
        expected = [(expected[a] + expected[b]) / 2 for a in range(3) for b in range(a, 3)]
    form, size = charge.form_and_size([one, other])
    np.testing.assert_allclose(size, expected, rtol=1e-12)
    np.testing.assert_allclose(charge.size_form([one, other]), expected, rtol=1e-12)
    np.testing.assert_allclose(form, charge.form([one, other], [one, other]), rtol=1e-12)


def test_charges_that_share_parameters_store_nothing_of_their_size():
    columns, rows = np.arange(256)[None], np.arange(256)[:, None]
    shared = [Charge("scale", (Part("[0]", labels, 1.0),), 256) for labels in (columns, rows)]
    weights = [jnp.ones((256, 256))]
    compiled = jit(lambda theta: charges(theta, shared)).lower(weights).compile()
    # Squares that both sum would be as many numbers as the weights; beside them there are two rows of sums.
    assert compiled.memory_analysis().temp_size_in_bytes < weights[0].nbytes / 16


def test_names_groups_and_sizes_say_what_is_conserved():
    scores, _ = found(attention, {name: A1[name] for name in "QKVO"}, wave(np.sin, 0.8, 4, 3), "matrix")
    assert (scores.size, scores.units, scores.group) == (3, 2, "GL(2)")
    assert scores.names == tuple(f"matrix {' '.join(scores.paths)} {pair}" for pair in ("[0, 0]", "[0, 1]", "[1, 1]"))


def test_what_does_not_fit_is_refused():
    charge = Charge("scale", (Part("['w']", np.array([[0], [1]]), 1.0),), 2)
    theta = {"w": np.ones((2, 3))}
    with pytest.raises(InputError, match="no parameter"):
        charges({"v": np.ones((2, 3))}, [charge])
    with pytest.raises(InputError, match="has shape"):
        charges({"w": np.ones((3, 3))}, [charge])
    with pytest.raises(InputError, match="symmetries"):
        charges(theta, ["scale"])
    with pytest.raises(InputError, match="weights"):
        charge.direction(theta, np.ones(3))
    assert charges(theta, []).shape == (0,)

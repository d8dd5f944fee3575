from __future__ import annotations

import functools
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from symmetry.zoo import BATCH, LARGER, N1, NETWORKS, batch_normed, batch_normed_with_epsilon, structure_of

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.networks import BatchNormalisation
from dynascope.symmetry import discover, find_symmetries

ALL = NETWORKS | LARGER


@pytest.mark.parametrize("name", ALL)
def test_a_network_conserves_as_many_charges_as_theory_counts(name):
    found = structure_of(name)
    assert (found.size, found.broken) == (ALL[name].charges, ())
    assert found.rounding < 1e-13
    assert len(set(found.names)) == found.size


def linear(*widths):
    random = np.random.default_rng(0)
    weights = [random.normal(size=each) for each in itertools.pairwise(widths)]
    return lambda layers, x: functools.reduce(jnp.matmul, layers, x), weights, random.normal(size=(8, widths[0]))


def attention(width, head):
    random = np.random.default_rng(0)
    sizes = {"q": (width, head), "k": (width, head), "v": (width, head), "o": (head, width)}

    def apply(p, x):
        scores = (x @ p["q"]) @ jnp.swapaxes(x @ p["k"], 1, 2)
        return jax.nn.softmax(scores) @ (x @ p["v"]) @ p["o"]

    weights = {name: random.normal(size=size) for name, size in sizes.items()}
    return apply, weights, random.normal(size=(5, 4, width))


# Of k × k matrices of rank r < k, k(k + 1)/2 − (k − r)(k − r + 1)/2 entries are independent.
COUNTS = {
    "1-4-1": (linear(1, 4, 1), 10, 7),
    "1-5-1": (linear(1, 5, 1), 15, 9),
    "2-3-2": (linear(2, 3, 2), 6, 6),
    "three layers": (linear(1, 4, 2, 1), 13, 12),
    "wide heads": (attention(1, 3), 12, 10),
    "narrow heads": (attention(3, 2), 6, 6),
}


@pytest.mark.parametrize("name", COUNTS)
def test_charges_that_depend_on_each_other_count_once(name):
    given, recorded, independent = COUNTS[name]
    found = find_symmetries(*given)
    assert (len(found.names), found.size) == (recorded, independent)
    # Gradients alone, which know nothing of the program, show as many.
    assert discover(*given, levels=0).charges == independent


def test_the_table_counts_independent_charges():
    assert find_symmetries(*linear(1, 4, 1)).table.split() == ["matrix", "GL(4)", "7", "[0]", "[1]"]


def test_many_charges_of_one_symmetry_are_counted_by_a_formula():
    # Far more than a rank could count.
    assert find_symmetries(*linear(3, 100, 3)).size == 5050 - 94 * 95 // 2


def test_the_epsilon_of_a_norm_breaks_what_holds_without():
    assert {each.kind for each in find_symmetries(batch_normed, N1, BATCH).symmetries} == {"scale", "translation"}
    found = find_symmetries(batch_normed_with_epsilon, N1, BATCH)
    assert [each.kind for each in found.symmetries] == ["translation"]
    (broken,) = found.broken
    assert (broken.charge.kind, broken.reason) == ("scale", "ε of a norm")
    # ε over the variances of the units, which are of order one.
    assert 1e-5 < broken.defect.max() < 1e-2
    assert "broken scale" in found.table


def test_running_statistics_that_outputs_do_not_need_break_nothing():
    @jit
    def with_statistics(p, x):
        return batch_normed(p, x), 0.9 * np.ones(4) + 0.1 * (x @ p["W1"].T).mean(0)

    assert (
        find_symmetries(lambda p, x: with_statistics(p, x)[0], N1, BATCH).names
        == find_symmetries(batch_normed, N1, BATCH).names
    )
    # Where they are outputs, the weights that they are means of cannot be rescaled.
    assert {each.kind for each in find_symmetries(with_statistics, N1, BATCH).symmetries} == {"translation"}


def test_modules_of_equinox_are_read_like_functions():
    shapes = eqx.filter_eval_shape(lambda: eqx.nn.MLP(2, 1, 3, 2, key=jax.random.key(0)))
    network = jax.tree.map(lambda leaf: np.ones(leaf.shape) if hasattr(leaf, "shape") else leaf, shapes)
    found = find_symmetries(lambda module, x: jax.vmap(module)(x), network, np.ones((4, 2)))
    assert [(each.kind, each.size, len(each.paths)) for each in found.symmetries] == [("rescale", 3, 3)] * 2
    assert found.symmetries[0].paths == (".layers[0].weight", ".layers[0].bias", ".layers[1].weight")


def test_a_gradient_of_its_own_that_is_wrong_breaks_the_symmetry_that_the_program_has():
    @jax.custom_vjp
    def wrong(z):
        return jax.nn.relu(z)

    wrong.defvjp(lambda z: (jax.nn.relu(z), z), lambda z, g: (g * (z > -0.5),))
    params = {"W": np.ones((2, 3)), "a": np.ones((3, 1))}
    found = find_symmetries(lambda p, x: wrong(x @ p["W"]) @ p["a"], params, np.ones((12, 2)))
    assert not found.symmetries
    assert ["gradients" in each.reason for each in found.broken] == [True]


def test_units_that_share_their_pattern_do_not_mix():
    # With two inputs many of forty units are on or off together.
    random = np.random.default_rng(0)
    params = {"W": random.normal(size=(3, 40)), "a": random.normal(size=(40, 1))}
    found = find_symmetries(lambda p, x: jax.nn.relu(x @ p["W"]) @ p["a"], params, np.ones((2, 3)))
    assert [(each.kind, each.size) for each in found.symmetries] == [("rescale", 40)]


def test_an_activation_that_is_linear_for_some_units_lets_these_mix():
    def half(p, x):
        z = x @ p["W"]
        return jnp.concatenate([z[:, :2], jax.nn.relu(z[:, 2:])], -1) @ p["a"]

    random = np.random.default_rng(0)
    params = {"W": random.normal(size=(3, 4)), "a": random.normal(size=(4, 1))}
    found = find_symmetries(half, params, np.ones((6, 3)))
    assert sorted((each.kind, each.size) for each in found.symmetries) == [("matrix", 3), ("rescale", 2)]


def test_running_statistics_that_no_output_depends_on_hide_no_scale():
    layer = BatchNormalisation(3, epsilon=0.0)
    random = np.random.default_rng(0)
    params = {"in": random.normal(size=(4, 3)), "out": random.normal(size=(3, 2))}

    def apply(weights, x):
        outputs, _ = layer.apply(x @ weights["in"], training=True)
        return jnp.tanh(outputs) @ weights["out"]

    found = find_symmetries(apply, params, random.normal(size=(6, 4)))
    assert [(each.kind, each.size) for each in found.symmetries] == [("scale", 3)]


def test_parameters_that_nothing_depends_on_are_named():
    found = find_symmetries(
        lambda p, x: jnp.tanh(x @ p["W"]), {"W": np.ones((2, 2)), "idle": np.ones(3)}, np.ones((4, 2))
    )
    assert (found.symmetries, found.unused) == ((), ("['idle']",))
    assert "unused" in found.table


def test_what_cannot_be_read_is_refused():
    params = {"W": np.ones((2, 2))}
    with pytest.raises(InputError, match=r"apply\(params, example_inputs\) fails"):
        find_symmetries(lambda p, x: x @ p["V"], params, np.ones((4, 2)))
    with pytest.raises(InputError, match="contains no floating-point arrays"):
        find_symmetries(lambda p, x: x, {"n": np.arange(3)}, np.ones((4, 2)))
    with pytest.raises(InputError, match="not finite"):
        find_symmetries(lambda p, x: x @ p["W"], {"W": np.full((2, 2), np.nan)}, np.ones((4, 2)))
    with pytest.raises(InputError, match="no floating-point outputs"):
        find_symmetries(lambda p, x: jnp.argmax(x @ p["W"]), params, np.ones((4, 2)))
    with pytest.raises(InputError, match="complex"):
        find_symmetries(lambda p, x: x @ p["W"], {"W": np.full((2, 2), 1j)}, np.ones((4, 2)))

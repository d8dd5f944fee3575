from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.networks.recurrent import Recurrent
from dynascope.networks.tree import Tree


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


def sequences(k: int, m: int = 3, samples: int = 5) -> np.ndarray:
    return np.random.default_rng(k).normal(size=(samples, k * m))


# What each length is joined into, written out.
TREES = {
    2: lambda join, a, b: join(a, b),
    3: lambda join, a, b, c: join(join(a, b), c),
    4: lambda join, a, b, c, d: join(join(a, b), join(c, d)),
    5: lambda join, a, b, c, d, e: join(join(join(a, b), join(c, d)), e),
    6: lambda join, a, b, c, d, e, f: join(join(join(a, b), join(c, d)), join(e, f)),
    7: lambda join, a, b, c, d, e, f, g: join(join(join(a, b), join(c, d)), join(join(e, f), g)),
}


@pytest.mark.parametrize("k", TREES)
def test_neighbours_are_joined_level_by_level(k):
    network, x = Tree(3, 6, seed=1), sequences(k)

    def join(a, b):
        return (a @ network.left + b @ network.right) ** 2 @ network.output

    # Batches are added up in another order.
    np.testing.assert_allclose(network(x), TREES[k](join, *np.split(x, k, axis=1)), rtol=1e-11)


def test_for_two_elements_it_is_a_recurrent_network():
    network, x = Recurrent(3, 6, 3), sequences(2)
    weights = (network.first, network.drive, network.output)
    tree = eqx.tree_at(lambda each: (each.left, each.right, each.output), Tree(3, 6), weights)
    np.testing.assert_allclose(tree(x), network(x), rtol=1e-12)  # sums in another order


def test_one_sequence_gives_what_a_batch_gives():
    network, x = Tree(3, 6), sequences(5)
    np.testing.assert_allclose(network(x[2]), network(x)[2], rtol=1e-11)  # sums in another order


@pytest.mark.parametrize("k", [2, 5])
def test_its_gradients_are_finite(k):
    x = sequences(k)
    gradient = jit(jax.grad(lambda network: jnp.sum(network(x) ** 2)))(Tree(3, 6))
    leaves = jax.tree.leaves(gradient)
    assert len(leaves) == 3
    assert all(np.isfinite(leaf).all() and np.any(leaf) for leaf in leaves)


def test_it_starts_at_unit_scale_from_its_seed():
    network = Tree(40, 50, seed=3)
    for weight in (network.left, network.right, network.output):
        assert weight.dtype == np.float64
        # 2000 draws give the deviation within 2 percent or so.
        assert np.std(weight) * np.sqrt(50) == pytest.approx(1, abs=0.1)
    np.testing.assert_array_equal(network.output, Tree(40, 50, seed=3).output)
    np.testing.assert_allclose(Tree(40, 50, seed=3, scale=0.1).left, 0.1 * network.left, rtol=1e-14)
    assert not np.array_equal(network.left, Tree(40, 50, seed=4).left)


@given(st.integers(1, 5), st.integers(1, 5), st.integers(2, 9))
@settings(max_examples=12, deadline=None)
def test_shapes_fit_for_every_length(m, width, k):
    assert Tree(m, width, scale=0.5)(np.ones((3, k * m))).shape == (3, m)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [({"element_dimension": 0}, "element_dimension"), ({"width": -1}, "width"), ({"scale": 0.0}, "scale")],
)
def test_bad_arguments_are_refused_by_name(arguments, named):
    with pytest.raises(InputError) as refusal:
        Tree(**{"element_dimension": 3, "width": 4} | arguments)
    assert refusal.value.argument == named


@pytest.mark.parametrize("columns", [1, 3, 7])
def test_a_row_that_is_not_two_or_more_whole_elements_is_refused(columns):
    with pytest.raises(InputError, match=rf"x has shape \(.*{columns}\)"):
        Tree(3, 4)(np.ones((2, columns)))

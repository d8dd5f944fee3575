from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.networks import TwoLayer
from dynascope.networks.recurrent import Recurrent, elements


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


def sequences(k: int, m: int = 3, samples: int = 5) -> np.ndarray:
    return np.random.default_rng(k).normal(size=(samples, k * m))


@pytest.mark.parametrize("k", [2, 3, 4, 7])
def test_it_follows_its_recursion(k):
    network, x = Recurrent(3, 6, 2, seed=1), sequences(k)
    for row, output in zip(x.reshape(-1, k, 3), network(x), strict=True):
        hidden = (row[0] @ network.first + row[1] @ network.drive) ** 2
        for element in row[2:]:
            hidden = (hidden @ network.mix + element @ network.drive) ** 2
        # Batches are added up in another order.
        np.testing.assert_allclose(output, hidden @ network.output, rtol=1e-12)


def test_for_two_elements_it_is_a_two_layer_network():
    network, x = Recurrent(3, 6, 2), sequences(2)
    rows = np.concatenate([network.first.T, network.drive.T, network.output], axis=1)
    two_layer = TwoLayer(6, 6, 2, activation="quadratic").with_neurons(rows)
    np.testing.assert_allclose(network(x), two_layer(x), rtol=1e-12)  # sums in another order


def test_one_sequence_gives_what_a_batch_gives():
    network, x = Recurrent(3, 6, 2), sequences(4)
    np.testing.assert_allclose(network(x[2]), network(x)[2], rtol=1e-12)  # sums in another order
    np.testing.assert_allclose(network(x.reshape(5, 1, 12)), network(x)[:, None], rtol=1e-12)


@pytest.mark.parametrize("k", [2, 5])
def test_its_gradients_are_finite(k):
    x = sequences(k)
    gradient = jit(jax.grad(lambda network: jnp.sum(network(x) ** 2)))(Recurrent(3, 6, 2))
    leaves = jax.tree.leaves(gradient)
    assert len(leaves) == 4
    assert all(np.isfinite(leaf).all() for leaf in leaves)
    # With two elements the hidden state is never mixed.
    assert all(np.any(leaf) for leaf in leaves) == (k > 2)


def test_it_starts_at_unit_scale_from_its_seed():
    network = Recurrent(40, 50, 30, seed=3)
    for weight in (network.first, network.drive, network.mix, network.output):
        assert weight.dtype == np.float64
        # 1000 draws or more give the deviation within 3 percent or so.
        assert np.std(weight) * np.sqrt(50) == pytest.approx(1, abs=0.1)
    np.testing.assert_array_equal(network.mix, Recurrent(40, 50, 30, seed=3).mix)
    np.testing.assert_allclose(Recurrent(40, 50, 30, seed=3, scale=0.1).drive, 0.1 * network.drive, rtol=1e-14)
    assert not np.array_equal(network.mix, Recurrent(40, 50, 30, seed=4).mix)


@given(st.integers(1, 5), st.integers(1, 5), st.integers(2, 5))
@settings(max_examples=12, deadline=None)
def test_shapes_fit_for_every_length(m, width, k):
    assert Recurrent(m, width, 4)(np.ones((3, k * m))).shape == (3, 4)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"element_dimension": 0}, "element_dimension"),
        ({"width": -1}, "width"),
        ({"output_dimension": 0}, "output_dimension"),
        ({"scale": np.nan}, "scale"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_arguments_are_refused_by_name(arguments, named):
    with pytest.raises(InputError) as refusal:
        Recurrent(**{"element_dimension": 3, "width": 4, "output_dimension": 2} | arguments)
    assert refusal.value.argument == named


@pytest.mark.parametrize("columns", [1, 3, 7])
def test_a_row_that_is_not_two_or_more_whole_elements_is_refused(columns):
    with pytest.raises(InputError, match=rf"x has shape \(.*, {columns}\)"):
        elements(np.ones((2, columns)), 3)

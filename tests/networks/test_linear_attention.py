from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.networks.linear_attention import LinearAttention, MergedAttention
from dynascope.protocols import SumOfNeurons

networks = pytest.mark.parametrize("kind", [LinearAttention, MergedAttention])


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


def prompts(samples=5, context_length=7, dimension=3, seed=0):
    return np.random.default_rng(seed).normal(size=(samples, (context_length + 1) * (dimension + 1)))


@pytest.mark.slow
def test_the_prediction_is_the_formula_of_the_paper():
    network, rows = LinearAttention(3, 4, seed=1), prompts()
    for row, prediction in zip(rows, network(rows), strict=True):
        *context, query = row.reshape(-1, 4)
        moment = np.mean([token[3] * token[:3] for token in context], axis=0)
        heads = zip(network.v, network.k, network.q, strict=True)
        # Two orders of the same few sums differ by rounding only.
        np.testing.assert_allclose(
            prediction[0], sum(v * moment @ k * (q @ query[:3]) for v, k, q in heads), rtol=1e-12
        )


def test_merged_attention_with_rank_one_matrices_is_rank_one_attention():
    one, rows = LinearAttention(3, 4, seed=1), prompts()
    outer = np.einsum("hi,hj->hij", one.k, one.q).reshape(4, -1)
    merged = MergedAttention(3, 4).with_neurons(np.column_stack([one.v, outer]))
    np.testing.assert_allclose(merged.matrix, one.matrix, rtol=1e-13)
    np.testing.assert_allclose(merged(rows), one(rows), rtol=1e-12)


@networks
def test_the_label_of_the_query_is_not_looked_at(kind):
    network, rows = kind(3, 4), prompts()
    other = rows.copy()
    other[:, -1] = 100.0
    np.testing.assert_array_equal(network(rows), network(other))


@networks
def test_it_is_a_sum_of_neurons(kind):
    network, rows = kind(3, 4, seed=2), prompts()
    assert isinstance(network, SumOfNeurons)
    apart = [network.with_neurons(network.neurons[[h]])(rows) for h in range(4)]
    np.testing.assert_allclose(sum(apart), network(rows), rtol=1e-12, atol=1e-14)
    coefficients = np.array([0.5, -2.0, 0.0, 3.0])
    together = sum(c * one for c, one in zip(coefficients, apart, strict=True))
    np.testing.assert_allclose(network.weighted(coefficients)(rows), together, rtol=1e-12, atol=1e-14)


@networks
@settings(max_examples=12, deadline=None)
@given(factor=st.floats(0.1, 10.0))
def test_it_is_homogeneous_of_its_degree(kind, factor):
    network, rows = kind(3, 4, seed=3), prompts()
    scaled = network.with_neurons(factor * network.neurons)(rows)
    np.testing.assert_allclose(scaled, factor**network.degree * network(rows), rtol=1e-12, atol=1e-14)


@networks
def test_its_neurons_make_it_again(kind):
    network = kind(3, 4, seed=4)
    again = network.with_neurons(network.neurons)
    assert all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(network), jax.tree.leaves(again), strict=True))
    traced = network.with_neurons(jnp.asarray(network.neurons))
    np.testing.assert_array_equal(traced.neurons, network.neurons)


@networks
def test_the_weights_are_numpy_float64_and_follow_the_seed_and_the_scale(kind):
    network, small = kind(3, 4, seed=5), kind(3, 4, seed=5, scale=1e-3)
    assert all(isinstance(leaf, np.ndarray) and leaf.dtype == np.float64 for leaf in jax.tree.leaves(network))
    np.testing.assert_allclose(small.neurons, 1e-3 * network.neurons, rtol=1e-14)
    assert not np.array_equal(kind(3, 4, seed=6).neurons, network.neurons)


@networks
def test_each_part_of_a_head_has_unit_size_in_expectation(kind):
    network = kind(4, 20_000)
    for part in jax.tree.leaves(network):
        # The squared norm of a head's part has a standard deviation below √2, so its mean over the heads below 0.01.
        assert abs(np.sum(part**2) / 20_000 - 1) < 0.05


@networks
@pytest.mark.parametrize("bad", [{"dimension": 0}, {"heads": 0}, {"scale": 0.0}, {"scale": np.nan}, {"seed": -1}])
def test_bad_arguments_are_refused_by_name(kind, bad):
    with pytest.raises(InputError) as refusal:
        kind(**{"dimension": 3, "heads": 2, **bad})
    assert refusal.value.argument == next(iter(bad))


@networks
@pytest.mark.parametrize("width", [4, 11, 0])
def test_a_row_that_is_no_prompt_is_refused(kind, width):
    with pytest.raises(InputError, match="N ≥ 1 examples and the query"):
        kind(3, 2)(np.ones((2, width)))


def test_a_network_that_cannot_fit_is_refused_with_the_bytes_it_would_need():
    with pytest.raises(InputError, match=r"arrays of .* GB") as caught:
        LinearAttention(60, 10**10)
    assert caught.value.argument == "heads"

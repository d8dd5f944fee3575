from __future__ import annotations

import equinox as eqx
import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.compilation import filter_jit, jit
from dynascope.errors import InputError
from dynascope.networks import QueryValueBiases, Transformer

WIDTH, HEADS, LENGTH, VOCABULARY = 8, 2, 4, 6
BIASES = QueryValueBiases([0.5, -0.4, 0.3, 0.2], 0.4, [0.1, -0.2, 0.6, 0.5], [0.1, 0.2, 0.3, 0.4])


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


def network(unlearned=BIASES, **options) -> Transformer:
    options = {"width": WIDTH, "heads": HEADS, "blocks": 2, "outputs": "all", "seed": 1, **options}
    return Transformer(VOCABULARY, LENGTH, 3, **options, query_value_biases=unlearned)


def drawn_tokens(count: int = 5) -> np.ndarray:
    return np.random.default_rng(0).integers(VOCABULARY, size=(count, LENGTH))


@filter_jit
def evaluated(transformer, tokens):
    return transformer(tokens)


@filter_jit
def sampled(transformer, tokens, key):
    return transformer.sampled_outputs(tokens, key)


def test_the_defaults_are_those_of_the_published_code():
    biases = QueryValueBiases()
    np.testing.assert_array_equal(biases.means(3), np.full((2, 3), 0.5))
    np.testing.assert_allclose(biases.deviations(3), [[0.05, 0.1, 0.15], [0.05] * 3], rtol=1e-15)


@given(
    means=st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=4),
    deviation=st.floats(0, 1e3),
    resampled=st.booleans(),
)
def test_numbers_hold_for_every_column_and_constant_biases_have_no_deviation(means, deviation, resampled):
    biases = QueryValueBiases(np.array(means), deviation, means[0], deviation, resampled)
    width = len(means)
    np.testing.assert_array_equal(biases.means(width), [means, [means[0]] * width])
    np.testing.assert_array_equal(biases.deviations(width), np.full((2, width), deviation * resampled))
    assert hash(biases) == hash(QueryValueBiases(tuple(means), deviation, means[0], deviation, resampled))


@pytest.mark.slow
def test_draws_have_the_means_and_deviations():
    count = 20_000
    draws = jit(jax.vmap(lambda key: BIASES.draw(key, 4)))(jax.random.split(jax.random.key(3), count))
    for found, mean, deviation in zip(draws, BIASES.means(4), BIASES.deviations(4), strict=True):
        # Five standard errors of a mean and of a standard deviation.
        np.testing.assert_array_less(np.abs(found.mean(axis=0) - mean), 5 * deviation / np.sqrt(count))
        np.testing.assert_array_less(np.abs(found.std(axis=0) - deviation), 5 * deviation / np.sqrt(2 * count))
    # Correlations of independent draws are below five standard errors.
    correlations = np.corrcoef(np.concatenate(draws, axis=1).T) - np.eye(8)
    assert np.abs(correlations).max() < 5 / np.sqrt(count)


def test_calls_use_the_means():
    tokens = drawn_tokens()
    constant = QueryValueBiases(BIASES.query_mean, 0.0, BIASES.value_mean, 0.0, resampled=False)
    found = evaluated(network(), tokens)
    np.testing.assert_array_equal(found, evaluated(network(constant), tokens))
    np.testing.assert_array_equal(found, sampled(network(constant), tokens, jax.random.key(0)))
    assert np.abs(found - evaluated(network(None), tokens)).max() > 1e-2
    np.testing.assert_allclose(
        evaluated(network(QueryValueBiases(0.0, 0.0, 0.0, 0.0)), tokens), evaluated(network(None), tokens), rtol=1e-12
    )


def test_the_biases_are_learned_biases_that_are_equal_in_all_heads():
    """The means as learned biases of the queries and values of every head give the same outputs."""
    query, value = BIASES.means(WIDTH // HEADS)
    learned = network(None, biases=True)
    for place in range(2):
        learned = eqx.tree_at(
            lambda each, p=place: (each.blocks[p].query_bias, each.blocks[p].value_bias),
            learned,
            (np.tile(query, HEADS), np.tile(value, HEADS)),
        )
    tokens = drawn_tokens()
    np.testing.assert_allclose(evaluated(learned, tokens), evaluated(network(), tokens), rtol=1e-12, atol=1e-13)


def test_one_draw_serves_the_whole_batch_and_every_block_draws_its_own():
    transformer, tokens = network(), drawn_tokens()
    key = jax.random.key(4)
    found = sampled(transformer, tokens, key)
    for row in range(len(tokens)):
        np.testing.assert_allclose(sampled(transformer, tokens[row], key), found[row], rtol=1e-12, atol=1e-13)
    assert np.abs(found - sampled(transformer, tokens, jax.random.key(5))).max() > 1e-3
    # The same biases as learned biases of each block, equal in all heads and at all positions.
    draws = [BIASES.draw(each, WIDTH // HEADS) for each in jax.random.split(key, 2)]
    assert np.abs(draws[0][0] - draws[1][0]).min() > 1e-6
    learned = network(None, biases=True)
    for place, (query, value) in enumerate(draws):
        learned = eqx.tree_at(
            lambda each, p=place: (each.blocks[p].query_bias, each.blocks[p].value_bias),
            learned,
            (np.tile(query, HEADS), np.tile(value, HEADS)),
        )
    np.testing.assert_allclose(evaluated(learned, tokens), found, rtol=1e-12, atol=1e-13)


def test_a_constant_query_bias_breaks_rotations_of_queries_and_keys_that_move_it():
    angle, tokens = 0.7, drawn_tokens()
    rotation = np.eye(4)
    rotation[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]

    def rotated(transformer):
        turn = np.kron(np.eye(HEADS), rotation)
        block = transformer.blocks[0]
        return eqx.tree_at(
            lambda each: (each.blocks[0].queries, each.blocks[0].keys),
            transformer,
            (block.queries @ turn, block.keys @ turn),
        )

    def change(query_mean):
        transformer = network(QueryValueBiases(query_mean, 0.0, 0.5, 0.0))
        return np.abs(evaluated(rotated(transformer), tokens) - evaluated(transformer, tokens)).max()

    assert change(0.0) < 1e-13
    assert change([0.0, 0.0, 0.5, 0.5]) < 1e-13
    assert change([0.5, 0.5, 0.0, 0.0]) > 1e-3


def test_float32_networks_stay_in_float32():
    single = jax.tree.map(lambda leaf: leaf.astype(np.float32), network())
    assert evaluated(single, drawn_tokens()).dtype == np.float32
    assert sampled(single, drawn_tokens(), jax.random.key(0)).dtype == np.float32


@pytest.mark.parametrize(
    ("fields", "argument"),
    [
        ({"query_mean": np.inf}, "query_mean"),
        ({"query_mean": np.zeros((2, 2))}, "query_mean"),
        ({"query_deviation": -0.1}, "query_deviation"),
        ({"value_mean": "half"}, "value_mean"),
        ({"value_mean": []}, "value_mean"),
        ({"value_deviation": [0.1, -0.1]}, "value_deviation"),
        ({"value_deviation": None}, "value_deviation"),
        ({"resampled": "always"}, "resampled"),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_bad_input_is_named(fields, argument):
    with pytest.raises(InputError) as error:
        QueryValueBiases(**fields)
    assert error.value.argument == argument


def test_another_number_of_columns_is_refused():
    for biases, argument in (
        (QueryValueBiases([0.1, 0.2]), "query_mean"),
        (QueryValueBiases(query_deviation=[0.1, 0.2]), "query_deviation"),
        (QueryValueBiases(value_mean=[0.1, 0.2]), "value_mean"),
    ):
        with pytest.raises(InputError, match="2 entries, but a head has 3 columns") as error:
            biases.means(3), biases.deviations(3)
        assert error.value.argument == argument

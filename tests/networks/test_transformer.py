from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.compilation import filter_jit
from dynascope.errors import InputError
from dynascope.networks import QueryValueBiases
from dynascope.networks.transformer import Transformer

VOCABULARY, LENGTH = 5, 3


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


def rows(tokens) -> np.ndarray:
    tokens = np.asarray(tokens)
    return np.eye(VOCABULARY)[tokens].reshape(len(tokens), -1)


def drawn_tokens(count: int = 7) -> np.ndarray:
    return np.random.default_rng(0).integers(VOCABULARY, size=(count, LENGTH))


def network(**options) -> Transformer:
    return Transformer(VOCABULARY, LENGTH, 4, **{"width": 8, "heads": 2, "hidden_width": 6, "seed": 1, **options})


@filter_jit
def computed(transformer: Transformer, x: np.ndarray) -> tuple[jax.Array, ...]:
    """The stream after the first block, the features and the outputs, by one program for each kind of network."""
    first = transformer.blocks[0](transformer._embedded(x))
    return first, transformer.features(x), transformer(x)


def outputs(transformer: Transformer, x: np.ndarray) -> np.ndarray:
    return np.asarray(computed(transformer, x)[-1])


def normalised(stream: np.ndarray, layer_norm: bool) -> np.ndarray:
    if not layer_norm:
        return stream
    return np.array([(h - h.mean()) / np.sqrt(h.var() + 1e-5) for h in stream])


def by_loops(transformer: Transformer, tokens: np.ndarray) -> np.ndarray:
    """The outputs for one row of tokens, position by position and head by head."""
    stream = np.array([transformer.embedding[token] for token in [*tokens, VOCABULARY]]) + transformer.positions
    size = stream.shape[1] // transformer.heads
    for block in transformer.blocks:
        read, mixed = normalised(stream, transformer.normalisation is not None), np.zeros_like(stream)
        for head in range(transformer.heads):
            own = slice(head * size, (head + 1) * size)
            for s in range(len(stream)):
                query = read[s] @ block.queries[:, own]
                scores = np.array([query @ (read[t] @ block.keys[:, own]) for t in range(s + 1)]) / np.sqrt(size)
                shares = np.exp(scores) / np.exp(scores).sum()
                value = sum(share * (read[t] @ block.values[:, own]) for t, share in enumerate(shares))
                mixed[s] += value @ block.outputs[own]
        stream = stream + mixed
        stream = (
            stream
            + np.maximum(normalised(stream, transformer.normalisation is not None) @ block.first, 0) @ block.second
        )
    return normalised(stream, transformer.normalisation is not None)[-1] @ transformer.unembedding


MOST = {"blocks": 2, "layer_norm": True, "heads": 4}


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"blocks": 2}, MOST])
def test_outputs_are_those_of_a_plain_loop(options):
    transformer, tokens = network(**options), drawn_tokens()
    expected = np.array([by_loops(transformer, each) for each in tokens])
    # Sums of about ten terms in another order.
    np.testing.assert_allclose(outputs(transformer, rows(tokens)), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.slow
def test_outputs_are_the_features_times_the_classifier():
    transformer, x = network(**MOST), rows(drawn_tokens())
    _, features, given = computed(transformer, x)
    # Two orders of the same sums.
    np.testing.assert_allclose(given, np.asarray(features) @ transformer.classifier, rtol=1e-12)
    assert not transformer.classifier_bias.any()


@pytest.mark.slow
def test_samples_do_not_see_each_other():
    transformer, x = network(), rows(drawn_tokens())
    order = np.random.default_rng(1).permutation(len(x))
    # Matrix products may sum in another order for another number of rows.
    np.testing.assert_allclose(outputs(transformer, x)[order], outputs(transformer, x[order]), rtol=1e-12)
    np.testing.assert_allclose(outputs(transformer, x)[2], outputs(transformer, x[2]), rtol=1e-12)


def test_renaming_the_tokens_renames_the_rows_of_the_embedding():
    transformer, tokens = network(), drawn_tokens()
    names = np.random.default_rng(2).permutation(VOCABULARY)
    renamed = eqx.tree_at(
        lambda each: each.embedding, transformer, transformer.embedding[np.append(np.argsort(names), VOCABULARY)]
    )
    np.testing.assert_allclose(outputs(renamed, rows(names[tokens])), outputs(transformer, rows(tokens)), rtol=1e-14)


def test_without_positions_the_order_of_the_tokens_does_not_matter_and_with_them_it_does():
    transformer, tokens = network(), drawn_tokens()
    same = eqx.tree_at(lambda each: each.positions, transformer, np.zeros_like(transformer.positions))
    there, back = rows(tokens), rows(tokens[:, ::-1])
    np.testing.assert_allclose(outputs(same, there), outputs(same, back), rtol=1e-12)
    assert np.abs(outputs(transformer, there) - outputs(transformer, back)).max() > 1e-3


def test_no_position_sees_a_later_token():
    transformer = network(blocks=2)
    tokens = drawn_tokens()
    other = tokens.copy()
    other[:, -1] = (other[:, -1] + 1) % VOCABULARY
    streams = [np.asarray(computed(transformer, rows(each))[0]) for each in (tokens, other)]
    np.testing.assert_array_equal(streams[0][:, : LENGTH - 1], streams[1][:, : LENGTH - 1])
    assert np.all(np.abs(streams[0][:, LENGTH - 1 :] - streams[1][:, LENGTH - 1 :]).max(axis=-1) > 1e-3)


def test_token_ids_give_the_outputs_of_one_hot_tokens():
    transformer, tokens = network(blocks=2), drawn_tokens()
    np.testing.assert_array_equal(outputs(transformer, tokens), outputs(transformer, rows(tokens)))
    np.testing.assert_allclose(outputs(transformer, tokens[2]), outputs(transformer, rows(tokens)[2]), rtol=1e-12)


def test_later_tokens_leave_the_outputs_at_earlier_positions_unchanged_only_with_the_causal_mask():
    tokens = drawn_tokens()
    other = tokens.copy()
    other[:, -1] = (other[:, -1] + 1) % VOCABULARY
    for causal in (True, False):
        transformer = network(**MOST, outputs="all", causal=causal)
        change = np.abs(outputs(transformer, other) - outputs(transformer, tokens)).max(axis=(0, 2))
        assert change.shape == (LENGTH,)
        assert np.all((change[:-1] == 0) if causal else (change[:-1] > 1e-4))
        assert change[-1] > 1e-2


def test_shorter_inputs_give_the_outputs_at_their_positions():
    transformer, tokens = network(**MOST, outputs="all"), drawn_tokens()
    whole, part = outputs(transformer, tokens), outputs(transformer, tokens[:, :2])
    np.testing.assert_allclose(part, whole[:, :2], rtol=1e-12, atol=1e-14)


def with_drawn_biases(transformer: Transformer) -> Transformer:
    """Replace all weights, and so the biases, which are initially zero, by random numbers."""
    draw = np.random.default_rng(7)
    return jax.tree.map(lambda leaf: leaf + 0.3 * draw.normal(size=leaf.shape), transformer)


@pytest.mark.parametrize("groups", [1, 2])
def test_grouped_heads_are_heads_with_repeated_keys_and_values(groups):
    options = {"heads": 4, "biases": True, "blocks": 2, "outputs": "all"}
    grouped = with_drawn_biases(network(**options, key_value_heads=groups))
    assert grouped.blocks[0].keys.shape == (8, 2 * groups)
    repeats = 4 // groups

    def repeated(columns):
        parts = np.split(np.asarray(columns), groups, axis=-1)
        return np.concatenate([part for part in parts for _ in range(repeats)], axis=-1)

    full = grouped
    for place in range(2):
        for name in ("keys", "values", "key_bias", "value_bias"):
            full = eqx.tree_at(lambda each, p=place, n=name: getattr(each.blocks[p], n), full, replace_fn=repeated)
    assert full.blocks[1].values.shape == (8, 8)
    tokens = drawn_tokens()
    np.testing.assert_allclose(outputs(grouped, tokens), outputs(full, tokens), rtol=1e-12, atol=1e-14)


def test_a_bias_of_the_keys_cancels():
    transformer, tokens = with_drawn_biases(network(**MOST, biases=True)), drawn_tokens()
    for place in range(2):
        transformer = eqx.tree_at(lambda each, p=place: each.blocks[p].key_bias, transformer, np.full(8, 0.4))
    shifted = eqx.tree_at(lambda each: each.blocks[0].key_bias, transformer, np.array([0.7, -1.1] * 4))
    np.testing.assert_allclose(outputs(shifted, tokens), outputs(transformer, tokens), rtol=1e-12, atol=1e-14)
    queries = eqx.tree_at(lambda each: each.blocks[0].query_bias, transformer, np.array([0.7, -1.1] * 4))
    assert np.abs(outputs(queries, tokens) - outputs(transformer, tokens)).max() > 1e-3


@pytest.mark.slow
def test_the_slopes_of_paired_matrices_balance():
    """Scaling one of a pair up and the other down changes nothing: Euler's identity, pair by pair."""
    transformer, x = network(), rows(drawn_tokens())
    slope = filter_jit(eqx.filter_grad(lambda each: jnp.mean(jnp.sin(each(x)))))
    slopes = jax.device_get(slope(jax.tree.map(jnp.asarray, transformer)))
    for block, slope in zip(transformer.blocks, slopes.blocks, strict=True):
        for one, other in (("queries", "keys"), ("values", "outputs"), ("first", "second")):
            powers = [float(np.sum(getattr(block, name) * getattr(slope, name))) for name in (one, other)]
            assert abs(powers[0]) > 1e-6
            assert powers[0] == pytest.approx(powers[1], rel=1e-9)


def test_the_start_has_the_variances_that_it_says_and_the_scale():
    transformer = Transformer(40, 2, 40, width=64, seed=3)
    block = transformer.blocks[0]
    for weights, input_width in (
        (transformer.embedding, 64),
        (block.queries, 64),
        (block.first, 64),
        (block.second, 256),
        (transformer.unembedding, 64),
    ):
        # Five standard errors of a variance.
        assert input_width * weights.var() == pytest.approx(1, abs=5 * np.sqrt(2 / weights.size))
    doubled = Transformer(40, 2, 40, width=64, seed=3, scale=2.0)
    np.testing.assert_array_equal(doubled.blocks[0].keys, 2 * block.keys)


@pytest.mark.parametrize(
    ("fields", "argument"),
    [
        ({"vocabulary": 0}, "vocabulary"),
        ({"length": 0}, "length"),
        ({"width": 0}, "width"),
        ({"width": 8.5}, "width"),
        ({"heads": 3}, "heads"),
        ({"heads": 0.5}, "heads"),
        ({"hidden_width": "8"}, "hidden_width"),
        ({"hidden_width": -1}, "hidden_width"),
        ({"blocks": 0}, "blocks"),
        ({"activation": "step"}, "activation"),
        ({"scale": 0.0}, "scale"),
        ({"seed": -1}, "seed"),
        ({"outputs": "first"}, "outputs"),
        ({"layer_norm": "other"}, "layer_norm"),
        ({"heads": 4, "key_value_heads": 3}, "key_value_heads"),
        ({"heads": 2, "key_value_heads": 4}, "key_value_heads"),
        ({"key_value_heads": 0}, "key_value_heads"),
        ({"query_value_biases": 0.5}, "query_value_biases"),
        ({"query_value_biases": QueryValueBiases([0.1, 0.2, 0.3])}, "query_mean"),
        ({"query_value_biases": QueryValueBiases(value_deviation=[0.1, 0.2, 0.3])}, "value_deviation"),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_bad_input_is_named(fields, argument):
    with pytest.raises(InputError) as error:
        Transformer(**{"vocabulary": 5, "length": 2, "output_dimension": 5, "width": 8, **fields})
    assert error.value.argument == argument


def test_rows_of_another_length_are_refused():
    with pytest.raises(InputError) as error:
        network()(np.zeros((2, 7)))
    assert error.value.argument == "inputs"


@pytest.mark.parametrize("token", [-1, VOCABULARY])
@pytest.mark.parametrize("outputs_at", ["last", "all"])
def test_a_token_outside_the_vocabulary_is_named_and_gives_nan_inside_jit(token, outputs_at):
    transformer, tokens = network(outputs=outputs_at), drawn_tokens()
    tokens[3, 1] = token
    with pytest.raises(InputError, match=f"the token {token}, which is outside the vocabulary") as error:
        transformer(tokens)
    assert (error.value.argument, error.value.value) == ("inputs", token)
    found = outputs(transformer, tokens)
    assert np.isnan(found[3]).any()
    assert np.isfinite(np.delete(found, 3, axis=0)).all()


@pytest.mark.parametrize("shape", [(2, LENGTH + 1), (2, 0), ()])
@pytest.mark.usefixtures("unchecked_types")
def test_tokens_of_another_length_are_refused(shape):
    for outputs_at in ("last", "all"):
        with pytest.raises(InputError) as error:
            network(outputs=outputs_at)(np.zeros(shape, int))
        assert error.value.argument == "inputs"


def test_a_network_that_cannot_fit_is_refused_with_the_bytes_it_would_need():
    for name, large in {
        "vocabulary": {"vocabulary": 10**12},
        "width": {"width": 4 * 10**8},
        "blocks": {"blocks": 10**10},
    }.items():
        with pytest.raises(InputError, match=r"arrays of .* GB") as caught:
            Transformer(**{"vocabulary": 5, "length": 3, "output_dimension": 2, "width": 8, **large})
        assert caught.value.argument == name

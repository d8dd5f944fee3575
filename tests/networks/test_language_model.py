from __future__ import annotations

import math

import jax
import numpy as np
import pytest

from dynascope.compilation import filter_jit
from dynascope.errors import InputError
from dynascope.networks import QueryValueBiases, language_model

VOCABULARY, CONTEXT, WIDTH, HEADS = 7, 5, 12, 3


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


def model(**options):
    """A GPT of two blocks whose learned biases and gains are not those of the initialisation."""
    network = language_model(VOCABULARY, CONTEXT, width=WIDTH, heads=HEADS, blocks=2, **options)
    draw = np.random.default_rng(3)
    return jax.tree.map(lambda leaf: leaf + 0.2 * draw.normal(size=leaf.shape), network)


def drawn_tokens(count: int = 4) -> np.ndarray:
    return np.random.default_rng(0).integers(VOCABULARY, size=(count, CONTEXT))


@filter_jit
def computed(network, tokens):
    return network(tokens)


def normalised(h, layer):
    """One vector, with the gain and, if there are biases, the shift of the layer."""
    z = (h - h.mean()) / np.sqrt(h.var() + 1e-5) * layer.gain
    return z if layer.shift is None else z + layer.shift


def gelu(z):
    return 0.5 * z * (1 + np.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3)))


def by_loops(network, tokens, unlearned) -> np.ndarray:
    """The outputs for one sequence, position by position and head by head."""
    h = [network.embedding[token] + network.positions[place] for place, token in enumerate(tokens)]
    size = WIDTH // HEADS
    for block, (query_bias, value_bias) in zip(network.blocks, unlearned, strict=True):
        shared = HEADS // (block.keys.shape[1] // size)
        zero = np.zeros(500)
        b = {
            name: zero if getattr(block, f"{name}_bias") is None else getattr(block, f"{name}_bias")
            for name in ("query", "key", "value", "output", "first", "second")
        }
        read = [normalised(each, block.attention_normalisation) for each in h]
        for s in range(len(h)):
            mixed = np.zeros(WIDTH)
            for head in range(HEADS):
                own = slice(head * size, (head + 1) * size)
                group = slice(head // shared * size, (head // shared + 1) * size)
                query = read[s] @ block.queries[:, own] + b["query"][own] + query_bias
                keys = [read[t] @ block.keys[:, group] + b["key"][group] for t in range(s + 1)]
                values = [read[t] @ block.values[:, group] + b["value"][group] + value_bias for t in range(s + 1)]
                shares = np.exp([query @ key / math.sqrt(size) for key in keys])
                mixed[own] = sum(share * value for share, value in zip(shares / shares.sum(), values, strict=True))
            h[s] = h[s] + mixed @ block.outputs + b["output"][:WIDTH]
            inner = normalised(h[s], block.mlp_normalisation) @ block.first
            h[s] = h[s] + gelu(inner + b["first"][: len(inner)]) @ block.second + b["second"][:WIDTH]
    return np.array([normalised(each, network.normalisation) @ network.unembedding for each in h])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"biases": False, "key_value_heads": 1},
        {"broken_symmetry": "constant"},
        {"broken_symmetry": QueryValueBiases([0.3, -0.7, 0.1, 0.4], 0.0, 0.2, 0.0), "biases": False},
    ],
)
def test_outputs_are_those_of_a_plain_loop(options):
    network, tokens = model(**options), drawn_tokens()
    biases = network.query_value_biases
    means = (np.zeros(4), np.zeros(4)) if biases is None else biases.means(WIDTH // HEADS)
    expected = np.array([by_loops(network, each, [means] * 2) for each in tokens])
    np.testing.assert_allclose(computed(network, tokens), expected, rtol=1e-11, atol=1e-12)


def test_training_outputs_are_those_of_a_plain_loop_with_the_drawn_biases():
    network, tokens, key = model(broken_symmetry="resampled"), drawn_tokens(), jax.random.key(8)
    draws = [network.query_value_biases.draw(each, WIDTH // HEADS, np.float64) for each in jax.random.split(key, 2)]
    expected = np.array([by_loops(network, each, draws) for each in tokens])
    found = filter_jit(lambda network, x, key: network.sampled_outputs(x, key))(network, tokens, key)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


def test_later_tokens_leave_earlier_outputs_unchanged():
    network, tokens = model(broken_symmetry="constant"), drawn_tokens()
    for place in range(CONTEXT):
        other = tokens.copy()
        other[:, place] = (other[:, place] + 1) % VOCABULARY
        change = np.abs(computed(network, other) - computed(network, tokens)).max(axis=(0, 2))
        assert np.all(change[:place] == 0)
        assert np.all(change[place:] > 1e-4)


def test_broken_symmetry_changes_neither_the_weights_nor_their_number():
    plain, broken = (
        language_model(VOCABULARY, CONTEXT, width=WIDTH, heads=HEADS, broken_symmetry=each, seed=2)
        for each in (None, "resampled")
    )
    assert plain.query_value_biases is None
    assert broken.query_value_biases == QueryValueBiases()
    one, other = jax.tree.leaves(plain), jax.tree.leaves(broken)
    assert len(one) == len(other)
    for mine, yours in zip(one, other, strict=True):
        np.testing.assert_array_equal(mine, yours)


def test_a_gpt_has_the_known_number_of_weights():
    network = language_model(50, 16, width=32, blocks=3)
    per_block = 12 * 32**2 + 13 * 32  # as in GPT-2
    count = sum(leaf.size for leaf in jax.tree.leaves(network))
    assert count == 50 * 32 + 16 * 32 + 3 * per_block + 2 * 32 + 32 * 50
    assert language_model(50, 16, width=32, blocks=3, biases=False).normalisation.shift is None


@pytest.mark.parametrize(
    ("fields", "argument"),
    [
        ({"vocabulary": 0}, "vocabulary"),
        ({"context": 0}, "context"),
        ({"heads": 5}, "heads"),
        ({"key_value_heads": 2}, "key_value_heads"),
        ({"activation": "prelu"}, "activation"),
        ({"broken_symmetry": "always"}, "broken_symmetry"),
        ({"broken_symmetry": QueryValueBiases(query_mean=[0.1] * 5)}, "query_mean"),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_bad_input_is_named(fields, argument):
    with pytest.raises(InputError) as error:
        language_model(**{"vocabulary": VOCABULARY, "context": CONTEXT, "width": WIDTH, "heads": HEADS, **fields})
    assert error.value.argument == argument


def test_too_many_tokens_are_refused():
    with pytest.raises(InputError) as error:
        model()(np.zeros((2, CONTEXT + 1), int))
    assert error.value.argument == "inputs"

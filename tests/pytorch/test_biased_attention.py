from __future__ import annotations

import equinox as eqx
import jax
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.networks import QueryValueBiases
from dynascope.networks.transformer import Transformer
from dynascope.torch import BiasedAttention

WIDTH, HEADS, LENGTH, BATCH = 12, 3, 5, 4
ZERO = QueryValueBiases(0.0, 0.0, 0.0, 0.0)
BIASES = QueryValueBiases([0.7, -1.1, 0.4, 0.2], 0.3, [0.3, 0.1, -0.5, 0.9], [0.0, 0.1, 0.2, 0.3])


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.tensor(np.random.default_rng(seed).normal(size=shape))


def modules(biases: QueryValueBiases = ZERO, **options):
    """PyTorch's module and ours with the same weights, in double precision."""
    torch.manual_seed(0)
    plain = torch.nn.MultiheadAttention(WIDTH, HEADS, **options, dtype=torch.double)
    ours = BiasedAttention(WIDTH, HEADS, **options, dtype=torch.double, biases=biases)
    for weight in plain.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    ours.load_state_dict(plain.state_dict())
    return plain, ours


@settings(max_examples=40, deadline=None)
@given(
    batch_first=st.booleans(),
    bias=st.booleans(),
    extra=st.booleans(),
    zeros=st.booleans(),
    widths=st.sampled_from([(None, None), (7, 9)]),
    batched=st.booleans(),
    masked=st.booleans(),
    padded=st.booleans(),
    training=st.booleans(),
    need=st.booleans(),
    average=st.booleans(),
)
def test_zero_biases_give_the_results_of_multihead_attention(
    batch_first, bias, extra, zeros, widths, batched, masked, padded, training, need, average
):
    kdim, vdim = widths
    plain, ours = modules(
        bias=bias, add_bias_kv=extra, add_zero_attn=zeros, kdim=kdim, vdim=vdim, batch_first=batch_first
    )
    plain.train(training)
    ours.train(training)

    def sequence(length: int, width: int | None, seed: int) -> torch.Tensor:
        batch = ((BATCH, length) if batch_first else (length, BATCH)) if batched else (length,)
        return drawn(*batch, width or WIDTH, seed=seed)

    inputs = sequence(LENGTH, None, 0), sequence(6, kdim, 1), sequence(6, vdim, 2)
    options = {"need_weights": need, "average_attn_weights": average}
    if masked:
        options["attn_mask"] = torch.triu(torch.ones(LENGTH, 6, dtype=torch.bool), 2)
    if padded:
        options["key_padding_mask"] = (
            torch.arange(6).expand(BATCH if batched else 1, 6)[slice(None) if batched else 0] > 4
        )
    (expected, weights), (found, others) = plain(*inputs, **options), ours(*inputs, **options)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-13)
    assert (others is None) == (weights is None)
    if weights is not None:
        torch.testing.assert_close(others, weights, rtol=1e-12, atol=1e-13)


def test_causal_masks_are_those_of_multihead_attention():
    plain, ours = modules(batch_first=True)
    x, mask = (
        drawn(BATCH, LENGTH, WIDTH),
        torch.nn.Transformer.generate_square_subsequent_mask(LENGTH, dtype=torch.double),
    )
    expected = plain(x, x, x, attn_mask=mask, is_causal=True, need_weights=False)[0]
    torch.testing.assert_close(ours(x, x, x, attn_mask=mask, is_causal=True, need_weights=False)[0], expected)


def test_weights_can_be_exchanged_with_multihead_attention():
    plain, ours = modules(BIASES)
    assert plain.state_dict().keys() == ours.state_dict().keys()
    plain.load_state_dict(ours.state_dict())
    assert {name for name, _ in ours.named_parameters()} == {name for name, _ in plain.named_parameters()}


def by_hand(ours, x, query_bias, value_bias):
    """One sequence, head by head."""
    weights, outer = ours.in_proj_weight.detach().numpy(), ours.out_proj.weight.detach().numpy()
    biases = ours.in_proj_bias.detach().numpy()
    size, parts = WIDTH // HEADS, []
    for head in range(HEADS):
        q, k, v = (
            x @ weights[start : start + size].T + biases[start : start + size]
            for start in (kind * WIDTH + head * size for kind in range(3))
        )
        scores = (q + query_bias) @ k.T / np.sqrt(size)
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        parts.append(shares / shares.sum(axis=1, keepdims=True) @ (v + value_bias))
    return np.concatenate(parts, axis=1) @ outer.T + ours.out_proj.bias.detach().numpy()


def test_evaluation_adds_the_means_to_every_head():
    _, ours = modules(BIASES, batch_first=True)
    x = drawn(BATCH, LENGTH, WIDTH)
    expected = [by_hand(ours, each.numpy(), *BIASES.means(WIDTH // HEADS)) for each in x]
    found = ours.eval()(x, x, x)[0].detach().numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


def test_training_draws_once_per_call_for_the_whole_batch():
    _, ours = modules(BIASES, batch_first=True)
    x = drawn(1, LENGTH, WIDTH).expand(BATCH, LENGTH, WIDTH)
    torch.manual_seed(3)
    first = ours(x, x, x)[0]
    second = ours(x, x, x)[0]
    torch.testing.assert_close(first, first[:1].expand_as(first))
    assert (first - second).abs().max() > 1e-3
    torch.manual_seed(3)
    query, value = (
        mean.numpy() + deviation.numpy() * torch.randn(WIDTH // HEADS, dtype=torch.double).numpy()
        for mean, deviation in (
            (ours.query_mean, ours.query_deviation),
            (ours.value_mean, ours.value_deviation),
        )
    )
    expected = by_hand(ours, x[0].numpy(), query, value)
    np.testing.assert_allclose(first[0].detach(), expected, rtol=1e-12, atol=1e-13)


def test_draws_have_the_means_and_deviations_of_the_biases():
    _, ours = modules(BIASES, bias=False)
    width, count = WIDTH // HEADS, 4000
    torch.manual_seed(0)
    draws = np.array([ours._projection_bias().numpy() for _ in range(count)])
    means, deviations = BIASES.means(width), BIASES.deviations(width)
    for start, mean, deviation in ((0, means[0], deviations[0]), (2 * WIDTH, means[1], deviations[1])):
        # Five standard errors of a mean and of a standard deviation.
        found = draws[:, start : start + width]
        assert np.all(np.abs(found.mean(axis=0) - mean) <= 5 * deviation / np.sqrt(count) + 1e-12)
        assert np.all(np.abs(found.std(axis=0) - deviation) <= 5 * deviation / np.sqrt(2 * count) + 1e-12)
        np.testing.assert_array_equal(found, draws[:, start + width : start + 2 * width])
    assert not draws[:, WIDTH : 2 * WIDTH].any()


def test_constant_biases_are_the_means_in_training_too():
    _, ours = modules(QueryValueBiases(resampled=False), batch_first=True)
    x = drawn(BATCH, LENGTH, WIDTH)
    trained = ours.train()(x, x, x)[0]
    torch.testing.assert_close(trained, ours.eval()(x, x, x)[0], rtol=0, atol=0)


def test_attention_is_that_of_the_transformer_in_jax():
    with jax.enable_x64(True):
        network = Transformer(
            7, LENGTH, 3, width=WIDTH, heads=HEADS, outputs="all", biases=True, query_value_biases=BIASES, seed=2
        )
        block = network.blocks[0]
        draw = np.random.default_rng(5)
        names = ("query_bias", "key_bias", "value_bias", "output_bias")
        learned = [draw.normal(size=WIDTH) for _ in names]
        block = eqx.tree_at(lambda each: [getattr(each, name) for name in names], block, learned)
        # Without an MLP, the block adds the attention to its input.
        block = eqx.tree_at(lambda each: each.second, block, np.zeros_like(block.second))
        x = draw.normal(size=(BATCH, LENGTH, WIDTH))
        expected = np.asarray(block(jax.numpy.asarray(x), 0, BIASES.means(WIDTH // HEADS))) - x
    ours = BiasedAttention(WIDTH, HEADS, batch_first=True, biases=BIASES, dtype=torch.double).eval()
    matrices = [getattr(block, name).T for name in ("queries", "keys", "values")]
    ours.load_state_dict(
        {
            "in_proj_weight": torch.tensor(np.concatenate(matrices)),
            "in_proj_bias": torch.tensor(np.concatenate(learned[:3])),
            "out_proj.weight": torch.tensor(block.outputs.T),
            "out_proj.bias": torch.tensor(learned[3]),
        }
    )
    given = torch.tensor(x)
    mask = torch.triu(torch.ones(LENGTH, LENGTH, dtype=torch.bool), 1)
    found = ours(given, given, given, attn_mask=mask)[0].detach().numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_a_bias_of_the_keys_cancels():
    _, ours = modules(BIASES, batch_first=True)
    x = drawn(BATCH, LENGTH, WIDTH)
    before = ours.eval()(x, x, x)[0]
    with torch.no_grad():
        ours.in_proj_bias[WIDTH : 2 * WIDTH] += drawn(WIDTH, seed=4)
    torch.testing.assert_close(ours(x, x, x)[0], before, rtol=1e-13, atol=1e-13)


def test_an_encoder_layer_uses_the_biases_in_evaluation_without_gradients():
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(WIDTH, 2, 16, batch_first=True).double().eval()
    layer.self_attn = BiasedAttention(WIDTH, 2, batch_first=True).double().eval()
    x = drawn(BATCH, LENGTH, WIDTH)
    with torch.no_grad():
        found = layer(x)
    # PyTorch uses its fused layer only if no gradients are required.
    torch.testing.assert_close(found, layer(x).detach(), rtol=1e-12, atol=1e-12)


def test_no_optimizer_updates_the_biases():
    _, ours = modules(BIASES, batch_first=True)
    before = [each.clone() for each in ours.buffers()]
    optimizer = torch.optim.AdamW(ours.parameters(), lr=0.1, weight_decay=0.5)
    x = drawn(BATCH, LENGTH, WIDTH)
    for _ in range(3):
        optimizer.zero_grad()
        ours(x, x, x)[0].square().mean().backward()
        optimizer.step()
    assert len(before) == 4
    for old, new in zip(before, ours.buffers(), strict=True):
        torch.testing.assert_close(new, old, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"num_heads": 5}, "num_heads"),
        ({"num_heads": 0}, "num_heads"),
        ({"biases": 0.5}, "biases"),
        ({"biases": QueryValueBiases(query_mean=[0.1, 0.2])}, "query_mean"),
        ({"biases": QueryValueBiases(value_deviation=[0.1, 0.2])}, "value_deviation"),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_bad_input_is_named(change, argument):
    with pytest.raises(InputError) as error:
        BiasedAttention(**{"embed_dim": WIDTH, "num_heads": HEADS, **change})
    assert error.value.argument == argument

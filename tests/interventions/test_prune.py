from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.interventions import critical_compression, prune
from dynascope.interventions.rounds import kept_after_each_round
from dynascope.networks import MLP, Convolutional, ResNet18

WIDTHS = (6, 12, 9, 4)


def det(shape, a):
    return np.sin(a * np.arange(1, np.prod(shape) + 1)).reshape(shape)


def dense(widths=WIDTHS, seed=0, **options):
    return MLP(widths, bias=False, seed=seed, **options)


def plain_synflow(weights, compression, rounds):
    """The masks of SynFlow by plain products of matrices."""
    masks = [np.ones(each.shape, bool) for each in weights]
    ends = np.cumsum([each.size for each in weights]).tolist()
    for keep in kept_after_each_round(ends[-1], compression, rounds):
        layers = [np.abs(w) * m for w, m in zip(weights, masks, strict=True)]
        scores = []
        for place, layer in enumerate(layers):
            before, after = np.ones(weights[0].shape[0]), np.ones(weights[-1].shape[1])
            for each in layers[:place]:
                before = before @ each
            for each in reversed(layers[place + 1 :]):
                after = each @ after
            # A unit with one weight on each side gives both the same score, apart from rounding.
            with np.errstate(divide="ignore"):
                logs = np.round(np.log(before[:, None] * layer * after), 9)
            scores.append(np.where(masks[place], np.maximum(logs, -1e9), -np.inf).ravel())
        order = np.argsort(-np.concatenate(scores), kind="stable")
        flat = np.zeros(ends[-1], bool)
        flat[order[:keep]] = True
        masks = [part.reshape(w.shape) for part, w in zip(np.split(flat, ends[:-1]), weights, strict=True)]
    return masks


@pytest.fixture(scope="module")
def samples():
    draw = np.random.default_rng(1)
    return draw.normal(size=(20, WIDTHS[0])), np.arange(20) % WIDTHS[-1]


@pytest.mark.slow
def test_the_golden_network_keeps_four_weights_in_each_layer():
    weights = tuple(det(shape, a + 1.0).T for a, shape in enumerate([(4, 3), (5, 4), (2, 5)]))
    network = eqx.tree_at(lambda net: net.weights, dense((3, 4, 5, 2)), weights)
    assert prune(network, compression=3.5, rounds=50).layers["kept"].tolist() == [4, 4, 4]


@pytest.mark.slow
def test_masks_equal_those_of_plain_products_on_twenty_networks():
    for seed in range(20):
        network = dense(seed=seed)
        found = prune(network, compression=6.0, rounds=30).mask.weights
        for mask, expected in zip(found, plain_synflow(network.weights, 6.0, 30), strict=True):
            np.testing.assert_array_equal(mask, expected)


@pytest.mark.slow
def test_two_hundred_layers_of_width_three_hundred_do_not_overflow():
    depth, width = 200, 300
    network = dense((width,) * (depth + 1), scale=1e3)
    pruned = prune(network, compression=2.0, rounds=1)
    assert pruned.compression == 2
    np.testing.assert_allclose(pruned.layers["flow_share"], 1, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("network", [dense((64, 100, 30, 10)), Convolutional((8, 8), 10, channels=(3, 5), width=12)])
def test_synflow_reaches_the_maximal_compression_with_one_path(network):
    sizes = prune(network, "magnitude", compression=1.0).layers["size"].tolist()
    pruned = prune(network, compression=sum(sizes) / len(sizes))
    assert set(pruned.layers["kept"].tolist()) == {1}
    assert pruned.path_exists
    np.testing.assert_allclose(pruned.residuals, 0, atol=1e-9)
    assert critical_compression(network, "magnitude").layers < sum(sizes) / len(sizes)


class Residual(eqx.Module):
    """Two residual blocks x + relu(x A) B between two matrices."""

    first: np.ndarray
    blocks: list[tuple[np.ndarray, np.ndarray]]
    last: np.ndarray

    def __init__(self, weight, width=8):
        draw = np.random.default_rng(0)
        self.first, self.last = draw.normal(size=(5, width)), draw.normal(size=(width, 3))
        self.blocks = [tuple(weight * draw.normal(size=(2, width, width))) for _ in range(2)]

    def __call__(self, x):
        x = jax.nn.relu(x @ self.first)
        for into, out in self.blocks:
            x = x + jax.nn.relu(x @ into) @ out
        return x @ self.last


@pytest.mark.slow
def test_skip_connections_bypass_blocks_unless_the_blocks_outweigh_them():
    heavy, light = Residual(3.0), Residual(0.2)
    most = (5 * 8 + 4 * 64 + 8 * 3) / 6
    assert set(prune(heavy, compression=most).layers["kept"].tolist()) == {1}
    pruned = prune(light, compression=most, allow_collapse=True)
    assert pruned.collapsed_layers == tuple(f"blocks.{block}.{place}" for block in range(2) for place in range(2))
    assert pruned.path_exists
    shares = dict(prune(light, compression=1.0).layers["flow_share"].items())
    assert (shares.pop("first"), shares.pop("last")) == pytest.approx((1, 1))
    assert max(shares.values()) < 0.9


@pytest.mark.slow
def test_protected_shortcuts_keep_all_their_weights():
    network = ResNet18((8, 8), 3, width=2)
    pruned = prune(network, compression=5.0, protect=["shortcut", "blocks.0"], rounds=5, allow_collapse=True)
    assert not any("shortcut" in name or "blocks.0" in name for name in pruned.layers.index)
    assert pruned.mask.blocks[2].shortcut.kernel.all()
    assert pruned.mask.blocks[0].first.kernel.all()
    size, kept = (sum(pruned.layers[name].tolist()) for name in ("size", "kept"))
    everything = [each for each in jax.tree.leaves(pruned.mask) if each.ndim > 1]
    assert sum(each.size - each.sum() for each in everything) == size - kept
    assert kept == round(size / 5)
    assert pruned.compression == size / kept


@pytest.mark.slow
def test_scores_of_snip_and_grasp_are_those_of_derivatives_of_the_loss(samples):
    x, labels = samples
    network = dense()

    def loss(weights, temperature=1.0):
        logits = eqx.tree_at(lambda net: net.weights, network, weights)(x) / temperature
        return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(len(labels)), labels])

    with jax.enable_x64(True):
        g = jax.grad(loss)(network.weights)
        slope = jax.grad(lambda weights: loss(weights, 200.0))
        hg = jax.jvp(slope, (network.weights,), (slope(network.weights),))[1]
    cases: list[tuple[Any, Any, Any]] = [("snip", g, np.abs), ("grasp", hg, np.asarray)]
    for method, slopes, size in cases:
        scores = np.concatenate([size(w * np.asarray(s)).ravel() for w, s in zip(network.weights, slopes, strict=True)])
        kept = round(scores.size / 4)
        found = prune(network, method, compression=4.0, data=samples, allow_collapse=True).mask.weights
        flat = np.concatenate([each.ravel() for each in found])
        assert set(np.flatnonzero(flat)) == set(np.argsort(-scores)[:kept])


@pytest.mark.slow
def test_a_network_of_equinox_for_single_samples_is_pruned():
    network = eqx.nn.MLP(6, 4, 12, 2, use_bias=False, use_final_bias=False, key=jax.random.key(0))
    pruned = prune(network, compression=6.0, rounds=20)
    expected = plain_synflow([np.asarray(each.weight, float).T for each in network.layers], 6.0, 20)
    for layer, mask in zip(pruned.mask.layers, expected, strict=True):
        np.testing.assert_array_equal(layer.weight, mask.T)
    hidden = (expected[0].any(axis=0) & expected[1].any(axis=1)).sum()
    assert pruned.layers["dead_units"].iloc[0] == 12 - hidden
    np.testing.assert_array_equal(pruned.network.layers[0].weight != 0, expected[0].T)


@pytest.mark.slow
def test_an_activation_that_is_not_homogeneous_is_named():
    with pytest.warns(UserWarning, match="tanh"):
        pruned = prune(dense(activation="tanh"), compression=3.0)
    assert pruned.inhomogeneous == ("tanh",)
    assert pruned.conservation_defect > 0.1
    assert prune(MLP(WIDTHS), compression=3.0).conservation_defect < 1e-12


@pytest.mark.slow
def test_bad_input_is_rejected_by_name(samples):
    cases: list[tuple[str, dict[str, Any]]] = [
        ("compression", {"compression": 0.5}),
        ("compression", {"compression": 1e4}),
        ("compression", {"compression": 70.0, "method": "random"}),
        ("data", {"compression": 2.0, "method": "snip"}),
        ("data", {"compression": 2.0, "method": "grasp", "data": (samples[0], samples[1][1:])}),
        ("protect", {"compression": 2.0, "protect": ["shortcut"]}),
        ("protect", {"compression": 2.0, "protect": ["weights"]}),
        ("input_shape", {"compression": 2.0, "input_shape": (7,)}),
        ("data", {"compression": 2.0, "method": "snip", "data": (samples[0], samples[1] + 9)}),
        ("method", {"compression": 2.0, "method": "frob"}),
    ]
    for argument, options in cases:
        with pytest.raises(InputError) as error:
            prune(dense(), **options)
        assert error.value.argument == argument
    with pytest.raises(InputError, match="two or more axes"):
        prune(eqx.nn.LayerNorm(3), compression=2.0)

from __future__ import annotations

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.networks import MLP
from dynascope.probes.kernel import kernel_distance, neural_tangent_kernel, target_alignment
from dynascope.probes.kernel.cost import EXACT

WEIGHTS = MLP((3, 4, 3), seed=1).weights
BIASES = tuple(np.random.default_rng(2).normal(size=each.shape[1]) for each in WEIGHTS)
PARAMS = {"weights": WEIGHTS, "biases": BIASES}
X, OTHER = np.random.default_rng(3).normal(size=(5, 3)), np.random.default_rng(4).normal(size=(4, 3))


def apply(params, x):
    for layer, (w, b) in enumerate(zip(params["weights"], params["biases"], strict=True)):
        x = (jnp.tanh(x) if layer else x) @ w + b
    return x


@functools.cache
def reference(rates=None, two_sets=False):
    """From the Jacobian of each array of parameters, with a rate for each layer."""
    with jax.enable_x64(True):
        one, other = (jax.jacrev(lambda params, x=x: apply(params, x))(PARAMS) for x in (X, OTHER if two_sets else X))
    eta = rates or (1.0, 1.0)
    parts = [(eta[i], one[kind][i], other[kind][i]) for kind in PARAMS for i in range(2)]
    return sum(
        rate * np.einsum("iap,jbp->iajb", *(np.reshape(j, (*j.shape[:2], -1)) for j in pair)) for rate, *pair in parts
    )


def kernel(params=PARAMS, x=X, other=None, apply=apply, **options):
    with jax.enable_x64(True):
        return neural_tangent_kernel(apply, params, x, other, **options)


def same(found, expected, tolerance=1e-10):
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * np.max(np.abs(expected)))


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", EXACT)
def test_every_algorithm_gives_the_kernel(algorithm):
    found = kernel(algorithm=algorithm)
    same(found.values, reference())
    assert (found.algorithm, found.contraction, found.normalisation) == (algorithm, "full", "none")


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", EXACT)
def test_batches_do_not_change_the_answer(algorithm):
    # Five examples in blocks of two, the last of which is filled up.
    same(kernel(algorithm=algorithm, batch_size=2).values, kernel(algorithm=algorithm).values, 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("contraction", ["diagonal", "trace"])
def test_batches_do_not_change_contracted_kernels(contraction):
    found = [kernel(contraction=contraction, batch_size=size).values for size in (2, None)]
    same(found[0], found[1], 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", EXACT)
def test_outputs_can_be_contracted(algorithm):
    same(kernel(algorithm=algorithm, contraction="trace").values, np.einsum("iaja->ij", reference()) / 3)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["structured", "products"])
def test_outputs_can_be_kept_apart(algorithm):
    same(kernel(algorithm=algorithm, contraction="diagonal").values, np.einsum("iaja->ija", reference()))


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"batch_size": 3}, {"algorithm": "products"}, {"algorithm": "jacobian"}])
def test_two_sets_of_inputs_give_the_block_between_them(options):
    same(kernel(other=OTHER, **options).values, reference(two_sets=True))


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["auto", *EXACT])
def test_rates_of_layers_weight_the_gradients(algorithm):
    rates = {"weights": (0.5, 2.0), "biases": (0.5, 2.0)}
    same(kernel(algorithm=algorithm, rates=rates).values, reference(rates=(0.5, 2.0)))


@pytest.mark.slow
def test_one_rate_and_rates_of_single_weights_are_understood():
    same(kernel(rates=0.5).values, 0.5 * reference())
    first = {"weights": (np.arange(12.0).reshape(3, 4), 1.0), "biases": 0.0}
    same(kernel(rates=first).values, kernel(rates=first, algorithm="layerwise").values)


@pytest.mark.slow
def test_the_pseudo_kernel_is_the_mean_over_pairs_of_outputs():
    found = kernel(algorithm="pseudo")
    same(found.values, np.sum(reference(), axis=(1, 3)) / 3)
    assert (found.contraction, found.dimensions) == ("pseudo", ("sample", "other_sample"))


def test_a_subset_of_logits_is_a_part_of_the_kernel():
    found = kernel(algorithm="logits", draws=2, seed=5)
    same(found.values, reference()[:, found.outputs][:, :, :, found.outputs])
    assert len(set(found.outputs)) == 2
    assert len({kernel(algorithm="logits", draws=2, seed=seed).outputs for seed in range(6)}) > 1


@pytest.mark.slow
def test_the_sketch_is_unbiased_with_the_variance_that_is_stated():
    q, seeds = 50, 40
    found = np.stack([kernel(algorithm="sketch", draws=q, seed=seed).values for seed in range(seeds)])
    exact = reference()
    diagonal = np.einsum("iaia->ia", exact)
    variance = (np.einsum("ia,jb->iajb", diagonal, diagonal) + exact**2) / q
    # In standard errors; the largest of 225 dependent entries of a Gaussian stays below five.
    assert np.max(np.abs(found.mean(axis=0) - exact) / np.sqrt(variance / seeds)) < 5
    # The mean over entries of the ratio, which forty seeds of dependent entries give to about 15 %.
    np.testing.assert_allclose(np.mean(found.var(axis=0, ddof=1) / variance), 1, atol=0.4)


@pytest.mark.slow
def test_the_sketch_uses_the_same_directions_for_equal_seeds():
    options = {"algorithm": "sketch", "draws": 50, "seed": 1}
    # Rates multiply the variance of the directions, and batches see the same ones.
    same(kernel(rates=4.0, batch_size=2, **options).values, 4 * np.asarray(kernel(**options).values))


def test_memory_decides_on_the_blocks_and_too_little_of_it_is_refused():
    same(kernel(memory=1e4).values, reference())
    with pytest.raises(InputError, match="bytes"):
        kernel(memory=100.0)


@pytest.mark.slow
def test_equinox_modules_and_scalar_outputs_are_understood():
    network = MLP((3, 6, 2), activation="tanh", parametrisation="ntk", seed=3)
    found = kernel(network, apply=lambda network, x: network(x))
    same(found.values, kernel(network, apply=lambda network, x: network(x), algorithm="jacobian").values)
    shapes = eqx.filter_eval_shape(lambda: eqx.nn.Linear(3, "scalar", key=jax.random.key(0)))
    line = eqx.tree_at(lambda layer: (layer.weight, layer.bias), shapes, (np.ones((1, 3)), np.ones(1)))
    found = kernel(line, apply=lambda line, x: jax.vmap(line)(x))
    same(found.values, (X @ X.T + 1)[:, None, :, None])


def test_it_can_be_compiled_and_differentiated():
    def size(scale):
        scaled = jax.tree.map(lambda each: scale * each, WEIGHTS[0])
        return jnp.sum(neural_tangent_kernel(lambda w, x: x @ w, scaled, X, contraction="trace").values)

    with jax.enable_x64(True):
        assert jit(jax.grad(size))(1.0) == 0
        np.testing.assert_allclose(jit(size)(1.0), np.sum(X @ X.T), rtol=1e-12)


@pytest.mark.slow
def test_single_precision_stays_single_precision():
    params = jax.tree.map(np.float32, PARAMS)
    assert kernel(params, np.float32(X)).values.dtype == np.float32


@pytest.mark.slow
def test_an_output_that_depends_on_the_batch_is_refused():
    def normalised(params, x):
        return apply(params, x - jnp.mean(x, axis=0))

    with pytest.raises(InputError, match="batch"):
        kernel(apply=normalised)


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    "change",
    [
        {"algorithm": "exact"},
        {"contraction": "mean"},
        {"batch_size": 0},
        {"draws": -1},
        {"seed": -1},
        {"memory": 0.0},
        {"algorithm": "logits", "draws": 4},
        {"x": X[:0]},
        {"x": np.full((2, 3), np.nan)},
        {"other": {"a": X, "b": OTHER}},
        {"params": {"weights": (), "biases": ()}},
        {"params": np.ones((3, 2), dtype=complex), "apply": lambda w, x: x @ w},
        {"rates": -1.0},
        {"rates": {"weights": 1.0}},
        {"rates": {"weights": (np.ones(7), 1.0), "biases": 1.0}},
        {"apply": lambda params, x: jnp.sum(apply(params, x), axis=0)},
    ],
)
def test_bad_input_is_refused(change):
    with pytest.raises(InputError):
        kernel(**change)


def test_the_golden_numbers():
    # Weights of the ledger, as sines of whole numbers.
    def sines(shape, factor):
        return np.sin(factor * np.arange(1, np.prod(shape) + 1)).reshape(shape)

    weights = [sines((4, 3), 1).T, sines((4, 4), 2).T, sines((2, 4), 3).T]

    def apply(weights, x):
        for layer, w in enumerate(weights):
            x = (jnp.tanh(x) if layer else x) @ w / w.shape[0] ** 0.5
        return x

    values = np.asarray(kernel(weights, sines((3, 3), 0.5), apply=apply).values)
    block = [[0.13781298774586745, 0.101318195458012], [0.10124428809106277, 0.31074768056383206]]
    np.testing.assert_allclose(values[0, :, 1, :], block, rtol=1e-9)
    pseudo = np.sum(values, axis=(1, 3)) / 2
    upper = [
        [0.36209747111988677, 0.32556157592938717, -0.3385834915643681],
        [0.32556157592938717, 0.3022962158630383, -0.302635493838865],
        [-0.3385834915643681, -0.302635493838865, 0.3170693323816233],
    ]
    np.testing.assert_allclose(pseudo, upper, rtol=1e-9)
    y = np.array([1.0, -1.0, 1.0])
    np.testing.assert_allclose(target_alignment(pseudo, y), 0.08850408880901246, rtol=1e-9)
    np.testing.assert_allclose(target_alignment(pseudo, y, centred=True), 0.2169989826053669, rtol=1e-9)
    np.testing.assert_allclose(kernel_distance(pseudo, pseudo**2), 0.8613626749131832, rtol=1e-9)

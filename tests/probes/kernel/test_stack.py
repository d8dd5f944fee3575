from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.probes.kernel import dense_stack_kernel, neural_tangent_kernel, target_alignment
from dynascope.probes.kernel.distance_and_alignment import kernel_distance


def det(shape, a):
    return np.sin(a * np.arange(1, np.prod(shape) + 1)).reshape(shape)


# The ledger's weights are (out, in), ours are (in, out).
GOLDEN = [det((4, 3), 1).T, det((4, 4), 2).T, det((2, 4), 3).T]
INPUTS = det((3, 3), 0.5)


def stack(seed=0, widths=(3, 5, 4, 2)):
    draw = np.random.default_rng(seed)
    weights = [draw.normal(size=each) for each in itertools.pairwise(widths)]
    return weights, [draw.normal(size=width) for width in widths[1:]]


def test_the_golden_numbers():
    kernel = dense_stack_kernel(INPUTS, GOLDEN, activation="tanh", parametrisation="ntk").values
    block = [[0.13781298774586745, 0.101318195458012], [0.10124428809106277, 0.31074768056383206]]
    np.testing.assert_allclose(kernel[0, :, 1, :], block, rtol=1e-9)
    pseudo = np.sum(kernel, axis=(1, 3)) / 2
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


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["relu", "tanh", "erf", "linear"])
@pytest.mark.parametrize("parametrisation", ["standard", "ntk"])
def test_every_library_and_jax_itself_give_the_same_numbers(activation, parametrisation):
    torch = pytest.importorskip("torch", reason="PyTorch is an optional extra")
    weights, biases = stack()
    x, other = det((4, 3), 0.7), det((2, 3), 0.9)
    options = {"activation": activation, "parametrisation": parametrisation, "rates": [0.5, 1.0, 2.0]}
    expected = dense_stack_kernel(x, weights, biases, other, **options).values

    def values(x, weights, biases, other):
        return dense_stack_kernel(x, weights, biases, other, **options).values

    arrays = x, weights, biases, other
    with jax.enable_x64(True):
        for found in (jit(values)(*arrays), values(*jax.tree.map(torch.from_numpy, arrays))):
            np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(("activation", "parametrisation"), [("tanh", "ntk"), ("erf", "standard")])
def test_it_is_the_kernel_that_differentiation_gives(activation, parametrisation):
    weights, biases = stack()
    sigma = {"tanh": jnp.tanh, "erf": jax.scipy.special.erf}[activation]

    def apply(params, x):
        for layer, (w, b) in enumerate(zip(*params, strict=True)):
            x = (sigma(x) if layer else x) @ w / (1 if parametrisation == "standard" else w.shape[0] ** 0.5) + b
        return x

    x = det((4, 3), 0.7)
    with jax.enable_x64(True):
        expected = neural_tangent_kernel(apply, (weights, biases), x, algorithm="jacobian").values
    found = dense_stack_kernel(x, weights, biases, activation=activation, parametrisation=parametrisation)
    np.testing.assert_allclose(found.values, expected, rtol=1e-10, atol=1e-10)


def test_a_linear_layer_has_the_kernel_of_its_inputs():
    found = dense_stack_kernel(INPUTS, [np.ones((3, 2))], activation="linear")
    np.testing.assert_allclose(found.values, np.einsum("ij,ab->iajb", INPUTS @ INPUTS.T, np.eye(2)), atol=1e-15)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    "change",
    [
        {"activation": "gelu"},
        {"parametrisation": "mup"},
        {"weights": []},
        {"weights": GOLDEN[1:]},
        {"biases": [np.zeros(4)]},
        {"other_inputs": np.ones((2, 4))},
        {"inputs": np.full((2, 3), np.inf)},
        {"weights": [jax.device_put(each) for each in GOLDEN]},
    ],
)
def test_bad_input_is_refused(change):
    with pytest.raises(InputError), np.errstate(invalid="ignore"):
        dense_stack_kernel(**{"inputs": INPUTS, "weights": GOLDEN, "activation": "tanh", **change})

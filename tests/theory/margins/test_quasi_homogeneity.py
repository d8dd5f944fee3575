from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.theory.margins import normalised_margin, quasi_homogeneity

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(5, 3))


def batched(module, x):
    return jax.vmap(module)(x)


def normalised(h, epsilon=0.0):
    h = h - h.mean(axis=-1, keepdims=True)
    return h / jnp.sqrt((h**2).mean(axis=-1, keepdims=True) + epsilon)


RESIDUAL = {
    name: RANDOM.normal(size=shape)
    for name, shape in {
        "in": (3, 4),
        "shift": 4,
        "up": (4, 4),
        "gain": 4,
        "bias": 4,
        "down": (4, 4),
        "out": (4, 2),
    }.items()
}


def residual(p, x, epsilon=0.0):
    h = x @ p["in"] + p["shift"]
    return (h + jax.nn.relu(p["gain"] * normalised(h @ p["up"], epsilon) + p["bias"]) @ p["down"]) @ p["out"]


def test_a_deep_network_of_equinox_with_biases():
    network = eqx.filter_jit(eqx.nn.MLP)(3, 2, 3, 2, key=jax.random.key(0))
    found = quasi_homogeneity(batched, network, X)
    # Balanced with the second bias, of which the charge is that of its layer.
    said = {".layers[0].weight": 1 / 4, ".layers[0].bias": 1 / 4, ".layers[1].weight": 1 / 4}
    said |= {".layers[1].bias": 1 / 2, ".layers[2].weight": 1 / 2, ".layers[2].bias": 1.0}
    for path, rate in said.items():
        np.testing.assert_allclose(found.rates[path], rate, atol=1e-9)
    assert found.largest == pytest.approx(1)
    assert len(found.generators) == 6  # one for each hidden neuron
    # Without what biases hold: 1/ℓ of each layer, and j/ℓ of the bias after j of them.
    biases = [path for path in found.rates if path.endswith("bias")]
    even = quasi_homogeneity(batched, network, X, discarded=biases, per="array")
    for layer in range(3):
        np.testing.assert_allclose(even.rates[f".layers[{layer}].weight"], 1 / 3, atol=1e-9)
        np.testing.assert_allclose(even.rates[f".layers[{layer}].bias"], (layer + 1) / 3, atol=1e-9)


def test_a_residual_network_with_a_normalisation():
    found = quasi_homogeneity(residual, RESIDUAL, X)
    said = {"in": 1 / 2, "shift": 1 / 2, "out": 1 / 2, "up": 0, "gain": 1 / 4, "bias": 1 / 4, "down": 1 / 4}
    for name, rate in said.items():
        np.testing.assert_allclose(found.rates[f"['{name}']"], rate, atol=1e-9)
    with jax.enable_x64(True):
        outputs = jit(residual)
        before = np.asarray(outputs(RESIDUAL, X))
        after = outputs({name: np.exp(2 * found.rates[f"['{name}']"]) * each for name, each in RESIDUAL.items()}, X)
    np.testing.assert_allclose(after, np.exp(2.0) * before, rtol=1e-9)
    # The least norm solves the identity too, and is another one.
    with jax.enable_x64(True):
        other = {name: np.exp(2 * found.minimum_norm[f"['{name}']"]) * each for name, each in RESIDUAL.items()}
        np.testing.assert_allclose(outputs(other, X), np.exp(2.0) * before, rtol=1e-9)
    assert sum(np.sum(each**2) for each in found.minimum_norm.values()) < np.sum(found.vector**2)
    assert normalised_margin([5.0], found.flatten(RESIDUAL), found.vector) > 0


def over_the_batch(p, x, epsilon=0.0):
    h = jax.nn.relu(x @ p["in"] + p["shift"])
    h = (h - h.mean(axis=0)) / jnp.sqrt(h.var(axis=0) + epsilon)
    return (h * p.get("gain", 1.0) + p.get("bias", 0.0)) @ p["out"]


@pytest.mark.parametrize("epsilon", [0.0, 1e-5])
@pytest.mark.parametrize("gain", [True, False])
def test_batch_normalisation_before_the_readout_frees_the_layers_below(gain, epsilon):
    names = ("in", "shift", "out", *(("gain", "bias") if gain else ()))
    params, x = {name: RESIDUAL[name] for name in names}, RANDOM.normal(size=(8, 3))
    found = quasi_homogeneity(lambda p, x: over_the_batch(p, x, epsilon), params, x)
    said = (
        {"in": 0, "shift": 0, "out": 1 / 2, "gain": 1 / 2, "bias": 1 / 2} if gain else {"in": 0, "shift": 0, "out": 1}
    )
    for name in names:
        np.testing.assert_allclose(found.rates[f"['{name}']"], said[name], atol=1e-9)
    with jax.enable_x64(True):
        grown = {name: np.exp(2 * found.rates[f"['{name}']"]) * each for name, each in params.items()}
        before, after = (np.asarray(jit(over_the_batch)(each, x, epsilon)) for each in (params, grown))
    np.testing.assert_allclose(after, np.exp(2.0) * before, rtol=1e-9)


def test_a_batch_that_has_no_spread_is_refused():
    with pytest.raises(InputError, match="more inputs if the network normalises over the batch") as caught:
        quasi_homogeneity(over_the_batch, {name: RESIDUAL[name] for name in ("in", "shift", "out")}, X[:1])
    assert caught.value.argument == "example_inputs"


def test_an_epsilon_leaves_no_rates_that_keep_the_charges():
    with pytest.raises(InputError, match="set ε to 0 in normalisation layers"):
        quasi_homogeneity(lambda p, x: residual(p, x, 1e-3), RESIDUAL, X)


def test_above_tanh_only_the_last_layer_has_a_rate():
    params = {"w": np.ones((3, 4)), "a": np.ones(4)}
    found = quasi_homogeneity(lambda p, x: jnp.tanh(x @ p["w"]) @ p["a"], params, X)
    np.testing.assert_allclose(found.rates["['w']"], 0, atol=1e-9)
    np.testing.assert_allclose(found.rates["['a']"], 1, atol=1e-9)


@pytest.mark.parametrize(
    ("apply", "why"),
    [
        (lambda p, x: x @ p["a"] + 1.0, "the Euler identity fails"),
        (lambda p, x: jax.nn.sigmoid(x @ p["a"]), "the Euler identity fails"),
        (lambda p, x: x @ p["a"] / p["b"][0] ** 2, "some growth rates would be negative"),
    ],
)
def test_what_is_not_quasi_homogeneous_is_refused(apply, why):
    with pytest.raises(InputError, match=why) as caught:
        quasi_homogeneity(apply, {"a": np.ones(3), "b": np.ones(1)}, X)
    assert caught.value.argument == "apply"


def test_elements_of_one_array_may_have_rates_of_their_own():
    def apply(p, x):
        return x[:, 0] * p[0] + x[:, 1] * p[1] * p[2]

    np.testing.assert_allclose(quasi_homogeneity(apply, np.ones(3), X).vector, [1, 0.5, 0.5], atol=1e-9)
    with pytest.raises(InputError, match="one rate for each array"):
        quasi_homogeneity(apply, np.ones(3), X, per="array")


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"params": {}}, "params"),
        ({"per": "layer"}, "per"),
        ({"discarded": ["['b']"]}, "discarded"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"seed": -1}, "seed"),
        ({"example_inputs": np.ones((2, 5))}, "apply"),
        ({"params": {"a": np.ones((3, 200))}, "per": "element"}, "per"),
    ],
)
def test_bad_input_is_refused_by_name(changes, argument):
    given = {"apply": lambda p, x: x @ p["a"], "params": {"a": np.ones(3)}, "example_inputs": X} | changes
    with pytest.raises(InputError) as caught:
        quasi_homogeneity(**given)
    assert caught.value.argument == argument


def test_other_parameters_are_not_flattened():
    found = quasi_homogeneity(lambda p, x: x @ p["a"], {"a": np.ones(3)}, X)
    assert found.flatten({"a": np.arange(3.0)}).tolist() == [0, 1, 2]
    with pytest.raises(InputError):
        found.flatten({"a": np.ones(4)})

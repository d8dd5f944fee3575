from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory.interventions import (
    activation_defect,
    cut_residuals,
    grasp_defect,
    maximal_compression,
    mean_layer_score,
    normalisation_defect,
)


def det(shape, a):
    return np.sin(a * np.arange(1, np.prod(shape) + 1)).reshape(shape)


def relu_network(parameters, x):
    *hidden, last = parameters
    for weight, bias in hidden:
        x = jax.nn.relu(x @ weight.T + bias)
    return x @ last[0].T + last[1]


def loss(parameters, x, targets):
    return jnp.sum((relu_network(parameters, x) - targets) ** 2) / len(x)


def test_the_cuts_of_the_golden_network_agree_with_its_output():
    widths = (4, 6, 5, 3)
    parameters = [
        (det((leaving, entering), 1.3 + layer), 0.3 * det((leaving,), 2.1 + layer))
        for layer, (entering, leaving) in enumerate(itertools.pairwise(widths))
    ]
    x, targets = det((7, 4), 0.7), det((7, 3), 0.9)
    with jax.enable_x64(True):
        gradient = jax.jit(jax.grad(loss))(parameters, x, targets)
        y = np.asarray(relu_network(parameters, x))
    sums = np.array(
        [
            [np.sum(np.asarray(g) * p) for g, p in zip(*layer, strict=True)]
            for layer in zip(gradient, parameters, strict=True)
        ]
    )
    total = float(np.sum(2 / 7 * (y - targets) * y))
    assert total == pytest.approx(20.595299934221973, rel=1e-13)
    np.testing.assert_allclose(sums[:, 0], [13.619445619255194, 18.168357072742175, 18.81180430586313], rtol=1e-13)
    np.testing.assert_allclose(sums[:, 1], [4.548911453486983, 0.643447233120958, 1.7834956283588372], rtol=1e-13)
    np.testing.assert_allclose(cut_residuals(sums[:, 0], sums[:, 1], total), 0, atol=1e-13)


@pytest.mark.slow
@given(seed=st.integers(0, 10**6))
def test_grasp_violates_conservation_by_the_difference_of_squared_gradients(seed):
    draw = np.random.default_rng(seed)
    parameters = [(draw.normal(size=(o, i)), draw.normal(size=o)) for i, o in ((3, 4), (4, 5), (5, 2))]
    x, targets = draw.normal(size=(6, 3)), draw.normal(size=(6, 2))
    with jax.enable_x64(True):
        g, hg = jax.device_get(_gradient_and_product(parameters, x, targets))
    for layer in range(2):
        (weight, bias), (after, _) = parameters[layer], parameters[layer + 1]
        entering = np.sum(hg[layer][0] * weight, axis=1) + hg[layer][1] * bias
        leaving = np.sum(hg[layer + 1][0] * after, axis=0)
        exact = grasp_defect(np.column_stack([*g[layer]]), g[layer + 1][0].T)
        np.testing.assert_allclose(entering - leaving, exact, rtol=1e-9, atol=1e-9 * np.abs(exact).max())


@jax.jit
def _gradient_and_product(parameters, x, targets):
    def slope(at):
        return jax.grad(loss)(at, x, targets)

    g = slope(parameters)
    return jax.jvp(slope, (parameters,), (g,))


@pytest.mark.slow
@given(seed=st.integers(0, 10**6))
def test_a_running_mean_violates_conservation_by_the_predicted_gap(seed):
    draw = np.random.default_rng(seed)
    x, weight, bias = draw.normal(size=(6, 3)), draw.normal(size=(3, 4)), draw.normal(size=4)
    gain, shift, mean, out = draw.normal(size=(4, 4))
    variance = draw.uniform(0.5, 2, size=4)
    with jax.enable_x64(True):
        slopes, g = jax.device_get(_normalised_slopes((weight, bias, gain, shift), np.zeros(4), x, mean, variance, out))
    entering = np.sum(slopes[0] * weight, axis=0) + slopes[1] * bias
    exact = normalisation_defect(g, gain, mean, variance, 1e-3)
    np.testing.assert_allclose(entering - slopes[2] * gain, exact, rtol=1e-9, atol=1e-10)


@jax.jit
def _normalised_slopes(parameters, moved, x, mean, variance, out):
    def scalar(parameters, moved):
        weight, bias, gain, shift = parameters
        u = gain * (x @ weight + bias - mean) / jnp.sqrt(variance + 1e-3) + shift + moved
        return jnp.sum(jnp.sin(jax.nn.relu(u) @ out))

    return jax.grad(scalar, argnums=(0, 1))(parameters, moved)


@given(seed=st.integers(0, 10**6))
def test_a_power_violates_conservation_by_its_degree(seed):
    draw = np.random.default_rng(seed)
    x, into, out = draw.normal(size=(5, 3)), draw.normal(size=(3, 4)), draw.normal(size=(4, 1))
    z = x @ into
    # R = Σ z³ a is linear in the outgoing weights a and cubic in the incoming ones.
    leaving = (np.sum(z**3, axis=0)[:, None] * out)[:, 0]
    found = activation_defect(np.tile(out.T, (5, 1)), z, z**3, 3 * z**2)
    np.testing.assert_allclose(found, 2 * leaving, rtol=1e-9, atol=1e-9)


def test_the_mean_score_falls_as_one_over_the_size_of_a_layer():
    assert mean_layer_score(12.0, [6, 3, 1]).tolist() == [2, 4, 12]
    assert maximal_compression([6400, 10000, 3000, 3000, 1000]) == 4680


def test_bad_input_is_rejected_by_name():
    for call, argument in (
        (lambda: cut_residuals([1.0, 2.0], [1.0], 1.0), "bias_sums"),
        (lambda: grasp_defect([[1.0]], [[1.0], [2.0]]), "outgoing_gradient"),
        (lambda: activation_defect([[1.0]], [[1.0]], [[1.0]], [[1.0, 2.0]]), "slope"),
        (lambda: normalisation_defect([1.0], [1.0, 2.0], [0.0], [1.0]), "gain"),
        (lambda: normalisation_defect([1.0], [1.0], [0.0], [0.0]), "running_variance"),
        (lambda: mean_layer_score(1.0, [0.0]), "sizes"),
        (lambda: maximal_compression([3, 0]), "sizes"),
    ):
        with pytest.raises(InputError) as error:
            call()
        assert error.value.argument == argument

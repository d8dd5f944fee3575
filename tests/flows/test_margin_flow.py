from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from dynascope.errors import DivergenceError, InputError
from dynascope.flows import margin_flow
from dynascope.theory.margins import (
    log_time,
    max_margin,
    normalised_margin,
    normalised_time,
    quasi_homogeneity,
    simplex_margin,
    support_offset,
)

Z = np.array([[1.0, 0.2], [10.0, -1.0]])
ONES = np.ones(2)


def linear(w, x):
    return x @ w


def asymmetric(p, x):
    return x[:, 0] * p["a"] + x[:, 1] * p["u"] * p["v"]


def chained(p, x):
    return p[3] * (p[0] * p[1] * x + p[2])


def batched(module, x):
    return jax.vmap(module)(x)


def collapsing(p, _):
    h = p["h"] / jnp.linalg.norm(p["h"], axis=1, keepdims=True)
    return h @ p["w"]


def separable(seed, inputs):
    """Data in the first of five inputs whose other samples are at least 0.05 beyond those at the margin."""
    random = np.random.default_rng(seed)
    while True:
        x, w = random.normal(size=(20, inputs)), random.normal(size=inputs)
        w /= np.linalg.norm(w)
        y = np.sign(x @ w)
        z = np.pad((x + 0.1 * y[:, None] * w) * y[:, None], ((0, 0), (0, 5 - inputs)))
        margins = z @ max_margin(z).weights
        if margins[margins > 1 + 1e-9].min() > 1.05:
            return z


@pytest.mark.slow
@pytest.mark.parametrize("inputs", [2, 3, 4, 5])
def test_linear_classifiers_end_in_the_max_margin_direction(inputs):
    for seed in range(2):
        z = separable(seed, inputs)
        found, offset = max_margin(z), support_offset(z)
        start = np.pad(np.random.default_rng(seed).normal(size=inputs), (0, 5 - inputs))
        path = margin_flow(linear, start, z, np.ones(20), levels=[1e5, 1e6])
        size = np.linalg.norm(found.weights)
        # What theory is off itself, by its offset and by what of the start no support vector sees.
        support = z[found.multipliers > 1e-9]
        rest = path.parameters - path.level[:, None] * found.weights
        own = np.linalg.norm(rest, axis=1) / (path.level * size)
        assert (own < 1e-4).all()
        ends = path.parameters / np.linalg.norm(path.parameters, axis=1)[:, None]
        assert np.linalg.norm(ends - found.weights / size, axis=1).max() < 1e-4
        # To 1e-7 of the margins, which is what the steps leave of them.
        np.testing.assert_allclose(support @ rest[0], support @ offset, atol=1e-2)


def test_the_robustness_example_ends_where_the_asymmetric_problem_says():
    start = {"a": np.array(0.1), "u": np.array(0.6), "v": np.array(0.5)}
    path = margin_flow(asymmetric, start, Z, ONES, levels=[2.5e4, 1e6])
    a, u, v = path.parameters.T
    q = path.smallest_margin
    np.testing.assert_allclose([a[0] / q[0], u[0] * v[0] / q[0]], [0.400004, 2.999978], atol=1e-6)
    np.testing.assert_allclose([a[1] / q[1], u[1] * v[1] / q[1]], max_margin(Z, [1, 2]).weights, atol=1e-6)
    # What does not grow with the margin is the charge.
    np.testing.assert_allclose(u**2 - v**2, 0.11, atol=1e-2)


def test_the_share_of_an_unneeded_weight_falls_as_solved():
    # S = ∫ L dt is the normalised time: a = S, u v = u₀² exp(2S).
    start = {"a": np.array(0.0), "u": np.array(0.5), "v": np.array(0.5)}
    path = margin_flow(asymmetric, start, np.array([[1.0, 1.0]]), [1], levels=[4 + np.exp(8) / 4])
    assert path.normalised_time[0] == pytest.approx(4, abs=1e-6)
    assert path.parameters[0, 0] / path.margins[0, 0] == pytest.approx(0.005338746845, abs=1e-8)


def test_a_needed_bias_pulls_the_layer_above_to_its_rate():
    # f = a (u v x + b), and labels of opposite signs at x and 2x, which no product without b separates.
    x = np.array([1.0, 2.0])
    path = margin_flow(chained, np.array([0.7, -0.8, 0.5, 0.9]), x, [1, -1], levels=[1e4, 1e5])
    grown = np.diff(np.log(np.abs(path.parameters)), axis=0)[0] / np.log(10)
    rates = quasi_homogeneity(chained, np.ones(4), x).vector
    np.testing.assert_allclose(rates, [0.25, 0.25, 0.5, 0.5], atol=1e-9)
    np.testing.assert_allclose(grown, rates, atol=1e-3)
    # a² − b² − v² is a charge, and so a cannot have 1/3 where b has 2/3.
    _, v, b, a = path.parameters.T
    np.testing.assert_allclose(a**2 - b**2 - v**2, 0.9**2 - 0.5**2 - 0.8**2, atol=1e-2)


@pytest.mark.slow
def test_normalised_features_collapse_to_the_simplex():
    random = np.random.default_rng(0)
    start = {"h": random.normal(size=(6, 3)), "w": 0.1 * random.normal(size=(3, 3))}
    path = margin_flow(collapsing, start, np.zeros((1, 1)), np.repeat(np.arange(3), 2), levels=[1e4])
    end = path.params()
    h = end["h"] / np.linalg.norm(end["h"], axis=1, keepdims=True)
    theory = simplex_margin(3)
    np.testing.assert_allclose((h @ h.T)[::2, ::2], theory.gram, atol=1e-7)
    np.testing.assert_allclose(end["w"].T / 1e4, theory.classifier_share * h[::2], atol=1e-3)
    assert np.sum(end["w"] ** 2) / 2e8 == pytest.approx(theory.value, rel=1e-3)


@pytest.mark.parametrize("solver", ["implicit", "explicit"])
def test_both_clocks_are_those_of_gradient_flow(solver):
    path = margin_flow(linear, np.array([0.1, 0.3]), Z, ONES, levels=[2.0, 8.0], solver=solver)

    def rate(_, state):
        weights = np.exp(-Z @ state[:2])
        return [*weights @ Z, weights.sum()]

    end = np.exp(path.log_time[-1])
    found = solve_ivp(rate, (0, end), [0.1, 0.3, 0.0], method="LSODA", rtol=1e-11, atol=1e-12).y[:, -1]
    # Explicit steps are of first order in the 0.05 by which they let the level rise.
    close = 1e-5 if solver == "implicit" else 2e-2
    np.testing.assert_allclose(path.parameters[-1], found[:2], atol=close)
    assert path.normalised_time[-1] == pytest.approx(found[2], abs=close * 10)


def test_late_times_are_those_of_theory():
    path = margin_flow(linear, np.zeros(2), Z, ONES, levels=[1e3, 1e6])
    value = max_margin(Z).value
    late = log_time(path.level, value=value)
    np.testing.assert_allclose(path.log_time, late, atol=1e-3)
    np.testing.assert_allclose(
        np.diff(path.normalised_time), np.diff(normalised_time(path.level, value=value)), rtol=1e-5
    )


@pytest.mark.slow
def test_a_network_of_relu_is_followed_past_its_kinks_and_its_margin_never_falls():
    x = np.random.default_rng(0).normal(size=(12, 2))
    network = eqx.filter_jit(eqx.nn.MLP)(2, "scalar", 8, 1, key=jax.random.key(1))
    path = margin_flow(batched, network, x, np.sign(x[:, 0] * x[:, 1]), levels=np.geomspace(2, 500, 12))
    rates = quasi_homogeneity(batched, network, x)
    assert path.solver == "explicit"
    assert (np.diff(normalised_margin(path.margins, path.parameters, rates.vector)) > 0).all()
    outputs = np.asarray(eqx.filter_jit(batched)(path.params(), x)) * np.sign(x[:, 0] * x[:, 1])
    np.testing.assert_allclose(outputs, path.margins[-1], rtol=1e-4)
    np.testing.assert_allclose(rates.flatten(path.params()), path.parameters[-1], rtol=1e-6)


def test_the_logistic_loss_ends_in_the_same_direction():
    path = margin_flow(linear, np.zeros(2), Z, ONES, levels=[1.0, 1e5], loss="cross_entropy")
    np.testing.assert_allclose(path.parameters[-1] / 1e5, max_margin(Z).weights, atol=1e-5)
    q = path.margins[0]
    assert -np.log(np.log1p(np.exp(-q)).sum()) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("solver", ["automatic", "explicit"])
def test_data_that_are_not_separated_are_told(solver):
    with pytest.raises(DivergenceError, match="stop"):
        margin_flow(
            linear, np.array([0.1, 0.3]), Z[[0, 0]], [1, -1], levels=[10.0], solver=solver, max_evaluations=20_000
        )


@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"labels": [1, 0]}, "labels"),
        ({"labels": [1, 1, 1]}, "labels"),
        ({"levels": [10.0, 5.0]}, "levels"),
        ({"levels": [-5.0]}, "levels"),
        ({"params": np.ones(3)}, "apply"),
        ({"loss": "hinge"}, "loss"),
        ({"solver": "euler"}, "solver"),
        ({"relative_tolerance": 0.0}, "relative_tolerance"),
        ({"max_evaluations": 0}, "max_evaluations"),
        ({"apply": lambda w, x: jnp.sum(x @ w)}, "apply"),
        ({"inputs": np.ones((3000, 2)), "labels": np.ones(3000)}, "params"),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_bad_input_is_refused_by_name(changes, argument):
    given = {"apply": linear, "params": np.zeros(2), "inputs": Z, "labels": ONES} | changes
    with pytest.raises(InputError) as caught:
        margin_flow(**given)
    assert caught.value.argument == argument

from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import hermite_e

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.networks import TwoLayer
from dynascope.tasks.multi_index import MultiIndex


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


def drawn(seed: int, *, dimension: int = 3, indices: int = 2, orders: int = 5) -> MultiIndex:
    draw = np.random.default_rng(seed)
    turn, _ = np.linalg.qr(draw.normal(size=(dimension, dimension)))
    return MultiIndex(draw.normal(size=(indices, orders)), turn[:, :indices].T)


def values(task: MultiIndex, x: np.ndarray) -> np.ndarray:
    links = zip(task.directions, task.links, strict=True)
    return np.sum([hermite_e.hermeval(x @ w, link) for w, link in links], axis=0)


@pytest.mark.slow
@pytest.mark.parametrize("orders", [1, 3, 6])
@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_the_loss_is_that_of_a_tensor_product_quadrature(degree, orders):
    task = drawn(degree, orders=orders)
    network = TwoLayer(3, 5, 1, activation=f"power-{degree}", seed=degree)
    # Twelve nodes in each of three dimensions are exact up to degree 23; the integrand has degree 10 at most.
    nodes, weights = hermite_e.hermegauss(12)
    x = np.stack(np.meshgrid(nodes, nodes, nodes), axis=-1).reshape(-1, 3)
    weight = np.einsum("i,j,k->jik", weights, weights, weights).ravel() / (2 * np.pi) ** 1.5
    errors = np.asarray(network(x))[:, 0] - values(task, x)
    # Rounding, in sums of 1728 terms.
    np.testing.assert_allclose(task.loss(network), weight @ errors**2 / 2, rtol=1e-12)


def test_the_loss_is_the_mean_over_samples():
    task = drawn(0, dimension=6, indices=3, orders=3)
    network = TwoLayer(6, 4, 1, activation="quadratic", seed=1)
    x = np.random.default_rng(2).normal(size=(200_000, 6))
    errors = (np.asarray(network(x))[:, 0] - values(task, x)) ** 2 / 2
    # Five standard errors.
    assert abs(errors.mean() - float(task.loss(network))) < 5 * errors.std() / np.sqrt(len(errors))


@pytest.mark.slow
# Sizes are those of the quadrature, whose programs serve here too.
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 1000), degree=st.integers(1, 4))
def test_the_loss_does_not_change_when_everything_turns(seed, degree):
    task = drawn(seed, orders=6)
    network = TwoLayer(3, 5, 1, activation=f"power-{degree}", seed=seed)
    turn, _ = np.linalg.qr(np.random.default_rng(seed + 1).normal(size=(3, 3)))
    rows = np.column_stack([network.first.T @ turn.T, network.second])
    turned = MultiIndex(task.links, task.directions @ turn.T).loss(network.with_neurons(rows))
    np.testing.assert_allclose(turned, task.loss(network), rtol=1e-10)


def test_further_inputs_that_nothing_depends_on_do_not_matter():
    task = drawn(1, orders=6)
    network = TwoLayer(3, 5, 1, activation="power-3", seed=0)
    wider = MultiIndex(task.links, np.pad(task.directions, ((0, 0), (0, 97))))
    rows = np.column_stack([network.first.T, np.zeros((5, 97)), network.second])
    widened = TwoLayer(100, 5, 1, activation="power-3").with_neurons(rows)
    np.testing.assert_allclose(wider.loss(widened), task.loss(network), rtol=1e-12)


def test_orders_that_the_activation_lacks_add_a_constant():
    directions = np.eye(3)[:1]
    network = TwoLayer(3, 4, 1, activation="quadratic", seed=0)
    plain = MultiIndex([[0.3, 0.0, 0.7]], directions).loss(network)
    # ½ (1! 2² + 3! 0.5²) = 2.75
    np.testing.assert_allclose(MultiIndex([[0.3, 2.0, 0.7, 0.5]], directions).loss(network), plain + 2.75, rtol=1e-12)


def test_a_fitting_network_has_no_loss_and_still_a_curvature():
    task = MultiIndex(
        np.multiply.outer([1.0, -0.3, 0.1], [1.0, 0.0, 1.0]), np.linalg.qr(np.ones((4, 4)) + np.eye(4))[0][:3]
    )
    network = TwoLayer(4, 3, 1, activation="quadratic")
    network = network.with_neurons(np.column_stack([task.directions, [1.0, -0.3, 0.1]]))

    def loss(coefficients):
        return task.loss(network.weighted(coefficients))

    value, slope, curvature = jit(lambda at: (loss(at), jax.grad(loss)(at), jax.hessian(loss)(at)))(np.ones(3))
    assert 0 <= float(value) < 1e-14
    np.testing.assert_allclose(slope, 0, atol=1e-14)
    # E f_i f_j of a_i z_i²: three times the squares of a_i on the diagonal, their products elsewhere.
    strengths = np.array([1.0, -0.3, 0.1])
    expected = np.outer(strengths, strengths) * (1 + 2 * np.eye(3))
    np.testing.assert_allclose(curvature, expected, atol=1e-12)


def test_a_record_hears_what_the_task_is():
    task = drawn(0)
    assert task.attributes()["input_dimension"] == 3
    assert "2 of 3 directions" in task.description[0]


BAD = [
    ({"directions": [[1.0, 0.1]]}, "directions"),
    ({"directions": [[1.0, 0.0], [1.0, 0.0]], "links": [[1.0], [1.0]]}, "directions"),
    ({"directions": np.zeros((0, 2))}, "directions"),
    ({"directions": [[np.nan, 0.0]]}, "directions"),
    ({"links": [[1.0], [2.0]]}, "links"),
    ({"links": [[np.inf]]}, "links"),
    ({"links": [[]]}, "links"),
    ({"links": [1.0]}, "links"),
]


@pytest.mark.parametrize(("bad", "argument"), BAD)
def test_bad_arguments_are_refused_by_name(bad, argument):
    good = {"links": [[0.0, 1.0]], "directions": [[0.0, 1.0]]}
    with pytest.raises(InputError) as refusal:
        MultiIndex(**(good | bad))
    assert refusal.value.argument == argument


@pytest.mark.parametrize(
    "network",
    [
        TwoLayer(3, 2, 1, activation="relu"),
        TwoLayer(3, 2, 1, activation="relu-power-2"),
        TwoLayer(3, 2, 2, activation="quadratic"),
        TwoLayer(4, 2, 1, activation="quadratic"),
        lambda x: x,
    ],
)
def test_networks_outside_the_domain_are_refused(network):
    with pytest.raises(InputError) as refusal:
        drawn(0).loss(network)
    assert refusal.value.argument == "network"

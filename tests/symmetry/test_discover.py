from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
from symmetry.zoo import NETWORKS, attention, deep_linear, hyperbolic

from dynascope.errors import InputError
from dynascope.symmetry import cross_check, discover, find_symmetries

LARGEST = (3, 3, 4)  # of n, m and r


def one_unit_out(p, x):
    return jax.nn.relu(x @ p["W"] + p["b"]) @ p["a"]


def weights(*shapes):
    return [np.random.default_rng(0).normal(size=shape) for shape in shapes]


HEAD = dict(zip("QKVO", weights(*[(2, 2)] * 4), strict=True))
NEURONS = dict(zip(("W", "b", "a"), weights((2, 2), (2,), (2, 1)), strict=True))
REFERENCE = {
    "ReLU 2-2-1": (one_unit_out, NEURONS, (12, 2), (6, 6), 2),
    "tanh 2-2-1": (hyperbolic, NEURONS, (12, 2), (8,), 0),
    "linear 2-2-2": (deep_linear, weights((2, 2), (2, 2)), (6, 2), (4, 5, 5), 3),
    "linear 2-2-2-2": (deep_linear, weights((2, 2), (2, 2), (2, 2)), (6, 2), (4, 6, 6), 6),
    "one head": (attention, HEAD, (4, 2), (8, 10, 10), 6),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REFERENCE)
def test_ranks_are_those_of_the_ledger_level_by_level(name):
    apply, params, shape, ranks, laws = REFERENCE[name]
    found = discover(apply, params, np.random.default_rng(1).normal(size=shape))
    assert (found.ranks, found.laws, found.charges) == (ranks, laws, laws)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["deep ReLU", "tied embedding"])
def test_what_holds_only_where_a_unit_is_dead_is_no_law(name):
    # At most random points one of the second layer's units is dead for all inputs.
    found = discover(*NETWORKS[name][:3])
    assert found.laws == found.charges == NETWORKS[name].charges


@pytest.mark.parametrize(("name", "kinds"), [("ReLU", (2, 2, 0)), ("two-layer linear", (4, 3, 1)), ("tanh", (0, 0, 0))])
def test_generators_of_each_kind_are_as_many_as_the_ledger_counts(name, kinds):
    found = discover(*NETWORKS[name][:3], levels=0)
    assert (found.affine, len(found.generators.shifts), found.rotations) == kinds


def test_a_shift_that_a_scale_compensates_conserves_a_charge_that_gradients_show():
    # b → b + s and c → c exp(−s) keep Σ c exp(a x + b), and b − c²/2 of each unit is conserved.
    def apply(p, x):
        return jnp.exp(x @ p["a"] + p["b"]) @ p["c"]

    random = np.random.default_rng(0)
    params = {name: 0.5 * random.normal(size=shape) for name, shape in (("a", (1, 2)), ("b", (2,)), ("c", (2,)))}
    inputs = random.normal(size=(12, 1))
    found = discover(apply, params, inputs, levels=3)
    assert found.laws == found.charges == 2
    for matrix, shift in zip(found.generators.matrices, found.generators.shifts, strict=True):
        # In the order a, b, c: G acts on c alone, and the shift of b is its opposite.
        np.testing.assert_allclose(np.diag(matrix)[4:], -shift[2:4], atol=1e-9)
        np.testing.assert_allclose(matrix, np.diag([0, 0, 0, 0, *np.diag(matrix)[4:]]), atol=1e-9)
    # The program does not show it, and the comparison says so.
    both = cross_check(find_symmetries(apply, params, inputs), found, params)
    assert re.findall(r"\d+", str(both)) == ["2", "0", "2"]

    targets = jnp.asarray(np.sin(inputs[:, 0]))

    def flow(_, theta):
        a, b, c = jnp.split(theta, [2, 4])
        grads = jax.grad(lambda p: ((apply(p, inputs) - targets) ** 2).mean())({"a": a[None], "b": b, "c": c})
        return -np.concatenate([np.ravel(grads[name]) for name in "abc"])

    with jax.enable_x64(True):
        start = np.concatenate([np.ravel(params[name]) for name in "abc"])
        path = scipy.integrate.solve_ivp(flow, (0, 5), start, rtol=1e-10, atol=1e-12).y.T
    charges = path[:, 2:4] - path[:, 4:] ** 2 / 2
    assert np.abs(path[-1] - path[0]).max() > 0.1
    np.testing.assert_allclose(charges, charges[:1] + 0 * charges, atol=1e-8)


def test_the_generator_of_a_quadratic_neuron_is_that_of_the_ledger():
    (generator,) = discover(*NETWORKS["quadratic neuron"][:3], levels=0).generators.matrices
    # Parameters in the order a, w; the ledger has w first, and any factor.
    np.testing.assert_allclose(generator / generator[1, 1], np.diag([-2.0, 1.0, 1.0]), atol=1e-10)


def test_a_norm_gain_into_linear_consumers_has_two_charges():
    found = discover(
        lambda p, x: (p["gain"] * jnp.tanh(x)) @ p["A"], dict(zip(("gain", "A"), weights((2,), (2, 2)), strict=True)),
        np.ones((5, 2)), levels=0,
    )  # fmt: skip
    assert (found.charges, len(found.generators.shifts)) == (2, 2)


def masked_product(p, x):
    u, v = (p[name] * p[f"{name} used"] for name in "UV")
    return u @ v.T + 0.0 * x


def closed_form(n, m, r):
    s = n + m
    return r * (r + 1) // 2 if s >= r else s * (2 * r + 1 - s) // 2


@pytest.mark.slow
def test_two_layer_linear_networks_of_twenty_sizes_have_as_many_laws_as_the_closed_form():
    random = np.random.default_rng(5)
    sizes = [(1, 1, 1), (1, 1, 2), (2, 2, 2), (2, 1, 2), (3, 2, 2), (1, 1, 3), (2, 1, 4)]
    sizes += [tuple(map(int, random.integers(1, LARGEST, endpoint=True))) for _ in range(13)]
    counted = []
    for n, m, r in sizes:
        # Masks stand for the sizes, so that one program serves all of them.
        used = np.arange(3)[:, None] < n, np.arange(3)[:, None] < m
        columns = np.arange(4) < r
        params = {"U": np.ones((3, 4)), "V": np.ones((3, 4))}
        params |= {"U used": used[0] & columns, "V used": used[1] & columns}
        found = discover(masked_product, params, np.ones(()))
        counted.append(found.laws - found.dead.sum())
        assert found.dead.sum() == 24 - (n + m) * r
    assert counted == [closed_form(*size) for size in sizes]
    assert counted[:7] == [1, 3, 3, 3, 3, 5, 9]


def test_products_of_linear_charges_are_counted_once():
    found = discover(
        lambda p, x: jax.nn.log_softmax(x @ p["W"] + p["b"]),
        dict(zip(("W", "b"), weights((2, 3), (3,)), strict=True)), np.ones((6, 2)), levels=0,
    )  # fmt: skip
    assert (len(found.generators.shifts), found.charges) == (9, 3)


def test_parameters_without_a_gradient_are_conserved_and_no_generators_of_others():
    found = discover(*NETWORKS["batch norm"][:3], levels=0)
    assert found.dead.sum() == 3
    assert (len(found.generators.shifts), found.charges) == (3, 6)


def test_a_rank_without_a_gap_is_told_with_its_singular_values():
    def nearly(p, x):
        return x * p["a"] * p["b"] + 1e-9 * x**2 * p["a"] ** 2

    with pytest.raises(InputError, match="ambiguous") as told:
        discover(nearly, dict(zip("ab", weights((1,), (1,)), strict=True)), np.ones((3, 1)), levels=0)
    assert told.value.value is not None


def test_what_does_not_fit_into_the_memory_is_refused():
    apply, params, inputs, _ = NETWORKS["ReLU"]
    needed = discover(apply, params, inputs, levels=0).memory
    with pytest.raises(InputError, match="memory"):
        discover(apply, params, inputs, levels=0, memory=needed - 1)
    with pytest.raises(InputError, match="numbers, but at most 60"):
        discover(lambda p, x: x @ p, np.ones((10, 10)), np.ones((2, 10)))

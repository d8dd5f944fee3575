from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.linalg import qr

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.networks.balanced_linear import balanced_linear
from dynascope.theory import LayerRates
from dynascope.theory.balanced import gram, loss, ntk, product

TURN = np.array([[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]])
FIRST = np.array([[1.0, 0, 0], [0, 0.5, 0]]).T
SECOND = (TURN @ np.diag([2**0.5, 1.25**0.5])).T
MAP = np.array([[1, 0.5, -0.25], [0, -1, 0.5]]).T


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


def trained(first, second, target, times, rates=(1.0, 1.0)):
    """W₁ and W₂ by direct integration of gradient flow."""
    split = first.size

    def velocity(_, weights):
        w1, w2 = weights[:split].reshape(first.shape), weights[split:].reshape(second.shape)
        error = w1 @ w2 - target
        return -np.concatenate([(rates[0] * error @ w2.T).ravel(), (rates[1] * w1.T @ error).ravel()])

    start = np.concatenate([first.ravel(), second.ravel()])
    path = solve_ivp(velocity, (0, times[-1]), start, "DOP853", times, rtol=1e-12, atol=1e-14).y.T
    return path[:, :split].reshape(-1, *first.shape), path[:, split:].reshape(-1, *second.shape)


@pytest.mark.slow
def test_golden_numbers():
    # Given with 12 digits.
    found = jax.device_get(gram(FIRST, SECOND, MAP, np.array([0.7])))
    expected = [[1.065107920545, 0.275973593029, -0.16731375483], [0.070512197397, -0.30974377057, 0.27822780045]]
    np.testing.assert_allclose(found.product[0].T, expected, rtol=0, atol=1e-11)
    np.testing.assert_allclose(np.diag(found.first[0]), [0.666598925796, 0.124882577074, 0.081984924168], atol=1e-11)
    np.testing.assert_allclose(
        found.second[0], [[1.719707677693, -0.030387168144], [-0.030387168144, 1.153758749344]], atol=1e-11
    )
    assert float(found.balance.value) == pytest.approx(1.0, abs=1e-14)
    assert float(loss(FIRST, SECOND, MAP, np.array([0.7]))[0]) == pytest.approx(0.29593621411, abs=1e-10)
    kernel = ntk(FIRST, SECOND, MAP, np.array([0.7]), np.eye(3))[0]
    assert float(np.trace(kernel)) == pytest.approx(10.3673321352, abs=1e-9)
    end = np.asarray(ntk(FIRST, SECOND, MAP, np.array([0.0, 60.0]), np.eye(3)))
    cosine = np.sum(end[0] * end[1]) / np.linalg.norm(end[0]) / np.linalg.norm(end[1])
    assert 1 - cosine == pytest.approx(0.0571701084851, abs=1e-11)


@pytest.mark.slow
# Unequal widths, a bottleneck, wide layers (λ = 0), both signs, and a map without full rank.
@pytest.mark.parametrize(
    ("shape", "balance", "rank"),
    [((3, 2, 4), 0.8, 3), ((4, 2, 2), -1.5, 2), ((3, 6, 2), 0.0, 2), ((4, 1, 3), 0.3, 3), ((3, 3, 3), -0.4, 1)],
)
@pytest.mark.parametrize("rates", [(1.0, 1.0), (0.4, 2.5)])
def test_agrees_with_direct_integration(shape, balance, rank, rates):
    draw = np.random.default_rng(7)
    network = balanced_linear(*shape, balance=balance, scale=0.6, seed=1)
    ratio = (rates[0] / rates[1]) ** 0.25
    first, second = network.first * ratio, network.second / ratio
    target = draw.normal(size=(shape[0], rank)) @ draw.normal(size=(rank, shape[2]))
    times = np.array([0.0, 0.3, 1.0, 2.5, 4.0])
    found = gram(first, second, target, times, rates=LayerRates(*rates))
    w1, w2 = trained(first, second, target, times, rates)
    for mine, theirs in zip(found, (w1 @ np.swapaxes(w1, 1, 2), w1 @ w2, np.swapaxes(w2, 1, 2) @ w2), strict=False):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-9)


def by_orthogonal_factors(first, second, target, balance, time):
    """Q Qᵀ in one step: G (I + Gᵀ G)⁻¹ Gᵀ = Q₁ Q₁ᵀ for the upper block of the QR factor of (G; I)."""
    inputs, outputs = target.shape
    drift = np.block([[-balance / 2 * np.eye(inputs), target], [target.T, balance / 2 * np.eye(outputs)]])
    values, vectors = np.linalg.eigh(drift)
    left, sizes, _ = np.linalg.svd(vectors.T @ np.concatenate([first, second.T]), full_matrices=False)
    start = left * sizes
    decay = -np.expm1(-2 * np.abs(values) * time) / (2 * np.abs(values))
    growth = np.maximum(values, 0) * time + np.log(decay) / 2
    shift = max(0.0, growth.max())
    stacked = np.concatenate([np.exp(growth - shift)[:, None] * start, np.exp(-shift) * np.eye(start.shape[1])])
    order = np.argsort(-np.abs(stacked).max(axis=1))
    turned = np.empty_like(stacked)
    turned[order] = qr(stacked[order], mode="economic", pivoting=True)[0]
    factor = vectors @ (np.exp(values * time - growth)[:, None] * turned[: len(values)])
    return factor @ factor.T


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.6, 1e-3])
def test_agrees_with_orthogonal_factors_in_one_step(scale):
    network = balanced_linear(3, 2, 4, balance=0.8, scale=scale, seed=1)
    target = np.random.default_rng(7).normal(size=(3, 4))
    times = np.array([0.3, 4.0, 60.0])
    found = jax.device_get(gram(network.first, network.second, target, times))
    for place, time in enumerate(times):
        expected = by_orthogonal_factors(network.first, network.second, target, 0.8, time)
        mine = np.block([[found.first[place], found.product[place]], [found.product[place].T, found.second[place]]])
        # Both lose a few digits to growth by exp(Ft).
        np.testing.assert_allclose(mine, expected, rtol=0, atol=1e-11)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6), st.floats(-2, 2), st.floats(0.05, 1.5))
def test_any_start_and_map_follow_the_flow(seed, balance, scale):
    network = balanced_linear(3, 2, 3, balance=balance, scale=scale, seed=seed)
    target = np.random.default_rng(seed).normal(size=(3, 3))
    times = np.array([0.0, 0.5, 3.0])
    w1, w2 = trained(network.first, network.second, target, times)
    # Steps that suit every draw, so that there is one program.
    found = gram(network.first, network.second, target, times, steps=8)
    np.testing.assert_allclose(found.product, w1 @ w2, rtol=0, atol=1e-7)
    # The equation is invariant under rotations of inputs and outputs.
    turn, other = np.linalg.qr(np.random.default_rng(seed + 1).normal(size=(2, 3, 3)))[0]
    turned = gram(turn @ network.first, network.second @ other, turn @ target @ other, times, steps=8)
    np.testing.assert_allclose(turned.product, turn @ found.product @ other, rtol=0, atol=1e-9)


@pytest.mark.slow
def test_a_staircase_from_a_tiny_start():
    network = balanced_linear(3, 3, 3, scale=1e-3, seed=2)
    target = np.diag([3.0, 1.5, 0.7])
    times = np.linspace(0, 25, 26)
    w1, w2 = trained(network.first, network.second, target, times)
    found = product(network.first, network.second, target, times)
    # Direct integration keeps relative errors of 1e-12, which grow on each plateau.
    np.testing.assert_allclose(found, w1 @ w2, rtol=0, atol=1e-7)
    assert np.all(np.diff(loss(network.first, network.second, target, times)) <= 1e-12)


@pytest.mark.slow
def test_times_may_come_in_any_order_and_be_huge():
    times = np.array([3.0, 0.0, 1e4, 0.7])
    found = product(FIRST, SECOND, MAP, times)
    np.testing.assert_allclose(found[3], product(FIRST, SECOND, MAP, np.array([0.7]))[0], rtol=0, atol=1e-13)
    np.testing.assert_allclose(found[1], FIRST @ SECOND, rtol=0, atol=1e-14)
    np.testing.assert_allclose(found[2], MAP, rtol=0, atol=1e-12)
    with pytest.raises(InputError, match="times"):
        product(FIRST, SECOND, MAP, np.array([1e9]))


@pytest.mark.slow
def test_bottlenecks_keep_their_rank():
    network = balanced_linear(4, 2, 4, balance=0.5, scale=0.5, seed=3)
    target = np.diag([2.0, 1.0, 0.9, 0.1])
    found = np.asarray(product(network.first, network.second, target, np.array([400.0]))[0])
    np.testing.assert_allclose(found, np.diag([2.0, 1.0, 0, 0]), atol=1e-9)


@pytest.mark.slow
def test_many_members_are_those_one_by_one():
    networks = [balanced_linear(3, 2, 2, balance=b, scale=0.5, seed=s) for s, b in enumerate((-1.0, 0.0, 2.0))]
    first, second = (np.stack([getattr(each, name) for each in networks]) for name in ("first", "second"))
    times = np.array([0.2, 1.7])
    together = jax.device_get(gram(first, second, MAP, times))
    assert together.product.shape == (3, 2, 3, 2)
    for place, network in enumerate(networks):
        alone = gram(network.first, network.second, MAP, times)
        np.testing.assert_allclose(together.first[place], alone.first, rtol=0, atol=1e-12)
        np.testing.assert_allclose(together.balance.value[place], alone.balance.value, atol=1e-14)


@pytest.mark.slow
def test_it_has_derivatives_where_eigenvalues_coincide():
    # Four inputs and one output: the eigenvalue −λ/2 of F is threefold.
    network = balanced_linear(4, 1, 1, balance=0.5, scale=0.5, seed=4)
    target = np.random.default_rng(0).normal(size=(4, 1))

    @jit
    @functools.partial(jax.value_and_grad, argnums=(0, 1))
    def error(first, target):
        return jnp.sum(product(first, network.second, target, np.array([1.3]), approximate=True, steps=3) ** 2)

    _, slopes = jax.device_get(error(np.asarray(network.first), target))
    for place, slope in enumerate(slopes):
        arguments = [np.array(network.first), target]
        for i in range(4):
            ends = []
            for sign in (1, -1):
                moved = [each.copy() for each in arguments]
                moved[place][i, 0] += sign * 1e-6
                ends.append(float(error(*moved)[0]))
            # Central differences leave 1e-12 from the third derivative and 1e-10 from rounding.
            assert slope[i, 0] == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-8)


@pytest.mark.slow
def test_weights_of_32_bits_are_followed_at_times_of_64():
    first, second = FIRST.astype(np.float32), SECOND.astype(np.float32)
    found = gram(first, second, MAP.astype(np.float32), np.array([0.5]))
    assert found.product.dtype == np.float64
    # The weights of 32 bits are rounded.
    np.testing.assert_allclose(found.product, product(FIRST, SECOND, MAP, np.array([0.5])), rtol=0, atol=1e-6)


def test_rates_whose_product_is_no_number_change_the_unit_of_time_only():
    found = product(FIRST, SECOND, MAP, np.array([0.5e200]), rates=LayerRates(1e-200, 1e-200))
    np.testing.assert_allclose(found, product(FIRST, SECOND, MAP, np.array([0.5])), rtol=1e-12)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"first": FIRST * 1.1}, "second"),
        ({"first": FIRST[:, :1]}, "second"),
        ({"first": FIRST[:, 0]}, "first"),
        ({"target_map": MAP.T}, "target_map"),
        ({"times": np.array([-1.0])}, "times"),
        ({"times": np.ones((2, 2))}, "times"),
        ({"times": np.array([])}, "times"),
        # λ > 0 needs as many outputs as hidden neurons: here three, and two.
        ({"first": np.zeros((3, 3)), "second": np.eye(3, 2)}, "second"),
        ({"second": SECOND * np.nan}, "second"),
        ({"rates": LayerRates(first=0.0)}, "rates.first"),
        ({"target_power": 0.1}, "target_power"),
    ],
)
def test_bad_input_is_named(change, argument):
    arguments = {"first": FIRST, "second": SECOND, "target_map": MAP, "times": np.array([1.0]), **change}
    with pytest.raises(InputError) as caught:
        loss(**arguments)
    assert caught.value.argument == argument


@pytest.mark.slow
def test_unbalanced_weights_are_taken_only_when_asked_for():
    draw = np.random.default_rng(0)
    first, second = draw.normal(size=(3, 2)), draw.normal(size=(2, 2))
    with pytest.raises(InputError, match="approximate"):
        gram(first, second, MAP, np.array([1.0]))
    with pytest.warns(UserWarning, match="differs from λ I by") as told:
        rough = gram(first, second, MAP, np.array([1.0]), approximate=True)
    assert f"{float(rough.balance.error):.3g}" in str(told[0].message)
    assert float(rough.balance.error) > 0.01


@jit
def kernel(first, target_map, times, rate):
    options = {"rates": LayerRates(rate, rate), "steps": 2}
    return gram(first, SECOND, target_map, times, **options), ntk(
        first, SECOND, target_map, times, np.eye(3), **options
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [{"first": FIRST * np.nan}, {"first": FIRST * 1.1}, {"target_map": MAP * np.inf}, {"rate": 0.0}, {"rate": -1.0}],
)
def test_values_outside_the_domain_give_nan_where_they_are_traced(change):
    given = {"first": FIRST, "target_map": MAP, "times": np.array([0.5, 1.0]), "rate": 1.0}
    inside, outside = kernel(**given), kernel(**given | change)
    assert all(np.isfinite(each).all() for each in jax.tree.leaves(inside))
    assert all(np.isnan(each).all() for each in (*outside[0][:3], outside[1]))


@pytest.mark.slow
def test_steps_that_are_given_ask_for_times_that_increase():
    times = np.array([0.5, 0.2, 1.0])
    with pytest.raises(InputError, match="decrease") as caught:
        product(FIRST, SECOND, MAP, times, steps=2)
    assert caught.value.argument == "times"
    found = jit(lambda times: product(FIRST, SECOND, MAP, times, steps=2))(times)
    assert np.isnan(found).all(axis=(1, 2)).tolist() == [False, True, True]


@pytest.mark.parametrize(
    "arguments",
    [
        {"second": 1e4 * np.eye(2), "approximate": True, "steps": 500},
        {"target_map": 1e4 * np.eye(2), "steps": 500},
        {"times": np.array([0.5, 1e3]), "steps": 10},
        {"rates": LayerRates(1e3, 1e3), "steps": 7},
    ],
)
def test_too_few_steps_are_rejected_with_a_number_that_suffices(arguments):
    given = {"first": np.eye(2), "second": np.eye(2), "target_map": np.eye(2), "times": np.array([1.0])} | arguments
    with pytest.raises(InputError, match=f"steps is {given['steps']},") as refusal:
        product(**given)
    assert (refusal.value.argument, refusal.value.value) == ("steps", given["steps"])
    with pytest.raises(InputError) as refusal:
        loss(**given)
    assert refusal.value.argument == "steps"
    # Where values are traced, the result is not a rough one but none.
    traced = jit(lambda target_map: product(**given | {"target_map": target_map}))(given["target_map"])
    assert np.isnan(traced[-1]).all()


def test_the_suggested_number_of_steps_gives_the_result_of_steps_that_are_found():
    given = {"first": 0.01 * TURN, "second": 0.01 * np.eye(2), "target_map": 40 * np.eye(2) + MAP[:2], "times": [3.0]}
    with pytest.raises(InputError, match="steps") as refusal:
        product(**given, steps=3)
    enough = int(refusal.value.remedy.split()[3])
    np.testing.assert_allclose(product(**given, steps=enough), product(**given), rtol=1e-12)
    with pytest.raises(InputError, match="e-folds"):
        product(**given, steps=enough // 5)


def test_second_derivatives_are_rejected_but_in_the_times():
    def end(target_map, time):
        return jnp.sum(product(FIRST, SECOND, target_map, jnp.array([1.0]) * time, steps=4))

    with pytest.raises(InputError, match="differentiated twice") as refusal:
        jax.hessian(end)(MAP, 1.0)
    assert refusal.value.argument == "target_map"
    step, speed = 1e-5, jax.grad(end, argnums=1)
    expected = (speed(MAP, 1 + step) - speed(MAP, 1 - step)) / (2 * step)
    assert jax.hessian(end, argnums=1)(MAP, 1.0) == pytest.approx(float(expected), rel=1e-6)


def test_times_that_need_too_many_steps_are_rejected_with_the_latest_that_does_not():
    with pytest.raises(InputError, match="choose times up to 4e\\+04") as refusal:
        product(np.eye(2), np.eye(2), 100 * np.eye(2), [1e6])
    assert refusal.value.argument == "times"


def test_layers_and_maps_of_zero_stay_zero_at_all_times():
    for steps in (None, 1):
        found = product(np.zeros((2, 2)), np.zeros((2, 2)), np.zeros((2, 2)), [1.0, 1e9], steps=steps)
        np.testing.assert_array_equal(found, np.zeros((2, 2, 2)))


@pytest.mark.parametrize(("size", "width"), [(1, 1), (2, 2), (3, 5)])
def test_layers_with_a_determinant_of_the_wrong_sign_stay_at_the_saddle(size, width):
    draw = np.random.default_rng(size)
    left, right = (qr(draw.normal(size=(size, size)))[0] for _ in range(2))
    hidden = qr(draw.normal(size=(width, width)))[0][:, :size]
    strengths = np.diag(np.sqrt(draw.uniform(0.3, 1.0, size)))
    first, second, target = left @ strengths @ hidden.T, hidden @ strengths @ right.T, draw.normal(size=(size, size))
    if np.linalg.det(left @ right.T) * np.linalg.det(target) > 0:
        target[0] *= -1
    least = np.linalg.svd(target, compute_uv=False)[-1]
    # Rounding alone would leave the saddle after 37 e-folds, 1/least each.
    times = np.array([0.5, 2.0, 30 / least, 300 / least])
    with pytest.warns(UserWarning, match="stops at a saddle"):
        found = product(first, second, target, times)
    first_path, second_path = trained(first, second, target, times[:2])
    np.testing.assert_allclose(found[:2], first_path @ second_path, atol=1e-9)
    assert np.sum((found[-1] - target) ** 2) == pytest.approx(least**2, rel=1e-9)

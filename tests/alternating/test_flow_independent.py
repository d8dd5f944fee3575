from __future__ import annotations

import functools
import itertools
import math

import equinox as eqx
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from dynascope.alternating import PhaseRules, alternating_flow
from dynascope.errors import InputError
from dynascope.networks import BiasedTwoLayer, DiagonalLinear, NeuronSum, TwoLayer
from dynascope.tasks import Task

# Alternating gradient flows, section 2, golden set A, four times over: the sizes are those of the other tests of the
# flow, so that their programs serve here.
X = np.tile([[1, -0.75, -0.15, -0.43], [0.85, 0.94, -0.97, -0.96], [-0.99, 0.96, 0.7, -0.15]], (4, 1))
Y = np.tile([-0.39, -1.15, 1.98], 4)
TIMES = {
    1e-4: [0.935446779570, 2.352420478104, 4.880814026465, 13.193767872768],
    1e-8: [0.918485177206, 2.309766185402, 4.792314682047, 12.954537326221],
}
LEVELS = [0.89916666666667, 0.21626950035768, 0.11543425308171, 0.02130584129321, 0.0]


@functools.cache
def power(degree):
    """θ^κ x of one weight, homogeneous of degree κ."""
    return lambda weights, x: x * weights[0] ** degree


def two_layer(first, second, activation):
    network = TwoLayer(first.shape[0], first.shape[1], second.shape[1], activation=activation)
    return eqx.tree_at(lambda tree: (tree.first, tree.second), network, (first, second))


@pytest.mark.parametrize("sign", [1, -1])
def test_quadratic_neurons_learn_nothing_of_an_odd_target_and_the_even_part_of_another(sign):
    half = np.random.default_rng(0).normal(size=(40, 3))
    inputs = np.concatenate([half, sign * half])
    targets = np.concatenate([half[:, :1], sign * half[:, :1]])
    staircase = alternating_flow(Task(inputs, targets), TwoLayer(3, 20, 1, activation="quadratic"), scale=1e-3, jumps=1)
    assert staircase.sizes["jump"] == (1 if sign > 0 else 0)
    assert any("uncorrelated" in warning for warning in staircase.attrs["warnings"]) == (sign < 0)


def test_hidden_biases_are_the_weights_of_a_constant_input():
    draw = np.random.default_rng(0)
    inputs, inner = draw.normal(size=(30, 2)), TwoLayer(3, 12, 1, activation="relu")
    targets = np.maximum(inputs[:, :1] + 0.5, 0)
    constant = np.concatenate([inputs, np.ones((30, 1))], axis=1)
    one = alternating_flow(Task(constant, targets), inner, scale=1e-4, jumps=1)
    other = alternating_flow(Task(inputs, targets), BiasedTwoLayer(inner), scale=1e-4, jumps=1)
    np.testing.assert_allclose(other["jump_time"], one["jump_time"], rtol=1e-9)
    np.testing.assert_allclose(other["loss_after"], one["loss_after"], rtol=1e-6, atol=1e-9)


def test_an_output_bias_learns_the_mean_before_the_first_jump():
    draw = np.random.default_rng(0)
    inputs, inner = draw.normal(size=(30, 2)), TwoLayer(2, 12, 1, activation="relu")
    inner = eqx.tree_at(lambda each: each.first, inner, np.abs(inner.first))
    targets = np.maximum(inputs[:, :1], 0)
    networks = BiasedTwoLayer(inner, np.zeros(1), has_hidden_biases=False), inner
    one, other, plain = (
        alternating_flow(Task(inputs, targets + shift), network, scale=1e-4, jumps=1)
        for shift, network in ((0.0, networks[0]), (2.0, networks[0]), (0.0, networks[1]))
    )
    # The bias absorbs every shift of the targets, and the initial level is half their variance.
    np.testing.assert_allclose(other["jump_time"], one["jump_time"], rtol=1e-9)
    np.testing.assert_allclose(one["loss_before"][0], np.var(targets) / 2)
    # With its optimal bias, the utility of a neuron is its covariance with the targets.
    assert float(one["jump_time"][0]) > 1.05 * float(plain["jump_time"][0])


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-4, 1e-8])
def test_the_diagonal_network_jumps_at_the_times_and_levels_of_the_ledger(scale):
    found = alternating_flow(Task(X, Y[:, None]), DiagonalLinear(4), scale=scale)
    # The docstring lets a cost phase end within 1e-5 of the initial loss; the times feel the levels before them.
    np.testing.assert_allclose(found["loss_before"], LEVELS[:-1], atol=2e-5 * LEVELS[0])
    np.testing.assert_allclose(found["loss_after"], LEVELS[1:], atol=2e-5 * LEVELS[0])
    np.testing.assert_allclose(found["accelerated_time"], TIMES[scale], rtol=1e-3)
    unit = math.log(1 / scale)
    np.testing.assert_allclose(found["jump_time"], unit * found["accelerated_time"].to_numpy(), rtol=1e-12)


@pytest.mark.slow
def test_the_time_between_two_scales_is_that_of_integrated_gradient_flow():
    def midpoint_times(scale):
        size = 2 * math.log(scale)

        def coefficients(g):
            return 0.25 * (np.exp(size + 2 * g) - np.exp(size - 2 * g))

        def slope(_, g):
            return X.T @ (Y - X @ coefficients(g)) / 12

        def jacobian(_, g):
            return -X.T @ X / 12 * 0.5 * (np.exp(size + 2 * g) + np.exp(size - 2 * g))

        def crossing(level):
            def event(_, g):
                return np.sum((Y - X @ coefficients(g)) ** 2) / 24 - level

            event.direction = -1
            return event

        events = [crossing((one + other) / 2) for one, other in itertools.pairwise(LEVELS[:4])]
        end = 6 * math.log(1 / scale)
        options = {"method": "Radau", "jac": jacobian, "rtol": 1e-8, "atol": 1e-10, "max_step": 1.0}
        run = solve_ivp(slope, (0, end), np.zeros(4), events=events, **options)
        return np.array([times[0] for times in run.t_events])

    scales = (1e-10, 1e-12)
    early, late = (alternating_flow(Task(X, Y[:, None]), DiagonalLinear(4), scale=scale, jumps=3) for scale in scales)
    slopes = (late["jump_time"] - early["jump_time"]).to_numpy()
    observed = midpoint_times(scales[1]) - midpoint_times(scales[0])
    # Constants cancel in the difference; the ledger finds what remains of order 1e-4 at these scales.
    np.testing.assert_allclose(slopes, observed, rtol=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("degree", "normalised"), [(4, False), (4, True), (3, True)])
def test_a_neuron_with_one_weight_reaches_the_threshold_at_the_time_in_closed_form(degree, normalised):
    # U = θ^κ m with m = E[x y]: d log θ/dt = κ m θ^(κ−2), or κ m in the normalised flow.
    x = np.array([[1.0], [-2.0], [0.5]])
    y, scale, start, threshold = 1.5 * x, 1e-3, 0.7, 0.4
    moment, small, initial_loss = float(np.mean(x * y)), scale * start, float(np.mean(y**2)) / 2
    found = alternating_flow(
        Task(x, y),
        NeuronSum(np.array([[start]]), power(degree), degree=degree),
        scale=scale,
        rules=PhaseRules(threshold=threshold),
        normalised=normalised,
    )
    if normalised:
        expected = math.log(threshold / small) / (degree * moment)
    else:
        expected = (small ** (2 - degree) - threshold ** (2 - degree)) / (degree * (degree - 2) * moment)
    assert found.sizes["jump"] == 1
    # What the engine's own integration of the dormant phase may miss.
    np.testing.assert_allclose(found["jump_time"], expected, rtol=1e-4)
    np.testing.assert_allclose(found["growth_rate"], degree * moment, rtol=1e-6)
    np.testing.assert_allclose(found["loss_before"], initial_loss, rtol=1e-12)
    # A cost phase may end 1e-5 of the initial loss early.
    np.testing.assert_allclose(found["loss_after"], 0, atol=2e-5 * initial_loss)
    assert found.attrs["complete"]


@pytest.mark.slow
def test_a_whitened_linear_network_learns_its_modes_in_order_of_their_strength():
    # Section 3: Σyx golden, inputs white; y has 0.1 more than the network can learn.
    moment = np.array([[2, 0.3, -0.1], [0.2, 1.2, 0.25], [0.1, -0.3, 0.7]])
    inputs = np.eye(4)[:, :3] * 2.0
    targets = inputs @ moment.T
    targets[3] = [math.sqrt(4 * 0.1), 0, 0]  # on a sample without input
    strengths = np.linalg.svd(moment, compute_uv=False)
    random = np.random.default_rng(0)
    network = two_layer(random.standard_normal((3, 5)) / 2, random.standard_normal((5, 3)) / 2, "linear")
    found = alternating_flow(Task(inputs, targets), network, scale=[1e-10, 1e-13])
    levels = [1.01815657227, 0.326825283709, 0.05]
    for scale in range(2):
        np.testing.assert_allclose(found["loss_after"].isel(scale=scale), levels, atol=2e-5 * 3.16625)
    slopes = found["jump_time"].diff("scale").to_numpy().ravel() / math.log(1e3)
    # Both are leading order in 1/λ; the constants cancel.
    np.testing.assert_allclose(slopes, 1 / strengths, rtol=1e-2)


@pytest.mark.slow
def test_a_relu_network_on_orthogonal_inputs_learns_one_sign_of_the_targets_and_then_the_other():
    # Section 7.3.
    lengths, targets = np.array([1.0, 1.2, 0.9, 1.1]), np.array([1.5, 1.0, -0.8, -0.9])
    random = np.random.default_rng(1)
    first = 0.2 + random.random((4, 20))  # active on all data
    signs = np.tile([1.0, -1.0], 10)
    second = (signs * np.linalg.norm(first, axis=0))[:, None]
    network = two_layer(first, second, "relu")
    task = Task(np.tile(np.diag(lengths), (9, 1)), np.tile(targets[:, None], (9, 1)))
    found = alternating_flow(task, network, scale=[1e-8, 1e-11])
    for scale in range(2):
        np.testing.assert_allclose(found["loss_after"].isel(scale=scale), [0.18125, 0], atol=2e-5 * 0.5875)
    slopes = found["jump_time"].diff("scale").to_numpy().ravel() / math.log(1e3)
    # The ledger's own flow is within 0.3 % at larger scales.
    np.testing.assert_allclose(slopes, [2.08231683, 3.26762054], rtol=3e-3)


@pytest.mark.slow
def test_targets_of_another_size_only_change_the_units():
    # For one threshold the dormant phases only know E[x r], and the cost phases take no time.
    one, other = (alternating_flow(Task(X, size * Y[:, None]), DiagonalLinear(4), scale=1e-6) for size in (1.0, 3.0))
    np.testing.assert_allclose(other["jump_time"], one["jump_time"] / 3, rtol=1e-3)
    np.testing.assert_allclose(other["loss_after"], 9 * one["loss_after"], rtol=1e-3, atol=1e-4 * 9)


@pytest.mark.slow
def test_a_run_that_is_stopped_says_so_and_agrees_with_the_one_that_is_not():
    task = Task(X, Y[:, None])
    whole = alternating_flow(task, DiagonalLinear(4), scale=1e-6)
    by_jumps = alternating_flow(task, DiagonalLinear(4), scale=1e-6, jumps=2)
    between = float(whole["jump_time"][1:3].mean())
    by_time = alternating_flow(task, DiagonalLinear(4), scale=1e-6, duration=between)
    assert whole.attrs["complete"]
    for part in (by_jumps, by_time):
        assert not part.attrs["complete"]
        assert part.attrs["stopped"] != whole.attrs["stopped"]
        np.testing.assert_allclose(part["jump_time"], whole["jump_time"][:2], rtol=1e-9)


@pytest.mark.parametrize("scale", [1.0, -1e-3])
def test_scales_outside_their_domain_are_refused(scale):
    with pytest.raises(InputError):
        alternating_flow(Task(X, Y[:, None]), DiagonalLinear(4), scale=scale)


@pytest.mark.parametrize("change", [{"threshold": 0.0}, {"tie": -1.0}, {"least_growth": 0.0}])
def test_rules_outside_their_domain_are_refused(change):
    with pytest.raises(InputError):
        PhaseRules(**change)


def test_neurons_that_are_linear_in_their_weights_are_refused():
    with pytest.raises(InputError):
        alternating_flow(Task(X[:, :1], Y[:, None]), NeuronSum(np.ones((2, 1)), power(1), degree=1), scale=1e-3)

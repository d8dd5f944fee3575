from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.alternating import alternating_flow
from dynascope.errors import InputError
from dynascope.flows import GradientFlow, Solver, gradient_flow, polar_flow, progress_listener
from dynascope.flows.deadline import stopping_after
from dynascope.groups import dihedral, encoding_from_fourier, encoding_from_frequencies
from dynascope.networks import DeepLinear, DiagonalLinear, LinearAttention, NeuronSum, TwoLayer
from dynascope.tasks import Expectation, InContextRegression, Task, group_composition, modular_addition
from dynascope.theory.attention.linear_attention import linear_attention_staircase
from dynascope.theory.groups import composition_staircase, neurons_near_irreps
from dynascope.theory.modular.addition import modular_addition_staircase
from dynascope.theory.staircase import diagonal_staircase, linear_staircase

# Levels of closed forms are reached to this share of the initial loss, slopes of times to one percent: the aim of the
# engine, which has no special case for any of the networks below.
LEVEL, SLOPE = 1e-4, 0.01

# Problems of one kind have as many samples, for which a problem may be repeated: programs are compiled once for each.
DIAGONAL = Task(
    np.tile([[1, -0.75, -0.15, -0.43], [0.85, 0.94, -0.97, -0.96], [-0.99, 0.96, 0.7, -0.15]], (4, 1)),
    np.tile([[-0.39], [-1.15], [1.98]], (4, 1)),
)
CROSS = np.array([[2, 0.3, -0.1], [0.2, 1.2, 0.25], [0.1, -0.3, 0.7]])
INPUTS = np.array([[1, 0.3, 0.1], [0.3, 1.5, -0.2], [0.1, -0.2, 0.6]])


class Moments(eqx.Module):
    """Regression with given second moments, in expectation."""

    cross: np.ndarray
    inputs: np.ndarray
    power: np.ndarray
    name: str = eqx.field(static=True, default="moments")

    def loss(self, network):
        product = network.second.T @ network.first.T
        fit = jnp.sum((product @ self.inputs) * product) - 2 * jnp.sum(product * self.cross)
        return (self.power + fit) / 2

    def attributes(self):
        return {"task": self.name, "description": []}


def slopes_of(here, there):
    unit = [record["jump_time"] / record["accelerated_time"] for record in (here, there)]
    return ((there["jump_time"] - here["jump_time"]) / (unit[1] - unit[0])).to_numpy()


def assert_levels(record, levels):
    np.testing.assert_allclose(record["loss_after"], levels, atol=LEVEL * record.attrs["initial_loss"])


@pytest.mark.slow
def test_diagonal_networks_have_their_exact_times_at_finite_scale():
    record = alternating_flow(DIAGONAL, DiagonalLinear(4), scale=1e-4)
    times = [0.935446779570, 2.352420478104, 4.880814026465, 13.193767872768]
    np.testing.assert_allclose(record["accelerated_time"], times, rtol=SLOPE)
    assert_levels(record, [0.21626950035768, 0.11543425308171, 0.02130584129321, 0.0])
    # Coordinate 0 leaves at the third jump.
    assert record["activated"].to_numpy().tolist()[:3] == [
        [True, False, False, False],
        [False, False, True, False],
        [False, True, False, False],
    ]
    assert record["returned"].to_numpy().tolist()[2] == [True, False, False, False]


def random_diagonal(seed):
    draw = np.random.default_rng(seed)
    inputs = np.linalg.qr(draw.normal(size=(12, 4)))[0] * np.sqrt(12)
    # Far enough apart that no jump is taken for another; the weak correlation lets saddles interact.
    inputs = inputs @ (np.eye(4) + 0.1 * draw.normal(size=(4, 4)))
    return Task(inputs, (inputs @ (draw.permutation([2.0, 1.0, 0.5, 0.25]) * draw.choice([-1, 1], 4)))[:, None])


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_random_diagonal_problems_follow_the_path_of_saddles(seed):
    task = random_diagonal(seed)
    here, there = (alternating_flow(task, DiagonalLinear(4), scale=s) for s in (1e-3, 1e-4))
    theory = diagonal_staircase(task.inputs, task.targets[:, 0], scale=1e-4)
    assert_levels(there, theory.levels[1:])
    np.testing.assert_allclose(slopes_of(here, there), theory.accelerated_times, rtol=SLOPE)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("inputs", "power", "times", "levels"),
    [
        (np.eye(3), 6.3325, [0.482456785599, 0.850436508429, 1.343946947835], [1.01815657227, 0.326825283709, 0.05]),
        (
            INPUTS,
            6.478851091142489,
            [0.482456785599, 0.822576936783, 1.2395238943],
            [1.092662417438, 0.410201930452, 0.05],
        ),
    ],
)
def test_linear_networks_learn_rank_by_rank(inputs, power, times, levels):
    task = Moments(CROSS, inputs, np.asarray(power))
    here, there = (alternating_flow(task, TwoLayer(3, 6, 3, seed=1), scale=scale) for scale in (1e-8, 1e-10))
    assert_levels(there, levels)
    np.testing.assert_allclose(slopes_of(here, there), times, rtol=SLOPE)


@pytest.mark.slow
def test_settled_weights_are_those_on_the_plateau_and_not_those_at_activation():
    # A ReLU neuron is active on orthogonal samples of one sign. It grows along Σ y x and settles where it fits each
    # sample: a w·x = y. Its layers remain balanced, so that its squared norm is 2 |a| ‖w‖.
    lengths, targets = np.array([0.5, 2.0, 0.7, 1.6]), np.array([1.5, 1.0, -0.8, -0.9])
    task = Task(np.diag(lengths), targets[:, None])
    record = alternating_flow(task, TwoLayer(4, 12, 1, activation="relu", seed=1), scale=1e-8)
    signs = np.sign(record["direction"].to_numpy()[:, -1])
    assert sorted(signs) == [-1, 1]
    for k, sign in enumerate(signs):
        own = np.maximum(sign * targets, 0)
        for name, weights in (("direction", own * lengths), ("settled_direction", own / lengths)):
            found, unit = record[name][k].to_numpy(), weights / np.linalg.norm(weights)
            np.testing.assert_allclose(found[:-1] / np.linalg.norm(found[:-1]), unit, atol=1e-5)
            # The steps of the cost phase keep the balance of the layers up to their own error.
            assert found[-1] == pytest.approx(sign / np.sqrt(2), rel=1e-3)
        assert record["settled_norm"][k] == pytest.approx(np.sqrt(2 * np.linalg.norm(own / lengths)), rel=1e-5)


@pytest.mark.slow
def test_settled_weights_leave_out_the_function_shared_with_an_earlier_neuron():
    # All neurons of a linear network start along the first mode, but only their rest is learned at later jumps.
    task = Moments(np.diag([2.0, 1.0, 0.5]), np.eye(3), np.asarray(5.25))
    record = alternating_flow(task, TwoLayer(3, 6, 3, seed=1), scale=1e-8)
    settled = np.abs(record["settled_direction"].to_numpy())
    np.testing.assert_allclose(settled, np.tile(np.eye(3), 2) / np.sqrt(2), atol=1e-3)
    assert record["settled_norm"][0] == pytest.approx(2.0, rel=1e-3)
    assert np.isnan(record["settled_norm"][1:]).all()


@pytest.mark.slow
def test_one_dead_neuron_is_reported_in_the_singular():
    rows = TwoLayer(4, 3, 1, activation="relu", seed=2).neurons.copy()
    rows[1, :4] = -1.0
    task = Task(np.eye(4), np.array([[1.0], [0.5], [0.25], [0.75]]))
    record = alternating_flow(task, TwoLayer(4, 3, 1, activation="relu").with_neurons(rows), scale=1e-4)
    assert "1 neuron has zero drift and never moves: 1." in record.attrs["warnings"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_random_moments_follow_greedy_low_rank_learning(seed):
    draw = np.random.default_rng(seed)
    left, right = (np.linalg.qr(draw.normal(size=(3, 3)))[0] for _ in range(2))
    turn = np.linalg.qr(draw.normal(size=(3, 3)))[0]
    inputs = (turn * [1.4, 1.0, 0.7]) @ turn.T
    cross = (left * [2.0, 1.0, 0.5]) @ right.T
    power = np.trace(cross @ np.linalg.inv(inputs) @ cross.T)
    network = TwoLayer(3, 6, 3, seed=seed)
    task = Moments(cross, inputs, power)
    here, there = (alternating_flow(task, network, scale=scale) for scale in (1e-8, 1e-10))
    theory = linear_staircase(cross, inputs, power, scale=1e-10)
    assert_levels(there, theory.levels[1:])
    np.testing.assert_allclose(slopes_of(here, there), theory.accelerated_times, rtol=SLOPE)


@pytest.mark.slow
def test_commuting_moments_rest_at_a_saddle_of_the_active_neuron():
    sigma, variances = np.array([2, 1.5, 0.6]), np.array([4, 1, 0.5])
    task = Moments(np.diag(sigma), np.diag(variances), np.asarray(2 * 1.985))
    record = alternating_flow(task, TwoLayer(3, 6, 3, seed=1), scale=1e-8)
    # The best map of rank one has the loss 0.86; the first mode found is another.
    assert_levels(record, [1.485, 0.36, 0.0])
    # Within the active neuron the second mode grows by [[−½, 3/2], [3/2, −2]].
    expected = np.linalg.eigvalsh([[-0.5, 1.5], [1.5, -2.0]])[-1]
    assert record["unstable_rate"][0] == pytest.approx(expected, rel=1e-2)


@pytest.mark.slow
def test_attention_heads_blow_up_in_their_own_time():
    rows = np.array([[np.sin(2.3 * i + 1.1 * i * j + 0.7 * j) for j in range(1, 8)] for i in range(1, 5)])
    network = LinearAttention(3, 4).with_neurons(rows)
    task = InContextRegression([1.0, 0.7, 0.4], 20)
    here, there = (alternating_flow(task, network, scale=scale) for scale in (3e-3, 1e-3))
    np.testing.assert_allclose(slopes_of(here, there), [2.105095936, 4.552577272, 8.259929549], rtol=SLOPE)
    assert_levels(there, [0.6170995671, 0.325432900433, 0.173051948052])


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_random_attention_follows_its_closed_form(seed):
    draw = np.random.default_rng(seed)
    variances = np.array([1.0, 0.6, 0.35]) * draw.uniform(0.95, 1.05, 3)
    network = LinearAttention(3, 4, seed=seed)
    task = InContextRegression(variances, 20)
    here, there = (alternating_flow(task, network, scale=scale) for scale in (1e-3, 3e-4))
    theory = linear_attention_staircase(variances, 20, scale=3e-4, neurons=network.neurons)
    assert_levels(there, theory.levels[1:])
    sharp = np.array([not reason for reason in theory.slow])
    assert sharp.any()
    np.testing.assert_allclose(slopes_of(here, there)[sharp], theory.accelerated_times[sharp], rtol=SLOPE)


def near_frequencies(modulus, frequencies, neurons, seed):
    """Rows [u | v | w], each near one of the frequencies, with phases of its own."""
    draw = np.random.default_rng(seed)
    angles = 2 * np.pi * np.outer(frequencies, np.arange(modulus)) / modulus
    phases = draw.uniform(0, 2 * np.pi, size=(neurons, 3, len(frequencies)))
    sizes = np.where(np.arange(neurons)[:, None] % len(frequencies) == np.arange(len(frequencies)), 1.0, 0.02)
    waves = np.einsum("nf,nbfj->nbj", sizes, np.cos(angles[None, None] + phases[..., None]))
    rows = waves.reshape(neurons, 3 * modulus)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.slow
# The second set is drawn anew; no frequency is three times another, so that none is pushed by those learned before.
@pytest.mark.parametrize(
    ("amplitudes", "seed"),
    [({1: 0.8, 2: 0.52, 4: 0.36}, 0), ({1: 0.5, 5: 0.9, 6: 0.33}, 3)],
)
def test_modular_addition_learns_its_frequencies_in_order(amplitudes, seed):
    phases = {1: 0.4, 2: -0.9, 4: 1.7} if seed == 0 else dict.fromkeys(amplitudes, 0.7)
    encoding = encoding_from_frequencies(17, amplitudes, phases)
    rows = near_frequencies(17, list(amplitudes), 30, seed)
    network = TwoLayer(34, 30, 17, activation="quadratic").with_neurons(rows)
    task = modular_addition(encoding)
    here, there = (alternating_flow(task, network, scale=scale, normalised=True) for scale in (1e-5, 1e-7))
    theory = modular_addition_staircase(encoding, scale=1e-7)
    assert_levels(there, theory.levels[1:])
    np.testing.assert_allclose(slopes_of(here, there), theory.accelerated_times, rtol=SLOPE)


@pytest.mark.slow
def test_group_composition_learns_irreps_in_order():
    group = dihedral(5)
    encoding = encoding_from_fourier(group, {"sign": 2.6, "2d-1": 2.4}, seed=0)
    theory = composition_staircase(group, encoding, 2, scale=1e-7)
    rows = neurons_near_irreps(group, encoding, 2, neurons=40, seed=0)
    network = TwoLayer(20, 40, 10, activation="quadratic").with_neurons(rows)
    task = group_composition(group, encoding)
    here, there = (alternating_flow(task, network, scale=scale, normalised=True) for scale in (1e-5, 1e-7))
    assert_levels(there, theory.levels[1:])
    np.testing.assert_allclose(slopes_of(here, there), theory.accelerated_times, rtol=SLOPE)


ORTHOGONAL = Task(
    np.tile(np.diag([1.0, 1.2, 0.9, 1.1]), (9, 1)), np.tile([[1.5], [1.0], [-0.8], [-0.9]], (9, 1)), name="orthogonal"
)
RELU = TwoLayer(4, 20, 1, activation="relu", seed=1)


@pytest.mark.slow
def test_relu_networks_learn_one_sign_after_the_other():
    here, there = (alternating_flow(ORTHOGONAL, RELU, scale=scale) for scale in (1e-5, 1e-7))
    np.testing.assert_allclose(slopes_of(here, there), [2.08231683, 3.26762054], rtol=SLOPE)
    assert_levels(there, [0.18125, 0.0])


@pytest.mark.slow
def test_neurons_may_come_in_any_order():
    order = np.random.default_rng(0).permutation(20)
    shuffled = alternating_flow(ORTHOGONAL, RELU.with_neurons(RELU.neurons[order]), scale=1e-5)
    record = alternating_flow(ORTHOGONAL, RELU, scale=1e-5)
    np.testing.assert_allclose(shuffled["jump_time"], record["jump_time"], rtol=1e-6)
    np.testing.assert_array_equal(shuffled["activated"], record["activated"].to_numpy()[:, order])


@pytest.mark.slow
def test_stronger_targets_are_learned_sooner():
    record = alternating_flow(ORTHOGONAL, RELU, scale=1e-5)
    stronger = alternating_flow(Task(ORTHOGONAL.inputs, 3 * ORTHOGONAL.targets), RELU, scale=1e-5)
    np.testing.assert_allclose(stronger["jump_time"], record["jump_time"] / 3, rtol=1e-6)
    # Levels are exact up to the tolerance of the cost phase.
    np.testing.assert_allclose(stronger["loss_after"], 9 * record["loss_after"], atol=1e-6)


@pytest.mark.slow
def test_an_expectation_gives_what_its_samples_give():
    expectation = Expectation(lambda network: DIAGONAL.loss(network), "diagonal")
    both = [alternating_flow(task, DiagonalLinear(4), scale=1e-5) for task in (DIAGONAL, expectation)]
    np.testing.assert_allclose(both[0]["jump_time"], both[1]["jump_time"], rtol=1e-9)


@pytest.mark.slow
def test_it_stops_where_it_is_told():
    told = []
    with progress_listener(lambda *each: told.append(each)):
        assert alternating_flow(ORTHOGONAL, RELU, scale=1e-5, jumps=1).sizes["jump"] == 1
    assert told[0] == told[-1] == (1, 1, "jumps")
    short = alternating_flow(ORTHOGONAL, RELU, scale=1e-5, duration=30.0)
    assert (short.sizes["jump"], short.attrs["stopped"], short.attrs["complete"]) == (1, "the duration is over", 0)
    none = alternating_flow(ORTHOGONAL, RELU, scale=1e-5, duration=1.0)
    assert none.sizes["jump"] == 0
    assert not jax.config.jax_enable_x64  # pyright: ignore[reportAttributeAccessIssue] - set at run time


@pytest.mark.slow
def test_neurons_without_a_drift_are_named():
    rows = RELU.neurons.copy()
    rows[3, :4] = -np.abs(rows[3, :4])
    record = alternating_flow(ORTHOGONAL, RELU.with_neurons(rows), scale=1e-5)
    assert any("3" in sentence for sentence in record.attrs["warnings"])
    with pytest.raises(InputError, match="no neuron moves"):
        alternating_flow(ORTHOGONAL, RELU.with_neurons(-np.abs(rows)), scale=1e-5)


@pytest.mark.slow
def test_large_starts_are_warned_of():
    network = DiagonalLinear(4)
    record = alternating_flow(DIAGONAL, network.with_neurons(3 * network.neurons), scale=0.9)
    assert record.attrs["warnings"]


def biased(weights, x):
    return (weights[0] * jnp.maximum(x @ weights[1:5], 0) + weights[5])[:, None]


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("network", "options", "argument", "message"),
    [
        (DeepLinear((4, 5, 5, 1)), {}, "network", "network is a DeepLinear"),
        (NeuronSum(np.ones((2, 6)), biased, degree=1), {}, "network", "of degree 1"),
        (NeuronSum(np.ones((2, 6)), biased, degree=2), {}, "network", "not homogeneous of degree 2"),
        (RELU.with_neurons(np.zeros((20, 5))), {}, "network", "neurons are zero or not finite"),
        (RELU, {"scale": 1.0}, "scale", "scale is 1.0"),
        (RELU, {"jumps": 0}, "jumps", "jumps is 0"),
    ],
)
def test_bad_arguments_are_named(network, options, argument, message):
    with pytest.raises(InputError, match=message) as caught:
        alternating_flow(ORTHOGONAL, network, **{"scale": 1e-5, **options})
    assert caught.value.argument == argument


def diagonal_networks():
    return [DiagonalLinear(4).with_neurons(np.random.default_rng(seed).normal(size=(4, 2))) for seed in range(3)]


@pytest.mark.slow
def test_an_ensemble_holds_what_each_member_does_alone(monkeypatch):
    # Six members, four at a time.
    monkeypatch.setattr("dynascope.alternating.flow._batch_size", lambda *_: 4)
    task, networks = random_diagonal(0), diagonal_networks()
    both = alternating_flow(task, networks, scale=[1e-3, 1e-6])
    assert dict(both.sizes) | {"seed": 3, "scale": 2} == dict(both.sizes)
    for seed, network in enumerate(networks):
        for scale in (1e-3, 1e-6):
            member, alone = both.sel(seed=seed, scale=scale), alternating_flow(task, network, scale=scale)
            count = alone.sizes["jump"]
            assert int(member["jumps"]) == count
            # Batches may round otherwise.
            np.testing.assert_allclose(member["jump_time"][:count], alone["jump_time"], rtol=1e-9)
            np.testing.assert_allclose(member["loss_after"][:count], alone["loss_after"], rtol=1e-6, atol=1e-9)
            assert member["jump_time"][count:].isnull().all()
            assert member["learned"].values[:count].tolist() == alone["learned"].values.tolist()
            assert str(member["stopped"].values) == alone.attrs["stopped"]


@pytest.mark.slow
def test_a_list_of_one_keeps_its_dimension():
    record = alternating_flow(random_diagonal(0), diagonal_networks()[:1], scale=1e-3)
    assert record["jump_time"].dims == ("seed", "jump")
    assert record.attrs["scale"] == 1e-3


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"network": []}, "network"),
        ({"scale": []}, "scale"),
        ({"scale": [1e-3, -1.0]}, "scale"),
        ({"network": [TwoLayer(4, 6, 1), TwoLayer(4, 7, 1)]}, "network"),
        ({"network": [TwoLayer(4, 6, 1), TwoLayer(4, 6, 1, activation="relu")]}, "network"),
    ],
)
def test_an_ensemble_that_is_none_is_refused(change, argument):
    arguments = {"network": diagonal_networks(), "scale": [1e-3, 1e-6], **change}
    with pytest.raises(InputError) as caught:
        alternating_flow(random_diagonal(0), arguments["network"], scale=arguments["scale"])
    assert caught.value.argument == argument


@pytest.mark.slow
def test_when_the_time_is_over_it_ends_with_the_jumps_it_has():
    with stopping_after(1e-9):
        record = alternating_flow(DIAGONAL, DiagonalLinear(4), scale=1e-4)
    assert record.sizes["jump"] == 1
    assert record.attrs["stopped"] == "out of time"
    assert record.attrs["complete"] == 0
    assert "after 1 jump" in " ".join(record.attrs["warnings"])


@pytest.mark.slow
def test_after_so_many_operations_it_ends_with_the_jumps_it_has_on_every_machine():
    whole = alternating_flow(DIAGONAL, DiagonalLinear(4), scale=1e-4, operations=1e12)
    found = [alternating_flow(DIAGONAL, DiagonalLinear(4), scale=1e-4, operations=1.0) for _ in range(2)]
    assert whole.attrs["stopped"] != "out of operations"
    assert whole.sizes["jump"] > 1
    for record in found:
        assert (record.attrs["stopped"], record.attrs["complete"]) == ("out of operations", 0)
        assert "after 1 jump" in " ".join(record.attrs["warnings"])
        np.testing.assert_array_equal(record["jump_time"], whole["jump_time"][:1])


@pytest.mark.slow
def test_neurons_at_a_kink_do_not_drift_off_on_noisy_data():
    draw = np.random.default_rng(2)
    inputs, noise = draw.normal(size=(36, 4)), draw.normal(size=(36, 1))
    targets = inputs[:, :1] - 0.5 * inputs[:, 1:2] + 0.5 * noise
    task = Task(inputs - inputs.mean(axis=0), targets - targets.mean())
    network = TwoLayer(4, 20, 1, activation="relu", seed=2)
    staircase = alternating_flow(task, network, scale=1e-8, duration=3000.0)
    trained = polar_flow(task, network, scale=1e-8, duration=3000.0, tolerance=2e-4, points=2000)
    # Neither has a third jump: for a hundred times the time of the second the loss stays.
    assert staircase.sizes["jump"] == 2
    plateau = trained["loss"].sel(time=slice(100, None))
    np.testing.assert_allclose(plateau, staircase["loss_after"][-1], rtol=3e-3)


@pytest.mark.slow
def test_cost_phases_get_past_the_kinks_of_relu():
    draw = np.random.default_rng(110)
    inputs, teacher = draw.normal(size=(36, 4)), TwoLayer(4, 2, 1, activation="relu", seed=110)
    targets = 4 * np.maximum(inputs @ teacher.first, 0) @ teacher.second + 0.1 * draw.normal(size=(36, 1))
    task, network = Task(inputs, targets), TwoLayer(4, 20, 1, activation="relu", seed=110)
    staircase = alternating_flow(task, network, scale=1e-6, duration=100.0)
    assert staircase.attrs["warnings"] == []
    trained, end = gradient_flow(
        task,
        network,
        GradientFlow(duration=30.0, solver=Solver(relative_tolerance=1e-5), save=[8.0, 30.0]),
        scale=1e-6,
        return_networks=True,
    )
    # A neuron slides along a kink, where small steps lead nowhere.
    sizes = np.linalg.norm(end.first, axis=0)
    cosines = (inputs @ end.first / sizes)[:, sizes > 0.1] / np.linalg.norm(inputs, axis=1)[:, None]
    assert np.abs(cosines).min() < 1e-4
    # The plateau after the first jump, and that after the second, on which kinks keep the flow from rest.
    ratios = staircase["loss_after"].to_numpy() / trained["loss"].to_numpy()
    assert ratios[0] == pytest.approx(1, abs=1e-3)
    assert ratios[1] == pytest.approx(1, abs=0.15)

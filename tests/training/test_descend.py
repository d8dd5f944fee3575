import dataclasses
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.flows import GradientFlow
from dynascope.networks import DeepLinear, TwoLayer
from dynascope.tasks import SparseParity, Task
from dynascope.tasks.stream import Stream
from dynascope.training import Batches, Descent, descend, loop

TASK = Task([[1.0, 0.5], [-0.3, 2.0], [0.7, -1.1], [0.2, 0.4]], [[1.0], [-0.5], [0.8], [0.1]], name="four points")
NETWORK = TwoLayer(2, 4, 1, seed=1)
RATES = np.linspace(0.05, 0.1, 8)


def squared_rows(network):
    return jnp.sum(network.first**2, axis=1)


def recorded(steps):
    """Equally spaced steps, as many in most runs, so that few programs are compiled; as few are ensembles of eight."""
    return {"steps": steps, "save": np.linspace(0, steps, 21).astype(int)}


# Runs on batches, alone and in an ensemble.
BATCHED = {"batches": 2, "statistics": {"norm": (squared_rows, ["feature"])}}


def loss_of(first, second, task=TASK):
    return np.sum((task.inputs @ first @ second - task.targets) ** 2) / (2 * task.samples)


def one_step(first, second, rate, rows=slice(None)):
    x, y = TASK.inputs[rows], TASK.targets[rows]
    residual = (x @ first @ second - y) / len(x)
    return first - rate * x.T @ residual @ second.T, second - rate * (x @ first).T @ residual


def test_steps_are_those_written_by_hand():
    first, second = 0.5 * NETWORK.first, 0.5 * NETWORK.second
    losses = [loss_of(first, second)]
    for _ in range(20):
        first, second = one_step(first, second, 0.1)
        losses.append(loss_of(first, second))
    record, end = descend(TASK, NETWORK, Descent(learning_rate=0.1, **recorded(20)), scale=0.5, return_networks=True)
    # The same arithmetic in another order.
    assert record.loss.to_numpy() == pytest.approx(losses, abs=1e-13)
    assert end.first == pytest.approx(first, abs=1e-13)
    assert record.time.to_numpy() == pytest.approx(0.1 * np.arange(21))


def test_one_layer_is_a_power_of_the_input_moment():
    network = DeepLinear((2, 1), seed=3)
    record = descend(TASK, network, Descent(learning_rate=0.3, steps=50, save=[0, 7, 50]))
    best = np.linalg.lstsq(TASK.inputs, TASK.targets, rcond=None)[0]
    contraction = np.eye(2) - 0.3 * TASK.input_moment
    for step, loss in zip([0, 7, 50], record.loss.to_numpy(), strict=True):
        weights = best + np.linalg.matrix_power(contraction, step) @ (network.weights[0] - best)
        assert loss == pytest.approx(loss_of(weights, np.eye(1)), rel=1e-10)


def test_halving_the_rate_halves_the_distance_to_the_flow():
    def velocity(_, weights):
        first, second = weights[:8].reshape(2, 4), weights[8:, None]
        ahead = one_step(first, second, 1.0)
        return np.concatenate([(ahead[0] - first).ravel(), (ahead[1] - second).ravel()])

    start = np.concatenate([NETWORK.first.ravel(), NETWORK.second.ravel()])
    path = solve_ivp(velocity, (0, 2), start, "DOP853", np.linspace(0, 2, 21), rtol=1e-9, atol=1e-12).y.T
    flow = [loss_of(weights[:8].reshape(2, 4), weights[8:, None]) for weights in path]
    errors = []
    for rate in (0.02, 0.01, 0.005):
        run = descend(TASK, NETWORK, Descent(learning_rate=rate, **recorded(round(2 / rate))))
        errors.append(np.abs(run.loss.to_numpy() - flow)[[10, 20]].max())
    # First order, up to a second-order part that is smaller by the rate.
    assert errors[0] / errors[1] == pytest.approx(2, abs=0.1)
    assert errors[1] / errors[2] == pytest.approx(2, abs=0.05)


@pytest.mark.slow
def test_members_of_an_ensemble_equal_single_runs():
    networks = [TwoLayer(2, 4, 1, seed=seed) for seed in range(2)]
    rates = [0.02, 0.1]
    options = {**recorded(200), **BATCHED}
    record, ends = descend(
        TASK, networks, Descent(learning_rate=rates, **options), scale=[0.5, 1.0], return_networks=True
    )
    assert record.loss.dims == ("seed", "scale", "learning_rate", "step")
    assert record.time.dims == ("learning_rate", "step")
    assert ends.first.shape == (2, 2, 2, 2, 4)
    for place in [(0, 0, 0), (1, 1, 0), (1, 0, 1), (0, 1, 1)]:
        seed, scale, rate = place
        single, end = descend(
            TASK,
            networks[seed],
            Descent(learning_rate=rates[rate], **options),
            scale=[0.5, 1.0][scale],
            return_networks=True,
        )
        # The same steps with sums in another order: rounding, multiplied over 200 steps.
        assert record.loss.to_numpy()[place] == pytest.approx(single.loss.to_numpy(), abs=1e-10)
        assert ends.first[place] == pytest.approx(end.first, abs=1e-10)
        assert record.time.to_numpy()[rate] == pytest.approx(single.time.to_numpy())


@pytest.mark.slow
def test_a_batch_of_all_samples_is_the_full_batch():
    full = descend(TASK, NETWORK, Descent(learning_rate=0.1, **recorded(60)))
    shuffled = descend(TASK, NETWORK, Descent(learning_rate=0.1, batches=4, **recorded(60)))
    # The samples are summed in another order.
    assert shuffled.loss.to_numpy() == pytest.approx(full.loss.to_numpy(), abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"learning_rate": 0.1}, {"learning_rate": RATES, **BATCHED}])
def test_micro_batches_do_not_change_the_steps(options):
    method = Descent(**options, **recorded(40))
    whole = descend(TASK, NETWORK, method)
    size = Batches.of(method.batches).size
    parts = descend(TASK, NETWORK, dataclasses.replace(method, batches=Batches(size, micro_size=1)))
    # The samples are summed in another order.
    assert parts.loss.to_numpy() == pytest.approx(whole.loss.to_numpy(), abs=1e-12)


@pytest.mark.slow
def test_an_epoch_sees_every_sample_once():
    # The square of the output is linear in the weight, so the gradient of a sample is x/2 wherever the weight is.
    class Sum(eqx.Module):
        w: np.ndarray

        def __call__(self, x):
            return jnp.sqrt(1e3 + self.w * x)

    samples = np.array([[1.0], [2.0], [4.0], [8.0]])
    task, network = Task(samples, np.zeros((4, 1))), Sum(np.array(0.0))
    methods = [Descent(learning_rate=1.0, steps=steps, batches=1, save=[0, steps]) for steps in (1, 2, 3, 4, 8)]
    ends = [descend(task, network, method, return_networks=True)[1].w for method in methods]
    moves = -2 * np.diff([0.0, *ends])
    assert sorted(moves[:4]) == pytest.approx([1, 2, 4, 8], rel=1e-12)
    assert moves[4] == pytest.approx(15, rel=1e-12)


@pytest.mark.slow
def test_other_seeds_draw_other_batches():
    runs = [
        descend(TASK, NETWORK, Descent(learning_rate=0.1, **recorded(40), **BATCHED), seed=seed) for seed in (0, 0, 1)
    ]
    assert np.array_equal(runs[0].loss, runs[1].loss)
    assert not np.allclose(runs[0].loss, runs[2].loss)


@pytest.mark.slow
def test_an_optax_optimizer_takes_its_own_steps():
    record, end = descend(TASK, NETWORK, Descent(optax.adam, learning_rate=[0.01, 0.1], steps=10), return_networks=True)
    adam = optax.adam(0.1)

    @jit
    def ten_steps(weights):
        def step(_, carry):
            weights, state = carry
            gradient = jax.grad(lambda w: jnp.sum((TASK.inputs @ w[0] @ w[1] - TASK.targets) ** 2) / 8)(weights)
            updates, state = adam.update(gradient, state)
            return optax.apply_updates(weights, updates), state

        return jax.lax.fori_loop(0, 10, step, (weights, adam.init(weights)))[0]

    weights = ten_steps((NETWORK.first.astype(np.float32), NETWORK.second.astype(np.float32)))
    # The loop outside is in float32.
    assert end.first[1] == pytest.approx(np.asarray(weights[0]), abs=1e-4)
    assert record.attrs["optimizer"] == "adam"


def test_layer_rates_multiply_the_steps_of_their_layer():
    _, end = descend(
        TASK, NETWORK, Descent(learning_rate={"first": 0.1, "second": 0.02}, steps=1), return_networks=True
    )
    assert end.first == pytest.approx(one_step(NETWORK.first, NETWORK.second, 0.1)[0], abs=1e-14)
    assert end.second == pytest.approx(one_step(NETWORK.first, NETWORK.second, 0.02)[1], abs=1e-14)


def test_recorded_steps_are_spread_logarithmically_and_hold_both_ends():
    steps = descend(TASK, NETWORK, Descent(learning_rate=0.01, steps=5_000)).step.to_numpy()
    assert (steps[0], steps[1], steps[-1]) == (0, 1, 5_000)
    assert 60 < len(steps) <= 100
    ratios = steps[-20:] / steps[-21:-1]
    assert ratios.max() - ratios.min() < 0.01


def test_a_run_goes_on_after_the_last_recorded_step():
    methods = [Descent(learning_rate=0.05, steps=40, save=range(21)), Descent(learning_rate=0.05, **recorded(40))]
    early, whole = (descend(TASK, NETWORK, method, return_networks=True)[1] for method in methods)
    assert np.array_equal(early.first, whole.first)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_precision_of_the_weights_is_kept_and_no_setting_changes(dtype):
    before = jax.config.jax_enable_x64
    network = jax.tree.map(lambda w: w.astype(dtype), NETWORK)
    record, end = descend(TASK, network, Descent(learning_rate=0.1, **recorded(20), **BATCHED), return_networks=True)
    assert record.loss.dtype == end.first.dtype == dtype
    assert jax.config.jax_enable_x64 == before


PARITY = SparseParity(skills=2, bits=4, relevant_bits=2, target_scale=1.5)


@dataclasses.dataclass(frozen=True)
class Doubling(Stream):
    """y = 2 x of a Gaussian x; no formula of its loss is given."""

    def sample(self, key, samples, *, dtype=float):
        inputs = jax.random.normal(key, (samples, 2), dtype)
        return inputs, 2 * inputs[:, :1]


DOUBLING = Doubling()


def parity_network(seed=0):
    return TwoLayer(PARITY.input_dimension, 4, 1, seed=seed)


def skill_strength(network):
    return PARITY.skill_strength(network).strength


STREAMED = {"batches": 8, "statistics": {"skill_strength": (skill_strength, ["skill"])}}


@functools.partial(jit, static_argnums=1)
def sampled(step, seed):
    return PARITY.sample(jax.random.fold_in(jax.random.key(seed), step), 8)


@pytest.mark.slow
def test_every_step_on_a_stream_is_on_fresh_samples():
    network, method = parity_network(1), Descent(learning_rate=0.1, steps=5, save=[0, 2, 5], **STREAMED)
    end = descend(PARITY, network, method, seed=7, return_networks=True)[1]
    first, second = network.first, network.second
    with jax.enable_x64(True):
        batches = jax.device_get([sampled(step, 7) for step in range(5)])
    for inputs, targets, _ in batches:
        inputs = np.asarray(inputs)
        residual = (inputs @ first @ second - np.asarray(targets)) / 8
        change = inputs.T @ residual @ second.T, (inputs @ first).T @ residual
        first, second = first - 0.1 * change[0], second - 0.1 * change[1]
    assert end.first == pytest.approx(first, abs=1e-14)
    assert end.second == pytest.approx(second, abs=1e-14)
    assert all(np.any(batches[0].inputs != other.inputs) for other in batches[1:])


@pytest.mark.slow
def test_the_loss_of_any_other_stream_is_estimated_from_fresh_samples():
    network = DeepLinear((2, 1), seed=3)
    record = descend(DOUBLING, network, Descent(learning_rate=1e-9, steps=1, batches=1000, save=[0, 1]))
    missed = np.sum((np.asarray(network.weights[0][:, 0]) - [2.0, 0.0]) ** 2)
    # The loss of a sample is ½ missed · χ² with one degree of freedom, so of standard deviation missed/√2; five errors.
    assert record.loss.to_numpy() == pytest.approx(missed / 2, abs=5 * missed / np.sqrt(2 * 20_000))
    # The network has hardly moved between the two, and the samples are others.
    assert abs(float(record.loss[1] - record.loss[0])) > 1e-6
    assert "20000" in record.attrs["loss_over"]


@pytest.mark.slow
def test_members_on_a_stream_see_the_same_samples_as_single_runs_and_have_their_exact_loss():
    networks = [parity_network(seed) for seed in range(3)]
    options = {"steps": 40, "save": [0, 20, 40], **STREAMED}
    record = descend(PARITY, networks, Descent(learning_rate=[0.05, 0.1], **options), seed=3)
    inputs, targets, _, weights = PARITY.population()
    missed = inputs @ networks[1].first @ networks[1].second - targets
    # Of so few bits the loss is exact.
    assert float(record.loss[1, 0, 0]) == pytest.approx(weights @ missed[:, 0] ** 2 / 2, rel=1e-12)
    assert (record.attrs["loss_over"], record.attrs["task"]) == ("the whole distribution", "sparse parity")
    assert record.skill_strength.dims == ("seed", "learning_rate", "step", "skill")
    for seed, rate in [(2, 1)]:
        single = descend(PARITY, networks[seed], Descent(learning_rate=[0.05, 0.1][rate], **options), seed=3)
        for name in ("loss", "skill_strength"):
            # The same steps with sums in another order.
            assert record[name].to_numpy()[seed, rate] == pytest.approx(single[name].to_numpy(), abs=1e-12)


@pytest.mark.slow
def test_the_memory_of_a_stream_does_not_grow_with_the_steps(monkeypatch):
    batch, sizes = 1000, []

    def lower(*arguments):
        sizes.append(program.lower(*arguments).compile().compiled.memory_analysis().temp_size_in_bytes)
        raise KeyboardInterrupt

    program = loop.advance
    monkeypatch.setattr(loop, "advance", lower)
    wide = DeepLinear((PARITY.input_dimension, 1), seed=3)
    with pytest.raises(KeyboardInterrupt):
        descend(PARITY, wide, Descent(learning_rate=0.01, steps=10**6, batches=batch, save=[0, 10**6]))
    # A million steps would have seen 48 gigabytes of inputs.
    assert sizes[0] < 20 * batch * PARITY.input_dimension * 8


@pytest.mark.slow
def test_a_stream_is_drawn_in_the_precision_of_the_weights():
    network = jax.tree.map(lambda w: w.astype(np.float32), parity_network())
    record, end = descend(PARITY, network, Descent(learning_rate=0.1, steps=3, batches=4), return_networks=True)
    assert record.loss.dtype == end.first.dtype == np.float32


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked_types")
def test_sizes_may_be_numbers_of_numpy():
    for task, network, options in (
        (TASK, NETWORK, {"learning_rate": RATES, **BATCHED, **recorded(20)}),
        (PARITY, parity_network(), {"learning_rate": 0.1, "steps": 3}),
    ):
        plain, other = (
            descend(task, network, Descent(**options | {"batches": Batches(kind(2), micro_size=kind(1))}))
            for kind in (np.int64, int)
        )
        np.testing.assert_array_equal(plain["loss"], other["loss"])


@pytest.mark.usefixtures("unchecked_types")
def test_whole_floats_are_integers():
    method = Descent(learning_rate=0.1, steps=1e6, batches=32.0, save=10.0)
    assert (method.steps, method.batches, method.save) == (10**6, 32, 10)
    assert {type(each) for each in (method.steps, method.batches, method.save)} == {int}


def test_a_stream_that_cannot_be_hashed_is_refused():
    @dataclasses.dataclass
    class Changing(Stream):
        dimension: int = 3

        def sample(self, key, samples, *, dtype=float):
            inputs = jax.random.normal(key, (samples, self.dimension), dtype)
            return inputs, inputs[:, :1]

    with pytest.raises(InputError, match="frozen dataclass") as caught:
        descend(Changing(), TwoLayer(3, 2, 1), Descent(learning_rate=0.1, steps=3, batches=4))
    assert caught.value.argument == "task"


def test_a_stream_needs_a_number_of_samples_in_a_step():
    with pytest.raises(InputError, match="the batch size is None") as caught:
        descend(PARITY, parity_network(), Descent(learning_rate=0.1, steps=10))
    assert caught.value.argument == "batches"


@given(seed=st.integers(0, 10_000), rate=st.floats(1e-3, 0.05))
@settings(max_examples=12)
def test_small_steps_never_increase_the_loss(seed, rate):
    network = TwoLayer(2, 4, 1, seed=seed)
    loss = descend(TASK, network, Descent(learning_rate=rate, **recorded(100)), scale=0.7).loss.to_numpy()
    assert np.all(np.diff(loss) <= 1e-15)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"steps": 0}, "steps"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"learning_rate": {"third": 1.0}}, "learning_rate"),
        ({"batches": 5}, "batches"),
        ({"batches": 0}, "batches"),
        ({"steps": 2.5}, "steps"),
        ({"save": 1}, "save"),
        ({"save": 2.5}, "save"),
        ({"save": True}, "save"),
        ({"save": [0, 0]}, "save"),
        ({"save": [0, 11]}, "save"),
        ({"optimizer": "magic"}, "optimizer"),
    ],
)
def test_bad_input_names_the_argument(options, argument):
    with pytest.raises(InputError) as caught:
        descend(TASK, NETWORK, Descent(**{"steps": 10, "learning_rate": 0.1, **options}))
    assert caught.value.argument == argument


def test_a_scale_that_is_no_number_and_another_method_are_refused():
    for method, scale, argument in (
        (Descent(learning_rate=0.1, steps=10), np.nan, "scale"),
        (GradientFlow(duration=1.0), 1.0, "method"),
    ):
        with pytest.raises(InputError) as caught:
            descend(TASK, NETWORK, method, scale=scale)
        assert caught.value.argument == argument

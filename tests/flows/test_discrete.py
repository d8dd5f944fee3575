import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.errors import DivergenceError, InputError
from dynascope.flows import descend, gradient_flow
from dynascope.networks import DeepLinear, TwoLayer
from dynascope.tasks import Task

TASK = Task([[1.0, 0.5], [-0.3, 2.0], [0.7, -1.1], [0.2, 0.4]], [[1.0], [-0.5], [0.8], [0.1]], name="four points")
NETWORK = TwoLayer(2, 4, 1, seed=1)


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
    record, end = descend(
        NETWORK, TASK, steps=20, learning_rate=0.1, scale=0.5, record_steps=range(21), return_networks=True
    )
    # The same arithmetic in another order.
    assert record.loss.to_numpy() == pytest.approx(losses, abs=1e-13)
    assert end.first == pytest.approx(first, abs=1e-13)
    assert record.time.to_numpy() == pytest.approx(0.1 * np.arange(21))


def test_one_layer_is_a_power_of_the_input_moment():
    network = DeepLinear((2, 1), seed=3)
    record = descend(network, TASK, steps=50, learning_rate=0.3, record_steps=[0, 7, 50])
    best = np.linalg.lstsq(TASK.inputs, TASK.targets, rcond=None)[0]
    contraction = np.eye(2) - 0.3 * TASK.input_moment
    for step, loss in zip([0, 7, 50], record.loss.to_numpy(), strict=True):
        weights = best + np.linalg.matrix_power(contraction, step) @ (network.weights[0] - best)
        assert loss == pytest.approx(loss_of(weights, np.eye(1)), rel=1e-10)


def test_halving_the_rate_halves_the_distance_to_the_flow():
    flow = gradient_flow(NETWORK, TASK, duration=2.0, save=[1.0, 2.0], relative_tolerance=1e-9).loss.to_numpy()
    errors = []
    for rate in (0.02, 0.01, 0.005):
        recorded = [round(1 / rate), round(2 / rate)]
        run = descend(NETWORK, TASK, steps=recorded[1], learning_rate=rate, record_steps=recorded)
        errors.append(np.abs(run.loss.to_numpy() - flow).max())
    # First order, up to a second-order part that is smaller by the rate.
    assert errors[0] / errors[1] == pytest.approx(2, abs=0.1)
    assert errors[1] / errors[2] == pytest.approx(2, abs=0.05)


def test_members_of_an_ensemble_equal_single_runs():
    networks = [TwoLayer(2, 4, 1, activation="relu", seed=seed) for seed in range(5)]
    rates = [0.02, 0.05, 0.1]
    record, ends = descend(
        networks, TASK, steps=200, learning_rate=rates, scale=[0.5, 1.0], batch_size=2, return_networks=True
    )
    assert record.loss.dims == ("seed", "scale", "learning_rate", "step")
    assert record.time.dims == ("learning_rate", "step")
    assert ends.first.shape == (5, 2, 3, 2, 4)
    for place in [(0, 0, 0), (2, 1, 1), (4, 0, 2), (4, 1, 2)]:
        seed, scale, rate = place
        single, end = descend(
            networks[seed],
            TASK,
            steps=200,
            learning_rate=rates[rate],
            scale=[0.5, 1.0][scale],
            batch_size=2,
            return_networks=True,
        )
        # The same steps with sums in another order: rounding, multiplied over 200 steps.
        assert record.loss.to_numpy()[place] == pytest.approx(single.loss.to_numpy(), abs=1e-10)
        assert ends.first[place] == pytest.approx(end.first, abs=1e-10)
        assert record.time.to_numpy()[rate] == pytest.approx(single.time.to_numpy())


def test_a_batch_of_all_samples_is_the_full_batch():
    full = descend(NETWORK, TASK, steps=50, learning_rate=0.1)
    shuffled = descend(NETWORK, TASK, steps=50, learning_rate=0.1, batch_size=4)
    # The samples are summed in another order.
    assert shuffled.loss.to_numpy() == pytest.approx(full.loss.to_numpy(), abs=1e-12)


def test_an_epoch_sees_every_sample_once():
    # The square of the output is linear in the weight, so the gradient of a sample is x/2 wherever the weight is.
    class Sum(eqx.Module):
        w: np.ndarray

        def __call__(self, x):
            return jnp.sqrt(1e3 + self.w * x)

    samples = np.array([[1.0], [2.0], [4.0], [8.0]])
    task = Task(samples, np.zeros((4, 1)))
    ends = [
        descend(Sum(np.array(0.0)), task, steps=steps, learning_rate=1.0, batch_size=1, return_networks=True)[1].w
        for steps in (1, 2, 3, 4, 8)
    ]
    moves = -2 * np.diff([0.0, *ends])
    assert sorted(moves[:4]) == pytest.approx([1, 2, 4, 8], rel=1e-12)
    assert moves[4] == pytest.approx(15, rel=1e-12)


def test_other_seeds_draw_other_batches():
    runs = [descend(NETWORK, TASK, steps=30, learning_rate=0.1, batch_size=1, seed=seed) for seed in (0, 0, 1)]
    assert np.array_equal(runs[0].loss, runs[1].loss)
    assert not np.allclose(runs[0].loss, runs[2].loss)


def test_an_optax_optimizer_takes_its_own_steps():
    record, end = descend(
        NETWORK, TASK, steps=10, learning_rate=[0.01, 0.1], optimizer=optax.adam, return_networks=True
    )
    weights = (jnp.asarray(NETWORK.first, jnp.float32), jnp.asarray(NETWORK.second, jnp.float32))
    adam = optax.adam(0.1)
    state = adam.init(weights)
    for _ in range(10):
        gradient = jax.grad(lambda w: jnp.sum((TASK.inputs @ w[0] @ w[1] - TASK.targets) ** 2) / 8)(weights)
        updates, state = adam.update(gradient, state)
        weights = optax.apply_updates(weights, updates)
    # The loop outside is in float32.
    assert end.first[1] == pytest.approx(np.asarray(weights[0]), abs=1e-4)
    assert record.attrs["optimizer"] == "adam"


def test_layer_rates_multiply_the_steps_of_their_layer():
    _, end = descend(NETWORK, TASK, steps=1, learning_rate={"first": 0.1, "second": 0.02}, return_networks=True)
    assert end.first == pytest.approx(one_step(NETWORK.first, NETWORK.second, 0.1)[0], abs=1e-14)
    assert end.second == pytest.approx(one_step(NETWORK.first, NETWORK.second, 0.02)[1], abs=1e-14)


def test_recorded_steps_are_spread_logarithmically_and_hold_both_ends():
    steps = descend(NETWORK, TASK, steps=5_000, learning_rate=0.01).step.to_numpy()
    assert (steps[0], steps[1], steps[-1]) == (0, 1, 5_000)
    assert 60 < len(steps) <= 100
    ratios = steps[-20:] / steps[-21:-1]
    assert ratios.max() - ratios.min() < 0.01


def test_a_run_goes_on_after_the_last_recorded_step():
    options = {"steps": 40, "learning_rate": 0.05, "return_networks": True}
    _, early = descend(NETWORK, TASK, record_steps=[0, 10], **options)
    _, whole = descend(NETWORK, TASK, record_steps=[0, 40], **options)
    assert np.array_equal(early.first, whole.first)


def test_a_second_call_does_not_compile_again():
    traces = []

    def counted(network):
        traces.append(1)
        return jnp.sum(network.first**2, axis=1)

    def run(rates, steps, seed):
        return descend(
            NETWORK,
            TASK,
            steps=steps,
            learning_rate=rates,
            record_steps=[0, steps // 2, steps],
            batch_size=2,
            seed=seed,
            statistics={"norm": (counted, ["feature"])},
        )

    record = run([0.1, 0.2], 10, seed=0)
    once = len(traces)
    run([0.3, 0.4], 50, seed=1)
    assert once == len(traces) > 0
    assert record.norm.dims == ("learning_rate", "step", "feature")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_precision_of_the_weights_is_kept_and_no_setting_changes(dtype):
    before = jax.config.jax_enable_x64
    network = jax.tree.map(lambda w: w.astype(dtype), NETWORK)
    record, end = descend(network, TASK, steps=10, learning_rate=0.1, batch_size=3, return_networks=True)
    assert record.loss.dtype == end.first.dtype == dtype
    assert jax.config.jax_enable_x64 == before


def test_divergence_names_the_members_the_step_and_the_remedy():
    with pytest.raises(DivergenceError, match=r"1 of 2 members \(learning_rate 50\).*smaller learning rate") as caught:
        descend(NETWORK, TASK, steps=100, learning_rate=[0.1, 50.0])
    # Gradient descent is unstable by a factor of about a hundred in each step.
    assert 0 < caught.value.time <= 50.0 * 20


def test_an_explosion_is_noticed_before_it_leaves_the_finite_numbers():
    class Line(eqx.Module):
        w: np.ndarray

        def __call__(self, x):
            return self.w * x

    task = Task([[1.0], [1.0]], [[1.0], [1.0]])
    # The distance to the solution is multiplied by 1 − 3 = −2, and the loss by 4, in each step.
    assert descend(Line(np.array(0.0)), task, steps=10, learning_rate=3.0).loss[-1] == pytest.approx(4.0**10 / 2)
    with pytest.raises(DivergenceError, match="exploded by step 20"):
        descend(Line(np.array(0.0)), task, steps=20, learning_rate=3.0, record_steps=[0, 10, 20])


@given(seed=st.integers(0, 10_000), rate=st.floats(1e-3, 0.05))
@settings(max_examples=15)
def test_small_steps_never_increase_the_loss(seed, rate):
    network = TwoLayer(2, 4, 1, seed=seed)
    loss = descend(network, TASK, steps=100, learning_rate=rate, scale=0.7).loss.to_numpy()
    assert np.all(np.diff(loss) <= 1e-15)


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"steps": 0}, "steps"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"learning_rate": {"third": 1.0}}, "learning_rate"),
        ({"scale": np.nan}, "scale"),
        ({"batch_size": 5}, "batch_size"),
        ({"batch_size": 0}, "batch_size"),
        ({"record_steps": 1}, "record_steps"),
        ({"record_steps": [0, 0]}, "record_steps"),
        ({"record_steps": [0, 11]}, "record_steps"),
        ({"optimizer": "magic"}, "optimizer"),
    ],
)
def test_bad_input_names_the_argument(options, argument):
    with pytest.raises(InputError) as caught:
        descend(NETWORK, TASK, **{"steps": 10, "learning_rate": 0.1, **options})
    assert caught.value.argument == argument

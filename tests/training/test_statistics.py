import equinox as eqx
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.networks import TwoLayer
from dynascope.tasks import Task
from dynascope.training import Descent, Largest, Latest, Recursion, Sampled, Total, descend, squared_norms

draw = np.random.default_rng(0)
TASK = Task(draw.normal(size=(6, 2)), draw.normal(size=(6, 1)))
NETWORK = TwoLayer(2, 3, 1, seed=1)
STEPS, RATE, SIZE = 9, 0.05, 2


def charge(weights):
    """W₁ᵀW₁ − W₂W₂ᵀ, conserved by gradient flow."""
    return weights.first.T @ weights.first - weights.second @ weights.second.T


def change(step):
    return step.learning_rate**2 * charge(step.gradient)


# A step of descent changes the charge by η² times that of the gradient, and by nothing else.
ALL = {
    "path": Total(lambda step: squared_norms(step.update), ["group"]),
    "steepest": Largest(lambda step: squared_norms(step.gradient, {"first": "first"})[0]),
    "batch_loss": Latest(lambda step: step.loss),
    "some": Sampled(lambda step: step.loss, [0, 1, 4, 8]),
    "mean_gradient": Recursion(
        lambda weights: jnp.zeros(()), lambda state, step: 0.5 * state + jnp.sum(step.gradient.first)
    ),
    "distance": Latest(lambda step: squared_norms(step.displacement), ["group"]),
    "noise": Latest(lambda step: jnp.sum((step.gradient.first - step.full_gradient.first) ** 2)),
    "moment": Latest(lambda step: jnp.sum(step.optimizer_state[0].trace.first)),
}


def momentum(rate):
    return optax.sgd(rate, momentum=0.9)


@pytest.fixture(scope="module")
def run():
    return descend(
        TASK,
        [NETWORK, TwoLayer(2, 3, 1, seed=2)],
        Descent(
            momentum,
            learning_rate=RATE,
            steps=STEPS,
            batches=SIZE,
            save=[0, 4, STEPS],
            statistics={**ALL, "rows": Sampled(lambda step: step.batch.inputs, [0, 1, 4, 8], ["sample", "feature"])},
        ),
    )


@pytest.fixture(scope="module")
def by_hand():
    """The same steps in NumPy, on all batches of the first member, which another run tells."""
    told = {"inputs": Sampled(lambda step: step.batch.inputs, range(STEPS), ["sample", "feature"])}
    options = {"learning_rate": RATE, "batches": SIZE, "optimizer": momentum}
    batches = descend(TASK, NETWORK, Descent(steps=STEPS, save=[0, STEPS], statistics=told, **options))
    first, second = NETWORK.first.copy(), NETWORK.second.copy()
    before, trace = (first.copy(), second.copy()), (np.zeros_like(first), np.zeros_like(second))
    steps = []
    for inputs in batches["inputs"].to_numpy():
        rows = [int(np.argmin(np.abs(TASK.inputs - x).sum(axis=1))) for x in inputs]
        loss, gradient = loss_and_gradient(first, second, rows)
        trace = tuple(0.9 * old + new for old, new in zip(trace, gradient, strict=True))
        update = tuple(-RATE * each for each in trace)
        noise = gradient[0] - loss_and_gradient(first, second, range(6))[1][0]
        first, second = first + update[0], second + update[1]
        distance = [np.sum((first - before[0]) ** 2), np.sum((second - before[1]) ** 2)]
        steps.append((loss, gradient, update, trace, distance, np.sum(noise**2)))
    return steps


def loss_and_gradient(first, second, rows):
    x, y = TASK.inputs[list(rows)], TASK.targets[list(rows)]
    residual = x @ first @ second - y
    loss = np.sum(residual**2) / (2 * len(x))
    return loss, (x.T @ residual @ second.T / len(x), (x @ first).T @ residual / len(x))


@pytest.mark.slow
def test_every_statistic_is_that_of_steps_by_hand(run, by_hand):
    one = run.isel(seed=0)
    squares = np.array([[np.sum(each**2) for each in update] for _, _, update, *_ in by_hand])
    # The same arithmetic in another order.
    near = {"rel": 1e-11, "abs": 1e-14}
    assert one["path"].to_numpy() == pytest.approx(np.stack([squares[:n].sum(axis=0) for n in (0, 4, 9)]), **near)
    slopes = [np.sum(gradient[0] ** 2) for _, gradient, *_ in by_hand]
    assert one["steepest"].to_numpy()[1:] == pytest.approx([max(slopes[:4]), max(slopes)], **near)
    losses = [loss for loss, *_ in by_hand]
    assert one["batch_loss"].to_numpy()[1:] == pytest.approx([losses[3], losses[8]], **near)
    assert one["some"].to_numpy() == pytest.approx([losses[s] for s in (0, 1, 4, 8)], **near)
    assert one["distance"].to_numpy()[1:] == pytest.approx(np.array([by_hand[3][4], by_hand[8][4]]), **near)
    assert one["noise"].to_numpy()[1:] == pytest.approx([by_hand[3][5], by_hand[8][5]], **near)
    assert one["moment"].to_numpy()[2] == pytest.approx(np.sum(by_hand[8][3][0]), **near)
    mean = 0.0
    for _, gradient, *_ in by_hand:
        mean = 0.5 * mean + np.sum(gradient[0])
    assert one["mean_gradient"].to_numpy()[2] == pytest.approx(mean, **near)


@pytest.mark.slow
def test_before_the_first_step_there_is_nothing(run):
    start = run.isel(step=0)
    assert np.all(start["path"] == 0)
    assert np.all(np.isneginf(start["steepest"]))
    assert np.all(np.isnan(start["batch_loss"]))
    assert run["some"].dims == ("seed", "sampled_step")
    assert run["rows"].dims == ("seed", "sampled_step", "sample", "feature")


@pytest.mark.slow
def test_descent_changes_the_charge_by_the_square_of_the_rate_times_that_of_the_gradient():
    changed = {"changed": Total(lambda step: jnp.sum(change(step)))}
    run, end = descend(
        TASK,
        NETWORK,
        Descent(learning_rate=RATE, steps=200, batches=SIZE, save=[0, 200], statistics=changed),
        return_networks=True,
    )
    # An identity of every step; what rounds off is 200 additions of numbers of the size of the charge.
    assert float(run["changed"][1]) == pytest.approx(np.sum(charge(end)) - np.sum(charge(NETWORK)), abs=1e-13)


class Line(eqx.Module):
    w: np.ndarray

    def __call__(self, x):
        return x * self.w


LINE = Line(np.ones(1, np.float32))
TINY = {"tiny": Total(lambda step: jnp.where(step.index == 0, jnp.float32(1e8), jnp.float32(1)))}


@pytest.mark.slow
def test_a_total_keeps_what_single_precision_rounds_off():
    task = Task(np.ones((2, 1)), np.ones((2, 1)))
    run = descend(task, LINE, Descent(learning_rate=0.1, steps=1001, save=[1001], statistics=TINY))
    # Added one after the other, each 1 would be lost beside 1e8, of which neighbours are 8 apart.
    assert float(run["tiny"][0]) == np.float32(1e8 + 1000)


ACCUMULATED = {"path": Total(lambda step: squared_norms(step.update), ["group"])}


@pytest.mark.slow
def test_memory_does_not_grow_with_the_steps(monkeypatch):
    from dynascope.training import loop

    def memory(steps):
        found = []

        def lower(*arguments):
            if not found:
                compiled = program.lower(*arguments).compile().compiled.memory_analysis()
                found.append(compiled.temp_size_in_bytes + compiled.output_size_in_bytes)
            return program(*arguments)

        monkeypatch.setattr(loop, "advance", lower)
        options = {"steps": steps, "learning_rate": 1e-3, "save": [0, steps]}
        descend(TASK, NETWORK, Descent(statistics=ACCUMULATED, **options))
        return found[0]

    program = loop.advance
    assert memory(10) == memory(1000)


@given(values=st.lists(st.floats(-10, 10), min_size=6, max_size=6))
@settings(max_examples=5)
def test_groups_add_up_to_the_whole(values):
    network = eqx.tree_at(lambda each: each.first, NETWORK, np.reshape(values, (2, 3)))
    whole, parts = squared_norms(network), squared_norms(network, {"both": "first", "other": "second"})
    assert np.asarray(parts) == pytest.approx(np.asarray(whole))
    assert float(whole[0]) == pytest.approx(np.sum(np.square(values)), rel=1e-6)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("statistics", "message"),
    [
        ({"loss": Total(lambda step: step.loss)}, "has the name 'loss'"),
        ({"path": lambda step: step.loss}, "Total, Largest"),
        ({"path": Total(lambda step: step.loss, ["unit"])}, "unit"),
        ({"some": Sampled(lambda step: step.loss, [0, 50])}, "from 0 to 8"),
        (
            {"one": Sampled(lambda step: step.loss, [0, 5]), "two": Sampled(lambda step: step.loss, [0, 6])},
            "same steps",
        ),
    ],
)
def test_step_statistics_that_do_not_fit_are_refused(statistics, message):
    with pytest.raises(InputError, match=message) as caught:
        descend(TASK, NETWORK, Descent(learning_rate=RATE, steps=STEPS, statistics=statistics))
    assert caught.value.argument == "statistics"


def test_a_group_must_name_weights():
    with pytest.raises(InputError, match="first, second"):
        squared_norms(NETWORK, {"other": "third"})


def test_steps_to_sample_must_increase():
    with pytest.raises(InputError, match="increasing"):
        Sampled(lambda step: step.loss, [3, 1])


def test_recursions_of_the_same_two_functions_are_the_same_whatever_they_record():
    def start(weights):
        return jnp.zeros(())

    def following(state, step):
        return state + step.loss

    recorded = (None, lambda state: 3 * state)
    statistics = {f"sum {place}": Recursion(start, following, each) for place, each in enumerate(recorded)}
    run = descend(TASK, NETWORK, Descent(learning_rate=RATE, steps=3, save=[3], statistics=statistics))
    np.testing.assert_allclose(run["sum 1"], 3 * run["sum 0"], rtol=1e-14)
    assert float(run["sum 0"][0]) > 0

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.flows import GradientFlow, blocks, ensemble, gradient_flow
from dynascope.flows.ensemble import gather
from dynascope.networks import DeepLinear, DiagonalLinear, TwoLayer
from dynascope.tasks import Expectation, Task
from dynascope.training import Descent, descend

TASK = Task([[1.0, 0.5], [-0.3, 2.0], [0.7, -1.1]], [[1.0], [-0.5], [0.8]])


class Frozen(eqx.Module):
    """A network with a part that is no weight."""

    w: np.ndarray
    shift: int

    def __call__(self, x):
        return x @ self.w + self.shift


def test_members_are_all_combinations_with_the_last_dimension_fastest():
    networks = [TwoLayer(2, 3, 1, seed=seed) for seed in (4, 5)]
    gathered = gather(TASK, networks, [0.1, 1.0], [1.0, 2.0, 3.0])
    assert gathered.shape == (2, 2, 3)
    assert list(gathered.dimensions) == ["seed", "scale", "learning_rate"]
    first = gathered.weights.first.reshape(2, 2, 3, 2, 3)
    assert np.array_equal(first[1, 0, 2], 0.1 * networks[1].first)
    assert np.array_equal(gathered.rates.reshape(2, 2, 3)[0, 1], [1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("network", "scale", "rate", "dimensions"),
    [
        (TwoLayer(2, 3, 1), 0.1, 1.0, []),
        ([TwoLayer(2, 3, 1)], 0.1, 1.0, ["seed"]),
        (TwoLayer(2, 3, 1), [0.1], 1.0, ["scale"]),
        (TwoLayer(2, 3, 1), 0.1, np.array([1.0, 2.0]), ["learning_rate"]),
        (TwoLayer(2, 3, 1), [0.1, 0.2], {"first": 1.0, "second": 2.0}, ["scale"]),
    ],
)
def test_a_dimension_is_there_when_a_list_was_given(network, scale, rate, dimensions):
    gathered = gather(TASK, network, scale, rate)
    assert list(gathered.dimensions) == dimensions
    assert gathered.weights.first.ndim == 2 + bool(dimensions)


def test_rates_are_named_by_the_weight_or_by_a_part_that_holds_it():
    network = DeepLinear((2, 3, 3, 1))
    rates = gather(TASK, network, 1.0, {"weights": 1.0, "weights.1": 0.5}).rates
    assert [float(rate) for rate in rates.weights] == [1.0, 0.5, 1.0]


@pytest.mark.parametrize(
    ("rates", "message"),
    [
        ({"first": 1.0, "third": 1.0}, "'third'.*first, second"),
        ({"first": 1.0}, "no rate for 'second'"),
        ({"first": 1.0, "second": -1.0}, "-1"),
    ],
)
def test_rates_must_name_each_weight_and_nothing_else(rates, message):
    with pytest.raises(InputError, match=message):
        gather(TASK, TwoLayer(2, 3, 1), 1.0, rates)


@pytest.mark.parametrize(
    ("networks", "message"),
    [
        ([], "list of networks is empty"),
        ([TwoLayer(2, 3, 1), TwoLayer(2, 4, 1)], "differ in structure"),
        ([TwoLayer(2, 3, 1), TwoLayer(2, 3, 1, activation="relu")], "differ in structure"),
        ([Frozen(np.ones((2, 1)), 0), Frozen(np.ones((2, 1)), 1)], "differ in structure"),
        (Frozen(np.ones((2, 1), np.float16), 0), "float16"),
        (Frozen(np.full((2, 1), np.nan), 0), "not finite"),
        (Frozen(np.ones((2, 1), int), 0), "no weights"),
    ],
)
def test_networks_that_cannot_be_trained_together_are_refused(networks, message):
    with pytest.raises(InputError, match=message):
        gather(TASK, networks, 1.0, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize(("cores", "cache"), [(1, 1), (2, 10**9), (3, 3000), (64, 1)])
def test_results_do_not_depend_on_how_members_are_batched(monkeypatch, cores, cache):
    # Each case has its own number of members, because compiled programs are kept.
    networks = [TwoLayer(2, 3, 1, seed=seed) for seed in range(7 + cores)]
    monkeypatch.setattr(blocks, "_CACHE", cache)
    monkeypatch.setattr(ensemble.os, "cpu_count", lambda: cores)
    together = descend(TASK, networks, Descent(learning_rate=0.1, steps=20)).loss.to_numpy()
    alone = [descend(TASK, network, Descent(learning_rate=0.1, steps=20)).loss.to_numpy() for network in networks]
    # Sums in another order.
    assert together == pytest.approx(np.stack(alone), abs=1e-13)


def test_a_record_says_what_was_run_and_follows_the_names_of_the_task():
    task = Task(TASK.inputs, TASK.targets, name="named", feature_names=("width", "height"))
    record = descend(
        task,
        TwoLayer(2, 3, 1),
        Descent(
            learning_rate={"first": 0.1, "second": 0.2},
            steps=5,
            statistics={
                "power": (lambda network: jnp.sum(network.first**2, axis=1), ["feature"]),
                "gain": (lambda network: jnp.abs(network.second[:, 0]), ["neuron"]),
            },
        ),
        scale=0.5,
    )
    assert list(record.feature.to_numpy()) == ["width", "height"]
    assert list(record.neuron.to_numpy()) == [0, 1, 2]
    assert record.attrs["task"] == "named"
    assert record.attrs["network"] == "TwoLayer"
    assert record.attrs["scale"] == 0.5
    assert record.attrs["learning_rate"] == {"first": 0.1, "second": 0.2}
    # The time of a step is that of the fastest layer.
    assert record.time.to_numpy()[-1] == pytest.approx(1.0)


def test_axes_without_a_name_are_refused():
    with pytest.raises(InputError, match="give one name for each axis"):
        descend(
            TASK,
            TwoLayer(2, 3, 1),
            Descent(learning_rate=0.1, steps=2, statistics={"weights": (lambda network: network.first, ["feature"])}),
        )


def test_a_loss_that_rounds_below_zero_is_recorded_as_zero_and_any_other_is_refused():
    def expected(below):
        return Expectation(lambda network: jnp.sum((network.coefficients - 1) ** 2) - below, "one that ends below zero")

    start = DiagonalLinear(2).with_neurons(np.full((2, 2), 0.5))
    loss = gradient_flow(expected(1e-13), start, GradientFlow(duration=20.0, save=5))["loss"].to_numpy()
    assert (loss[0], loss[-1]) == (pytest.approx(1.125), 0.0)
    with pytest.raises(InputError, match="minimum of"):
        gradient_flow(expected(0.1), start, GradientFlow(duration=20.0, save=5))

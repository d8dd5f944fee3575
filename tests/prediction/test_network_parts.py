from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drawn_modules import drawn

from dynascope import predict, probes, which
from dynascope.errors import InputError
from dynascope.networks import MLP
from dynascope.prediction.network_parts import network_parts, unread
from dynascope.tasks import Task

X = np.random.default_rng(0).normal(size=(12, 3))
TASK = Task(X, X[:, :2] + X[:, 1:])


class Picture(eqx.Module):
    """A user's module that takes an image."""

    convolution: eqx.nn.Conv2d
    last: eqx.nn.Linear

    def __call__(self, x):
        return self.last(jax.numpy.tanh(self.convolution(x)).ravel())


DEEP = drawn(eqx.nn.MLP, 3, 2, 32, 3)
PICTURE = Picture(drawn(eqx.nn.Conv2d, 1, 2, 3), drawn(eqx.nn.Linear, 8, 2))


def test_parts_say_what_a_network_is_and_what_is_in_the_way():
    attention = drawn(eqx.nn.MultiheadAttention, 2, 4)
    normalised = eqx.nn.Sequential([drawn(eqx.nn.Linear, 3, 4), eqx.nn.LayerNorm(4)])
    found = {
        "deep": network_parts(DEEP),
        "picture": network_parts(PICTURE),
        "attention": network_parts(attention),
        "recurrence": network_parts(drawn(eqx.nn.GRUCell, 3, 4)),
        "normalised": network_parts(normalised),
    }
    assert "4 linear layers and relu" in found["deep"].name
    assert "4 linear layers" in dict(found["deep"].obstacles)["alternating-flow"]
    assert "convolutions" in found["picture"].name
    assert [name for name, _ in found["attention"].obstacles] == ["linear-attention"]
    assert found["recurrence"].name.endswith("recurrence")
    assert dict(found["normalised"].obstacles)["alternating-flow"]


def test_a_module_that_no_theory_reads_has_an_answer_all_the_same():
    answer = which(TASK, DEEP)
    found = {each.name: each for each in answer}
    assert "4 linear layers" in answer.network
    assert "4 linear layers" in found["alternating-flow"].obstacle
    assert found["kernel-regression"].assumptions[0].value > 0  # it is a function of rows, and so it is measured
    assert answer.observing[0] in str(answer)
    picture = {each.name: each for each in which(TASK, PICTURE)}
    assert all(each in picture["kernel-regression"].obstacle for each in ("ValueError", "(3,)", "(2,)"))
    assert "shape (5,)" in str(which(TASK, drawn(eqx.nn.MLP, 3, 5, 8, 3)))


def test_a_deep_module_of_equinox_is_predicted_by_its_kernel_when_asked_for():
    few = Task(X[:4], 0.05 * TASK.targets[:4])
    predicted = predict(few, DEEP, theory="kernel-regression", scale=3.0).record
    assert predicted.attrs["theory_name"] == "kernel-regression"
    with pytest.raises(InputError, match="4 linear layers with activations or other layers between"):
        predict(few, DEEP, scale=3.0)


@pytest.mark.slow
@pytest.mark.parametrize(("network", "inputs"), [(DEEP, X), (PICTURE, np.ones((4, 1, 4, 4)))])
def test_the_kernel_of_the_answer_is_computed_by_its_call(network, inputs):
    known = {"network": network, "INPUTS": inputs, "jax": jax, "probes": probes}
    exec("\n".join(which(TASK, network).observing), known)
    assert known["before"].shape == (len(inputs), 2, len(inputs), 2)
    np.testing.assert_array_equal(known["after"], known["before"])


@pytest.mark.slow
def test_modules_of_pytorch_are_told_by_their_parts():
    torch = pytest.importorskip("torch")
    nn = torch.nn
    image = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2)).eval()
    bent = nn.Sequential(nn.Linear(3, 4, bias=False), nn.Tanh(), nn.Linear(4, 2, bias=False))
    answer = which(TASK, image)
    assert all(part in answer.network for part in ("convolutions", "normalisation"))
    assert {each.name for each in answer} == {"alternating-flow", "kernel-regression"}
    assert "Tanh" in {each.name: each for each in which(TASK, bent)}["alternating-flow"].obstacle
    for network, inputs in ((image, nn.init.normal_(torch.empty(20, 1, 4, 4))), (bent, torch.tensor(X).float())):
        known = {"network": network, "INPUTS": inputs, "probes": probes}
        exec("\n".join(which(TASK, network).observing), known)
        assert tuple(known["before"].shape) == (len(inputs), 2, len(inputs), 2)


def test_networks_that_theories_read_have_no_problem_and_what_is_no_network_is_refused():
    assert unread(MLP((3, 4, 2))) == ""
    assert which(TASK, MLP((3, 4, 4, 2)), scale=1.0).observing[0].startswith("observe(task, network")
    for scale in (None, 1.0):
        with pytest.raises(InputError, match="network has type function") as caught:
            which(TASK, lambda x: "frob", scale=scale)
        assert caught.value.argument == "network"


class Product(eqx.Module):
    """Two linear layers without bias, in code that nobody reads."""

    first: jax.Array
    second: jax.Array

    def __call__(self, x):
        return x @ self.first @ self.second


class Stacked(eqx.Module):
    """Layers that are called in code of its own."""

    layers: list

    def __call__(self, x):
        for layer in self.layers:
            x = jax.nn.relu(layer(x))
        return x


def test_what_is_in_code_of_its_own_is_said_to_be_in_the_way():
    three = Stacked([drawn(eqx.nn.Linear, 3, 3), drawn(eqx.nn.Linear, 3, 3), drawn(eqx.nn.Linear, 3, 2)])
    for network, nearest in (
        (Product(jnp.ones((3, 4)), jnp.ones((4, 2))), "alternating-flow"),
        (three, "deep-isotropic"),
    ):
        obstacles = dict(network_parts(network).obstacles)
        assert "equinox.nn" in obstacles[nearest]
        assert all(obstacles.values())


@pytest.mark.parametrize(("mean", "status"), [(0.0, "applies"), (1e-2, "almost"), (1.0, "no")])
def test_linear_layers_with_biases_are_covered_on_centred_data(mean, status):
    layers = [drawn(eqx.nn.Linear, 3, 4), drawn(eqx.nn.Linear, 4, 2)]
    network = jax.tree.map(lambda leaf: 1e-4 * leaf if eqx.is_array(leaf) else leaf, eqx.nn.Sequential(layers))
    inputs = np.random.default_rng(0).normal(size=(30, 3))
    targets = inputs @ np.array([[1.0, 0.2], [0.0, -0.7], [0.5, 0.1]])
    task = Task(inputs - inputs.mean(axis=0) + mean, targets - targets.mean(axis=0))
    first = next(each for each in which(task, network) if each.name == "linear-staircase")
    assert first.status == status
